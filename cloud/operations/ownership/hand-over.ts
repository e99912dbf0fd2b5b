import { counted } from '../../../protocol/model/counted.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { endNow } from '../../commerce/money/operations.ts'
import { lockOrder } from '../../commerce/orders/order-rows.ts'
import { endRetired } from '../../commerce/refunds/undelivered.ts'
import { handOverAlarms } from '../../events/alarms/hand-over-alarms.ts'
import { endSession } from '../../gateway/hub-certificates.ts'
import { startDraining } from '../../gateway/draining.ts'
import { requireNoMove } from '../../gateway/moves.ts'
import type { CloudContext } from '../../platform/context.ts'
import { listRolesAt, revokeRole } from '../../platform/credentials/roles.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { PAYMENT_UNDER_WAY } from '../../platform/store/tables/payments.ts'
import { setDesired } from '../controls/configuration.ts'
import { removeHubPeople } from '../controls/hub-people.ts'

/**
 * Moves a hub to another owner, or out of service. Its books stay: orders, figures, events, alarms and
 * reports belong to the owner at that time.
 */

interface LockedHub {
  owner_id: number
  owned_since: number
  retired_at: number | null
  revoked_at: number | null
  created_at: number
}

/**
 * Checkouts lock the same row: none is in progress after this, and none starts before the transaction ends.
 */
export async function lockHub(tx: Tx, hubId: number): Promise<LockedHub> {
  const hub = await tx
    .forUpdate(
      tx.q
        .selectFrom('hubs')
        .select(['owner_id', 'owned_since', 'retired_at', 'revoked_at', 'created_at'])
        .where('id', '=', hubId),
    )
    .executeTakeFirst()
  if (!hub) throw new Error(`no such hub: ${hubId}`)
  return hub
}

