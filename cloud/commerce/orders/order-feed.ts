import { sql } from 'kysely'
import { isActive, OrderStatus } from '../../../protocol/model/order-status.ts'
import type { Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers, Reply } from '../../platform/http/handler.ts'
import { LiveStreams } from '../../platform/http/live-streams.ts'
import { withImages, type AddressOf } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { everyInBackground } from '../../platform/work/background.ts'
import { readOwnOrder, type OrderKey, type OrderRow } from './order-rows.ts'
import { viewOrder } from './order-view.ts'

interface Topic {
  orderId: number
  hubId: number
}

/**
 * Live orders for customers: each order at once, and again after each change. Changes of this process are sent at once.
 * For changes of other processes the feed polls while a reader follows an order.
 */
export class OrderFeed {
  readonly #context: CloudContext
  readonly #addressOf: AddressOf
  readonly #streams: LiveStreams<Topic>
  /** The followed orders and queues at the last poll, by topic. */
  #known = new Map<string, string>()
  #cancels: Cancel[] = []

  constructor(context: CloudContext, { addressOf }: Pick<Media, 'addressOf'>) {
    this.#context = context
    this.#addressOf = addressOf
    this.#streams = new LiveStreams(context)
  }

  start(): void {
    const { db, settings } = this.#context
    this.#streams.start()
    this.#cancels = [
      db.onNews((news) => {
        // Customers who wait at the hub may have moved forward.
        if (news.kind === 'order')
          this.#streams.wake(({ orderId, hubId }) => orderId === news.orderId || hubId === news.hubId)
      }),
      everyInBackground(this.#context, settings.orderPollMs, 'poll followed orders', () => this.#poll()),
    ]
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel()
    this.#streams.end()
  }

  /** Follows a customer's order. Throws `order_not_found`. */
  async open(key: OrderKey): Promise<Reply<ReadableStream>> {
    const { db } = this.#context
    const q = db.kysely
    const order = await readOwnOrder(q, key)
    let sent = ''
    let isOver = false
    return this.#streams.open(
      { orderId: order.id, hubId: order.hub_id },
      {
        poll: async () => {
          const found = await this.#read(order.id)
          // A guest's order may move to another user.
          const now = found?.user_id === key.userId ? found : undefined
          isOver = now === undefined || !isActive(now.processing_status)
          if (now === undefined) return ''
          const shown = withImages(this.#addressOf, await viewOrder(q, this.#context, now))
          const text = `id: ${shown.version}\ndata: ${JSON.stringify(shown)}\n\n`
          if (text === sent) return ''
          sent = text
          return text
        },
        isOver: () => isOver,
      },
    )
  }

  #read(orderId: number): Promise<OrderRow | undefined> {
    const q = this.#context.db.kysely
    return q.selectFrom('orders').selectAll().where('id', '=', orderId).executeTakeFirst()
  }

  /** Wakes the readers of orders and queues that changed since the last poll. */
  async #poll(): Promise<void> {
    const topics = this.#streams.topics()
    const known = new Map<string, string>()
    if (topics.length > 0) {
      const q = this.#context.db.kysely
      const orders = await q
        .selectFrom('orders')
        .select(['id', 'version'])
        .where('id', 'in', [...new Set(topics.map(({ orderId }) => orderId))])
        .execute()
      for (const { id, version } of orders) known.set(`order ${id}`, String(version))
      const queues = await q
        .selectFrom('orders')
        .select(['hub_id', sql<number>`sum(version)`.as('versions'), sql<number>`count(*)`.as('count')])
        .where('hub_id', 'in', [...new Set(topics.map(({ hubId }) => hubId))])
        .where('processing_status', 'in', [OrderStatus.QUEUED, OrderStatus.PREPARING])
        .groupBy('hub_id')
        .execute()
      for (const { hub_id, ...state } of queues) known.set(`hub ${hub_id}`, JSON.stringify(state))
    }
    const before = this.#known
    this.#known = known
    this.#streams.wake(({ orderId, hubId }) =>
      [`order ${orderId}`, `hub ${hubId}`].some((name) => known.get(name) !== before.get(name)),
    )
  }
}

export const orderFeedHandlers = (feed: OrderFeed): Handlers<'consumer.orders.events'> => ({
  'consumer.orders.events': ({ params }) => feed.open({ userId: params.user_id, orderId: params.order_id }),
})
