import { backoffMs, type BackoffOptions } from '../../../protocol/model/runtime.ts'
import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { background, isolated } from './background.ts'
import { claim, ensureScheduled, giveBack, readDue, release, renew, type Claimed } from './queue.ts'

/** The input of a handler. */
export type Work = Pick<Claimed, 'kind' | 'subject' | 'attempts'>

export interface Outcome {
  /** When to run again (milliseconds since the Unix epoch). Null: nothing is left to do. */
  next: number | null
  /** Ids of the objects that this run changed. */
  affected?: readonly number[]
  /** The run failed with this error. It is repeated after a back-off, at the latest at `next`. */
  failure?: unknown
}

/** The handler of one kind of work. It is declared beside its subject; `cloud.ts` collects all kinds. */
export interface WorkKind {
  /**
   * Does the work of a subject that is due now. After an error it runs again with a back-off. It may run twice, even
   * concurrently (an expired lease), and may be killed at any point. It must therefore lock its subject before each
   * change.
   */
  run(work: Work): Promise<Outcome>
  /** Recurring subjects. They are due for the first time at the first start of the service. */
  recurring?: readonly string[]
  /** After this many failed runs the work stops and waits for a person. Absent: no limit. */
  attempts?: number
  /** Pauses after failed runs. */
  backoff?: BackoffOptions
  /** How many subjects are claimed and handled concurrently, for slow handlers. Absent: the value of the settings. */
  atOnce?: number
}

/**
 * Handlers by kind. A kind with a slash (`webhook/we_…`) uses the handler of the name before the slash. Each such kind
 * runs separately, so that none waits for another.
 */
export type WorkKinds = Readonly<Record<string, WorkKind>>

const familyOf = (kind: string): string => kind.split('/')[0]!

export const done: Outcome = { next: null }

/** Recurring work with a single subject, executed by whichever process finds it due. */
export const recurring = (
  { runtime }: CloudContext,
  periodMs: number,
  work: () => Promise<unknown>,
): WorkKind => ({
  recurring: ['all'],
  async run() {
    await work()
    return { next: runtime.clock.now() + periodMs }
  },
})

/** Observes work that fails repeatedly, and its recovery. */
export interface WorkObserver {
  failing(work: Claimed, error: string): Promise<void>
  recovered(work: Claimed): Promise<void>
}

/** The outside world is unreachable now. No operator needs to act at once. */
export class Unavailable extends Error {
  override readonly name: string = 'Unavailable'
}

const BACKOFF: BackoffOptions = { firstMs: 30_000, maxMs: 3_600_000 }

/** The result of one pass through the due work of a kind. */
interface Pass {
  runs: number
  affected: number[]
}

/**
 * Runs due work: claims it by kind and calls its handler. Kinds run separately, so that none waits for another. A kind
 * continues after a full batch, so that the batch size does not limit throughput.
 */
export class WorkRunner {
  readonly #context: CloudContext
  readonly #kinds: WorkKinds
  readonly #observer: WorkObserver | undefined
  /** Passes in progress, by kind. */
  readonly #passes = new Map<string, Promise<Pass>>()
  #state: 'new' | 'started' | 'stopped' = 'new'
  #timer: { at: number; cancel: Cancel } | undefined
  #unlisten: Cancel = () => {}
  #polling: Promise<void> = Promise.resolve()
  /** Whether recurring work is in the queue. */
  #hasRecurring = false

  constructor(context: CloudContext, kinds: WorkKinds, observer?: WorkObserver) {
    this.#context = context
    this.#kinds = kinds
    this.#observer = observer
  }

  /** Starts polling: when work is due, and at least every `workPollMs`, because other processes add work. */
  start(): void {
    this.#state = 'started'
    this.#unlisten = this.#context.db.onWorkDue((dueAt) => this.#arm(dueAt))
    this.#arm(this.#now())
  }

