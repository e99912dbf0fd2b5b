import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { claim, giveBack, renew, schedule, type Claimed } from '../../../../cloud/platform/work/queue.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { testContext } from '../../../world/context.ts'
import { onEachDatabase } from '../../../world/database.ts'

const LEASE_MS = 60_000

onEachDatabase('locks of the work queue', (open) => {
  test.for([
    ['is renewed', (context: CloudContext, claimed: readonly Claimed[]) => renew(context, claimed, LEASE_MS)],
    ['is returned', giveBack],
  ] as const)(
    'due work that is claimed together %s while another transaction schedules it in another order',
    async ([, end]) => {
      const runtime = virtualRuntime()
      const context = testContext(await open(), runtime)
      const { db } = context
      const now = runtime.clock.now()
      const subjects = ['a', 'b', 'c']
      await db.transact((tx) => schedule(tx, 'kind', subjects, now))
      const claimed = await claim(context, 'kind', { batch: 3, leaseMs: LEASE_MS })
      const { ending } = await db.transact(async (tx) => {
        await schedule(tx, 'kind', 'c', now + 7)
        const ended = end(context, claimed)
        if (tx.kind === 'postgres') {
          // The holder's own session, because the server's own workers wait for one another.
          const holder = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.q)
          await vi.waitFor(async () => {
            const waiting = await sql`select 1 from pg_stat_activity
            where ${holder.rows[0]!.pid} = any (pg_blocking_pids(pid))`.execute(db.kysely)
            expect(waiting.rows).toHaveLength(1)
          }, 30_000)
        }
        await schedule(tx, 'kind', 'a', now + 7)
        return { ending: ended }
      })
      await ending
      const rows = await db.kysely
        .selectFrom('due_work')
        .select(['subject', 'due_at'])
        .orderBy('subject')
        .execute()
      expect(rows.map(({ due_at }) => due_at === now + 7)).toEqual([true, false, true])
    },
  )
})
