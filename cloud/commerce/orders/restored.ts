import { amendAlarm, everyOwner, latestAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { issueAbove } from '../../platform/store/next-id.ts'

/** An order that a hub or the card processor knows but the database does not. */
export interface LostOrder {
  order_uuid: string
  /** The number that people see; null if it is unknown. */
  order_id: number | null
  hub_id: number | null
}

/** Maximum number of orders in an alarm. */
const MOST_ORDERS = 200

/**
 * Records that the database has lost orders: it was restored, or a replica without the last commits has taken over.
 * Raises one alarm for each owner, with the period and the missing orders of the owner's hubs. Order numbers continue
 * above the highest number that is known to be assigned. `since`: the time of the restored backup, if it is known.
 */
export async function noteRestored(
  tx: Tx,
  context: CloudContext,
  lost: readonly LostOrder[],
  since?: number,
): Promise<void> {
  const { runtime, settings } = context
  const numbers = lost.flatMap(({ order_id }) => order_id ?? [])
  if (numbers.length > 0)
    await issueAbove(tx, 'orders', { id: Math.max(...numbers), maxStep: settings.lostOrderNumbers })
  const hubs = await tx.q.selectFrom('hubs').select(['id', 'owner_id']).execute()
  const ownerOf = new Map(hubs.map(({ id, owner_id }) => [id, owner_id]))
  const now = runtime.clock.now()
  for (const place of await everyOwner(tx)) {
    if (!('ownerId' in place)) continue
    const own = lost.filter(
      ({ hub_id }) => hub_id === null || (ownerOf.get(hub_id) ?? place.ownerId) === place.ownerId,
    )
    const incident = { ...place, kind: 'database_restored', subject: null } as const
    const known = await latestAlarm(tx, incident)
    const merged = known && merge(known.details, own)
    if (known?.endedAt === null) {
      // A backup with this alarm was restored, so the period goes on.
      if (since !== undefined) await amendAlarm(tx, known.id, { ...known.details, to: timestamp(now) })
      if (merged) await amendAlarm(tx, known.id, merged)
      continue
    }
    // The alarm was acknowledged and names these orders, or another hub has reported the same restore.
    if (
      known &&
      !merged &&
      since === undefined &&
      (own.length > 0 || known.endedAt > now - settings.alarmFlapMs)
    )
      continue
    const earliest = Math.min(now, ...lost.map(({ order_uuid }) => issuedAt(order_uuid) ?? now))
    await raiseAlarm(tx, context, {
      ...incident,
      details: {
        from: timestampOrNull(since ?? (await lastBefore(tx, earliest))),
        to: timestamp(now),
        orders: own.slice(0, MOST_ORDERS),
      },
    })
  }
}

/** Adds orders to the details of an alarm; null if it names them all. */
function merge(details: Record<string, unknown>, lost: readonly LostOrder[]): Record<string, unknown> | null {
  const named = (details['orders'] ?? []) as LostOrder[]
  const known = new Map(named.map((order) => [order.order_uuid, order]))
  const news = lost.filter(({ order_uuid, order_id }) => {
    const same = known.get(order_uuid)
    return same === undefined || (same.order_id === null && order_id !== null)
  })
  if (news.length === 0) return null
  for (const order of news) known.set(order.order_uuid, { ...known.get(order.order_uuid), ...order })
  return { ...details, orders: [...known.values()].slice(0, MOST_ORDERS) }
}

/** The creation time of a UUIDv7; undefined for other UUIDs. */
export function issuedAt(uuid: string): number | undefined {
  const hex = uuid.replaceAll('-', '')
  return hex[12] === '7' ? Number.parseInt(hex.slice(0, 12), 16) : undefined
}

/** Creation time of the newest order before an instant: orders between the two may be missing. */
async function lastBefore(tx: Tx, at: number): Promise<number | null> {
  const row = await tx.q
    .selectFrom('orders')
    .select('created_at')
    .where('created_at', '<', at)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.created_at ?? null
}
