import type { Cancel, Clock } from '../../protocol/model/runtime.ts'

/** The tasks of a process that may be suspended, as by SIGSTOP: they wait until it runs again. */
export class Suspension {
  #waiting: (() => void)[] | undefined

  begin(): void {
    this.#waiting = []
  }

  /** The process runs again: its tasks are due at once. */
  end(clock: Clock): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const task of waiting) clock.after(0, task)
  }

  /** Plans a task. Its delay passes while the process is suspended, too. */
  after(clock: Clock, delayMs: number, task: () => void): Cancel {
    let isCancelled = false
    const run = (): void => {
      if (this.#waiting) this.#waiting.push(run)
      else if (!isCancelled) task()
    }
    const cancel = clock.after(delayMs, run)
    return () => {
      isCancelled = true
      cancel()
    }
  }

  /** The clock of one life of the process: it starts at 0, and runs no task after the end of the life. */
  clockOf(clock: Clock, isAlive: () => boolean): Clock {
    const born = clock.monotonic()
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() - born,
      after: (delayMs, task) =>
        this.after(clock, delayMs, () => {
          if (isAlive()) task()
        }),
    }
  }
}
