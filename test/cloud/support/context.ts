import type { CloudContext } from '../../../cloud/platform/context.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { createSealer } from '../../../cloud/platform/store/sealer.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

/** One for all: what one process of a test seals, its next opens. */
const sealer = createSealer('a secret of the store, for tests', systemRuntime().random)

/** What the cloud's parts work with, silent and never crashing. The settings are a copy, the caller's to change. */
export const testContext = (
  db: CloudDatabase,
  runtime: Runtime,
  changes: Partial<CloudContext> = {},
): CloudContext => ({
  db,
  runtime,
  log: silentLog,
  checkpoint: noCheckpoint,
  settings: { ...defaultLimits.rules },
  sealer,
  ...changes,
})
