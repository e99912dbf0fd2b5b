import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { LeaseKeeper } from '../../../cloud/gateway/leases.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import type { CloudDatabase, Queries } from '../../../cloud/platform/store/database.ts'
import { virtualRuntime, type VirtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { onEachDatabase } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'
import { lockWaits } from '../../world/lock-waits.ts'

const HUBS = [1, 2, 3]

onEachDatabase('leases of several hubs', (open) => {
  let db: CloudDatabase
  let runtime: VirtualRuntime

  beforeEach(async () => {
    runtime = virtualRuntime()
    db = await open()
    for (const hubId of HUBS) await seedHub(db, hubId)
    // The order in a table with often written rows, which differs from the order of ids.
    for (const hub_id of HUBS.toReversed())
      await db.kysely
        .insertInto('hub_sessions')
        .values({
          hub_id,
          session: '5'.repeat(32),
          software: 'test',
          process_id: 'a',
          lease_until: runtime.clock.now() + 1000,
          is_connected: 1,
          last_heard_at: runtime.clock.now(),
        })
        .execute()
  })

  const as = (processId: string) =>
    new LeaseKeeper({ context: testContext(db, runtime), settings: defaultLimits.gateway, processId })

  test.for([
    ['are handed over', () => as('a').handOver(HUBS.toReversed(), 'b')],
    ['of a dead process are taken over', () => as('b').takeFromAbsent(['b'], () => true)],
  ] as const)('leases %s in the order in which hellos and heartbeats lock them', async ([, move]) => {
    const lock = (q: Queries, hubId: number) =>
      sql`select hub_id from hub_sessions where hub_id = ${hubId} for no key update`.execute(q)
    const { moving } = await db.transact(async (tx) => {
      if (tx.kind === 'sqlite') return { moving: move() }
      await lock(tx.q, 1)
      const moved = move()
      await lockWaits(db)
      for (const hubId of [2, 3]) await lock(tx.q, hubId)
      return { moving: moved }
    })
    await moving
    expect((await as('b').held()).map(({ hubId }) => hubId)).toEqual(expect.arrayContaining(HUBS))
  })
})
