import { computed, effect, signal } from '@preact/signals'
import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { call, CallError, follow, type Live } from '../../../protocol/ui/live.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { type NoticeAction, say } from '../../../protocol/ui/notices.tsx'
import { keep, readKept } from './kept.ts'
import type { LocalState } from './local-state.ts'
import { pictureOf } from './picture-of.ts'
import { causeOf } from './words.ts'

/** The current view. The address contains it, so that “back” and a reload work. */
export const view = signal<'hub' | 'acceptance'>('hub')
const followAddress = (): void => void (view.value = location.hash === '#acceptance' ? 'acceptance' : 'hub')
addEventListener('hashchange', followAddress)
followAddress()

/** Whether the browser has a login: unknown until the hub has answered. */
export const login = signal<'unknown' | 'needed' | 'there'>('unknown')
export const hardware = signal<HardwareDescription | null>(null)
export const software = signal('')
export const selected = signal<string | null>(null)
const live = signal<Live<LocalState> | null>(null)

/** State of the hub from an earlier load of this page. */
const seenBefore = signal<LocalState | null>(null)

export const state = computed(() => live.value?.state.value ?? seenBefore.value)
export const isConnected = computed(() => live.value?.isConnected.value ?? false)
/** The time of the last received state on the browser's clock, milliseconds; null before the first state. */
export const heardAt = signal<number | null>(null)
effect(() => {
  if (live.value?.state.value && isConnected.value) heardAt.value = epochMs()
})
export const picture = computed(() =>
  hardware.value && state.value ? pictureOf(hardware.value, state.value) : null,
)
/** The product's display name. */
export const productName = (id: number | null): string =>
  state.value?.stock.find(({ product_id, name }) => product_id === id && name !== null)?.name ??
  `product ${id ?? '?'}`

/** The running actions: a motion takes seconds. */
export const running = signal<ReadonlySet<string>>(new Set())

/** Why the hub cannot use its storage. Also shown before the login, because the token may be on the same card. */
export const storageProblem = signal<string | null>(null)

interface Session {
  logged_in: boolean
  storage?: { message: string; remedy: string }
}

export async function enter(): Promise<void> {
  try {
    const { logged_in: isLoggedIn, storage } = await call<Session>('GET', 'api/session')
    storageProblem.value = storage ? `${storage.message}. ${storage.remedy}` : null
    if (!isLoggedIn) return void (login.value = 'needed')
    const answer = await call<{ hardware: HardwareDescription; software: string }>('GET', 'api/hardware')
    hardware.value = answer.hardware
    software.value = answer.software
    login.value = 'there'
    followHub()
  } catch (error) {
    if (error instanceof CallError && error.status === 401) login.value = 'needed'
    else if (error instanceof CallError || !enterWithoutNetwork()) say(causeOf(error), true)
  }
}

function followHub(): void {
  live.value ??= follow<LocalState>('api/live', {}, { whileHidden: 'api/state' })
}

/**
 * Shows the last known state if the hub cannot be reached; counting still works. Returns false if there is no
 * known state.
 */
function enterWithoutNetwork(): boolean {
  const { seen } = readKept()
  if (!seen) return false
  hardware.value = seen.hardware
  software.value = seen.software
  seenBefore.value = seen.state
  heardAt.value = seen.at
  login.value = 'there'
  followHub()
  return true
}

export async function signIn(token: string, name = ''): Promise<void> {
  try {
    await call('POST', 'api/login', { token, ...(name !== '' && { name }) })
    await enter()
  } catch (error) {
    say(causeOf(error), true)
    login.value = 'needed'
  }
}

export async function signOut(): Promise<void> {
  await call('POST', 'api/logout')
  live.value?.close()
  live.value = null
  seenBefore.value = null
  keep({ seen: null })
  login.value = 'needed'
}

/**
 * Sends an action to the hub, and shows its outcome with the cause of a failure. Returns false if it failed.
 * `quiet`: a success shows no notice, because the page shows it anyway. A `NoticeAction` is offered with the
 * notice, as an undo.
 */
export async function act(
  what: string,
  path: string,
  body: object = {},
  how: 'aloud' | 'quiet' | NoticeAction = 'aloud',
): Promise<boolean> {
  running.value = new Set([...running.value, what])
  try {
    await call('POST', `api/${path}`, body)
    if (how !== 'quiet') say(`${what}: done.`, false, how === 'aloud' ? undefined : how)
    return true
  } catch (error) {
    say(`${what}: ${causeOf(error)}`, true)
    return false
  } finally {
    running.value = new Set([...running.value].filter((one) => one !== what))
  }
}

// A code on the console, or a link, may contain the token after `#token=`. Browsers do not send this part
// over the network.
const given = /^#token=(\S+)$/.exec(location.hash)?.[1]
if (given === undefined) void enter()
else {
  history.replaceState(null, '', location.pathname)
  void signIn(decodeURIComponent(given))
}
