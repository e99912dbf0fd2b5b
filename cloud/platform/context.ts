import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Sealer } from './store/sealer.ts'
import type { Listening } from './listening.ts'
import type { CloudSettings } from './settings/limits.ts'
import type { CloudDatabase } from './store/database.ts'

/** What every part of the cloud works with. */
export interface CloudContext {
  db: CloudDatabase
  runtime: Runtime
  log: Log
  checkpoint: Checkpoint
  settings: CloudSettings
  /** Of what the database keeps for the service alone. */
  sealer: Sealer
  /** For how long this process has listened to hubs; since its start, without interruption, if absent. */
  listening?: Listening
  /** Told of each error that ended a turn nobody waits for (`background.ts`); by default it is logged. */
  onFault?(error: unknown, during: string): void
  /** The turns that nobody waits for, while they last: who closes the database waits for them first. */
  underWay?: Set<Promise<void>>
}
