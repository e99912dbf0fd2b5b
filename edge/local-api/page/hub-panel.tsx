import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { NotifyButton } from './announce.tsx'
import { FindRow } from './find-row.tsx'
import { act, hardware, productName, running, software, state } from './store.ts'
import { syncText, causeOf } from './texts.ts'
import { signal } from '@preact/signals'
import { RefreshCw } from 'lucide'
import { textAtHub } from '../../../protocol/model/alarms.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { call } from '../../../protocol/ui/live.ts'
import { say } from '../../../protocol/ui/notices.tsx'

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
      <button
        class={`btn justify-self-start ${held.orders ? 'btn-success' : 'btn-warning'}`}
        onClick={() => hold(!held.orders)}
      >
        {held.orders ? 'Resume orders' : 'Stop orders'}
      </button>
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
          A restart takes seconds. What runs on controllers runs on, and no order is lost.
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
  log: { at: number; level: string; message: string; fields: Record<string, unknown> }[]
  wire: { at: number; controller: string; direction: 'in' | 'out'; line: string }[]
}

const recent = signal<Recent | null>(null)
const view = signal<'log' | 'wire'>('log')
const sought = signal('')

/** Maximum number of lines that a telephone draws quickly; the filter finds the others. */
const SHOWN = 200

async function loadRecent(): Promise<void> {
  try {
    recent.value = await call<Recent>('GET', 'api/recent')
  } catch (error) {
    say(causeOf(error), true)
  }
}

const time = (at: number): string =>
  new Date(at).toLocaleTimeString([], { hour12: false }) + `.${String(at % 1000).padStart(3, '0')}`

const colours: Readonly<Record<string, string>> = { error: 'bad', warn: 'text-warning-content bg-warning/30' }

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

interface Line {
  at: number
  mark: string
  class: string
  /** The main text for people. */
  text: string
  /** The line as in the log; empty if `text` contains all of it. */
  raw: string
}

function linesOf({ log, wire }: Recent): Line[] {
  if (view.value === 'wire')
    return wire.map(({ at, controller, direction, line }) => ({
      at,
      mark: direction === 'in' ? `${controller} →` : `→ ${controller}`,
      class: '',
      text: line,
      raw: '',
    }))
  return log.map(({ at, level, message, fields }) => {
    const more = JSON.stringify(fields)
    const { code, subject, detail } = fields
    const isAlarm = message === 'alarm' && typeof code === 'string'
    return {
      at,
      mark: level,
      class: colours[level] ?? '',
      text: isAlarm ? textAtHub(code, textOf(subject), textOf(detail)).title : message,
      raw: more === '{}' ? '' : `${message} ${more}`,
    }
  })
}

/** The recent log and serial lines of the service, for example to send to support. */
function RecentView(): JSX.Element {
  const lines = recent.value === null ? [] : linesOf(recent.value)
  const found = lines.filter(({ mark, text, raw }) =>
    `${mark} ${text} ${raw}`.toLowerCase().includes(sought.value.toLowerCase()),
  )
  return (
    <details
      class="collapse collapse-arrow border border-base-300"
      onToggle={(event) => void (event.currentTarget.open && loadRecent())}
    >
      <summary class="collapse-title font-medium py-3 min-h-0">Log and wire of the last minutes</summary>
      <div class="collapse-content grid gap-2 min-w-0">
        <div class="flex flex-wrap gap-2">
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
          <button class="btn btn-sm" onClick={() => void loadRecent()}>
            <Icon icon={RefreshCw} /> Look again
          </button>
          <input
            class="input input-sm grow"
            type="search"
            aria-label="Only lines with"
            placeholder="Only lines with …"
            value={sought.value}
            onInput={(event) => void (sought.value = event.currentTarget.value)}
          />
        </div>
        <ol
          class="max-h-96 overflow-y-auto font-mono text-xs grid gap-0.5"
          tabindex={0}
          aria-label={view.value === 'log' ? 'Log, the newest first' : 'Wire, the newest first'}
          data-recent={view.value}
        >
          {found
            .slice(-SHOWN)
            .toReversed()
            .map(({ at, mark, class: colour, text, raw }, index) => (
              <li key={`${at} ${index}`} class="break-all">
                <span class="quiet">{time(at)}</span> <b class={colour}>{mark}</b> {text}
                {raw !== '' && (
                  <details>
                    <summary class="quiet cursor-pointer w-fit pr-6 touch">Details</summary>
                    {raw}
                  </details>
                )}
              </li>
            ))}
          {found.length === 0 && <li class="quiet">Nothing.</li>}
        </ol>
        {found.length > SHOWN && (
          <p class="quiet text-sm">
            The newest {SHOWN} of {found.length}.
          </p>
        )}
      </div>
    </details>
  )
}
