import { sql } from 'kysely'
import { ApplyError } from '../../gateway/domain.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { numbersIn, recordset } from '../../platform/store/recordset.ts'
import { statement } from '../../platform/store/statement.ts'
import { availableUnits } from './units.ts'

interface ProductQuantity {
  productId: number
  quantity: number
}

interface Shortage {
  product_id: number
  requested: number
  available: number
}

/**
 * Reserves units for an order. Check and reservation are one statement, so that the last unit is reserved only once.
 * Returns the missing units; then the caller must roll back.
 */
export async function reserve(tx: Tx, lines: readonly ProductQuantity[]): Promise<Shortage[]> {
  const [, rows] = await Promise.all([
    lockProducts(tx, lines),
    reserveUnits(tx.q, { units: unitsByProduct(lines) }),
  ])
  const reserved = new Set(rows.map(({ id }) => id))
  const short = lines.filter(({ productId }) => !reserved.has(productId))
  if (short.length === 0) return []
  const available = await availableOfEach(
    tx.q,
    short.map(({ productId }) => productId),
  )
  return short.map(({ productId, quantity }) => ({
    product_id: productId,
    requested: quantity,
    available: available.get(productId)!,
  }))
}

interface Units {
  units: readonly { product_id: number; units: number }[]
}

const unitColumns = { product_id: 'int', units: 'int' } as const

const reserveUnits = statement(
  (_, { units }: Units, { kind }) => sql<{ id: number }>`
    update products set reserved = reserved + r.units from ${recordset(kind, unitColumns, units)}
    where products.id = r.product_id and products.is_active = 1 and ${availableUnits} >= r.units
    returning products.id`,
)

const unreserveUnits = statement(
  (_, { units }: Units, { kind }) => sql`
    update products set reserved = reserved - r.units from ${recordset(kind, unitColumns, units)}
    where products.id = r.product_id`,
)

export async function unreserve(tx: Tx, lines: readonly ProductQuantity[]): Promise<void> {
  const held = lines.filter(({ quantity }) => quantity > 0)
  if (held.length === 0) return
  await Promise.all([lockProducts(tx, held), unreserveUnits(tx.q, { units: unitsByProduct(held) })])
}

/** Locks products in a fixed order, so that two orders cannot deadlock. SQLite has only one writer at a time. */
async function lockProducts(tx: Tx, lines: readonly ProductQuantity[]): Promise<void> {
  if (tx.kind === 'sqlite') return
  await productsToLock(tx.q, { ids: lines.map(({ productId }) => productId) })
}

const productsToLock = statement((q, { ids }: { ids: readonly number[] }, locks) =>
  locks.forUpdate(q.selectFrom('products').select('id').where('id', 'in', numbersIn(q, ids)).orderBy('id')),
)

/** The total number of units of each product. */
function unitsByProduct(lines: readonly ProductQuantity[]): Units['units'] {
  const units = new Map<number, number>()
  for (const { productId, quantity } of lines) units.set(productId, (units.get(productId) ?? 0) + quantity)
  return [...units].map(([product_id, quantity]) => ({ product_id, units: quantity }))
}

/** Units of a product that can still be sold, never below 0; 0 for an inactive product. */
export async function availableOf(q: Queries, productId: number): Promise<number> {
  return (await availableOfEach(q, [productId])).get(productId)!
}

/** The same for several products, by id. */
export async function availableOfEach(
  q: Queries,
  productIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (productIds.length === 0) return new Map()
  const rows = await q
    .selectFrom('products')
    .select(['id', availableUnits.as('available')])
    .where('id', 'in', productIds)
    .where('is_active', '=', 1)
    .execute()
  const known = new Map(rows.map(({ id, available }) => [id, Math.max(0, available)]))
  return new Map(productIds.map((id) => [id, known.get(id) ?? 0]))
}

/** Units of an order's line that left the shelf. */
export interface Delivered {
  orderId: number
  itemId: number
  delivered: number
}

/**
 * Ends the reservation of each unit that dropped for an order, because the unit is no longer on the shelf. Returns the
 * orders that got units.
 */
export async function consumeReservations(tx: Tx, drops: readonly Delivered[]): Promise<number[]> {
  const lines = new Map<number, Delivered>()
  for (const drop of drops) {
    const delivered = (lines.get(drop.itemId)?.delivered ?? 0) + drop.delivered
    if (delivered > 0) lines.set(drop.itemId, { ...drop, delivered })
  }
  if (lines.size === 0) return []
  const items = await tx
    .forUpdate(
      tx.q
        .selectFrom('order_items')
        .selectAll()
        .where('id', 'in', [...lines.keys()])
        .orderBy('id'),
    )
    .execute()
  const taken = [...lines.values()].map(({ orderId, itemId, delivered }) => {
    const item = items.find(({ id, order_id }) => id === itemId && order_id === orderId)
    if (!item) throw noLine(orderId, itemId)
    return {
      item,
      // A hub that reports more units than were ordered is believed only up to the order.
      delivered: Math.min(delivered, Math.max(0, item.qty - item.qty_dropped)),
      freed: Math.min(item.reserved, delivered),
    }
  })
  const source = recordset(
    tx.kind,
    { id: 'int', freed: 'int', delivered: 'int' },
    taken.map(({ item, freed, delivered }) => ({ id: item.id, freed, delivered })),
  )
  await sql`
    update order_items set reserved = reserved - r.freed, qty_dropped = qty_dropped + r.delivered
    from ${source} where order_items.id = r.id`.execute(tx.q)
  await unreserve(
    tx,
    taken.map(({ item, freed }) => ({ productId: item.product_id, quantity: freed })),
  )
  return [...lines.values()].map(({ orderId }) => orderId)
}

const noLine = (orderId: number, itemId: number): ApplyError =>
  new ApplyError(`order ${orderId} has no line ${itemId}`)

/** A line of an order, locked. */
export async function lockItem(tx: Tx, orderId: number, itemId: number) {
  const item = await tx
    .forUpdate(
      tx.q.selectFrom('order_items').selectAll().where('id', '=', itemId).where('order_id', '=', orderId),
    )
    .executeTakeFirst()
  if (!item) throw noLine(orderId, itemId)
  return item
}
