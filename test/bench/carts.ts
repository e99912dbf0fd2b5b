import { healthyBins } from '../world/health.ts'
import { sql } from 'kysely'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'

const DAY_MS = 86_400_000

/** Bins of each hub. */
export const BINS = [1, 2, 3, 4]

const health: HubHealth = {
  accepting_orders: true,
  bins: healthyBins(BINS.length),
  fridges: [],
  doors: [],
  unknown_operations: 0,
}

/** Makes a hub known: online, and with an outbox that accepts entries. No process fetches them. */
export async function writePresence({ kysely: q }: CloudDatabase, hubId: number, now: number): Promise<void> {
  await q
    .insertInto('hub_sessions')
    .values({
      hub_id: hubId,
      session: String(hubId).padStart(32, '1'),
      process_id: 'none',
      lease_until: 0,
      is_connected: 1,
      // The hub is online during the whole measurement.
      last_heard_at: now + DAY_MS,
      health: JSON.stringify(health),
      health_at: now,
      software: 'bench',
    })
    .execute()
  await q
    .insertInto('hub_bins')
    .values(
      BINS.map((bin) => ({
        hub_id: hubId,
        bin,
        capacity: 10,
        state: 'free' as const,
        order_uuid: null,
        fault: null,
        since: now,
      })),
    )
    .execute()
  await q
    .insertInto('hub_outboxes')
    .values({ hub_id: hubId, epoch: '2'.repeat(32), base: 0, base_tag: 0, last: 0 })
    .execute()
}

/** A hub with carts of its products. */
export interface CartsHub {
  id: number
  firstProduct: number
  products: number
}

/** A cart and its customer. */
export interface WrittenCart {
  order: number
  user: number
}

/**
 * Customers `bench-1`, `bench-2` …, each with a cart of two own lines, distributed over the hubs in order.
 */
export async function writeCarts(
  { kysely: q }: CloudDatabase,
  { count, hubs, now }: { count: number; hubs: readonly CartsHub[]; now: number },
): Promise<WrittenCart[]> {
  const numbers = sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`
  const { rows: last } = await sql<{ users: number; orders: number; items: number }>`
    select (select coalesce(max(id), 0) from users) as users, (select coalesce(max(id), 0) from orders) as orders,
      (select coalesce(max(id), 0) from order_items) as items`.execute(q)
  const { users, orders, items } = last[0]!
  await sql`insert into users (id, identity, is_anonymous, created_at, updated_at)
    ${numbers} select ${users} + i, 'bench-' || i, 0, ${now}, ${now} from n`.execute(q)
  for (const [turn, { id: hub, firstProduct, products }] of hubs.entries()) {
    const mine = sql`from n where i % ${hubs.length} = ${turn}`
    await sql`insert into orders (id, uuid, user_id, hub_id, processing_status, payment_status, currency, version, open_when_ready,
        bins, created_at, updated_at)
      ${numbers} select ${orders} + i,
        '018f0000-0000-7000-8000-' || cast(200000000000 + i as text), ${users} + i, ${hub}, 0, 'unpaid', 'USD', 1, 0, '[]', ${now}, ${now}
        ${mine}`.execute(q)
    for (const line of [0, 1])
      await sql`insert into order_items (id, order_id, product_id, qty, reserved, qty_dropped, qty_doubtful,
          refunded_quantity, bins)
        ${numbers} select ${items} + 2 * i + ${line}, ${orders} + i, ${firstProduct} + (i * 31 + ${line} * 17) % ${products}, 1, 0, 0, 0, 0,
          '[]' ${mine}`.execute(q)
  }
  return Array.from({ length: count }, (_, index) => ({ order: orders + index + 1, user: users + index + 1 }))
}