  /** Claims and starts nothing more. Resolves when the running work has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#unlisten()
    this.#timer?.cancel()
    await this.#polling
    await Promise.allSettled(this.#passes.values())
  }

  /** Queues recurring work that is not queued. */
  async ensureRecurring(): Promise<void> {
    for (const [kind, { recurring = [] }] of Object.entries(this.#kinds))
      await ensureScheduled(this.#context.db.kysely, kind, recurring, this.#now())
    this.#hasRecurring = true
  }

  /**
   * Executes all due work of some kinds, or of all, including follow-up work that is due at once. Returns the changed
   * ids.
   */
  async drain(kinds: readonly string[] = Object.keys(this.#kinds)): Promise<number[]> {
    const affected: number[] = []
    let runs: number
    do {
      runs = 0
      const due = await readDue(this.#context.db.kysely, this.#now())
      for (const kind of kinds.flatMap((one) => due.kinds.filter((name) => familyOf(name) === one))) {
        // A running pass may have missed work that has become due since.
        await this.#passes.get(kind)
        const pass = await this.#pass(kind)
        runs += pass.runs
        affected.push(...pass.affected)
      }
    } while (runs > 0 && this.#state !== 'stopped')
    return affected
  }

  /** Polls the queue at an instant, or after the longest pause, whichever comes first. */
  #arm(at: number): void {
    if (this.#state !== 'started') return
    const now = this.#now()
    const due = Math.min(at, now + this.#context.settings.workPollMs)
    if (this.#timer && this.#timer.at <= due) return
    this.#timer?.cancel()
    const cancel = this.#context.runtime.clock.after(due - now, () => {
      this.#timer = undefined
      this.#polling = isolated(this.#context, 'due work', () => this.#poll())
      // The next poll is scheduled even if this one fails.
      this.#arm(Number.POSITIVE_INFINITY)
    })
    this.#timer = { at: due, cancel }
  }

  async #poll(): Promise<void> {
    // The first poll that reaches the database queues recurring work.
    if (!this.#hasRecurring) await this.ensureRecurring()
    const { kysely } = this.#context.db
    const due = await readDue(kysely, this.#now())
    for (const kind of due.kinds)
      if (this.#kindOf(kind) && this.#state === 'started')
        background(this.#context, `due work ${kind}`, async () => {
          // Work that became due during the pass needs another poll.
          if ((await this.#pass(kind)).runs > 0) this.#arm(this.#now())
        })
    this.#arm(due.nextAt ?? Number.POSITIVE_INFINITY)
  }

  /** Executes the due work of a kind. Joins a pass in progress. */
  #pass(kind: string): Promise<Pass> {
    const current = this.#passes.get(kind)
    if (current) return current
    const pass = this.#batches(kind).finally(() => this.#passes.delete(kind))
    this.#passes.set(kind, pass)
    return pass
  }

  async #batches(kind: string): Promise<Pass> {
    const { workBatch, workLeaseMs: leaseMs, workConcurrency } = this.#context.settings
    const { atOnce } = this.#kindOf(kind)!
    const batch = atOnce ?? workBatch
    const pass: Pass = { runs: 0, affected: [] }
    let claimed: Claimed[]
    do {
      claimed = await claim(this.#context, kind, { batch, leaseMs })
      pass.runs += claimed.length
      // Waiting jobs are renewed too: the rest of a batch may take much longer than a lease.
      const renewed = claimed
      const stopRenewing = every(this.#context.runtime.clock, leaseMs / 3, () =>
        background(this.#context, `leases of ${kind}`, () => renew(this.#context, renewed, leaseMs)),
      )
      const waiting = claimed.values()
      const lane = async (): Promise<void> => {
        // After `stop` no job starts: the rest of a batch may take much longer than the shutdown timeout.
        while (this.#state !== 'stopped') {
          const { done: isEmpty, value: work } = waiting.next()
          if (isEmpty) return
          pass.affected.push(...(await this.#handle(work)))
        }
      }
      const lanes = Math.min(atOnce ?? workConcurrency, claimed.length)
      await Promise.all(Array.from({ length: lanes }, lane)).finally(stopRenewing)
      await giveBack(this.#context, [...waiting])
    } while (claimed.length === batch && this.#state !== 'stopped')
    return pass
  }

  /** A failed job does not stop the other jobs. */
  async #handle(work: Claimed): Promise<readonly number[]> {
    const { kind, subject } = work
    let affected: readonly number[] = []
    await isolated(this.#context, `${kind} ${subject}`, async () => {
      try {
        this.#context.checkpoint('work.claimed')
        const outcome = await this.#kindOf(kind)!.run(work)
        affected = outcome.affected ?? []
        if (outcome.failure !== undefined)
          return await this.#reschedule(work, outcome.failure, outcome.next ?? Infinity)
        this.#context.checkpoint('work.handled')
        // A job that is due again at once would keep the pass of its kind from ending.
        const dueAt = outcome.next === null ? null : Math.max(outcome.next, this.#now() + 1)
        await release(this.#context, work, { dueAt })
        if (work.attempts > this.#context.settings.workAlarmAttempts) await this.#observer?.recovered(work)
      } catch (error) {
        await this.#reschedule(work, error)
      }
    })
    return affected
  }

  async #reschedule(work: Claimed, error: unknown, noLaterThan = Infinity): Promise<void> {
    const { runtime, log } = this.#context
    const { kind, subject, attempts } = work
    const { attempts: most = Number.POSITIVE_INFINITY, backoff = BACKOFF } = this.#kindOf(kind)!
    const isExhausted = attempts >= most
    const pauseMs = backoffMs(attempts - 1, backoff, runtime.random)
    await release(this.#context, work, {
      dueAt: isExhausted ? null : Math.max(this.#now() + 1, Math.min(this.#now() + pauseMs, noLaterThan)),
      error: messageOf(error),
    })
    if (isExhausted || attempts >= this.#context.settings.workAlarmAttempts)
      await this.#observer?.failing(work, messageOf(error))
    const about = { err: error, kind, subject, attempts }
    if (isExhausted) log.error(about, 'due work is exhausted: a person must act')
    if (!(error instanceof Unavailable)) throw error
    log.warn(about, 'due work is put off: the outside world is out of reach')
  }

  #kindOf(kind: string): WorkKind | undefined {
    return this.#kinds[familyOf(kind)]
  }

  readonly #now = (): number => this.#context.runtime.clock.now()
}

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 500)
