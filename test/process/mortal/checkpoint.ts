import { AsyncLocalStorage } from 'node:async_hooks'
import { writeSync } from 'node:fs'

const condemned = new AsyncLocalStorage<{ left: number }>()

/** Whatever `work` sets off dies at the `at`-th checkpoint that it passes: with SIGKILL, in the middle of everything. */
export const dyingAt = <T>(at: number, work: () => T): T => condemned.run({ left: at }, work)

/** `POINT N` in the environment: the process dies when it comes to that point for the N-th time, whatever brings it there. */
const [planned, nth] = (process.env['DIE_AT'] ?? '').split(' ')
let visits = 0

/** Stands in for `protocol/model/checkpoint.ts`. */
export function noCheckpoint(point: string): void {
  if (point === planned) {
    visits += 1
    if (visits === Number(nth)) die(point)
  }
  const life = condemned.getStore()
  if (!life) return
  life.left -= 1
  if (life.left === 0) die(point)
}

function die(point: string): void {
  writeSync(1, `died at ${point}\n`)
  process.kill(process.pid, 'SIGKILL')
}
