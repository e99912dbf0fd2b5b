import { AsyncLocalStorage } from 'node:async_hooks'
import { writeSync } from 'node:fs'

const condemned = new AsyncLocalStorage<{ left: number; hasBegun: boolean }>()

/**
 * Only the first one of a work counts. A death before a later commit leaves what a death at the checkpoint before it leaves.
 */
const BEFORE_COMMIT = 'db.before-commit'

/** Kills the process with SIGKILL at the `at`-th checkpoint that `work` passes. */
export const dyingAt = <T>(at: number, work: () => T): T => condemned.run({ left: at, hasBegun: false }, work)

/**
 * `POINT N` in the environment: the process dies when it passes that checkpoint for the N-th time, in any
 * work.
 */
const [planned, nth] = (process.env['DIE_AT'] ?? '').split(' ')
let visits = 0

/** Replaces `protocol/model/checkpoint.ts`. */
export function noCheckpoint(point: string): void {
  if (point === planned) {
    visits += 1
    if (visits === Number(nth)) die(point)
  }
  const life = condemned.getStore()
  if (!life || (point === BEFORE_COMMIT && life.hasBegun)) return
  life.hasBegun ||= point === BEFORE_COMMIT
  life.left -= 1
  if (life.left === 0) die(point)
}

function die(point: string): void {
  writeSync(1, `died at ${point}\n`)
  process.kill(process.pid, 'SIGKILL')
}
