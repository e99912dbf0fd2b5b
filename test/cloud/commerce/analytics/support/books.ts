import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { CloudContext } from '../../../../../cloud/platform/context.ts'
import { refreshPaymentStatus } from '../../../../../cloud/commerce/orders/payment-status.ts'
import type { CloudDatabase, Tx } from '../../../../../cloud/platform/store/database.ts'
import { OrderStatus } from '../../../../../protocol/model/order-status.ts'

export const PRODUCTS = 6
export const USERS = 5

/** A random sale with each product once: prices after all deals. */
export interface DrawnSale {
  at: number
  user: number
  lines: readonly {
    product: number
    quantity: number
    net: number
    tax: number
    cost: number
    /** Per unit; default: `net`. */
    original?: number
  }[]
  processor: 'sandbox' | 'external' | 'wallet'
}

/**
 * Writes orders, payments and refunds like the service: each in a transaction that ends with the payment
 * status.
 */
export interface SalesBooksWriter {
  /** Returns the order's id. */
  sell(sale: DrawnSale): Promise<number>
  /** A payment for an ended order, which is refunded. */
  payLate(sale: DrawnSale): Promise<void>
  /** Refunds units of a line by its share; does nothing if they are already refunded. */
  refundUnits(orderId: number, line: number, units: number): Promise<void>
  /** Refunds a part of the order's remaining money. */
  refundPart(orderId: number, share: number): Promise<void>
  /** The processor's result of the order's oldest pending refund. */
  settle(orderId: number, status: 'succeeded' | 'failed'): Promise<void>
  moveHub(timezone: string): Promise<void>
}

/** Fills a hub of `openCloud` with products, and the first hub's database with users. */
export async function openBooks(context: CloudContext, timezone: string, hub = 1): Promise<SalesBooksWriter> {
  const { db } = context
  await seed(db, timezone, hub)
  const moveHub = async (zone: string): Promise<void> => {
    await db.kysely.updateTable('hubs').set({ timezone: zone }).where('id', '=', hub).execute()
  }
  return {
    moveHub,
    sell: (sale) =>
      db.transact(async (tx) => {
        const id = await insertOrder(tx, hub, sale, OrderStatus.COMPLETED)
        await insertPayment(tx, hub, id, sale, 0)
        await refreshPaymentStatus(tx, id)
        return id
      }),
    payLate: (sale) =>
      db.transact(async (tx) => {
        const id = await insertOrder(tx, hub, sale, OrderStatus.EXPIRED)
        const payment = await insertPayment(tx, hub, id, sale, 1)
        await insertRefund(tx, { id, payment, item: null, quantity: 0, amount: totalOf(sale), tax: 0 })
        await refreshPaymentStatus(tx, id)
      }),
    refundUnits: (id, line, units) =>
      db.transact(async (tx) => {
        const { items, payment, left, leftTax } = await stateOf(tx, id)
        const item = items[line % items.length]!
        const quantity = Math.min(units, item.qty - item.refunded_quantity)
        if (quantity === 0) return
        const amount = Math.min(left, Math.floor(((item.net! + item.tax!) * quantity) / item.qty))
        const tax = Math.min(leftTax, amount, Math.floor((item.tax! * quantity) / item.qty))
        await insertRefund(tx, { id, payment, item: item.id, quantity, amount, tax })
        await derive(tx, id)
      }),
    refundPart: (id, share) =>
      db.transact(async (tx) => {
        const { payment, left, leftTax } = await stateOf(tx, id)
        const amount = share === 1 ? left : Math.floor(left * share)
        if (amount === 0) return
        const tax = share === 1 ? leftTax : Math.floor(leftTax * share)
        await insertRefund(tx, { id, payment, item: null, quantity: 0, amount, tax: Math.min(tax, amount) })
        await derive(tx, id)
      }),
    settle: (id, status) =>
      db.transact(async (tx) => {
        const refund = await tx.q
          .selectFrom('refunds')
          .select('id')
          .where('order_id', '=', id)
          .where('status', '=', 'pending')
          .orderBy('id')
          .executeTakeFirst()
        if (!refund) return
        await tx.q.updateTable('refunds').set({ status }).where('id', '=', refund.id).execute()
        await derive(tx, id)
      }),
  }
}

const totalOf = ({ lines }: DrawnSale): number => lines.reduce((sum, { net, tax }) => sum + net + tax, 0)

/** Like the service: first the status, which counts the sale, then the units. */
async function derive(tx: Tx, id: number): Promise<void> {
  await refreshPaymentStatus(tx, id)
  const { items, paid, left, refunds } = await stateOf(tx, id)
  const isWhole = paid > 0 && left === 0
  for (const item of items) {
    const units = refunds.reduce((sum, refund) => sum + (refund.item_id === item.id ? refund.quantity : 0), 0)
    const refunded_quantity = isWhole ? item.qty : Math.min(item.qty, units)
    await tx.q.updateTable('order_items').set({ refunded_quantity }).where('id', '=', item.id).execute()
  }
}

