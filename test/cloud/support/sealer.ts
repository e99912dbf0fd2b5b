import { createSealer } from '../../../cloud/platform/store/sealer.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

export const testSealer = createSealer('a secret of the store, for tests', systemRuntime().random)
