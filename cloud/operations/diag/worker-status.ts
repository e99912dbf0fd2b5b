import { taskNames, type WorkerStatus } from '../../../protocol/contract/diag.ts'
import type { CloudContext } from '../../platform/context.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { WORKER_TIMEOUT_MS } from '../../platform/work/workers.ts'

/** Contract §11: the processes that live, oldest first, and what each does in the background. */
export async function workerStatus({ db, runtime }: CloudContext, withTasks: boolean): Promise<WorkerStatus> {
  const now = runtime.clock.now()
  const rows = await db.kysely
    .selectFrom('workers')
    .selectAll()
    .where('heartbeat_at', '>=', now - WORKER_TIMEOUT_MS)
    .orderBy('started_at')
    .orderBy('process_id')
    .execute()
  const runs = withTasks
    ? await db.kysely
        .selectFrom('task_runs')
        .select(['task', 'process_id'])
        .where('state', '=', 'STARTED')
        .where('leased_until', '>', now)
        .execute()
    : []
  const holderOf = (name: string): string | undefined => runs.find(({ task }) => task === name)?.process_id
  return {
    status: rows.length > 0 ? 'online' : 'offline',
    workers: rows.map(({ process_id, name, pid, started_at, heartbeat_at }) => ({
      name,
      pid,
      uptime_seconds: Math.max(0, Math.floor((now - started_at) / 1000)),
      heartbeat_at: timestamp(heartbeat_at),
      ...(withTasks && {
        tasks: {
          active: taskNames.filter((task) => holderOf(task) === process_id),
          scheduled: taskNames.filter((task) => holderOf(task) === undefined),
          registered: [...taskNames],
        },
      }),
    })),
  }
}
