import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import { seededRandom } from '../../../simulator/faults/faults.ts'

interface Task {
  at: number
  run: () => void
}

/** Time that passes only on request of the test. */
export class VirtualTime {
  now = 0
  #tasks = new Set<Task>()

  readonly clock: Clock = {
    now: () => Date.UTC(2026, 0, 1) + Math.floor(this.now),
    monotonic: () => this.now,
    after: (delayMs, run) => {
      const task = { at: this.now + Math.max(0, delayMs), run }
      this.#tasks.add(task)
      return () => void this.#tasks.delete(task)
    },
  }

  runtime(seed = 1): Runtime {
    return { clock: this.clock, random: seededRandom(seed) }
  }

  /** Lets `ms` pass. */
  pass(ms: number): void {
    const until = this.now + ms
    for (;;) {
      let next: Task | undefined
      for (const task of this.#tasks) if (task.at <= until && (!next || task.at < next.at)) next = task
      if (!next) break
      this.#tasks.delete(next)
      this.now = next.at
      next.run()
    }
    this.now = until
  }

  /** Lets time pass until a promise is settled; the work that it waits for goes on meanwhile. */
  async settle<T>(work: Promise<T>): Promise<T> {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    work.then(settled, settled)
    for (;;) {
      // All timers that pending promises cause are planned after this.
      await new Promise((resolve) => void setImmediate(resolve))
      if (isSettled) return work
      const next = Math.min(...[...this.#tasks].map(({ at }) => at))
      if (next === Infinity) throw new Error('nothing is planned, and the promise is still open')
      this.pass(Math.max(0, next - this.now))
    }
  }

  /** Drops all planned timers: the process died. */
  die(): void {
    this.#tasks.clear()
  }
}
