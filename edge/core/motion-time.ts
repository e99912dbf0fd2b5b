import type { CoreSettings } from '../../protocol/settings/hub-limits.ts'
import type { OperationRow } from '../journal/tables.ts'
import type { Context } from './context.ts'

/**
 * The longest time from the intent of a motion to its end. Its controller ends it on its own (I7), also if no result
 * arrives. The command may be repeated on the line until the line counts as silent.
 */
export const longestMs = (maxMs: number, { silentMs }: Pick<CoreSettings, 'silentMs'>): number =>
  maxMs + silentMs

/** Milliseconds for which the motion of an operation without a result may still run; 0 if it has ended. */
export function runningMs(
  { cloud, settings }: Pick<Context, 'cloud' | 'settings'>,
  { intent_at, max_ms }: Pick<OperationRow, 'intent_at' | 'max_ms'>,
): number {
  const longest = longestMs(max_ms, settings)
  return Math.max(0, Math.min(longest, cloud.countedFrom(intent_at) + longest - cloud.now()))
}
