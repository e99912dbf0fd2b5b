import { taskNames, type TaskName } from '../../../protocol/contract/diag.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { CloudContext } from '../context.ts'
import type { Queries } from '../store/database.ts'
import type { Selectable } from 'kysely'
import type { Tables } from '../store/schema.ts'

export type TaskRun = Selectable<Tables['task_runs']>
type Context = Pick<CloudContext, 'db' | 'runtime' | 'checkpoint'>

/** How long a run is believed to be under way without a sign of life from its process. */
export const TASK_LEASE_MS = 60_000

/** Lists tasks that no process has ever run: they are due at once. */
export async function registerTasks({ db, runtime }: Context): Promise<void> {
  const next_due_at = runtime.clock.now()
  await db.kysely
    .insertInto('task_schedules')
    .values(taskNames.map((task) => ({ task, next_due_at, run_id: null, lease_until: null })))
    .onConflict((conflict) => conflict.column('task').doNothing())
    .execute()
}

/** Tasks whose time has come and that no living process runs. One that was missed is due once, not once for each time. */
export async function dueTasks(q: Queries, now: number): Promise<TaskName[]> {
  const rows = await q
    .selectFrom('task_schedules')
    .select('task')
    .where('next_due_at', '<=', now)
    .where((eb) => eb.or([eb('run_id', 'is', null), eb('lease_until', '<=', now)]))
    .orderBy('next_due_at')
    .execute()
  return taskNames.filter((name) => rows.some(({ task }) => task === name))
}

/** Takes a task for this process, or tells of the run that is under way. */
export async function beginRun(
  { db, runtime, checkpoint }: Context,
  task: TaskName,
  processId: string,
): Promise<{ run: TaskRun; isMine: boolean }> {
  const now = runtime.clock.now()
  const id = uuidv7(runtime)
  checkpoint('task.before-begin')
  const begun = await db.transact(async (tx) => {
    const { q } = tx
    const schedule = await tx
      .forUpdate(q.selectFrom('task_schedules').selectAll().where('task', '=', task))
      .executeTakeFirstOrThrow()
    if (schedule.run_id !== null) {
      if (schedule.lease_until! > now)
        return {
          isMine: false,
          run: await q
            .selectFrom('task_runs')
            .selectAll()
            .where('id', '=', schedule.run_id)
            .executeTakeFirstOrThrow(),
        }
      await q
        .updateTable('task_runs')
        .set({ state: 'FAILURE', error: 'its process ended', finished_at: now })
        .where('id', '=', schedule.run_id)
        .execute()
    }
    const run = await q
      .insertInto('task_runs')
      .values({
        id,
        task,
        process_id: processId,
        state: 'STARTED',
        affected_ids: null,
        error: null,
        started_at: now,
        finished_at: null,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    await q
      .updateTable('task_schedules')
      .set({ run_id: id, lease_until: now + TASK_LEASE_MS })
      .where('task', '=', task)
      .execute()
    return { run, isMine: true }
  })
  checkpoint('task.after-begin')
  return begun
}

export const readRun = (q: Queries, runId: string): Promise<TaskRun> =>
  q.selectFrom('task_runs').selectAll().where('id', '=', runId).executeTakeFirstOrThrow()

/** A sign of life of a run that takes long. */
export async function renewRun({ db, runtime }: Context, runId: string): Promise<void> {
  await db.kysely
    .updateTable('task_schedules')
    .set({ lease_until: runtime.clock.now() + TASK_LEASE_MS })
    .where('run_id', '=', runId)
    .execute()
}

export type RunOutcome = { affectedIds: number[] } | { error: string }

/** Records how a run ended. One that was taken for dead meanwhile does not move the schedule. */
export async function endRun(
  { db, runtime, checkpoint }: Context,
  runId: string,
  outcome: RunOutcome,
  nextDueAt: number,
): Promise<TaskRun> {
  checkpoint('task.before-end')
  const ended = await db.transact(async ({ q }) => {
    await q
      .updateTable('task_schedules')
      .set({ run_id: null, lease_until: null, next_due_at: nextDueAt })
      .where('run_id', '=', runId)
      .execute()
    return q
      .updateTable('task_runs')
      .set({
        state: 'error' in outcome ? 'FAILURE' : 'SUCCESS',
        affected_ids: 'error' in outcome ? null : JSON.stringify(outcome.affectedIds),
        error: 'error' in outcome ? outcome.error : null,
        finished_at: runtime.clock.now(),
      })
      .where('id', '=', runId)
      .returningAll()
      .executeTakeFirstOrThrow()
  })
  checkpoint('task.after-end')
  return ended
}

/** Forgets runs that began before `before` and are not under way. */
export async function purgeRuns({ db }: Context, before: number): Promise<void> {
  await db.kysely
    .deleteFrom('task_runs')
    .where('started_at', '<', before)
    .where('id', 'not in', (eb) =>
      eb
        .selectFrom('task_schedules')
        .select('run_id')
        .where('run_id', 'is not', null)
        .$castTo<{ run_id: string }>(),
    )
    .execute()
}
