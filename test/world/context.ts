import type { CloudContext } from '../../cloud/platform/context.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import { createSealer } from '../../cloud/platform/store/sealer.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'

/** One sealer for all: one process of a test opens what another has sealed. */
const sealer = createSealer('a secret of the store, for tests', systemRuntime().random)

/**
 * The context of the cloud's parts, without logs and crashes. The settings are a copy that the caller may
 * change.
 */
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
