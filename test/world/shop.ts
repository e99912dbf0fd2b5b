import { healthy, healthyBins } from './health.ts'
import { hubRow, reportBins } from './seeds.ts'
import type { Order } from '../../protocol/contract/consumer-orders.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { noCheckpoint, type Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import { applyOperationEntry } from '../../cloud/commerce/catalogue/apply-operations.ts'
import { applyStockEntries } from '../../cloud/commerce/catalogue/apply-stock.ts'
import { applySnapshot, applyStateEntry } from '../../cloud/commerce/fulfilment/apply-hub-entry.ts'
import { commerceWork } from '../../cloud/commerce/work.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import type { CommandOutcome, CommandRequest } from '../../cloud/gateway/commands.ts'
import { applyOrderEntry } from '../../cloud/commerce/fulfilment/apply-hub-entry.ts'
import { createOrder, setItem } from '../../cloud/commerce/orders/cart.ts'
import type { ItemRow, OrderRow } from '../../cloud/commerce/orders/order-rows.ts'
import { viewOrder } from '../../cloud/commerce/orders/order-view.ts'
import { pay } from '../../cloud/commerce/payments/pay.ts'
import type { PaymentRow, RefundRow } from '../../cloud/commerce/orders/payment-status.ts'
import type { CardProcessor } from '../../cloud/commerce/processors/processor.ts'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import type { Operation } from '../../cloud/commerce/money/operations.ts'
import type { CloudDatabase, Tx } from '../../cloud/platform/store/database.ts'
import { uuid } from '../support/uuid.ts'
import { virtualRuntime, type VirtualClock } from './clock.ts'
import { openSandboxBank, type Bank, type OpenBank } from '../cloud/support/bank.ts'
import { testContext } from './context.ts'

type WithoutTime<T> = T extends unknown ? Omit<T, 'at'> : never
/** With the order's number, which the shop replaces by the id that the hub knows. */
type ByNumber<T> = T extends { order_id: string | null }
  ? Omit<T, 'order_id'> & { order_id: T['order_id'] | number }
  : T
/** An entry of a hub's ledger without its time; the shop adds it. */
export type Report = ByNumber<WithoutTime<HubEntry>>

const EPOCH = 'e'.repeat(32)

export interface ShopOptions {
  /** Cents. */
  products?: readonly { price: number; markdown?: number; quantity: number }[]
  taxMillipercent?: number
  /** Number of the hub's bins; default 4. */
  bins?: number
  checkpoint?: Checkpoint
  /** Receives errors of background turns; without it they fail the test. */
  onFault?: (error: unknown) => void
  /** Wraps the card processor. */
  wrapProcessor?: (processor: CardProcessor) => CardProcessor
  /** Default: the sandbox. */
  openBank?: OpenBank
}

/** One owner's hub 1, online, with products 1, 2, … each in its facing 1-1-<id>, and customers on demand. */
export interface Shop {
  context: CloudContext
  clock: VirtualClock
  services: CommerceServices
  /** The other side of the card processor. */
  bank: Bank
  /** All due work of commerce; `drain` runs the work that is due now. */
  work: WorkRunner
  commands: CommandRequest[]
  /** Sets the hub's answer to commands. */
  answer(outcome: CommandOutcome): void
  customer(): Promise<number>
  /** Creates a cart with quantities by product id. */
  cart(userId: number, quantities: Record<number, number>): Promise<OrderRow>
  /** Creates a paid and queued order. */
  paidOrder(quantities: Record<number, number>, method?: string): Promise<OrderRow>
  /** Entries of the hub's ledger arrive. */
  report(...entries: Report[]): Promise<void>
  /** A heartbeat arrives. */
  hear(health?: Partial<HubHealth>): Promise<void>
  order(orderId: number): Promise<OrderRow>
  /** The order as its customer sees it. */
  view(orderId: number): Promise<Order>
  items(orderId: number): Promise<ItemRow[]>
  /** With what the processor says of them. */
  payments(orderId: number): Promise<(PaymentRow & Conversation)[]>
  refunds(orderId: number): Promise<(RefundRow & Conversation)[]>
  product(productId: number): Promise<{ quantity: number; reserved: number }>
  /** Bodies of the entries that wait for the hub, oldest first. */
  outbox(): Promise<{ kind: string; order_id?: string; order?: { order_id: string } }[]>
}

