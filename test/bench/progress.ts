import { progressOn } from '../../protocol/model/progress.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'

/** How far the benchmarks are, beside what they print. */
export const progress = progressOn(process.stderr, systemRuntime().clock)
