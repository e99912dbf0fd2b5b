import { sql } from 'kysely'
import type { HubHealth } from '../../protocol/mqtt/session.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'

const DAY_MS = 86_400_000

const health: HubHealth = {
  accepting_orders: true,
  bins: [1, 2, 3, 4].map((bin_number) => ({
    bin_number,
    capacity: 10,
    enabled: true,
    status: 'healthy',
    door: 'closed',
    lift: 'down',
    occupied: false,
    fault_code: null,
    order_id: null,
  })),
  fridges: [],
  doors: [],
  unknown_operations: 0,
}

/** What hub 1 is known by: heard of, and with an outbox that takes entries. Nobody is there to fetch them. */
export async function writePresence({ kysely: q }: CloudDatabase, now: number): Promise<void> {
  await q
    .insertInto('hub_sessions')
    .values({
      hub_id: 1,
      session: '1'.repeat(32),
      process_id: 'none',
      lease_until: 0,
      is_connected: 1,
      // It is online for as long as anything is measured.
      last_heard_at: now + DAY_MS,
      health: JSON.stringify(health),
      health_at: now,
      software: 'bench',
    })
    .execute()
  await q
    .insertInto('hub_outboxes')
    .values({ hub_id: 1, epoch: '2'.repeat(32), base: 0, base_tag: 0, last: 0 })
    .execute()
}

/** Customers `bench-1`, `bench-2` …, each with a cart of two lines of its own. Returns the carts' ids, in their order. */
export async function writeCarts(
  { kysely: q }: CloudDatabase,
  { count, products, now }: { count: number; products: number; now: number },
): Promise<number[]> {
  const numbers = sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`
  const { rows: last } = await sql<{ users: number; orders: number; items: number }>`
    select (select coalesce(max(id), 0) from users) as users, (select coalesce(max(id), 0) from orders) as orders,
      (select coalesce(max(id), 0) from order_items) as items`.execute(q)
  const { users, orders, items } = last[0]!
  await sql`insert into users (id, identity, is_anonymous, created_at, updated_at)
    ${numbers} select ${users} + i, 'bench-' || i, 0, ${now}, ${now} from n`.execute(q)
  await sql`insert into orders (id, uuid, user_id, hub_id, processing_status, payment_status, currency, version, open_when_ready,
      bins, created_at, updated_at)
    ${numbers} select ${orders} + i,
      '018f0000-0000-7000-8000-' || cast(200000000000 + i as text), ${users} + i, 1, 0, 'unpaid', 'USD', 1, 0, '[]', ${now}, ${now} from n`.execute(
    q,
  )
  for (const line of [0, 1])
    await sql`insert into order_items (id, order_id, product_id, qty, reserved, qty_dropped, qty_doubtful,
        refunded_quantity, bins)
      ${numbers} select ${items} + 2 * i + ${line}, ${orders} + i, 1 + (i * 31 + ${line} * 17) % ${products}, 1, 0, 0, 0, 0,
        '[]' from n`.execute(q)
  return Array.from({ length: count }, (_, index) => orders + index + 1)
}