export async function openShop(db: CloudDatabase, options: ShopOptions = {}): Promise<Shop> {
  const runtime = virtualRuntime(7)
  const checkpoint = options.checkpoint ?? noCheckpoint
  const context = testContext(db, runtime, {
    checkpoint,
    onFault:
      options.onFault ??
      ((error) => {
        throw error
      }),
  })
  const { processor: real, bank } = await (options.openBank ?? openSandboxBank)({
    context,
    checkpoint,
  })
  const processor = options.wrapProcessor?.(real) ?? real
  const commands: CommandRequest[] = []
  let nextOutcome: CommandOutcome = { kind: 'offline' }
  const services: CommerceServices = {
    context,
    processor,
    commands: {
      send(request) {
        commands.push(request)
        return Promise.resolve(nextOutcome)
      },
    },
  }
  const q = db.kysely
  const standing: HubHealth = { ...healthy, bins: healthyBins(options.bins ?? 4) }
  await seedShop(db, options, standing, runtime.clock.now())

  const shop: Shop = {
    context,
    clock: runtime.clock,
    services,
    bank,
    work: new WorkRunner(context, commerceWork(services)),
    commands,
    answer: (outcome) => void (nextOutcome = outcome),
    async customer() {
      const now = runtime.clock.now()
      const { id } = await q
        .insertInto('users')
        .values({
          identity: null,
          is_anonymous: 0,
          created_at: now,
          updated_at: now,
        })
        .returning('id')
        .executeTakeFirstOrThrow()
      return id
    },
    async cart(userId, quantities) {
      let order = await createOrder(context, { userId, hubId: 1 })
      for (const [productId, quantity] of Object.entries(quantities))
        order = await setItem(
          context,
          { userId, orderId: order.id },
          { productId: Number(productId), quantity },
        )
      return order
    },
    async paidOrder(quantities, method = 'pm_card_visa') {
      const userId = await shop.customer()
      const { id } = await shop.cart(userId, quantities)
      await pay(services, { userId, orderId: id, method })
      return shop.order(id)
    },
    report: (...entries) =>
      db.transact(async (tx) => {
        for (const partial of entries) {
          const entry = await asReported(tx, partial, runtime.clock.now())
          if (isStock(entry)) await applyStockEntries(tx, context, 1, [entry])
          else if (entry.kind === 'state') await applyStateEntry(tx, context, 1, entry)
          else if (entry.kind === 'snapshot') await applySnapshot(tx, context, 1, entry)
          else if (entry.kind === 'operation.unknown' || entry.kind === 'operation.settled')
            await applyOperationEntry(tx, context, 1, entry)
          else if (isOrder(entry)) await applyOrderEntry(tx, context, 1, entry)
        }
      }),
    async hear(health = {}) {
      const now = runtime.clock.now()
      await q
        .updateTable('hub_sessions')
        .set({ last_heard_at: now, health: JSON.stringify({ ...standing, ...health }), health_at: now })
        .execute()
      await reportBins(db, 1, { ...standing, ...health }.bins, now)
    },
    order: (orderId) =>
      q.selectFrom('orders').selectAll().where('id', '=', orderId).executeTakeFirstOrThrow(),
    view: async (orderId) => viewOrder(q, context, await shop.order(orderId)),
    items: (orderId) =>
      q.selectFrom('order_items').selectAll().where('order_id', '=', orderId).orderBy('id').execute(),
    payments: (orderId) => withOperations(q, 'payments', 'payment', orderId),
    refunds: (orderId) => withOperations(q, 'refunds', 'refund', orderId),
    product: (productId) =>
      q
        .selectFrom('products')
        .select(['quantity', 'reserved'])
        .where('id', '=', productId)
        .executeTakeFirstOrThrow(),
    async outbox() {
      const rows = await q.selectFrom('hub_outbox_entries').select('body').orderBy('seq').execute()
      return rows.map(({ body }) => JSON.parse(body) as { kind: string })
    },
  }
  return shop
}

/** The card processor’s state of a payment or refund; null if it has no part in it. */
type Conversation = { decline_code: string | null } & {
  [K in (typeof conversation)[number]]: Operation[K] | null
}
const conversation = ['processor_ref', 'goal', 'in_doubt', 'given_up_at'] as const

function withOperations<T extends 'payments' | 'refunds'>(
  q: CloudDatabase['kysely'],
  table: T,
  kind: Operation['kind'],
  orderId: number,
) {
  return q
    .selectFrom(table as 'payments')
    .leftJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', `${table as 'payments'}.id`).on('o.kind', '=', kind),
    )
    .selectAll(table as 'payments')
    .select(conversation.map((column) => `o.${column}` as const))
    .select('o.reason as decline_code')
    .where(`${table as 'payments'}.order_id`, '=', orderId)
    .orderBy(`${table as 'payments'}.id`)
    .$castTo<(T extends 'payments' ? PaymentRow : RefundRow) & Conversation>()
    .execute()
}

