import { sql, type Selectable } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { statement } from '../../platform/store/statement.ts'
import { PAYMENT_UNDER_WAY } from '../../platform/store/tables/payments.ts'
import type { SellingHub } from './intake.ts'
import { LAST_ACTIVE } from './order-rows.ts'
import { EXTERNAL } from '../processors/processor.ts'

/**
 * The limits of unpaid orders. Their stock and bins are bounded in number, units and time, because reserving them costs
 * the customer nothing.
 */

/** A customer who is about to pay, locked, so that payments of one customer run one after another, at all hubs. */
interface Payer {
  isAnonymous: boolean
  /** Whether an identity token has proved an e-mail address or a telephone number of the customer. */
  isVerified: boolean
  /** The customer's orders in PENDING_PAYMENT, at all hubs. */
  unpaid: readonly { id: number; processor: string }[]
}

/** Locks a customer, and reads the customer's unpaid orders under this lock. */
export async function lockPayer(tx: Tx, userId: number): Promise<Payer> {
  const [[user], unpaid] = await Promise.all([userToLock(tx.q, { userId }), unpaidOrders(tx.q, { userId })])
  return payerOf(user, unpaid)
}

/** Reads a customer and the customer's unpaid orders. */
export async function readPayer(q: Queries, userId: number): Promise<Payer> {
  const [[user], unpaid] = await Promise.all([userById(q, { userId }), unpaidOrders(q, { userId })])
  return payerOf(user, unpaid)
}

type UserRow = Pick<Selectable<Tables['users']>, 'is_anonymous' | 'email_verified' | 'phone_verified'>

const payerOf = (user: UserRow | undefined, unpaid: Payer['unpaid']): Payer => ({
  isAnonymous: user?.is_anonymous === 1,
  isVerified: user?.is_anonymous === 0 && (user.email_verified === 1 || user.phone_verified === 1),
  unpaid,
})

const payers = (q: Queries, userId: number) =>
  q.selectFrom('users').select(['is_anonymous', 'email_verified', 'phone_verified']).where('id', '=', userId)
const userById = statement((q, { userId }: { userId: number }) => payers(q, userId))
const userToLock = statement((q, { userId }: { userId: number }, locks) => locks.forUpdate(payers(q, userId)))

const unpaidOrders = statement((q, { userId }: { userId: number }) =>
  q
    .selectFrom('orders as o')
    .innerJoin('payments as p', 'p.order_id', 'o.id')
    .select(['o.id', 'p.processor'])
    .where('o.user_id', '=', userId)
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', '=', sql.lit(OrderStatus.PENDING_PAYMENT))
    .where('p.is_late', '=', sql.lit(0))
    .where(
      'p.status',
      'in',
      PAYMENT_UNDER_WAY.map((status) => sql.lit(status)),
    )
    .orderBy('o.id'),
)

/** Throws `external_payments_disabled` if the hub does not let this customer claim an order for an integrator. */
export function requireClaimable({ external_payments }: SellingHub, { isAnonymous }: Payer): void {
  const isAllowed = external_payments === 'everyone' || (external_payments === 'customers' && !isAnonymous)
  if (!isAllowed) throw new ApiError('external_payments_disabled')
}

/**
 * Throws `order_state_conflict` if the customer has the maximum of other unpaid orders, or a second external claim.
 * `details.order_id` is the blocking order.
 */
export function requireFewUnpaid(
  { settings }: CloudContext,
  { unpaid }: Pick<Payer, 'unpaid'>,
  orderId: number,
  isClaim: boolean,
): void {
  const blocking = blockingOrder(settings.unpaidOrdersPerUser, unpaid, orderId, isClaim)
  if (blocking !== undefined)
    throw new ApiError(
      'order_state_conflict',
      `Order ${blocking} of this customer is unpaid: pay it or delete it first.`,
      { order_id: blocking },
    )
}

/** The unpaid order that keeps a customer from paying another one. */
export function blockingOrder(
  mostUnpaid: number,
  unpaid: Payer['unpaid'],
  orderId: number,
  isClaim: boolean,
): number | undefined {
  const others = unpaid.filter(({ id }) => id !== orderId)
  const claim = isClaim ? others.find(({ processor }) => processor === EXTERNAL) : undefined
  return claim?.id ?? (others.length >= mostUnpaid ? others[0]!.id : undefined)
}

/** Why a cart cannot be paid. */
export interface Obstacle {
  code: ErrorCode
  /** By default the code's. */
  message?: string
  details?: ErrorDetails
}

/** The limits of units that one order reserves before it is paid. */
export interface UnpaidBounds {
  mostUnits: number
  mostOfNetwork: number
  /** `payerNetwork` of a customer without a verified contact. Undefined for the others, who are bounded as customers. */
  network: string | undefined
}

export const unpaidBounds = (
  context: CloudContext,
  { isVerified }: Pick<Payer, 'isVerified'>,
  network: string | undefined,
): UnpaidBounds => ({
  mostUnits: context.settings.unpaidUnitsPerOrder,
  mostOfNetwork: context.settings.unpaidUnitsPerNetwork,
  network: !isVerified && network !== undefined ? payerNetwork(context, network) : undefined,
})

/**
 * A customer's network as an unpaid order stores it: a keyed digest, not the address. Guests and accounts without a verified
 * contact cost nothing, so a limit per user alone would let one caller reserve all goods of a hub.
 */
const payerNetwork = ({ sealer }: CloudContext, network: string): string =>
  sealer.digest('payer network', network)

/** Why an order with this many units cannot be unpaid. `held`: the unpaid units of networks at the hub. */
export function unpaidObstacles(
  units: number,
  held: ReadonlyMap<string, number>,
  { mostUnits, mostOfNetwork, network }: UnpaidBounds,
): Obstacle[] {
  const ofNetwork = network === undefined ? 0 : (held.get(network) ?? 0)
  return [
    ...(units > mostUnits
      ? [
          {
            code: 'invalid_quantity' as const,
            message: `An unpaid order has at most ${mostUnits} units.`,
            details: { units, most: mostUnits },
          },
        ]
      : []),
    ...(ofNetwork > 0 && ofNetwork + units > mostOfNetwork
      ? [{ code: 'rate_limit_exceeded' as const, details: { share_of: 'network', most: mostOfNetwork } }]
      : []),
  ]
}

/**
 * Until when a payment that begins now may reserve its order's stock and bins. `heldSince`: when the reservation began,
 * by this payment or by those that it replaces.
 */
export function holdUntil({ runtime, settings }: CloudContext, processor: string, heldSince: number): number {
  const { paymentHoldMs, externalClaimMs } = settings
  const holdMs = processor === EXTERNAL ? Math.min(externalClaimMs, paymentHoldMs) : paymentHoldMs
  return Math.min(runtime.clock.now() + holdMs, heldSince + paymentHoldMs)
}
