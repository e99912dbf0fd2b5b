import { wholeMs, type Cancel, type Clock } from '../../protocol/model/runtime.ts'

/** One run of one program, from its start to its stop or crash. None of its timers fires after its end. */
export interface Life {
  readonly name: string
  alive: boolean
  /** Suspended until then, as after SIGSTOP: due tasks wait. */
  wakesAt?: number
  /** Called once, when a checkpoint crashes the life. */
  onCrash: (point: string) => void
  /** Receives the error of a task; returns true if the life continues. */
  survives?: (error: unknown) => boolean
}

/** Thrown at a checkpoint: ends the life, and unwinds its work in progress. */
export class Crash extends Error {
  readonly life: Life
  readonly point: string
  constructor(life: Life, point: string) {
    super(`${life.name} crashed at ${point}`)
    this.life = life
    this.point = point
  }
}

/** An error that a simulated fault explains: code that throws it on has no defect. */
export class Misfortune extends Error {}

interface Task {
  at: number
  order: number
  life: Life
  run: () => unknown
  cancelled: boolean
}

/**
 * The one scheduler of a simulated run. Time is virtual milliseconds; tasks due at the same instant run in
 * planned order. All promises that a task settles complete before the next task. Asynchronous code is
 * therefore as deterministic as other code.
 */
export class Scheduler {
  #heap: Task[] = []
  #order = 0
  readonly #underWay = new Set<Promise<unknown>>()
  time = 0
  /** An error without a simulated crash as its cause: a defect, which ends the run. */
  failure: unknown

  newLife(name: string, onCrash: (point: string) => void): Life {
    return { name, alive: true, onCrash }
  }

  plan(life: Life, delayMs: number, run: () => unknown): Cancel {
    const task: Task = {
      at: this.time + Math.max(0, delayMs),
      order: this.#order++,
      life,
      run,
      cancelled: false,
    }
    push(this.#heap, task)
    return () => {
      task.cancelled = true
    }
  }

  /** Ends a life like a crash. Its pending tasks never run. */
  kill(life: Life, point: string): void {
    if (!life.alive) return
    life.alive = false
    life.onCrash(point)
  }

  /** Reports the error of a task or its promise: a crash ends its life, any other error ends the run. */
  report(error: unknown, life: Life): void {
    if (error instanceof Crash) this.kill(error.life, error.point)
    else if (life.alive && life.survives?.(error) === true) return
    // A full disk ends the hub's process, like any unexpected exception; the process is restarted.
    else if (isDiskFull(error)) this.kill(life, 'disk full')
    else if (life.alive && !(error instanceof Misfortune)) this.failure ??= error
  }

  /**
   * A clock of one life. Its wall clock differs from virtual time by `wallOffset()`; its monotonic clock
   * starts with it.
   */
  clock(life: Life, wallOffset: () => number): Clock {
    const born = this.time
    return {
      now: () => Math.floor(EPOCH + this.time + wallOffset()),
      monotonic: () => this.time - born,
      after: (delayMs, task) => this.plan(life, wholeMs(delayMs), task),
    }
  }

  /** Waits for real-time work (a server's answer): virtual time stands still until all of it has ended. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work)
    try {
      return await work
    } finally {
      this.#underWay.delete(work)
    }
  }

  /** Resolves when no promise has work left. */
  async #settled(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => void setImmediate(resolve))
      if (this.#underWay.size === 0) return
      await Promise.race(this.#underWay).catch(() => {})
    }
  }

  /** Runs until `done()`, until virtual time `until`, or until a defect shows. */
  async run(until: number, done: () => boolean = () => false): Promise<void> {
    while (this.failure === undefined && !done()) {
      const task = this.#heap[0]
      if (task === undefined || task.at > until) {
        this.time = Math.max(this.time, until)
        return
      }
      pop(this.#heap)
      if (task.cancelled || !task.life.alive) continue
      const { wakesAt = 0 } = task.life
      if (wakesAt > task.at) {
        task.at = wakesAt
        push(this.#heap, task)
        continue
      }
      this.time = task.at
      try {
        const outcome = task.run()
        if (outcome instanceof Promise) outcome.catch((error: unknown) => this.report(error, task.life))
      } catch (error) {
        this.report(error, task.life)
      }
      await this.#settled()
    }
  }
}

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'SQLITE_FULL'

/** 2026-01-01T00:00:00Z: virtual time 0. */
export const EPOCH = 1_767_225_600_000

const before = (a: Task, b: Task): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

function push(heap: Task[], task: Task): void {
  let index = heap.push(task) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (!before(task, heap[parent]!)) break
    heap[index] = heap[parent]!
    index = parent
  }
  heap[index] = task
}

function pop(heap: Task[]): void {
  const task = heap.pop()!
  if (heap.length === 0) return
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
    if (!before(heap[child]!, task)) break
    heap[index] = heap[child]!
    index = child
  }
  heap[index] = task
}
