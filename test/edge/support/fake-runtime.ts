import type { Runtime } from '../../../protocol/model/runtime.ts'

export interface FakeRuntime extends Runtime {
  /** Runs everything due within `byMs`, in order. */
  advance(byMs: number): void
  /** Sets the wall clock; the monotonic clock stays. */
  setWall(nowMs: number): void
}

interface Task {
  at: number
  run: () => void
}

/** A clock that moves only on request, and random numbers from a seed. */
export function fakeRuntime(seed = 1): FakeRuntime {
  let time = 0
  let wall = Date.UTC(2026, 0, 1)
  let state = seed | 0
  let tasks: Task[] = []
  const fraction = (): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const next = (until: number): Task | undefined =>
    tasks.reduce<Task | undefined>(
      (first, task) => (task.at <= until && (!first || task.at < first.at) ? task : first),
      undefined,
    )
  return {
    clock: {
      now: () => wall + time,
      monotonic: () => time,
      after(delayMs, run) {
        const task = { at: time + Math.max(0, delayMs), run }
        tasks.push(task)
        return () => {
          tasks = tasks.filter((other) => other !== task)
        }
      },
    },
    random: { fraction, bytes: (count) => Uint8Array.from({ length: count }, () => fraction() * 256) },
    advance(byMs) {
      const until = time + byMs
      for (let task = next(until); task; task = next(until)) {
        const due = task
        tasks = tasks.filter((other) => other !== due)
        time = due.at
        due.run()
      }
      time = until
    },
    setWall(nowMs) {
      wall = nowMs - time
    },
  }
}
