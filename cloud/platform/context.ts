import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Sealer } from './store/sealer.ts'
import type { Listening } from './listening.ts'
import type { CloudSettings } from './settings/limits.ts'
import type { CloudDatabase } from './store/database.ts'

/** Dependencies of every part of the cloud. */
export interface CloudContext {
  db: CloudDatabase
  runtime: Runtime
  log: Log
  checkpoint: Checkpoint
  settings: CloudSettings
  /** Encrypts values that only the service may read from the database. */
  sealer: Sealer
  /** How long this process has listened to hubs. Absent: since its start, without interruption. */
  listening?: Listening
  /** Receives each error of a background run (`background.ts`). Default: the error is logged. */
  onFault?(error: unknown, during: string): void
  /** Background runs in progress. The process waits for them before it closes the database. */
  underWay?: Set<Promise<void>>
}
