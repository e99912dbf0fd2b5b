import { RawNode, sql, type KyselyPlugin } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { LeaseKeeper, type Beat } from '../../../cloud/gateway/leases.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { openDatabase, type Tx } from '../../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../process/chaos/postgres.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { seedHub } from '../../world/seeds.ts'
import { healthy } from '../../world/health.ts'

const HUBS = 40

/** The bytes that the statements of a transaction write to the log of PostgreSQL. */
function withWal(tx: Tx): { tx: Tx; bytes: () => number } {
  let bytes = 0
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) =>
      node.kind === 'RawNode' ? RawNode.create(['explain (analyze, wal, format json) ', ''], [node]) : node,
    transformResult({ result }) {
      for (const row of result.rows as { 'QUERY PLAN'?: [{ Plan: { 'WAL Bytes'?: number } }] }[])
        bytes += row['QUERY PLAN']?.[0].Plan['WAL Bytes'] ?? 0
      return Promise.resolve(result)
    },
  }
  return { tx: { ...tx, q: tx.q.withPlugin(plugin) }, bytes: () => bytes }
}

service('postgres')(
  'heartbeats with unchanged health write at most 120 bytes each to the log of PostgreSQL',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, systemRuntime())
    const db = openDatabase({ url: database.url })
    onTestFinished(async () => {
      await db.close()
      await database.remove()
    })
    await db.migrate()
    const runtime = virtualRuntime()
    const session = '5'.repeat(32)
    // The health report of a hub with many devices.
    const health = {
      ...healthy,
      bins: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((bin) => ({ ...healthy.bins[0]!, bin })),
    }
    for (let hub_id = 1; hub_id <= HUBS; hub_id += 1) {
      await seedHub(db, hub_id)
      await db.kysely
        .insertInto('hub_sessions')
        .values({
          hub_id,
          session,
          software: 'test',
          instance: 'i'.repeat(32),
          process_id: 'a',
          lease_until: runtime.clock.now() + defaultLimits.gateway.leaseMs,
          is_connected: 1,
          last_heard_at: runtime.clock.now(),
          health: JSON.stringify(health),
          health_at: runtime.clock.now(),
          health_monotonic: 0,
        })
        .execute()
    }
    await sql`vacuum hub_sessions`.execute(db.kysely)
    const leases = new LeaseKeeper({
      context: testContext(db, runtime),
      settings: defaultLimits.gateway,
      processId: 'a',
    })
    let monotonic = 1
    async function beat(changed: object = {}): Promise<number> {
      runtime.clock.advance(15_000)
      monotonic += 15_000
      const beats = Array.from({ length: HUBS }, (_, index): Beat => {
        const heartbeat = { session, monotonic, health: { ...health, ...changed } }
        return { hubId: index + 1, heartbeat }
      })
      const compared = await leases.compare(db.kysely, beats)
      const due = beats.filter(({ hubId }) => compared.get(hubId) === 'due')
      return db.transact(async (tx) => {
        const counted = withWal(tx)
        if (due.length > 0) await leases.renew(counted.tx, due)
        return counted.bytes() / HUBS
      })
    }
    const written = [await beat(), await beat(), await beat(), await beat()]
    // Every second heartbeat is written.
    expect(written.filter((bytes) => bytes > 0)).toHaveLength(2)
    expect(written.reduce((sum, bytes) => sum + bytes, 0) / written.length).toBeLessThan(120)
    await beat({ accepting_orders: false })
    const stored = await db.kysely.selectFrom('hub_sessions').select('health').execute()
    expect(new Set(stored.map((row) => row.health))).toEqual(
      new Set([JSON.stringify({ ...health, accepting_orders: false })]),
    )
  },
)
