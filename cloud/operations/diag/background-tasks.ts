import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { TaskName, TaskResult } from '../../../protocol/contract/diag.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { every, holdsWithin } from '../../../protocol/model/runtime.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reply, type Handlers, type Reply } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { background, isolated } from '../../platform/work/background.ts'
import { schedule } from '../../platform/work/queue.ts'
import type { WorkRunner } from '../../platform/work/runner.ts'

/** The kinds of due work that a documented task comprises (C §4.1). */
export const kindsOfTask: Record<TaskName, readonly string[]> = {
  bestsellers: ['bestsellers', 'bestsellers.hub'],
  'update-timed-out-orders': ['order.overdue'],
  delete_expired_orders: ['order.idle', 'order.expired'],
  'notify-about-expiring-orders': ['notice.expiring'],
  'update-unclaimed-orders-to-failed': ['order.unclaimed'],
  'notify-about-unclaimed-orders': ['notice.unclaimed'],
}

/** The time after which a run counts as dead if its process sends no heartbeat, in milliseconds. */
export const TASK_LEASE_MS = 60_000

type TaskRun = Selectable<Tables['task_runs']>

export interface BackgroundTasks {
  /** Runs a task now, or returns the run in progress. `ended` resolves at its end if this process runs it. */
  trigger(task: TaskName): Promise<{ run: TaskRun; ended: Promise<TaskRun> }>
}

/**
 * Runs a task: all due work of its kinds, and its recurring work at once. Returns the ids that it has
 * changed.
 */
export async function runKinds(
  { db, runtime }: CloudContext,
  runner: WorkRunner,
  task: TaskName,
): Promise<number[]> {
  if (task === 'bestsellers')
    await db.transact((tx) => schedule(tx, 'bestsellers', 'all', runtime.clock.now()))
  return runner.drain(kindsOfTask[task])
}

/** Documented tasks, run on request: each once at a time over all processes. */
export function backgroundTasks(
  context: CloudContext,
  processId: string,
  run: (task: TaskName) => Promise<number[]>,
): BackgroundTasks {
  const { clock } = context.runtime

  async function carryOut(task: TaskName, { id }: TaskRun): Promise<TaskRun> {
    const stopRenewing = every(clock, TASK_LEASE_MS / 3, () =>
      background(context, `lease of task ${task}`, () =>
        write(context, id, { leased_until: clock.now() + TASK_LEASE_MS }),
      ),
    )
    const finish = (outcome: Pick<TaskRun, 'state' | 'affected_ids' | 'error'>) =>
      write(context, id, { ...outcome, finished_at: clock.now() })
    try {
      const ids = await run(task)
      return await finish({ state: 'SUCCESS', affected_ids: JSON.stringify(ids), error: null })
    } catch (error) {
      // The caller gets only the error's name; internal details are for the operator.
      const name = error instanceof Error ? error.name : 'Error'
      await finish({ state: 'FAILURE', affected_ids: null, error: name })
      throw error
    } finally {
      stopRenewing()
    }
  }

  return {
    async trigger(task) {
      let taken = await begin(context, task, processId)
      // The run in progress ended just as this one asked to start: now there is none.
      while (!taken) taken = await begin(context, task, processId)
      const { run: current, isMine } = taken
      return { run: current, ended: isMine ? carryOut(task, current) : Promise.resolve(current) }
    },
  }
}

/**
 * Starts a run, unless another one is in progress. A run is over if its process has been silent for too long.
 * Undefined if the run in progress has just ended.
 */
function begin(
  { db, runtime }: CloudContext,
  task: TaskName,
  processId: string,
): Promise<{ run: TaskRun; isMine: boolean } | undefined> {
  const now = runtime.clock.now()
  const id = uuidv7(runtime)
  return db.transact(async ({ q }) => {
    await endDead(q, task, now)
    await q
      .insertInto('task_runs')
      .values({
        id,
        task,
        process_id: processId,
        state: 'STARTED',
        affected_ids: null,
        error: null,
        leased_until: now + TASK_LEASE_MS,
        started_at: now,
        finished_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const run = await q
      .selectFrom('task_runs')
      .selectAll()
      .where('task', '=', task)
      .where('state', '=', 'STARTED')
      .executeTakeFirst()
    return run && { run, isMine: run.id === id }
  })
}

/** Ends a run whose process has been silent for too long. */
const endDead = (q: Queries, task: TaskName, now: number) =>
  q
    .updateTable('task_runs')
    .set({ state: 'FAILURE', error: 'its process ended', finished_at: now })
    .where('task', '=', task)
    .where('state', '=', 'STARTED')
    .where('leased_until', '<=', now)
    .execute()

const write = (
  { db }: CloudContext,
  id: string,
  changes: Partial<Pick<TaskRun, 'state' | 'affected_ids' | 'error' | 'leased_until' | 'finished_at'>>,
): Promise<TaskRun> =>
  db.kysely
    .updateTable('task_runs')
    .set(changes)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()

const headers = { 'Cache-Control': 'no-store' }

/** C §4.1. */
export function taskHandlers(
  context: CloudContext,
  tasks: BackgroundTasks,
): Handlers<
  | 'diag.tasks.bestsellers'
  | 'diag.tasks.update_timed_out_orders'
  | 'diag.tasks.delete_expired_orders'
  | 'diag.tasks.notify_about_expiring_orders'
  | 'diag.tasks.update_unclaimed_orders_to_failed'
  | 'diag.tasks.notify_about_unclaimed_orders'
> {
  const runToEnd = (task: TaskName) => async (): Promise<Reply<TaskResult>> => {
    const { run, ended } = await tasks.trigger(task)
    await isolated(context, `task ${task}`, () => ended)
    const read = () =>
      context.db.kysely.selectFrom('task_runs').selectAll().where('id', '=', run.id).executeTakeFirstOrThrow()
    let row = run
    // The run may belong to another call or process.
    const { clock } = context.runtime
    await holdsWithin(clock, TASK_LEASE_MS, async () => {
      row = await read()
      if (row.state !== 'STARTED' || row.leased_until > clock.now()) return row.state !== 'STARTED'
      await endDead(context.db.kysely, task, clock.now())
      row = await read()
      return row.state !== 'STARTED'
    })
    return reply(view(row), { headers })
  }
  return {
    async 'diag.tasks.bestsellers'({ query }) {
      if (query.sync_mode) return runToEnd('bestsellers')()
      const { run, ended } = await tasks.trigger('bestsellers')
      background(context, 'task bestsellers', () => ended)
      return reply(view(run), { status: 202, headers })
    },
    'diag.tasks.update_timed_out_orders': runToEnd('update-timed-out-orders'),
    'diag.tasks.delete_expired_orders': runToEnd('delete_expired_orders'),
    'diag.tasks.notify_about_expiring_orders': runToEnd('notify-about-expiring-orders'),
    'diag.tasks.update_unclaimed_orders_to_failed': runToEnd('update-unclaimed-orders-to-failed'),
    'diag.tasks.notify_about_unclaimed_orders': runToEnd('notify-about-unclaimed-orders'),
  }
}

function view(run: TaskRun): TaskResult {
  const ids = run.affected_ids === null ? null : z.array(z.int()).parse(JSON.parse(run.affected_ids))
  return {
    task_id: run.id,
    task: run.task as TaskName,
    state: run.state,
    result: ids && { processed: ids.length, affected_ids: ids },
    error: run.error,
    started_at: timestamp(run.started_at),
    finished_at: run.finished_at === null ? null : timestamp(run.finished_at),
  }
}
