import { signal } from '@preact/signals'
import { ArrowLeft, Printer } from 'lucide'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { unwrap } from '../../../protocol/client/client.ts'
import type { Receipt } from '../../../protocol/contract/receipt.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { filled, language, money, words } from './language.ts'
import { Missing } from './order.tsx'
import { cardName } from './payment.ts'
import { show } from './place.ts'
import { client, hub, isAway, readForView, session } from './store.ts'

/** Null if there is no such receipt of the customer's. */
const receipt = signal<Receipt | null | undefined>(undefined)

async function read(userId: number, orderId: number, signal: AbortSignal): Promise<void> {
  const params = { user_id: userId, order_id: orderId }
  const refused = await readForView(async () => {
    const found = await client.call('GET /users/{user_id}/orders/{order_id}/receipt', { params, signal })
    receipt.value = unwrap(found)
    isAway.value = false
  }, signal)
  if (refused) receipt.value = null
}

/** The receipt of a paid order in the customer's language, to print. */
export function ReceiptView({ orderId }: { orderId: number }): JSX.Element {
  const userId = session.value?.user_id
  useEffect(() => {
    if (userId == null) return undefined
    const closed = new AbortController()
    void read(userId, orderId, closed.signal)
    return () => {
      closed.abort()
      receipt.value = undefined
    }
  }, [userId, orderId])
  if (receipt.value === null || (session.value && userId == null)) return <Missing />
  return (
    <article class="card bg-base-100 p-4 grid gap-4 max-w-2xl mx-auto w-full">
      <button class="btn btn-ghost w-fit print:hidden" onClick={() => show(orderId)}>
        <Icon icon={ArrowLeft} /> {filled(words().order, { id: orderId })}
      </button>
      {receipt.value?.order_id === orderId ? (
        <Content receipt={receipt.value} />
      ) : (
        <p class="quiet">{words().loading}</p>
      )}
    </article>
  )
}

function Content({ receipt: { hub: place, ...shown } }: { receipt: Receipt }): JSX.Element {
  const price = (amount: number): string => money(amount, shown.currency)
  const address = [place.street_address_1, place.street_address_2, place.city, place.state]
  const dateOf = (at: string): string =>
    new Date(at).toLocaleString(language.value, {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone: hub.value?.timezone,
    })
  const sums: [text: string, amount: string][] = [
    ...(shown.discount_total > 0 ? [[words().saving, price(-shown.discount_total)] as [string, string]] : []),
    [`${words().tax} (${shown.tax_rate.toLocaleString(language.value)} %)`, price(shown.tax_total)],
    [words().total, price(shown.total)],
    ...shown.payments.map((payment): [string, string] => [paidBy(payment), price(payment.amount)]),
    ...shown.refunds.map(({ status, created_at, amount }): [string, string] => [
      `${words().receipt_refund[status]} (${dateOf(created_at)})`,
      price(-amount),
    ]),
  ]
  return (
    <>
      <h1 class="text-xl font-semibold">{filled(words().receipt_of, { number: shown.receipt_number })}</h1>
      <p>
        {shown.seller}
        <span class="block">{place.name}</span>
        <span class="block">{address.filter(Boolean).join(', ')}</span>
        <span class="block">{dateOf(shown.paid_at)}</span>
      </p>
      <ul class="grid gap-2 tabular-nums">
        {shown.items.map(({ name, qty, price: each, line_total, refunded_quantity: back }) => (
          <li key={name} class="grid grid-cols-[1fr_auto] gap-x-3 border-t border-base-300 pt-2">
            <span class="min-w-0 break-words">{name}</span>
            <span>{price(line_total)}</span>
            <span class="quiet text-sm">
              {qty} × {price(each)}
              {back > 0 && `, ${filled(words().receipt_back, { count: back })}`}
            </span>
          </li>
        ))}
      </ul>
      <dl class="grid grid-cols-[1fr_auto] gap-1 border-t border-base-300 pt-2 tabular-nums">
        {sums.map(([text, amount]) => (
          <div key={text} class="contents">
            <dt>{text}</dt>
            <dd class="text-right">{amount}</dd>
          </div>
        ))}
      </dl>
      <button class="btn w-fit print:hidden" onClick={() => print()}>
        <Icon icon={Printer} /> {words().print}
      </button>
    </>
  )
}

function paidBy({ type, brand, last4 }: Receipt['payments'][number]): string {
  if (brand !== null && last4 !== null)
    return filled(words().receipt_paid, { way: cardName({ brand, last4 }) })
  return filled(words().receipt_paid, { way: words().receipt_way[type] })
}