async function stateOf(tx: Tx, id: number) {
  const payment = await tx.q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', id)
    .executeTakeFirstOrThrow()
  const items = await tx.q
    .selectFrom('order_items')
    .selectAll()
    .where('order_id', '=', id)
    .orderBy('id')
    .execute()
  const refunds = await tx.q
    .selectFrom('refunds')
    .selectAll()
    .where('order_id', '=', id)
    .where('status', '<>', 'failed')
    .execute()
  const taxTotal = items.reduce((sum, { tax }) => sum + tax!, 0)
  return {
    payment: payment.id,
    paid: payment.amount,
    items,
    refunds,
    left: refunds.reduce((rest, { amount }) => rest - amount, payment.amount),
    leftTax: refunds.reduce((rest, { tax }) => rest - tax, taxTotal),
  }
}

async function insertOrder(tx: Tx, hub: number, sale: DrawnSale, status: OrderStatus): Promise<number> {
  const net = sale.lines.reduce((sum, line) => sum + line.net, 0)
  const { id } = await tx.q
    .insertInto('orders')
    .values({
      uuid: randomUUID(),
      user_id: sale.user,
      hub_id: hub,
      owner_id: hub,
      processing_status: status,
      payment_status: 'unpaid',
      currency: 'USD',
      total_price_original: net,
      total_price_discounted: net,
      tax_total: totalOf(sale) - net,
      total: totalOf(sale),
      version: 1,
      reserved_bin: null,
      open_when_ready: 0,
      bins: '[]',
      queued_order: null,
      failure_reason: null,
      created_at: sale.at - 3_600_000,
      updated_at: sale.at,
      queued_at: sale.at,
      preparing_at: null,
      ready_at: null,
      finished_at: sale.at,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  for (const line of sale.lines)
    await tx.q
      .insertInto('order_items')
      .values({
        order_id: id,
        product_id: line.product + (hub - 1) * PRODUCTS,
        qty: line.quantity,
        upc: String(line.product).padStart(12, '0'),
        name: `Product ${line.product}`,
        category: ['Drinks', 'Food', 'Sundries'][line.product % 3]!,
        image_url: null,
        unit_price_original: line.original ?? line.net,
        unit_price: line.net,
        purchase_price: line.cost,
        net: line.net,
        tax: line.tax,
        reserved: 0,
        qty_dropped: line.quantity,
        qty_doubtful: 0,
        refunded_quantity: 0,
        bins: '[]',
      })
      .execute()
  return id
}

async function insertPayment(
  tx: Tx,
  hub: number,
  id: number,
  sale: DrawnSale,
  isLate: 0 | 1,
): Promise<number> {
  const payment = await tx.q
    .insertInto('payments')
    .values({
      order_id: id,
      hub_id: hub,
      owner_id: hub,
      user_id: sale.user,
      processor: sale.processor,
      method: 'test',
      amount: totalOf(sale),
      status: 'completed',
      confirmed_by_key: null,
      is_late: isLate,
      created_at: sale.at,
      updated_at: sale.at,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return payment.id
}

async function insertRefund(
  tx: Tx,
  refund: { id: number; payment: number; item: number | null; quantity: number; amount: number; tax: number },
): Promise<void> {
  const { id, payment, item, ...money } = refund
  await tx.q
    .insertInto('refunds')
    .values({
      ...money,
      order_id: id,
      payment_id: payment,
      hub_id: sql`(select hub_id from orders where id = ${id})`,
      owner_id: sql`(select owner_id from orders where id = ${id})`,
      item_id: item,
      reason: 'customer',
      status: 'pending',
      failure_reason: null,
      created_at: 0,
      updated_at: 0,
    })
    .execute()
}

/** Products 1 to 6 in categories 1 to 3, each with its own name, and users 1 to 5. */
async function seed({ kysely: q }: CloudDatabase, timezone: string, hub: number): Promise<void> {
  await q.updateTable('hubs').set({ timezone }).where('id', '=', hub).execute()
  for (const name of ['Drinks', 'Food', 'Sundries'])
    await q.insertInto('categories').values({ name, parent_id: null }).execute()
  for (let id = 1; id <= PRODUCTS; id += 1)
    await q
      .insertInto('products')
      .values({
        hub_id: hub,
        name: `Product ${id}`,
        search_name: `product ${id}`,
        upc: String(id).padStart(12, '0'),
        description: null,
        category_id: (id % 3) + 1,
        subcategory_id: null,
        original_price: 100,
        markdown_percent: 0,
        purchase_price: 40,
        image_url: `https://pictures.example/${id}.webp`,
        is_bestseller: 0,
        is_active: id === PRODUCTS ? 0 : 1,
        cabinet: 1,
        shelf: 1,
        row: id,
        quantity: 0,
        reserved: 0,
      })
      .execute()
  if (hub !== 1) return
  for (let id = 1; id <= USERS; id += 1)
    await q
      .insertInto('users')
      .values({
        identity: `customer ${id}`,
        is_anonymous: 1,
        created_at: 0,
        updated_at: 0,
      })
      .execute()
}
