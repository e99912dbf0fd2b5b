import { sql, type Updateable } from 'kysely'
import type { QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { PaymentStatus } from '../../../protocol/contract/fields.ts'
import { transition, type OrderCause } from '../../../protocol/model/order-status.ts'
import { availableOfEach, reserve } from '../catalogue/reservations.ts'
import type { CloudContext } from '../../platform/context.ts'
import { completeRedemptions, putBackRedemptions, redeem } from '../deals/redemptions.ts'
import { currentLedger } from '../../gateway/hub-state.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { recordset, type Cell } from '../../platform/store/recordset.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { statement } from '../../platform/store/statement.ts'
import { isBinFree } from './bin-room.ts'
import type { Intake } from './intake.ts'
import { moveOrder, releaseReservations } from './move-order.ts'
import { unfrozenLine, unfrozenOrder, type OrderRow } from './order-rows.ts'
import { priceToFreeze, type CartLine, type PricedCart, type SoldCart } from './price-cart.ts'
import { unpaidObstacles, type Obstacle, type UnpaidBounds } from './unpaid.ts'
import { addSoldNames, soldName, soldNameId, type SoldName } from './sold-names.ts'

/**
 * The reasons why a cart cannot be paid, in the order in which payment would report them. Stock is not reserved yet:
 * `reserve` decides finally.
 */
export async function checkoutObstacles(
  q: Queries,
  lines: readonly CartLine[],
  intake: Intake,
  options: Pick<FreezeOptions, 'claim' | 'unpaid'>,
): Promise<Obstacle[]> {
  const short = await shortage(q, lines)
  return [...obstaclesAtHub(lines, intake, options), ...(short ? [short] : [])]
}

function obstaclesAtHub(
  lines: readonly CartLine[],
  intake: Intake,
  { claim, unpaid }: Pick<FreezeOptions, 'claim' | 'unpaid'>,
): Obstacle[] {
  const obstacles: Obstacle[] = []
  const units = lines.reduce((sum, { qty }) => sum + qty, 0)
  if (lines.length === 0) obstacles.push({ code: 'cart_empty' })
  if (unpaid) obstacles.push(...unpaidObstacles(units, intake.unpaidUnits, unpaid))
  if (intake.refusal !== null)
    obstacles.push({ code: 'hub_not_accepting_orders', details: { reason: intake.refusal } })
  if (!isBinFree(intake.bins, units, claim)) obstacles.push({ code: 'no_bin_available' })
  return obstacles
}

/** The products with fewer available units than the cart has. */
async function shortage(q: Queries, lines: readonly CartLine[]): Promise<Obstacle | undefined> {
  const stock = await availableOfEach(
    q,
    lines.map(({ product_id }) => product_id),
  )
  const short = lines
    .map(({ product_id, qty }) => ({ product_id, requested: qty, available: stock.get(product_id)! }))
    .filter(({ requested, available }) => available < requested)
  return short.length > 0 ? { code: 'insufficient_stock', details: { items: short } } : undefined
}

/** Card processors have a minimum amount, except for a free order. Smallest units. */
export const amountObstacle = (total: number, least: number): Obstacle | undefined =>
  total > 0 && total < least ? { code: 'amount_too_small', details: { total, least } } : undefined

interface FreezeOptions {
  /** The order is claimed for an integrator's payment, which reserves a bin. */
  claim: boolean
  /** The limits of units that the order reserves until it is paid; absent if it is paid at once. */
  unpaid?: UnpaidBounds
  expectedTotal?: number | undefined
  /** The minimum total, except 0. */
  least?: number
}

/** A cart with its prices and deals, and the changes of its row for the move to PENDING_PAYMENT. */
export interface Frozen {
  cart: SoldCart
  priced: PricedCart
  /** The order's id at the hub and the processor. */
  uuid: string
  changes: Updateable<Tables['orders']>
}

/** The obstacle to a payment whose caller expects another total. */
export const changedTotal = (total: number, expected: number | undefined): Obstacle | undefined =>
  expected === undefined || expected === total ? undefined : { code: 'total_changed', details: { total } }

/**
 * Prices a cart for its payment if nothing prevents it. The caller then freezes it (`freezeCart`) and changes its
 * status.
 */
export async function priceForPayment(
  tx: Tx,
  context: CloudContext,
  cart: SoldCart,
  intake: Intake,
  { claim, unpaid, expectedTotal, least = 0 }: FreezeOptions,
): Promise<Frozen> {
  const { hub, lines } = cart
  const [atHub] = obstaclesAtHub(lines, intake, { claim, ...(unpaid && { unpaid }) })
  if (atHub) throw refusalOf(atHub)
  const priced = await priceToFreeze(tx, context, cart)
  const obstacle: Obstacle | undefined =
    changedTotal(priced.total, expectedTotal) ?? amountObstacle(priced.total, least)
  // A shortage is reported first. Without another obstacle, `freezeCart` finds it.
  if (obstacle) throw refusalOf((await shortage(tx.q, lines)) ?? obstacle)
  const bin = claim ? intake.bins.claimable[0]! : null
  // A new id, because a database that lost its last commits may sell this cart again with other lines.
  const uuid = uuidv7(context.runtime)
  const changes = {
    uuid,
    owner_id: cart.hub.owner_id,
    currency: context.settings.currency,
    touched_at: context.runtime.clock.now(),
    total_price_original: priced.totalOriginal,
    total_price_discounted: priced.totalDiscounted,
    tax_total: priced.taxTotal,
    total: priced.total,
    tax_millipercent: hub.tax_millipercent,
    deals: JSON.stringify(priced.deals),
    reserved_bin: bin,
    open_when_ready: claim ? 1 : 0,
    bins: JSON.stringify(bin === null ? [] : [bin]),
  } as const
  return { cart, priced, uuid, changes }
}

/** Freezes the lines of a cart at their prices, and takes its stock and its deals. */
export async function freezeCart(tx: Tx, context: CloudContext, frozen: Frozen): Promise<void> {
  const { cart, priced } = frozen
  const { order, hub, lines } = cart
  const [shortages] = await Promise.all([
    reserve(
      tx,
      lines.map(({ product_id, qty }) => ({ productId: product_id, quantity: qty })),
    ),
    freezeLines(tx, hub.id, lines, priced),
  ])
  if (shortages.length > 0) throw new ApiError('insufficient_stock', undefined, { items: shortages })
  await redeem(tx, context, order, priced.plan.applications)
}

const refusalOf = ({ code, message, details }: Obstacle): ApiError => new ApiError(code, message, details)

async function freezeLines(
  tx: Tx,
  hubId: number,
  lines: readonly CartLine[],
  priced: PricedCart,
): Promise<void> {
  const frozen = lines.map((line, index) => {
    const { unitPriceOriginal, unitPrice, net, tax } = priced.lines[index]!
    return {
      id: line.id,
      ...soldName(line),
      name: line.name,
      category: line.category,
      image_url: line.image_url,
      unit_price_original: unitPriceOriginal,
      unit_price: unitPrice,
      purchase_price: line.purchase_price,
      net,
      tax,
    }
  })
  const named = await writeFrozen(tx.q, { hubId, frozen })
  if (named.every(({ sold_name_id }) => sold_name_id !== null)) return
  await addSoldNames(tx, hubId, frozen)
  await writeFrozen(tx.q, { hubId, frozen })
}

const frozenColumns = {
  ...({ id: 'int', upc: 'text', search_name: 'text', name: 'text', category: 'text' } as const),
  ...({
    image_url: 'text',
    unit_price_original: 'int',
    unit_price: 'int',
    purchase_price: 'int',
    net: 'int',
    tax: 'int',
  } as const),
}
type FrozenLine = SoldName & { [column in keyof typeof frozenColumns]: Cell }

const writeFrozen = statement(
  (_, { hubId, frozen }: { hubId: number; frozen: readonly FrozenLine[] }, { kind }) =>
    sql<{ sold_name_id: number | null }>`
    update order_items set upc = r.upc, name = r.name, category = r.category, sold_name_id = ${soldNameId(hubId)}, image_url = r.image_url,
      unit_price_original = r.unit_price_original, unit_price = r.unit_price, purchase_price = r.purchase_price,
      net = r.net, tax = r.tax, reserved = qty
    from ${recordset(kind, frozenColumns, frozen)} where order_items.id = r.id
    returning sold_name_id`,
)

/** Makes a frozen order a cart again: releases its stock, bin and deals, and uses the products' present prices. */
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

/**
 * Queues a paid order for the hub, in the transaction that records the payment (I3). `lines`: `linesToQueue`, read under
 * the order's lock.
 */
export async function queueOrder(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment_status: PaymentStatus,
  lines: readonly LineToQueue[],
): Promise<void> {
  const { runtime, settings } = context
  const now = runtime.clock.now()
  const queued: QueuedOrder = {
    order_id: order.uuid,
    number: order.id,
    lines: lines.map(({ id, product_id, qty }) => ({ line_id: id, product_id, quantity: qty })),
    bin: order.reserved_bin,
    open_when_ready: order.open_when_ready === 1,
    queued_at: now,
    start_by: now + settings.startWithinMs,
    hub_epoch: lines[0]?.hub_epoch ?? null,
  }
  if (transition(order.processing_status, 'payment_completed').kind !== 'moved') return
  const changes = { payment_status, queued_order: JSON.stringify(queued), queued_at: now }
  const moved = moveOrder(tx, context, order, 'payment_completed', changes)
  // Deals before the outbox, in the lock order of payments from the wallet.
  if (order.deals !== '[]') await Promise.all([moved, completeRedemptions(tx, context, order)])
  await Promise.all([moved, enqueue(tx, order.hub_id, { kind: 'order.queued', order: queued })])
}

export const linesToQueue = statement((q, order: { order_id: number; hub_id: number }) =>
  q
    .selectFrom('order_items')
    .select(['id', 'product_id', 'qty', currentLedger(q, order.hub_id).as('hub_epoch')])
    .where('order_id', '=', order.order_id)
    .orderBy('id'),
)
export type LineToQueue = Awaited<ReturnType<typeof linesToQueue>>[number]
