import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { NotifyButton } from './announce.tsx'
import { FindRow } from './find-row.tsx'
import { OtherHubs } from './other-hubs.tsx'
import { rowsToRefill } from './refill.tsx'
import { act, hardware, productName, running, software, state, login } from './store.ts'
import { syncText } from './texts.ts'
import { effect, signal } from '@preact/signals'
import { Pause, Play } from 'lucide'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call } from '../../../protocol/ui/call-program.ts'
import { pause } from '../../../protocol/ui/live.ts'
import {
  logLines,
  LogView,
  type LeastLevel,
  type LogLine,
  type LogRecord,
} from '../../../protocol/ui/log-lines.tsx'

const phases: Readonly<Record<string, string>> = {
  queued: 'waits its turn',
  recovering: 'is looked into after a loss',
  preparing: 'is being dispensed',
  ready: 'waits for its customer',
  collecting: 'is being collected',
}

/** Cloud entries that this hub could not apply. */
function DeadLetters(): JSX.Element | null {
  const letters = state.value!.dead_letters
  if (letters.length === 0) return null
  return (
    <div data-letters>
      <h3 class="font-medium">What the cloud sent and this hub could not apply</h3>
      <ul>
        {letters.map(({ id, kind, error, at }) => (
          <li key={id} class="py-1 border-b border-base-300 text-sm flex items-center gap-2">
            <span class="grow min-w-0 break-words">
              <b>{kind ?? 'an entry'}</b>: {error} <span class="quiet">{new Date(at).toLocaleString()}</span>
            </span>
            <HoldButton
              class="btn-sm"
              label={`Drop dead letter ${id}`}
              onHeld={() => void act('Drop it', `dead-letters/${id}/drop`)}
            >
              Drop
            </HoldButton>
          </li>
        ))}
      </ul>
      <button class="btn btn-sm mt-2" onClick={() => void act('Request all data', 'dead-letters/replay')}>
        Request all data from the cloud
      </button>
    </div>
  )
}

/** Stops or resumes the sale at the hub, with an undo. */
function Intake(): JSX.Element {
  const { health, held } = state.value!
  const hold = (isHeld: boolean): void => {
    const what = isHeld ? 'Stop orders' : 'Resume orders'
    const undo = { label: 'Undo', run: () => hold(!isHeld) }
    void act(what, 'hold/orders', { held: isHeld }, undo)
  }
  return (
    <div class="grid gap-2">
      <p class="min-h-[2lh]" data-intake>
        {health.accepting_orders
          ? 'Orders are taken.'
          : held.orders
            ? 'The hub takes no orders: a person has stopped them here.'
            : 'No orders are taken: an owner has stopped them, or no bin is in use.'}
      </p>
      {held.orders ? (
        <button class="btn btn-success justify-self-start" onClick={() => hold(false)}>
          Resume orders
        </button>
      ) : (
        <HoldButton class="btn-warning justify-self-start" onHeld={() => hold(true)}>
          Stop orders
        </HoldButton>
      )}
    </div>
  )
}

function MainDoor(): JSX.Element {
  const what = 'Unlock the main door for 30 s'
  return (
    <div class="grid gap-2">
      <h3 class="font-medium">Main door</h3>
      <HoldButton
        class="justify-self-start"
        isBusy={running.value.has(what)}
        onHeld={() => void act(what, 'doors/main/unlock', { for_ms: 30_000 })}
      >
        {what}
      </HoldButton>
    </div>
  )
}

function Service(): JSX.Element {
  return (
    <details class="collapse collapse-arrow border border-base-300">
      <summary class="collapse-title font-medium py-3 min-h-0">The service</summary>
      <div class="collapse-content grid gap-2">
        <p class="text-sm">{software.value}</p>
        <p class="quiet text-sm">
          A restart takes seconds. Controllers finish their movements, and no order is lost.
        </p>
        <HoldButton class="btn-warning justify-self-start" onHeld={() => void act('Restart', 'restart')}>
          Restart the service
        </HoldButton>
        <NotifyButton />
      </div>
    </details>
  )
}

