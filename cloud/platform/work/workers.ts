import type { Cancel } from '../../../protocol/model/runtime.ts'
import { background, everyInBackground } from './background.ts'
import type { CloudContext } from '../context.ts'

const HEARTBEAT_MS = 15_000
/** A process that has been silent for so long is no more. */
export const WORKER_TIMEOUT_MS = 60_000

/** A process of the service, as operators know it. */
export interface WorkerIdentity {
  processId: string
  name: string
  pid: number
}

export interface Worker {
  stop(): Promise<void>
}

/** Says again and again that this process lives, and takes its leave. */
export function startWorker(context: CloudContext, { processId, name, pid }: WorkerIdentity): Worker {
  const { db, runtime } = context
  const started_at = runtime.clock.now()
  const beat = async (): Promise<void> => {
    const heartbeat_at = runtime.clock.now()
    await db.kysely
      .insertInto('workers')
      .values({ process_id: processId, name, pid, started_at, heartbeat_at })
      .onConflict((conflict) => conflict.column('process_id').doUpdateSet({ heartbeat_at }))
      .execute()
    await db.kysely
      .deleteFrom('workers')
      .where('heartbeat_at', '<', heartbeat_at - WORKER_TIMEOUT_MS)
      .execute()
  }
  background(context, "this process's heartbeat", async () => {
    // One that had this id before (it is the same for each life of a lone process) is gone.
    await db.kysely.deleteFrom('workers').where('process_id', '=', processId).execute()
    await beat()
  })
  const cancel: Cancel = everyInBackground(context, HEARTBEAT_MS, "this process's heartbeat", beat)
  return {
    async stop() {
      cancel()
      await db.kysely.deleteFrom('workers').where('process_id', '=', processId).execute()
    },
  }
}
