import type { TaskName, TaskResult } from '../../../protocol/contract/diag.ts'
import { z } from 'zod'
import { background, isolated } from '../../platform/work/background.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reply, type Handlers, type Reply } from '../../platform/http/handler.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { TaskRunner } from '../../platform/work/runner.ts'
import { readRun, type TaskRun } from '../../platform/work/task-store.ts'

const headers = { 'Cache-Control': 'no-store' }

/** C §4.1, contract §11. */
export function taskHandlers(
  context: CloudContext,
  runner: TaskRunner,
): Handlers<
  | 'diag.tasks.bestsellers'
  | 'diag.tasks.update_timed_out_orders'
  | 'diag.tasks.delete_expired_orders'
  | 'diag.tasks.notify_about_expiring_orders'
  | 'diag.tasks.update_unclaimed_orders_to_failed'
  | 'diag.tasks.notify_about_unclaimed_orders'
> {
  const runToEnd = (task: TaskName) => async (): Promise<Reply<TaskResult>> => {
    const { run, ended } = await runner.trigger(task)
    // One that fails is told of as it is recorded; what went wrong in it is the operator's to know.
    await isolated(context, `task ${task}`, () => ended)
    return reply(view(await readRun(context.db.kysely, run.id)), { headers })
  }
  return {
    async 'diag.tasks.bestsellers'({ query }) {
      if (query.sync_mode) return runToEnd('bestsellers')()
      const { run, ended } = await runner.trigger('bestsellers')
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