function UnderWay(): JSX.Element {
  const underWay = state.value!.orders.filter(({ phase }) => phase in phases)
  return (
    <div>
      <h3 class="font-medium">Under way</h3>
      {underWay.length === 0 && <p class="quiet text-sm">No order.</p>}
      <ul>
        {underWay.map((order) => (
          <li key={order.order_id} class="py-1 border-b border-base-300 text-sm">
            <b>Order {order.order_number}</b> {phases[order.phase]}
            {order.bins.length > 0 ? `, bin ${order.bins.join(', ')}` : ''}:{' '}
            {order.lines
              .map(
                ({ product_id, dropped, quantity }) => `${productName(product_id)} ${dropped} of ${quantity}`,
              )
              .join(', ')}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** The hub as a whole. Lists that grow on their own are last, so that no button moves. */
export function HubPanel(): JSX.Element {
  return (
    <div class="grid gap-4">
      <h2 class="text-lg font-semibold" tabindex={-1}>
        Hub {hardware.value?.hubId}
      </h2>
      <FindRow />
      <a href="#refill" class="btn btn-primary justify-self-start">
        Refill: {rowsToRefill(state.value!.stock).length} rows
      </a>
      <OtherHubs />
      <Intake />
      <a href="#acceptance" class="btn justify-self-start">
        {state.value!.acceptance.id === null ? 'Accept this hub, step by step' : 'Continue the acceptance'}
      </a>
      <MainDoor />
      <RecentView />
      <Service />
      <p class="text-sm" data-sync>
        {syncText(state.value!.sync).text}
      </p>
      <UnderWay />
      <DeadLetters />
    </div>
  )
}

/** The fields of `GET /api/recent` that the page uses (`edge/recent.ts`). */
interface Recent {
  log: LogRecord[]
  wire: { at: number; controller: string; direction: 'in' | 'out'; line: string }[]
}

const recent = signal<Recent>({ log: [], wire: [] })
const view = signal<'log' | 'wire'>('log')
const level = signal<LeastLevel>('all')
const isOpen = signal(false)
const isPaused = signal(false)

/** As many as the hub stores by default. */
const STORED = 2000
const AGAIN_MS = 2000

let isReading = false
effect(() => {
  if (isOpen.value && !isPaused.value && login.value === 'there' && !isReading) void readOn()
})

/** Reads the new lines at intervals, while a person sees them. A failure shows in the page's header. */
async function readOn(): Promise<void> {
  isReading = true
  while (isOpen.peek() && !isPaused.peek() && login.peek() === 'there') {
    const { log, wire } = recent.peek()
    const since = Math.min(...[log, wire].map((lines) => lines.at(-1)?.at ?? 0))
    const news = await call<Recent>('GET', `api/recent?since=${since}`).catch(() => null)
    if (news) recent.value = { log: joined(log, news.log, since), wire: joined(wire, news.wire, since) }
    await pause(AGAIN_MS)
  }
  isReading = false
}

/** The hub sends the lines of the last millisecond again. */
const joined = <T extends { at: number }>(old: readonly T[], news: readonly T[], since: number): T[] =>
  [...old.filter(({ at }) => at < since), ...news].slice(-STORED)

function linesOf({ log, wire }: Recent): LogLine[] {
  if (view.value === 'log') return logLines(log, level.value)
  return wire.map(({ at, controller, direction, line }) => ({
    at,
    mark: direction === 'in' ? `${controller} →` : `→ ${controller}`,
    class: '',
    text: line,
    raw: '',
  }))
}

/** The recent log and serial lines of the service, as they come. */
function RecentView(): JSX.Element {
  const isWire = view.value === 'wire'
  return (
    <details
      class="collapse collapse-arrow border border-base-300"
      open={isOpen.value}
      onToggle={(event) => void (isOpen.value = event.currentTarget.open)}
    >
      <summary class="collapse-title font-medium py-3 min-h-0">Log and wire of the last minutes</summary>
      <div class="collapse-content min-w-0">
        <LogView
          lines={linesOf(recent.value)}
          name={isWire ? 'Wire' : 'Log'}
          class={isWire ? 'font-mono text-xs break-all' : ''}
          file={`hub-${hardware.value?.hubId}-${view.value}.txt`}
          {...(!isWire && {
            level: { value: level.value, onPick: (picked) => void (level.value = picked) },
          })}
        >
          {(['log', 'wire'] as const).map((name) => (
            <button
              key={name}
              class={`btn btn-sm ${view.value === name ? 'btn-primary' : ''}`}
              aria-pressed={view.value === name}
              onClick={() => void (view.value = name)}
            >
              {name === 'log' ? 'Log' : 'Wire'}
            </button>
          ))}
          <button
            class="btn btn-sm"
            aria-pressed={isPaused.value}
            onClick={() => void (isPaused.value = !isPaused.value)}
          >
            <Icon icon={isPaused.value ? Play : Pause} /> {isPaused.value ? 'Continue' : 'Pause'}
          </button>
        </LogView>
      </div>
    </details>
  )
}
