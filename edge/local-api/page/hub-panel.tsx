import type { JSX } from 'preact'
import { FindRow } from './find-row.tsx'
import { RecentView } from './recent-view.tsx'
import { act, hardware, productName, software, state } from './store.ts'
import { syncWords } from './words.ts'

const phases: Readonly<Record<string, string>> = {
  queued: 'waits its turn',
  recovering: 'is looked into after a loss',
  preparing: 'is being dispensed',
  ready: 'waits for its customer',
  collecting: 'is being collected',
}

/** What the cloud sent and this hub could not apply. */
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
            <button
              class="btn btn-sm"
              aria-label={`Drop dead letter ${id}`}
              onClick={() => void act('Drop it', `dead-letters/${id}/drop`)}
            >
              Drop
            </button>
          </li>
        ))}
      </ul>
      <button class="btn btn-sm mt-2" onClick={() => void act('Ask the cloud again', 'dead-letters/replay')}>
        Ask the cloud to tell everything again
      </button>
    </div>
  )
}

/** The hub as a whole: orders, the cloud, its service. */
export function HubPanel(): JSX.Element {
  const { health, held, orders, sync } = state.value!
  const underWay = orders.filter(({ phase }) => phase in phases)
  return (
    <div class="grid gap-3">
      <h2 class="text-lg font-semibold">Hub {hardware.value?.hubId}</h2>
      <p data-intake>
        {health.accepting_orders
          ? 'Orders are taken.'
          : held.orders
            ? 'No orders are taken: somebody has stopped them here.'
            : 'No orders are taken: an owner has stopped them, or no bin is in use.'}
      </p>
      <div class="flex flex-wrap gap-2">
        <button
          class={`btn btn-sm ${held.orders ? 'btn-success' : 'btn-warning'}`}
          onClick={() =>
            void act(held.orders ? 'Take orders again' : 'Stop taking orders', 'hold/orders', {
              held: !held.orders,
            })
          }
        >
          {held.orders ? 'Take orders again' : 'Stop taking orders'}
        </button>
        <button
          class="btn btn-sm"
          onClick={() => void act('Unlock the main door for 30 s', 'doors/main/unlock', { for_ms: 30_000 })}
        >
          Unlock the main door for 30 s
        </button>
      </div>
      <FindRow />
      <a href="#acceptance" class="btn btn-sm justify-self-start">
        {state.value!.acceptance.id === null ? 'Accept this hub, step by step' : 'Go on with the acceptance'}
      </a>
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
                  ({ product_id, dropped, quantity }) =>
                    `${productName(product_id)} ${dropped} of ${quantity}`,
                )
                .join(', ')}
            </li>
          ))}
        </ul>
      </div>
      <p class="text-sm" data-sync>
        {syncWords(sync).text}
      </p>
      <DeadLetters />
      <RecentView />
      <details class="collapse collapse-arrow border border-base-300">
        <summary class="collapse-title font-medium py-3 min-h-0">The service</summary>
        <div class="collapse-content grid gap-2">
          <p class="text-sm">{software.value}</p>
          <p class="quiet text-sm">
            A restart takes seconds. What runs on controllers runs on, and no order is lost.
          </p>
          <button
            class="btn btn-sm btn-warning justify-self-start"
            onClick={() => void act('Restart', 'restart')}
          >
            Restart the service
          </button>
        </div>
      </details>
    </div>
  )
}
