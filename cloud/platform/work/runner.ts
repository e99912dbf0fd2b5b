import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { TaskName } from '../../../protocol/contract/diag.ts'
import { background, everyInBackground, isolated } from './background.ts'
import type { CloudContext } from '../context.ts'
import type { Tasks } from './task.ts'
import {
  beginRun,
  dueTasks,
  endRun,
  purgeRuns,
  registerTasks,
  renewRun,
  TASK_LEASE_MS,
  type TaskRun,
} from './task-store.ts'

const LOOK_MS = 5000
const KEEP_RUNS_MS = 7 * 24 * 3_600_000

export interface TaskRunner {
  /** Runs each task when it is due, in this process or another one. */
  start(): void
  /** Begins no more; resolves when what is under way has ended. */
  stop(): Promise<void>
  /** Runs a task now, or tells of the run that is under way. `ended` is its end, where it is this process's. */
  trigger(task: TaskName): Promise<{ run: TaskRun; ended: Promise<TaskRun> }>
}

export function createTaskRunner(context: CloudContext, processId: string, tasks: Tasks): TaskRunner {
  const { db, runtime, log } = context
  const { clock } = runtime
  let cancels: Cancel[] = []
  let isStopped = false
  let underWay: Promise<void> = Promise.resolve()

  async function trigger(task: TaskName): ReturnType<TaskRunner['trigger']> {
    await registerTasks(context)
    const { run, isMine } = await beginRun(context, task, processId)
    return { run, ended: isMine ? carryOut(task, run) : Promise.resolve(run) }
  }

  async function carryOut(task: TaskName, run: TaskRun): Promise<TaskRun> {
    const stopRenewing = every(clock, TASK_LEASE_MS / 3, () =>
      background(context, `lease of task ${task}`, () => renewRun(context, run.id)),
    )
    const { periodMs } = tasks[task]
    try {
      const affectedIds = await tasks[task].run()
      if (affectedIds.length > 0) log.info({ task, affectedIds }, 'a background task has changed something')
      return await endRun(context, run.id, { affectedIds }, clock.now() + periodMs)
    } catch (error) {
      // Told to whoever asks for the run, and then to the operator.
      await endRun(context, run.id, { error: messageOf(error) }, clock.now() + periodMs)
      throw error
    } finally {
      stopRenewing()
    }
  }

  async function lookOnce(): Promise<void> {
    for (const task of await dueTasks(db.kysely, clock.now())) {
      if (isStopped) return
      await isolated(context, `task ${task}`, async () => (await trigger(task)).ended)
    }
  }

  function look(): Promise<void> {
    underWay = lookOnce()
    return underWay
  }

  return {
    start() {
      isStopped = false
      cancels = [
        everyInBackground(context, LOOK_MS, 'background tasks', look),
        everyInBackground(context, KEEP_RUNS_MS / 7, 'old runs of tasks', () =>
          purgeRuns(context, clock.now() - KEEP_RUNS_MS),
        ),
      ]
      background(context, 'background tasks', async () => {
        await registerTasks(context)
        await look()
      })
    },
    async stop() {
      isStopped = true
      for (const cancel of cancels.splice(0)) cancel()
      // Whatever became of it was told already.
      await underWay.catch(() => {})
    },
    trigger,
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error')
