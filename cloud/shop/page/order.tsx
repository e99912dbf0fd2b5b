import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { unwrap } from '../../../protocol/client/client.ts'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { Receipt } from '../../../protocol/contract/receipt.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { Lines } from './cart.tsx'
import { filled, language, money, words } from './language.ts'
import { cancel } from './payment.ts'
import { shopAddress, show } from './place.ts'
import { isSignedOut, SignInFirst } from './sign-in.tsx'
import { checked, client, hubId, isAway, noteOrder, readForView, session } from './store.ts'

const order = signal<Order | null | undefined>(undefined)
const receipt = signal<Receipt | undefined>(undefined)
const waitMinutes = signal<number | null>(null)
const isOpening = signal(false)

/** Paid orders have a receipt, which contains the refunds. */
const FIRST_PAID = 20
const PAID = [20, 30, 40, 50, 60, 70, 80, 90] as const
const QUEUED = 20
const READY = 40
const COLLECTING = 50

/** Follows the order until its last state, over any number of connections. */
async function follow(userId: number, orderId: number, signal: AbortSignal): Promise<void> {
  let newest = new AbortController()
  const refused = await readForView(async () => {
    for await (const now of client.followOrder({ userId, orderId, signal })) {
      if (signal.aborted) return
      order.value = now
      isAway.value = false
      noteOrder(now)
      newest.abort()
      newest = new AbortController()
      void readMore(userId, now, AbortSignal.any([signal, newest.signal]))
    }
  }, signal)
  if (refused) order.value = null
}

/** The refunds and the estimated time, unless a newer state or another view needs others. */
async function readMore(
  userId: number,
  { order_id, processing_status: status }: Order,
  signal: AbortSignal,
): Promise<void> {
  const params = { user_id: userId, order_id }
  if (status === QUEUED) {
    const queue = await client.call('GET /users/{user_id}/orders/{order_id}/queue-position', {
      params,
      query: { hub_id: hubId },
      signal,
    })
    if (signal.aborted) return
    const seconds = queue.ok ? queue.data.estimated_wait_seconds : null
    waitMinutes.value = seconds === null ? null : Math.max(1, Math.round(seconds / 60))
  }
  if (status < FIRST_PAID) return
  await readForView(async () => {
    const found = await client.call('GET /users/{user_id}/orders/{order_id}/receipt', { params, signal })
    if (!signal.aborted) receipt.value = unwrap(found)
    isAway.value = false
  }, signal)
}

async function openBins({ user_id, order_id }: Order): Promise<void> {
  isOpening.value = true
  const opened = checked(
    await client.call('POST /users/{user_id}/orders/{order_id}/open-delivery', {
      params: { user_id, order_id },
      query: { hub_id: hubId },
    }),
  )
  isOpening.value = false
  const stuck = opened?.results.filter(({ success }) => !success).map((bin) => bin.bin_number) ?? []
  if (stuck.length > 0) say(filled(words().bin_stuck, { bins: stuck.join(', ') }), true)
}

function Queue({ queue_position: position }: Order): JSX.Element | null {
  if (position === null) return null
  const text = position <= 1 ? words().next : filled(words().ahead, { count: position - 1 })
  const minutes = waitMinutes.value
  return (
    <p>
      {text} {minutes !== null && `${filled(words().wait, { minutes })}.`}
    </p>
  )
}

/** The units that the customer gets no goods for, why, and the money. */
function Refunds({ items, currency }: Order): JSX.Element | null {
  const lines = items.flatMap((item) => {
    const fell = Math.min(item.refunded_quantity, item.qty - item.qty_dropped)
    const rest = item.refunded_quantity - fell
    return [
      ...(fell > 0 ? [filled(words().refund_fell, { count: fell, name: item.name })] : []),
      ...(rest > 0 ? [filled(words().refund_other, { count: rest, name: item.name })] : []),
    ]
  })
  const refunds = receipt.value?.refunds ?? []
  if (lines.length === 0 && refunds.length === 0) return null
  return (
    <div class="alert alert-info flex flex-col items-start gap-1" data-refunds>
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
      {refunds.map(({ amount, status, created_at }) => {
        const texts = { succeeded: words().refunded, failed: words().refund_failed }
        const text = texts[status as keyof typeof texts] ?? words().refund_pending
        return <p key={created_at}>{filled(text, { price: money(amount, currency) })}</p>
      })}
    </div>
  )
}

