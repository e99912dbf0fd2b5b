import { ArrowLeft } from 'lucide'
import type { JSX } from 'preact'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { filled, money, words } from './language.ts'
import { cancel, cardWays, confirm, isPaying, pay, waiting, type Way } from './payment.ts'
import { shopAddress } from './place.ts'
import { Picture, Quantity } from './products.tsx'
import { cart, hub, isBusy, products, session, wallet } from './store.ts'
import { Ways } from './ways.tsx'

/** The lines of an order with their prices. */
export function Lines({ order, isOpen }: { order: Order; isOpen: boolean }): JSX.Element {
  const price = (cents: number): string => money(cents, order.currency)
  return (
    <>
      <ul class="grid gap-2">
        {order.items.map((item) => (
          <li key={item.order_item_id} class="flex flex-wrap items-center gap-2">
            <Picture url={item.image_url} />
            <span class="grow min-w-32">
              {isOpen ? item.name : `${item.qty} × ${item.name}`}
              <span class="quiet block text-sm">{price(item.line_total)}</span>
            </span>
            {isOpen && (
              <Quantity
                id={item.product_id}
                name={item.name}
                most={products.value?.find(({ id }) => id === item.product_id)?.quantity ?? item.qty}
              />
            )}
          </li>
        ))}
      </ul>
      <dl class="grid grid-cols-[1fr_auto] gap-1 tabular-nums [&>dd]:text-right">
        {order.discount_total > 0 && (
          <>
            <dt>
              {words().saving}
              {order.deals.length > 0 && `: ${order.deals.map(({ name }) => name).join(', ')}`}
            </dt>
            <dd>{price(order.discount_total)}</dd>
          </>
        )}
        {order.tax_total > 0 && (
          <>
            <dt>{words().tax}</dt>
            <dd>{price(order.tax_total)}</dd>
          </>
        )}
        <dt class="font-semibold">{words().total}</dt>
        <dd class="font-semibold" data-total>
          {price(order.total)}
        </dd>
      </dl>
    </>
  )
}

/** The ways to pay that this customer has here. */
function waysToPay({ total, currency }: Order): Way[] {
  const byWallet = session.value?.kind === 'person' && wallet.value >= total
  return [
    ...(byWallet
      ? [['wallet', filled(words().wallet, { price: money(wallet.value, currency) })] as Way]
      : []),
    ...cardWays(),
  ]
}

function Payment({ order }: { order: Order }): JSX.Element {
  const { total, currency } = order
  const ways = waysToPay(order)
  if (ways.length === 0) return <p>{words().cards_missing}</p>
  const isClosed = hub.value?.closed_reason !== null
  return (
    <form
      class="grid gap-3"
      onSubmit={(event) => {
        event.preventDefault()
        void pay()
      }}
    >
      {session.value?.kind === 'person' && wallet.value < total && (
        <p class="text-sm quiet">
          {filled(words().wallet_short, { price: money(wallet.value, currency) })}{' '}
          <a class="link" href="#account">
            {words().add_money}
          </a>
        </p>
      )}
      <Ways ways={ways} title={words().pay_with} amount={total} currency={currency} canSave />
      <button class="btn btn-primary" disabled={isPaying.value || isBusy.value || isClosed} data-pay>
        {isPaying.value ? words().paying : filled(words().pay, { price: money(total, currency) })}
      </button>
    </form>
  )
}

export function CartView(): JSX.Element {
  const order = cart.value
  const isOpen = order?.processing_status === 0
  // The time for the confirmation may be over.
  const asksBank = !isOpen && waiting.value?.order_id === order?.order_id
  return (
    <div class="grid gap-4">
      <a class="touch gap-2 lg:hidden" href={shopAddress()} onClick={back}>
        <Icon icon={ArrowLeft} /> {words().back}
      </a>
      <h2 class="text-lg font-semibold" tabindex={-1}>
        {words().cart}
      </h2>
      {!order || order.items.length === 0 ? (
        <p class="quiet">{words().cart_empty}</p>
      ) : (
        <>
          <Lines order={order} isOpen={isOpen} />
          {asksBank && (
            <div class="alert alert-info flex flex-col items-start">
              <p>{words().bank_asks}</p>
              <button class="btn" disabled={isPaying.value} onClick={() => void confirm()}>
                {words().confirm}
              </button>
            </div>
          )}
          {!isOpen && !asksBank && <p>{words().payment_open}</p>}
          <Payment order={order} />
          {!isOpen && (
            <button class="btn" onClick={() => void cancel(order.user_id, order.order_id)}>
              {words().cancel_order}
            </button>
          )}
        </>
      )}
    </div>
  )
}

function back(event: Event): void {
  event.preventDefault()
  history.back()
}
