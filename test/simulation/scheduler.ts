import { wholeMs, type Cancel, type Clock } from '../../protocol/model/runtime.ts'

/** One run of one program, from its start to its stop or crash. Nothing that it planned happens after its end. */
export interface Life {
  readonly name: string
  alive: boolean
  /** It stands still until then, as after SIGSTOP: whatever is due before waits. */
  wakesAt?: number
  /** Called once, when a checkpoint crashed it. */
  onCrash: (point: string) => void
  /** Told of what a task threw; true if the life goes on all the same. */
  survives?: (error: unknown) => boolean
}

/** Thrown at a checkpoint: it ends the life, and unwinds whatever was under way. */
export class Crash extends Error {
  readonly life: Life
  readonly point: string
  constructor(life: Life, point: string) {
    super(`${life.name} crashed at ${point}`)
    this.life = life
    this.point = point
  }
}

/** What a simulated mishap explains: whoever throws it on is not to blame. */
export class Misfortune extends Error {}

interface Task {
  at: number
  order: number
  life: Life
  run: () => unknown
  cancelled: boolean
}

/**
 * The one scheduler of a simulated run. Time is virtual milliseconds; tasks due at the same instant run in the order in
 * which they were planned. After each task every promise that it settled has run its course before the next begins, so
 * that asynchronous code is as deterministic as the rest.
 */
export class Scheduler {
  #heap: Task[] = []
  #order = 0
  readonly #underWay = new Set<Promise<unknown>>()
  time = 0
  /** An error that no simulated crash explains: a defect, which ends the run. */
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

  /** Ends a life as a crash does. Its pending tasks never run. */
  kill(life: Life, point: string): void {
    if (!life.alive) return
    life.alive = false
    life.onCrash(point)
  }

  /** Reports what a task, or a promise of it, threw: a crash ends its life, anything else the run. */
  report(error: unknown, life: Life): void {
    if (error instanceof Crash) this.kill(error.life, error.point)
    else if (life.alive && life.survives?.(error) === true) return
    // A full disk ends the hub's process, as any exception does that nobody expected; it is started again.
    else if (isDiskFull(error)) this.kill(life, 'disk full')
    else if (life.alive && !(error instanceof Misfortune)) this.failure ??= error
  }

  /** A clock of one life: its wall clock stands `wallOffset()` from virtual time, its monotonic clock began with it. */
  clock(life: Life, wallOffset: () => number): Clock {
    const born = this.time
    return {
      now: () => Math.floor(EPOCH + this.time + wallOffset()),
      monotonic: () => this.time - born,
      after: (delayMs, task) => this.plan(life, wholeMs(delayMs), task),
    }
  }

  /** Waits for what is done in real time (a server's answer): virtual time stands still until nothing of it is under way. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work)
    try {
      return await work
    } finally {
      this.#underWay.delete(work)
    }
  }

  /** Resolves when no promise has anything left to do. */
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
