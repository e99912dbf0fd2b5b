import type { Cancel } from '../../../protocol/model/runtime.ts'
import { background, everyInBackground } from '../work/background.ts'
import type { CloudContext } from '../context.ts'
import type { Media } from './media.ts'

const SWEEP_MS = 3_600_000
const WHAT = 'files that nobody keeps'

/** Removes files that nobody keeps, at once and every hour. */
export function startMediaSweep(context: CloudContext, media: Media): Cancel {
  background(context, WHAT, () => media.sweep())
  return everyInBackground(context, SWEEP_MS, WHAT, () => media.sweep())
}
