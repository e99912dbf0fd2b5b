import { computed, effect, signal } from '@preact/signals'
import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { call, CallError } from '../../../protocol/ui/call-program.ts'
import { follow, type Live } from '../../../protocol/ui/live.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { clearFailures, type NoticeAction, say } from '../../../protocol/ui/notices.tsx'
import { StoredHubs } from './kept.ts'
import type { LocalState } from '../local-state.ts'
import { motionsOf } from '../motions.ts'
import { causeOf } from './texts.ts'
import type { HubPicture, PictureDoor, PictureRow } from '../../../protocol/ui/picture-model.ts'
import type { Location } from '../../../protocol/model/location.ts'

/** The current view. The address contains it, so that “back” and a reload work. */
export const view = signal<'hub' | 'acceptance' | 'refill'>('hub')
const followAddress = (): void => {
  const named = location.hash.slice(1)
  view.value = named === 'acceptance' || named === 'refill' ? named : 'hub'
}
addEventListener('hashchange', followAddress)
followAddress()

/** Whether the browser has a login: unknown until the hub has answered. */
export const login = signal<'unknown' | 'needed' | 'there'>('unknown')
/** The name of the person who has logged in; null for the shared token without a name. */
export const person = signal<string | null>(null)
export const hardware = signal<HardwareDescription | null>(null)
export const storedHubs = new StoredHubs(() => localStorage)
export const hubId = computed(() => hardware.value?.hubId ?? null)
export const software = signal('')
export const selected = signal<string | null>(null)
const live = signal<Live<LocalState> | null>(null)

/** State of the hub from an earlier load of this page. */
const seenBefore = signal<LocalState | null>(null)

