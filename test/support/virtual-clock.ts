import type { Cancel, Clock, Runtime } from '../../protocol/model/runtime.ts'
import { seededChance } from '../simulation/chance.ts'

/** A clock that moves only when it is advanced. Synchronous: for code without promises. */
export interface VirtualClock extends Clock {
  /** Runs the timers due within `ms`, in order of time and then of planning; then the clock is `ms` later. */
  advance(ms: number): void
  /** Advances until `done()` holds, by at most `ms`. Returns whether it holds. */
  runUntil(done: () => boolean, ms: number): boolean
  /** Drops every timer, like a crash. */
  clear(): void
  /** Moves only the wall clock, like a step of NTP or an empty battery. */
  shiftWall(ms: number): void
  /** Number of pending timers. */
  readonly pending: number
}

export function virtualClock(startWall = 1_767_225_600_000): VirtualClock {
  let elapsed = 0
  let wall = startWall
  let order = 0
  const tasks: { at: number; order: number; run: () => void }[] = []

  function runUntil(done: () => boolean, ms: number): boolean {
    const end = elapsed + ms
    while (!done()) {
      tasks.sort((a, b) => a.at - b.at || a.order - b.order)
      const task = tasks[0]
      if (task === undefined || task.at > end) {
        elapsed = end
        return done()
      }
      tasks.shift()
      elapsed = Math.max(elapsed, task.at)
      task.run()
    }
    return true
  }

  return {
    now: () => Math.floor(wall + elapsed),
    monotonic: () => elapsed,
    after(delayMs, run): Cancel {
      const task = { at: elapsed + Math.max(0, delayMs), order: order++, run }
      tasks.push(task)
      return () => {
        const index = tasks.indexOf(task)
        if (index >= 0) tasks.splice(index, 1)
      }
    },
    advance(ms) {
      runUntil(() => false, ms)
    },
    runUntil,
    clear() {
      tasks.length = 0
    },
    shiftWall(ms) {
      wall += ms
    },
    get pending() {
      return tasks.length
    },
  }
}

/** A runtime with a virtual clock, and random numbers from a seed. */
export function virtualRuntime(seed = 1): Runtime & { clock: VirtualClock } {
  return { clock: virtualClock(), random: seededChance(seed) }
}