export function OrderView({ orderId }: { orderId: number }): JSX.Element {
  const userId = session.value?.user_id
  useEffect(() => {
    if (userId == null) return undefined
    const stop = new AbortController()
    void follow(userId, orderId, stop.signal)
    return () => {
      stop.abort()
      order.value = receipt.value = undefined
      waitMinutes.value = null
    }
  }, [userId, orderId])
  const now = order.value
  const isMissing = now === null || (session.value && userId == null)
  if (isMissing) return <Missing />
  if (!now) return <p class="quiet p-4">{words().loading}</p>
  const { processing_status: status } = now
  const bins = now.bins.join(', ')
  return (
    <article class="card bg-base-100 p-4 grid gap-4 max-w-2xl mx-auto w-full" data-order={orderId}>
      <h1 class="text-xl font-semibold">{filled(words().order, { id: orderId })}</h1>
      <div role="status" class="grid gap-2 text-lg" data-status={now.processing_status_name}>
        <p>{filled(words().status[now.processing_status_name], { bins })}</p>
        <Queue {...now} />
      </div>
      {status === READY && (
        <button class="btn btn-primary btn-lg" disabled={isOpening.value} onClick={() => void openBins(now)}>
          {isOpening.value ? words().opening : filled(words().open_bin, { bins })}
        </button>
      )}
      {status === COLLECTING && now.bins.length > 1 && (
        <button class="btn" disabled={isOpening.value} onClick={() => void openBins(now)}>
          {filled(words().open_bin, { bins })}
        </button>
      )}
      <Refunds {...now} />
      <Lines order={now} isOpen={false} />
      {status === QUEUED && (
        <button class="btn w-fit" onClick={() => void cancel(now.user_id, orderId)}>
          {words().cancel_order}
        </button>
      )}
      <div class="flex flex-wrap gap-2">
        {receipt.value && (
          <a class="btn" target="_blank" href={shopAddress(`/orders/${orderId}#receipt`)}>
            {words().receipt}
          </a>
        )}
        <button class="btn" onClick={() => show()}>
          {words().order_again}
        </button>
      </div>
    </article>
  )
}

export function Missing(): JSX.Element {
  if (isSignedOut()) return <SignInFirst title={words().signed_out} why={words().sign_in_orders} />
  return (
    <div class="card bg-base-100 p-6 max-w-lg mx-auto w-full grid gap-3">
      <h1 class="text-xl font-semibold">{words().no_order}</h1>
      <button class="btn w-fit" onClick={() => show()}>
        {words().buy_here}
      </button>
    </div>
  )
}

const past = signal<{ orders: readonly Order[]; hasMore: boolean } | undefined>(undefined)
const PAGE = 20

/** The newest paid orders at this hub, at most `most`. */
async function readPast(userId: number, most: number, signal: AbortSignal): Promise<void> {
  const refused = await readForView(async () => {
    const orders: Order[] = []
    const all = client.items('GET /users/{user_id}/orders', {
      params: { user_id: userId },
      query: { order_processing_statuses: [...PAID], is_desc: true },
      signal,
    })
    for await (const one of all) {
      if (one.hub_id === hubId) orders.push(one)
      if (orders.length > most) break
    }
    past.value = { orders: orders.slice(0, most), hasMore: orders.length > most }
    isAway.value = false
  }, signal)
  if (refused) checked({ ok: false, error: refused })
}

/** The customer's paid orders at this hub. */
export function OrdersView(): JSX.Element {
  const userId = session.value?.user_id
  const [most, setMost] = useState(PAGE)
  const { orders = [], hasMore = false } = past.value ?? {}
  useEffect(() => {
    if (userId == null) return undefined
    const closed = new AbortController()
    void readPast(userId, most, closed.signal)
    return () => closed.abort()
  }, [userId, most])
  useEffect(() => () => void (past.value = undefined), [userId])
  if (isSignedOut()) return <SignInFirst title={words().orders} why={words().sign_in_orders} />
  const date = new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' })
  return (
    <div class="card bg-base-100 p-4 grid gap-3 max-w-2xl mx-auto w-full">
      <h1 class="text-xl font-semibold">{words().orders}</h1>
      {orders.length === 0 && (
        <p class="quiet">{past.value || userId == null ? words().orders_none : words().loading}</p>
      )}
      <ul class="grid gap-2">
        {orders.map((one) => (
          <li key={one.order_id} class="grid gap-1 border-t border-base-300 pt-2">
            <p>
              {date.format(new Date(one.created_at))} · {money(one.total, one.currency)}
            </p>
            <p class="quiet">{one.items.map(({ qty, name }) => `${qty} × ${name}`).join(', ')}</p>
            <button class="btn btn-sm w-fit" onClick={() => show(one.order_id)}>
              {filled(words().order, { id: one.order_id })}
            </button>
          </li>
        ))}
      </ul>
      <div class="flex flex-wrap gap-2">
        {hasMore && (
          <button class="btn" onClick={() => setMost(most + PAGE)}>
            {words().show_more}
          </button>
        )}
        <button class="btn" onClick={() => show()}>
          {words().buy_here}
        </button>
      </div>
    </div>
  )
}
