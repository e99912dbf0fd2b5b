import type { Cancel, Clock, Runtime } from '../../protocol/model/runtime.ts'
import { seededChance } from '../simulation/chance.ts'

/** A clock that moves only when it is advanced. */
export interface VirtualClock extends Clock {
  /** Runs the timers due within `ms`, in order of time and then of planning; then the clock is `ms` later. */
  advance(ms: number): void
  /** Advances until `done()` holds, by at most `ms`. Returns whether it holds. */
  runUntil(done: () => boolean, ms: number): boolean
  /** Like `advance`, and after each timer runs the work that its promises start. */
  pass(ms: number): Promise<void>
  /** Advances until a promise is settled, together with the work that it waits for. */
  settle<T>(work: Promise<T>): Promise<T>
  /** Drops every timer, like a crash. */
  clear(): void
  /** Moves only the wall clock, like a step of NTP or an empty battery. */
  shiftWall(ms: number): void
  /** Number of pending timers. */
  readonly pending: number
}

interface Task {
  at: number
  run: () => void
}

export function virtualClock(startWall = Date.UTC(2026, 0, 1)): VirtualClock {
  let elapsed = 0
  let wall = startWall
  /** By time; tasks of the same time in the order of planning. */
  const tasks: Task[] = []

  /** Removes and returns the next task that is due by `end`. */
  function take(end: number): Task | undefined {
    const isDue = tasks[0] !== undefined && tasks[0].at <= end
    elapsed = isDue ? Math.max(elapsed, tasks[0]!.at) : end
    return isDue ? tasks.shift() : undefined
  }

  function runUntil(done: () => boolean, ms: number): boolean {
    const end = elapsed + ms
    while (!done()) {
      const task = take(end)
      if (!task) return done()
      task.run()
    }
    return true
  }

  return {
    now: () => Math.floor(wall + elapsed),
    monotonic: () => elapsed,
    after(delayMs, run): Cancel {
      const task = { at: elapsed + Math.max(0, delayMs), run }
      let [low, high] = [0, tasks.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if (tasks[middle]!.at <= task.at) low = middle + 1
        else high = middle
      }
      tasks.splice(low, 0, task)
      return () => {
        const index = tasks.indexOf(task)
        if (index >= 0) tasks.splice(index, 1)
      }
    },
    advance(ms) {
      runUntil(() => false, ms)
    },
    runUntil,
    async pass(ms) {
      const end = elapsed + ms
      await promises()
      for (let task = take(end); task; task = take(end)) {
        task.run()
        await promises()
      }
    },
    async settle(work) {
      let isSettled = false
      const settled = (): void => void (isSettled = true)
      work.then(settled, settled)
      for (;;) {
        await promises()
        if (isSettled) return work
        const task = tasks.length > 0 ? take(Infinity) : undefined
        if (!task) throw new Error('no timer is pending, and the promise is still open')
        task.run()
      }
    },
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

/** All timers that pending promises start are planned after this. */
const promises = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

export interface VirtualRuntime extends Runtime {
  clock: VirtualClock
}

/** A runtime with a virtual clock, and random numbers from a seed. */
export const virtualRuntime = (seed = 1, clock = virtualClock()): VirtualRuntime => ({
  clock,
  random: seededChance(seed),
})
