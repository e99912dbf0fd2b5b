import { sql } from 'kysely'
import type { QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { OrderCause } from '../../../protocol/model/order-status.ts'
import { availableOfEach, reserve } from '../catalogue/reservations.ts'
import type { CloudContext } from '../../platform/context.ts'
import { completeRedemptions, putBackRedemptions, redeem } from '../deals/redemptions.ts'
import { ledgerEpoch } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { isBinFree } from './bin-room.ts'
import { intakeOf, sellingHub, type Intake } from './intake.ts'
import { moveOrder, releaseReservations } from './move-order.ts'
import { unfrozenLine, unfrozenOrder, type OrderRow } from './order-rows.ts'
import { cartLines, priceToFreeze, type CartLine, type PricedCart } from './price-cart.ts'
import { soldNames } from './sold-names.ts'

interface Obstacle {
  code: ErrorCode
  details?: ErrorDetails
}

/**
 * What stands in the way of paying a cart, in the order in which paying would say so. Stock is not reserved yet: `reserve`
 * has the last word on it.
 */
export async function checkoutObstacles(
  q: Queries,
  lines: readonly CartLine[],
  intake: Intake,
  { claim }: Pick<FreezeOptions, 'claim'>,
): Promise<Obstacle[]> {
  const obstacles: Obstacle[] = []
  if (lines.length === 0) obstacles.push({ code: 'cart_empty' })
  if (intake.refusal !== null)
    obstacles.push({ code: 'hub_not_accepting_orders', details: { reason: intake.refusal } })
  const units = lines.reduce((sum, { qty }) => sum + qty, 0)
  if (!isBinFree(intake.bins, units, claim)) obstacles.push({ code: 'no_bin_available' })
  const stock = await availableOfEach(
    q,
    lines.map(({ product_id }) => product_id),
  )
  const short = lines
    .map(({ product_id, qty }) => ({ product_id, requested: qty, available: stock.get(product_id)! }))
    .filter(({ requested, available }) => available < requested)
  if (short.length > 0) obstacles.push({ code: 'insufficient_stock', details: { items: short } })
  return obstacles
}

/** Who takes cards takes no less than this, unless there is nothing to pay. Smallest units. */
export const amountObstacle = (total: number, least: number): Obstacle | undefined =>
  total > 0 && total < least ? { code: 'amount_too_small', details: { total, least } } : undefined

export interface FreezeOptions {
  /** The order is claimed for an integrator's payment: a bin is kept for it. */
  claim: boolean
  expectedTotal?: number | undefined
  /** The least total that can be paid so, other than nothing. */
  least?: number
}

/** Freezes a cart with its prices and deals, reserves its stock, and moves it to PENDING_PAYMENT. */
export async function freezeOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  { claim, expectedTotal, least = 0 }: FreezeOptions,
): Promise<PricedCart> {
  const lines = await cartLines(tx.q, order.id)
  // Checkouts at one hub come one after the other, so that no two find the same bin free.
  const hub = await tx.forUpdate(sellingHub(tx.q, order.hub_id)).executeTakeFirstOrThrow()
  const intake = await intakeOf(tx.q, context, hub)
  const [obstacle] = await checkoutObstacles(tx.q, lines, intake, { claim })
  if (obstacle) throw new ApiError(obstacle.code, undefined, obstacle.details)
  const priced = await priceToFreeze(tx, context, { order, hub, lines })
  if (expectedTotal !== undefined && expectedTotal !== priced.total)
    throw new ApiError('total_changed', undefined, { total: priced.total })
  const tooSmall = amountObstacle(priced.total, least)
  if (tooSmall) throw new ApiError(tooSmall.code, undefined, tooSmall.details)
  const shortages = await reserve(
    tx,
    lines.map(({ product_id, qty }) => ({ productId: product_id, quantity: qty })),
  )
  if (shortages.length > 0) throw new ApiError('insufficient_stock', undefined, { items: shortages })
  await freezeLines(tx, order.hub_id, lines, priced)
  await redeem(tx, context, order, priced.plan.applications)
  const bin = claim ? intake.bins.claimable[0]! : null
  await moveOrder(tx, context, order, 'checkout', {
    // A database that has lost its last commits may sell this cart a second time, with other lines.
    uuid: uuidv7(context.runtime),
    touched_at: context.runtime.clock.now(),
    total_price_original: priced.totalOriginal,
    total_price_discounted: priced.totalDiscounted,
    tax_total: priced.taxTotal,
    total: priced.total,
    deals: JSON.stringify(priced.deals),
    reserved_bin: bin,
    open_when_ready: claim ? 1 : 0,
    bins: JSON.stringify(bin === null ? [] : [bin]),
  })
  return priced
}

async function freezeLines(
  tx: Tx,
  hubId: number,
  lines: readonly CartLine[],
  priced: PricedCart,
): Promise<void> {
  const names = await soldNames(tx, hubId, lines)
  const frozen = recordset(
    tx.kind,
    {
      id: 'int',
      upc: 'text',
      name: 'text',
      sold_name_id: 'int',
      image_url: 'text',
      unit_price_original: 'int',
      unit_price: 'int',
      purchase_price: 'int',
      net: 'int',
      tax: 'int',
    },
    lines.map((line, index) => {
      const { unitPriceOriginal, unitPrice, net, tax } = priced.lines[index]!
      return {
        id: line.id,
        upc: line.upc,
        name: line.name,
        sold_name_id: names[index]!,
        image_url: line.image_url,
        unit_price_original: unitPriceOriginal,
        unit_price: unitPrice,
        purchase_price: line.purchase_price,
        net,
        tax,
      }
    }),
  )
  await sql`
    update order_items set upc = r.upc, name = r.name, sold_name_id = r.sold_name_id, image_url = r.image_url,
      unit_price_original = r.unit_price_original, unit_price = r.unit_price, purchase_price = r.purchase_price,
      net = r.net, tax = r.tax, reserved = qty
    from ${frozen} where order_items.id = r.id`.execute(tx.q)
}

/** Makes a cart of a frozen order again: stock, bin and deals are free, prices are the products'. */
export async function unfreezeOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  cause: Extract<OrderCause, 'payment_failed'>,
): Promise<void> {
  const step = await moveOrder(tx, context, order, cause, unfrozenOrder)
  if (step.kind !== 'moved') return
  await putBackRedemptions(tx, context, order.id)
  await releaseReservations(tx, order.id)
  await tx.q.updateTable('order_items').set(unfrozenLine).where('order_id', '=', order.id).execute()
}

/** The order is paid: it goes to the hub, in the transaction that records the payment (I3). */
export async function queueOrder(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const { runtime, settings } = context
  const now = runtime.clock.now()
  const items = await tx.q
    .selectFrom('order_items')
    .select(['id', 'product_id', 'qty'])
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  const queued: QueuedOrder = {
    order_id: order.uuid,
    number: order.id,
    lines: items.map(({ id, product_id, qty }) => ({ line_id: id, product_id, quantity: qty })),
    bin: order.reserved_bin,
    open_when_ready: order.open_when_ready === 1,
    queued_at: now,
    start_by: now + settings.startWithinMs,
    hub_epoch: await ledgerEpoch(tx.q, order.hub_id),
  }
  const step = await moveOrder(tx, context, order, 'payment_completed', {
    queued_order: JSON.stringify(queued),
    queued_at: now,
  })
  if (step.kind !== 'moved') return
  if (order.deals !== '[]') await completeRedemptions(tx, context, order)
  await enqueue(tx, order.hub_id, { kind: 'order.queued', order: queued })
}