export const state = computed(() => live.value?.state.value ?? seenBefore.value)
export const isConnected = computed(() => live.value?.isConnected.value ?? false)
/** The time of the last received state on the browser's clock, milliseconds; null before the first state. */
export const receivedAt = signal<number | null>(null)
effect(() => {
  if (live.value?.state.value && isConnected.value) receivedAt.value = epochMs()
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
  person: string | null
  storage?: { message: string; remedy: string }
}

/** `GET /api/hardware` */
interface Hardware {
  hardware: HardwareDescription
  software: string
  /** Absent from an older hub. */
  motion_timeout_ms?: number
}

/** Milliseconds that a motion may take until the hub answers. */
let motionTimeoutMs = 60_000
/** Additional milliseconds for the way of request and answer. */
const WAY_MS = 15_000

/** Begins again if another hub answers at this address: a page belongs to one hub. */
function isOther(answering: number): boolean {
  const isAnother = hubId.peek() !== null && hubId.peek() !== answering
  if (isAnother) location.reload()
  return isAnother
}
effect(() => {
  const answering = live.value?.state.value?.hub_id
  if (answering !== undefined) isOther(answering)
})

export async function enter(): Promise<void> {
  try {
    const { logged_in: isLoggedIn, storage, person: name } = await call<Session>('GET', 'api/session')
    storageProblem.value = storage ? `${storage.message}. ${storage.remedy}` : null
    if (!isLoggedIn) return leave()
    person.value = name
    const answer = await call<Hardware>('GET', 'api/hardware')
    if (isOther(answer.hardware.hubId)) return
    hardware.value = answer.hardware
    software.value = answer.software
    motionTimeoutMs = answer.motion_timeout_ms ?? motionTimeoutMs
    login.value = 'there'
    followHub()
  } catch (error) {
    if (error instanceof CallError && error.status === 401) leave()
    else if (error instanceof CallError || !enterWithoutNetwork()) say(causeOf(error), true)
  }
}

function followHub(): void {
  live.value ??= follow<LocalState>(
    'api/live',
    {},
    { whileHidden: 'api/state', onRefused: () => void checkLogin() },
  )
}

/** The hub refused to report: the login may have ended, because the person was removed or its time is over. */
async function checkLogin(): Promise<void> {
  const session = await call<Session>('GET', 'api/session').catch(() => null)
  if (session?.logged_in === false) leave()
}

/** The login has ended. Entries that are not sent stay in the browser. */
export function leave(): void {
  live.value?.close()
  live.value = null
  seenBefore.value = null
  storedHubs.forgetSeen()
  login.value = 'needed'
}

/**
 * Shows the last known state if the hub cannot be reached; counting still works. Returns false if there is no
 * known state.
 */
function enterWithoutNetwork(): boolean {
  const seen = storedHubs.lastSeen()
  if (!seen || isOther(seen.hardware.hubId)) return false
  person.value = seen.person ?? null
  hardware.value = seen.hardware
  software.value = seen.software
  seenBefore.value = seen.state
  receivedAt.value = seen.at
  login.value = 'there'
  followHub()
  return true
}

/** `secret`: the person's PIN, or the hub's shared token. A PIN has only digits, and fewer than a token. */
export async function signIn(secret: string, name = ''): Promise<void> {
  const body = /^\d{4,12}$/.test(secret) ? { pin: secret } : { token: secret }
  clearFailures()
  try {
    await call('POST', 'api/login', { ...body, ...(name !== '' && { name }) })
    await enter()
  } catch (error) {
    say(causeOf(error), true)
    login.value = 'needed'
  }
}

export async function signOut(): Promise<void> {
  clearFailures()
  try {
    await call('POST', 'api/logout')
    leave()
  } catch (error) {
    say(`You are still logged in. ${causeOf(error)}`, true)
  }
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
    await call('POST', `api/${path}`, body, motionsOf(body) * motionTimeoutMs + WAY_MS)
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

/** The picture of a hub from its sensors and its journal. */
function pictureOf({ controllers }: HardwareDescription, state: LocalState): HubPicture {
  const { health, orders, held, links, foreign_controllers: foreign } = state
  const numberOf = (id: string | null): string | null => {
    const order = orders.find(({ order_id }) => order_id === id)
    return order ? `order ${order.order_number}` : null
  }
  const devices = controllers.flatMap((controller) => controller.devices)
  const door = (id: string): PictureDoor | null => {
    const found = health.doors.find((one) => one.door === id)
    if (!found) return null
    return { id, ...doorOf(found.status), trouble: alarmOf(state, `door ${id}`) }
  }
  return {
    bins: health.bins.map((bin) => ({
      id: `bin-${bin.bin_number}`,
      number: bin.bin_number,
      door: bin.door,
      lift: bin.lift,
      units: null,
      occupied: bin.occupied,
      note:
        numberOf(bin.order_id) ??
        (held.bins.includes(bin.bin_number) ? 'held' : bin.enabled ? null : 'disabled'),
      trouble:
        bin.status === 'offline' ? 'Not connected' : bin.fault_code ? `Fault: ${bin.fault_code}` : null,
    })),
    cabinets: devices
      .filter((device) => device.kind === 'cabinet')
      .map(({ number, shelves }) => ({
        id: `cabinet-${number}`,
        number,
        shelves: shelves.map(({ shelf, rows, depth }) => ({
          shelf,
          rows: Array.from({ length: rows }, (_, index) =>
            rowOf(state, { cabinet: number, shelf, row: index + 1 }, depth),
          ),
        })),
        trouble: alarmOf(state, `cabinet ${number}`),
      })),
    fridges: health.fridges.map((fridge) => ({
      id: `fridge-${fridge.fridge_number}`,
      number: fridge.fridge_number,
      celsius: fridge.temperature,
      trouble: fridge.shutoff
        ? 'Too warm for too long: not sold'
        : (unreadable(state, fridge.fridge_number) ??
          (fridge.status === 'healthy' || fridge.status === 'maintenance' ? null : fridge.status)),
      doors: health.doors
        .map((one) => one.door)
        .filter((name) => name.startsWith(`fridge_${fridge.fridge_number}_`))
        .flatMap((name) => door(name) ?? []),
    })),
    main: door('main'),
    controllers: links.map((link) => ({
      id: link.controller,
      powered: true,
      connected: link.up,
      devices: controllers
        .filter(({ id }) => id === link.controller)
        .flatMap((one) => one.devices.map(({ kind, number }) => `${kind}-${number}`)),
      traffic: 0,
      trouble: foreign.includes(link.controller)
        ? 'Not this hub’s board'
        : link.up
          ? null
          : `Not connected${link.reason === null ? '' : `: ${link.reason}`}`,
    })),
  }
}

function rowOf({ stock, alarms }: LocalState, at: Location, depth: number): PictureRow {
  const { cabinet, shelf, row } = at
  const facing = stock.find(
    ({ location }) => location.cabinet === cabinet && location.shelf === shelf && location.row === row,
  )
  // A hub that lost its journal does not know the units of a row until a person counts them.
  const isLost = alarms.some(({ code }) => code === 'journal_lost')
  return {
    shelf,
    row,
    units: facing === undefined ? 0 : facing.quantity === 0 && isLost ? null : facing.quantity,
    depth: facing?.capacity ?? depth,
    product: facing ? (facing.name ?? `product ${facing.product_id}`) : null,
    blocked: facing?.blocked ?? null,
  }
}

/** Why the fridge's temperature is unknown; null while it is known. */
function unreadable({ readings }: LocalState, fridge: number): string | null {
  const reading = readings.find(({ fridge_number }) => fridge_number === fridge)
  return reading?.why == null ? null : `Temperature unknown: ${reading.why}`
}

/** A door's state by its status. Whether an open door is locked is not known. */
const doorOf = (status: string): { open: boolean | null; locked: boolean | null } => ({
  open: status === 'unknown' ? null : status === 'open',
  locked: status === 'locked' ? true : status === 'unlocked' ? false : null,
})

const alarmOf = ({ alarms }: LocalState, subject: string): string | null =>
  alarms.find((alarm) => alarm.subject === subject)?.code.replaceAll('_', ' ') ?? null
