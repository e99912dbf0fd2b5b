import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { NotifyButton } from './announce.tsx'
import { FindRow } from './find-row.tsx'
import { RecentView } from './recent.tsx'
import { rowsToRefill } from './refill.tsx'
import { act, hardware, productName, running, software, state } from './store.ts'
import { syncText } from './texts.ts'

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
