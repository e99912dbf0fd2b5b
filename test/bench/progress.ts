import { progressOn } from '../../protocol/model/progress.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'

/** Progress of the benchmarks, beside their output. */
export const progress = progressOn(process.stderr, systemRuntime().clock)