async function asReported({ q }: Tx, report: Report, at: number): Promise<HubEntry> {
  if (!('order_id' in report) || typeof report.order_id !== 'number') return { ...report, at } as HubEntry
  const order = await q
    .selectFrom('orders')
    .select('uuid')
    .where('id', '=', report.order_id)
    .executeTakeFirst()
  return { ...report, order_id: order?.uuid ?? uuid(report.order_id), at }
}

type StockEntry = Extract<HubEntry, { kind: `stock.${string}` }>
type OrderEntry = Extract<HubEntry, { kind: `order.${string}` }>
const isStock = (entry: HubEntry): entry is StockEntry => entry.kind.startsWith('stock.')
const isOrder = (entry: HubEntry): entry is OrderEntry => entry.kind.startsWith('order.')

/** The hub's final report of an order's lines: all units, or `counts` of them, have dropped into one bin. */
export const droppedLines = (
  items: readonly ItemRow[],
  { units, bin = 1 }: { units?: number; bin?: number } = {},
) =>
  items.map(({ id, qty }) => ({
    line_id: id,
    dropped: units ?? qty,
    doubtful: 0,
    bins: units === 0 ? [] : [bin],
  }))

/** A unit of an order's line drops. */
export function drop(item: ItemRow, operation: number, quantityLeft: number): Report {
  return {
    kind: 'stock.dropped',
    product_id: item.product_id,
    location: { cabinet: 1, shelf: 1, row: item.product_id },
    delta: -1,
    quantity: quantityLeft,
    operation_id: `00000000-0000-7000-8000-${String(operation).padStart(12, '0')}`,
    order_id: item.order_id,
    line_id: item.id,
    delivered: 1,
    bin: 1,
  }
}

async function seedShop(
  db: CloudDatabase,
  options: ShopOptions,
  health: HubHealth,
  now: number,
): Promise<void> {
  const q = db.kysely
  const products = options.products ?? [
    { price: 250, quantity: 5 },
    { price: 199, markdown: 10, quantity: 3 },
  ]
  // For tests of the HTTP interface `openCloud` has created the hub.
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', 1).executeTakeFirst()
  if (!hub) await seedHub(q, options, now)
  await q.insertInto('categories').values({ name: 'Drinks', parent_id: null }).execute()
  for (const [index, { price, markdown = 0, quantity }] of products.entries()) {
    const id = index + 1
    await q
      .insertInto('products')
      .values({
        hub_id: 1,
        name: `Product ${id}`,
        search_name: `product ${id}`,
        upc: String(id).padStart(12, '0'),
        description: null,
        category_id: 1,
        subcategory_id: null,
        original_price: price,
        markdown_percent: markdown,
        purchase_price: 100,
        image_url: '',
        is_bestseller: 0,
        is_active: 1,
        cabinet: 1,
        shelf: 1,
        row: id,
        quantity,
        reserved: 0,
      })
      .execute()
    await q
      .insertInto('facings')
      .values({ hub_id: 1, cabinet: 1, shelf: 1, row: id, product_id: id, is_primary: 1, quantity })
      .execute()
  }
  await q
    .insertInto('hub_sessions')
    .values({
      hub_id: 1,
      session: '0'.repeat(32),
      process_id: 'test',
      lease_until: now,
      is_connected: 1,
      last_heard_at: now,
      health: JSON.stringify(health),
      health_at: now,
      software: 'larder-edge test',
    } as never)
    .execute()
  await q
    .insertInto('hub_streams')
    .values({
      hub_id: 1,
      stream: 'ledger',
      epoch: EPOCH,
      cursor: 0,
      tag: 0,
      is_current: 1,
      created_at: now,
    })
    .execute()
  await q
    .insertInto('hub_outboxes')
    .values({ hub_id: 1, epoch: EPOCH, base: 0, base_tag: 0, last: 0 })
    .execute()
  await reportBins(db, 1, health.bins, now)
}

async function seedHub(q: CloudDatabase['kysely'], options: ShopOptions, now: number): Promise<void> {
  await q.insertInto('owners').values({ name: 'Owner' }).execute()
  await q
    .insertInto('hubs')
    .values(
      hubRow({
        longitude: 0,
        latitude: 0,
        timezone: 'UTC',
        tax_millipercent: options.taxMillipercent ?? 8250,
        created_at: now,
      }),
    )
    .execute()
}

/** Every status, for tables. */
export const statuses = Object.values(OrderStatus)
