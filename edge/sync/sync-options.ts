import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { HubCore } from '../core/hub-core.ts'
import type { Inbox } from '../journal/inbox.ts'
import type { Outbox } from '../journal/outbox.ts'
import type { SyncSettings } from './settings.ts'

/** What the hub's core does for the sync, and nothing more. */
export type SyncCore = Pick<
  HubCore,
  | 'applyCloudEntry'
  | 'execute'
  | 'health'
  | 'onHealthChange'
  | 'setCloudClock'
  | 'onWelcome'
  | 'restartLedger'
>

export interface SyncOptions {
  runtime: Runtime
  log: Log
  hubId: number
  openTransport: OpenTransport
  outbox: Outbox
  inbox: Inbox
  core: SyncCore
  /** Name and version, as the hello says it. */
  software: string
  checkpoint: Checkpoint
  settings: SyncSettings
}