/** Ids of orders that are being paid, prepared or collected. */
export async function ordersInFlight(tx: Tx, hubId: number): Promise<number[]> {
  const rows = await tx.q
    .selectFrom('orders')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('processing_status', '>=', OrderStatus.PENDING_PAYMENT)
    .where('processing_status', '<=', OrderStatus.COLLECTING)
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

export const inFlight = (hubId: number, orders: readonly number[], remedy: string): Error => {
  const named = orders.slice(0, 10).join(', ') + (orders.length > 10 ? ', …' : '')
  return new Error(`hub ${hubId} has ${counted(orders.length, 'unfinished order')} (${named}): ${remedy}`)
}

/**
 * Gives a hub to another owner. Roles and invitations that name the hub lose it: their persons work for the former owner.
 * Throws if an order is unfinished, if the hub is retired or if it already belongs to that owner.
 */
export async function moveHub(
  tx: Tx,
  context: CloudContext,
  { hubId, newOwner }: { hubId: number; newOwner: number },
): Promise<{ fromOwner: number; movedAt: number; roles: string[] }> {
  const hub = await lockHub(tx, hubId)
  if (hub.retired_at !== null) throw new Error(`hub ${hubId} is retired: it stays with its last owner`)
  if (hub.owner_id === newOwner) throw new Error(`hub ${hubId} already belongs to this owner`)
  const orders = await ordersInFlight(tx, hubId)
  if (orders.length > 0) throw inFlight(hubId, orders, 'move it when they have ended')
  await requireNoMove(tx, hubId)
  // An import of it would give the hub to the former owner.
  await tx.q.deleteFrom('hub_exports').where('hub_id', '=', hubId).execute()
  const movedAt = context.runtime.clock.now()
  await tx.q
    .insertInto('former_owners')
    .values({ hub_id: hubId, owner_id: hub.owner_id, since: hub.owned_since, until: movedAt })
    .execute()
  await tx.q
    .updateTable('hubs')
    .set({ owner_id: newOwner, owned_since: movedAt })
    .where('id', '=', hubId)
    .execute()
  await handOverAlarms(tx, context, { hubId, newOwner })
  // Its people work for the former owner.
  await removeHubPeople(tx, context, hubId)
  await takeFromInvitations(tx, hubId)
  return { fromOwner: hub.owner_id, movedAt, roles: await takeFromRoles(tx, hubId) }
}

/** Removes a hub from the roles that name it. Returns the identities that had such a role. */
async function takeFromRoles(tx: Tx, hubId: number): Promise<string[]> {
  const changed: string[] = []
  for (const { id, identity, role, hubs, createdAt } of await listRolesAt(tx.q, [hubId])) {
    const left = hubs === '*' ? [] : hubs.filter((each) => each !== hubId)
    if (left.length === 0) await revokeRole(tx, id)
    else {
      await tx.q.deleteFrom('roles').where('id', '=', id).execute()
      await tx.q
        .insertInto('roles')
        .values({ id, identity, role, hubs: JSON.stringify(left), created_at: createdAt })
        .execute()
    }
    changed.push(identity)
  }
  return changed
}

/** Removes a hub from the invitations that name it. An invitation to this hub alone ends. */
async function takeFromInvitations(tx: Tx, hubId: number): Promise<void> {
  for (const row of await tx.q.selectFrom('invitations').selectAll().orderBy('id').execute()) {
    const before = JSON.parse(row.hubs) as number[]
    if (!before.includes(hubId)) continue
    const { numDeletedRows } = await tx.q
      .deleteFrom('invitations')
      .where('id', '=', row.id)
      .executeTakeFirst()
    const left = before.filter((each) => each !== hubId)
    // Without a deleted row somebody has just withdrawn it.
    if (left.length > 0 && numDeletedRows > 0n)
      await tx.q
        .insertInto('invitations')
        .values({ ...row, hubs: JSON.stringify(left) })
        .execute()
  }
}

/**
 * Takes a hub out of service permanently: no sale, no alarm, no login. Its books stay readable. A repetition
 * changes nothing. Throws if the hub has an open order to move to another cell. With unfinished orders it also throws, unless
 * `force`: then these orders end, and all of their money is refunded. A hub with unfinished orders or undelivered entries keeps its login until its streams
 * are drained (`draining.ts`). They carry the cancellations, and the hub's reports of earlier drops.
 */
export async function retireHub(
  tx: Tx,
  context: CloudContext,
  { hubId, force, actor }: { hubId: number; force: boolean; actor: string },
): Promise<{ retiredAt: number; orders: number[] }> {
  const hub = await lockHub(tx, hubId)
  if (hub.retired_at !== null) return { retiredAt: hub.retired_at, orders: [] }
  await requireNoMove(tx, hubId)
  const orders = await ordersInFlight(tx, hubId)
  if (orders.length > 0 && !force)
    throw inFlight(hubId, orders, 'wait for their end, or cancel and refund them with --force')
  const retiredAt = context.runtime.clock.now()
  for (const orderId of orders) await endOrder(tx, context, orderId, actor)
  // Its former cell may send the hub again.
  await tx.q.deleteFrom('imported_hubs').where('hub_id', '=', hubId).execute()
  // The announcement of the change reads the status.
  await tx.q
    .updateTable('hubs')
    .set({ hub_status: 'retired', retired_at: retiredAt })
    .where('id', '=', hubId)
    .execute()
  // Without this login the hub could prepare a cancelled order before it receives the cancellation, and could
  // not report it.
  if (orders.length > 0 || (await hasUndelivered(tx.q, hubId)))
    await startDraining(tx, hubId, retiredAt + context.settings.hubDrainMs)
  await setDesired(tx, context, { hubId, change: (before) => ({ ...before, acceptingOrders: false }) })
  await handOverAlarms(tx, context, { hubId, newOwner: null })
  await endSession(tx, hubId, retiredAt)
  return { retiredAt, orders }
}

/** Whether the cloud has sent entries that the hub has not acknowledged, such as the cancellation of an order that has ended. */
export async function hasUndelivered(q: Queries, hubId: number): Promise<boolean> {
  const outbox = await q
    .selectFrom('hub_outboxes')
    .select('hub_id')
    .where('hub_id', '=', hubId)
    .whereRef('base', '<', 'last')
    .executeTakeFirst()
  return outbox !== undefined
}

async function endOrder(tx: Tx, context: CloudContext, orderId: number, actor: string): Promise<void> {
  const order = await lockOrder(tx, orderId)
  if (!order) return
  if (order.processing_status !== OrderStatus.PENDING_PAYMENT)
    return endRetired(tx, context, order, { actor })
  // The service cancels the payment at its processor. A payment that succeeds in between is refunded.
  const payments = await tx.q
    .selectFrom('payments')
    .select('id')
    .where('order_id', '=', orderId)
    .where('status', 'in', PAYMENT_UNDER_WAY)
    .execute()
  await endNow(
    tx,
    context,
    'payment',
    payments.map(({ id }) => id),
  )
}
