import type { Cancel } from '../../../protocol/model/runtime.ts'
import { background, everyInBackground } from './background.ts'
import type { CloudContext } from '../context.ts'
import type { Queries, Tx } from '../store/database.ts'

const HEARTBEAT_MS = 15_000
/** A process without a heartbeat for this time is dead. */
export const WORKER_TIMEOUT_MS = 60_000

/** A process of the service, as operators see it. */
interface WorkerIdentity {
  processId: string
  name: string
  pid: number
}

export interface Worker {
  stop(): Promise<void>
}

/** Corrects timestamps from a clock that was ahead by `byMs`. */
type PutBack = (tx: Tx, now: number, byMs: number) => Promise<void>

/**
 * Writes this process's heartbeat; deletes it on shutdown. Detects a clock that was set back, also between two starts.
 */
export function startWorker(
  context: CloudContext,
  { processId, name, pid }: WorkerIdentity,
  putBack: PutBack,
): Worker {
  const { db, runtime } = context
  const started_at = runtime.clock.now()
  let beating: Promise<void> = Promise.resolve()
  const beat = async (): Promise<void> => {
    await mindClock(context, putBack)
    const heartbeat_at = runtime.clock.now()
    await db.kysely
      .deleteFrom('workers')
      .where('heartbeat_at', '<', heartbeat_at - WORKER_TIMEOUT_MS)
      .execute()
    // An earlier process with this id has ended. A single process has the same id at each start.
    const life = { name, pid, started_at, heartbeat_at }
    await db.kysely
      .insertInto('workers')
      .values({ process_id: processId, ...life })
      .onConflict((conflict) => conflict.column('process_id').doUpdateSet(life))
      .execute()
  }
  const turn = (): Promise<void> => (beating = beat())
  background(context, "this process's heartbeat", turn)
  const cancel: Cancel = everyInBackground(context, HEARTBEAT_MS, "this process's heartbeat", turn)
  return {
    async stop() {
      cancel()
      await Promise.allSettled([beating])
      await db.kysely.deleteFrom('workers').where('process_id', '=', processId).execute()
    },
  }
}

/**
 * A heartbeat from the future comes from a clock that was ahead: another process's, or this one's before it was set
 * back.
 */
async function mindClock({ db, runtime, settings, log }: CloudContext, putBack: PutBack): Promise<void> {
  const aheadMs = async (q: Queries): Promise<number> => {
    const { latest } = await q
      .selectFrom('workers')
      .select((eb) => eb.fn.max('heartbeat_at').as('latest'))
      .executeTakeFirstOrThrow()
    return (latest ?? 0) - runtime.clock.now()
  }
  if ((await aheadMs(db.kysely)) <= settings.clockStepMs) return
  const byMs = await db.transact(async (tx) => {
    // Only one of several processes corrects the timestamps.
    await tx.forUpdate(tx.q.selectFrom('workers').select('process_id').orderBy('process_id')).execute()
    const ahead = await aheadMs(tx.q)
    if (ahead <= settings.clockStepMs) return 0
    const now = runtime.clock.now()
    await putBack(tx, now, ahead)
    await tx.q.updateTable('workers').set({ heartbeat_at: now }).where('heartbeat_at', '>', now).execute()
    tx.workDue(now)
    return ahead
  })
  if (byMs > 0)
    log.error({ byMs }, 'the clock was ahead and has been put back, or those of several processes differ')
}
