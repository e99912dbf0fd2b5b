import { backoffMs, type BackoffOptions } from '../../../protocol/model/runtime.ts'
import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { background, isolated } from './background.ts'
import {
  claim,
  dueKinds,
  ensureScheduled,
  giveBack,
  nextDueAt,
  release,
  releaseAll,
  renew,
  type Claimed,
} from './queue.ts'

/** What a look is given. */
export type Work = Pick<Claimed, 'kind' | 'subject' | 'attempts'>

export interface Outcome {
  /** When to look again (milliseconds since the Unix epoch); null: there is nothing more to do. */
  next: number | null
  /** Ids of what this look has changed. */
  affected?: readonly number[]
  /** The look failed with this error. It is repeated after a back-off, and no later than `next`. */
  failure?: unknown
}

/** What is done with work of one kind. It stands beside what it works on; `cloud.ts` puts all kinds together. */
export interface WorkKind {
  /**
   * Looks at a subject and does what is due by now. It may run twice, also at once with itself (a lease that ended), and may
   * be killed at any point: what it does it does under the subject's own lock. One that throws is looked at again after a
   * back-off.
   */
  look(work: Work): Promise<Outcome>
  /**
   * Of all that are claimed together, those that it is too early to look at, and when to look at them: asked by one statement
   * or two, where this is so of most.
   */
  early?(subjects: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Subjects that are due again and again, and first when the service starts for the first time. */
  recurring?: readonly string[]
  /** After so many looks that failed it is left for a person. Without end where absent. */
  attempts?: number
  /** Pauses after looks that failed. */
  backoff?: BackoffOptions
  /** How many subjects are claimed and handled at once, where looks take long; as the settings say where absent. */
  atOnce?: number
}

/**
 * Handlers by kind. A kind with a name behind a slash (`webhook/we_…`) is one of a family, with the handler of the word before
 * it: each goes its own way, so that none waits behind another of its family either.
 */
export type WorkKinds = Readonly<Record<string, WorkKind>>

const familyOf = (kind: string): string => kind.split('/')[0]!

export const done: Outcome = { next: null }

/** What is done once in a while, in one go, by whichever process finds it due. */
export const recurring = (
  { runtime }: CloudContext,
  periodMs: number,
  work: () => Promise<unknown>,
): WorkKind => ({
  recurring: ['all'],
  async look() {
    await work()
    return { next: runtime.clock.now() + periodMs }
  },
})

/** Told of work that fails again and again, and of such work that does well again. */
export interface WorkWitness {
  failing(work: Claimed, error: string): Promise<void>
  recovered(work: Claimed): Promise<void>
}

/** The outside world cannot be reached now: nothing that an operator need look into at once. */
export class Unavailable extends Error {
  override readonly name: string = 'Unavailable'
}

const BACKOFF: BackoffOptions = { firstMs: 30_000, maxMs: 3_600_000 }

/** What one go through what is due of a kind came to. */
interface Pass {
  looks: number
  affected: number[]
}

/**
 * Runs due work: claims what is due by kind and calls its handler. Each kind goes its own way, so that none waits behind
 * another, and goes on as long as a full batch was due, so that no batch is a limit of what gets done.
 */
export class WorkRunner {
  readonly #context: CloudContext
  readonly #kinds: WorkKinds
  readonly #witness: WorkWitness | undefined
  /** What is under way, by kind. */
  readonly #passes = new Map<string, Promise<Pass>>()
  #state: 'new' | 'started' | 'stopped' = 'new'
  #timer: { at: number; cancel: Cancel } | undefined
  #unlisten: Cancel = () => {}
  #looking: Promise<void> = Promise.resolve()
  /** What recurs is in the queue. */
  #hasRecurring = false

  constructor(context: CloudContext, kinds: WorkKinds, witness?: WorkWitness) {
    this.#context = context
    this.#kinds = kinds
    this.#witness = witness
  }

  /** Looks at the queue from now on: when work is due, and at the latest every `workPollMs` (other processes add to it). */
  start(): void {
    this.#state = 'started'
    this.#unlisten = this.#context.db.onWorkDue((dueAt) => this.#arm(dueAt))
    this.#arm(this.#now())
  }

  /** Claims and begins no more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#unlisten()
    this.#timer?.cancel()
    await this.#looking
    await Promise.allSettled(this.#passes.values())
  }

  /** Makes due what recurs and is not waiting. */
  async ensureRecurring(): Promise<void> {
    for (const [kind, { recurring = [] }] of Object.entries(this.#kinds))
      for (const subject of recurring)
        await ensureScheduled(this.#context.db.kysely, kind, subject, this.#now())
  }

  /** Does now all that is due of some kinds, or of all, and what this makes due at once. Returns the ids of what has changed. */
  async drain(kinds: readonly string[] = Object.keys(this.#kinds)): Promise<number[]> {
    const affected: number[] = []
    let looks: number
    do {
      looks = 0
      const due = await dueKinds(this.#context.db.kysely, this.#now())
      for (const kind of kinds.flatMap((one) => due.filter((name) => familyOf(name) === one))) {
        // One that is under way may have gone by what is due since.
        await this.#passes.get(kind)
        const pass = await this.#pass(kind)
        looks += pass.looks
        affected.push(...pass.affected)
      }
    } while (looks > 0 && this.#state !== 'stopped')
    return affected
  }

  /** Looks at the queue at an instant, or after the longest pause, whichever comes first. */
  #arm(at: number): void {
    if (this.#state !== 'started') return
    const now = this.#now()
    const due = Math.min(at, now + this.#context.settings.workPollMs)
    if (this.#timer && this.#timer.at <= due) return
    this.#timer?.cancel()
    const cancel = this.#context.runtime.clock.after(due - now, () => {
      this.#timer = undefined
      this.#looking = isolated(this.#context, 'due work', () => this.#look())
      // Whatever becomes of this look, there is another one.
      this.#arm(Number.POSITIVE_INFINITY)
    })
    this.#timer = { at: due, cancel }
  }

  async #look(): Promise<void> {
    // With the first look that reaches the database.
    if (!this.#hasRecurring) await this.ensureRecurring()
    this.#hasRecurring = true
    const { kysely } = this.#context.db
    const now = this.#now()
    for (const kind of await dueKinds(kysely, now))
      if (this.#kindOf(kind) && this.#state === 'started')
        background(this.#context, `due work ${kind}`, async () => {
          // What was made due while it was under way is looked for once more.
          if ((await this.#pass(kind)).looks > 0) this.#arm(this.#now())
        })
    this.#arm((await nextDueAt(kysely, now)) ?? Number.POSITIVE_INFINITY)
  }

  /** Handles what is due of a kind; joins a pass that is under way. */
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
    const pass: Pass = { looks: 0, affected: [] }
    let claimed: Claimed[]
    do {
      claimed = await claim(this.#context, kind, { batch, leaseMs })
      pass.looks += claimed.length
      // Those that wait for their turn too: the rest of a batch may take many times as long as a lease.
      const renewed = claimed
      const stopRenewing = every(this.#context.runtime.clock, leaseMs / 3, () =>
        background(this.#context, `leases of ${kind}`, () => renew(this.#context, renewed, leaseMs)),
      )
      const early = await this.#putBack(claimed)
      const waiting = claimed.filter(({ subject }) => !early.has(subject)).values()
      const lane = async (): Promise<void> => {
        // One that is told to stop begins nothing more: the rest of a batch may take many times as long as it is given.
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

  /** Returns the subjects that it is too early for, which are released. Where that cannot be found out each is looked at. */
  async #putBack(claimed: readonly Claimed[]): Promise<ReadonlySet<string>> {
    const [first] = claimed
    const kind = first && this.#kindOf(first.kind)
    const released = new Set<string>()
    if (!first || !kind?.early) return released
    // Somebody is to be told of those that do well again: they are looked at.
    const asked = claimed.filter(({ attempts }) => attempts <= this.#context.settings.workAlarmAttempts)
    if (asked.length === 0) return released
    await isolated(this.#context, `${first.kind}, all at once`, async () => {
      const dueAts = await kind.early!(asked.map(({ subject }) => subject))
      await releaseAll(this.#context, first, dueAts)
      for (const subject of dueAts.keys()) released.add(subject)
    })
    return released
  }

  /** One that fails does not keep the others from their turn. */
  async #handle(work: Claimed): Promise<readonly number[]> {
    const { kind, subject } = work
    let affected: readonly number[] = []
    await isolated(this.#context, `${kind} ${subject}`, async () => {
      try {
        this.#context.checkpoint('work.claimed')
        const outcome = await this.#kindOf(kind)!.look(work)
        affected = outcome.affected ?? []
        if (outcome.failure !== undefined)
          return await this.#putOff(work, outcome.failure, outcome.next ?? Infinity)
        this.#context.checkpoint('work.handled')
        // A look that asks for another one at once would keep its kind from ending.
        const dueAt = outcome.next === null ? null : Math.max(outcome.next, this.#now() + 1)
        await release(this.#context, work, { dueAt })
        if (work.attempts > this.#context.settings.workAlarmAttempts) await this.#witness?.recovered(work)
      } catch (error) {
        await this.#putOff(work, error)
      }
    })
    return affected
  }

  async #putOff(work: Claimed, error: unknown, noLaterThan = Infinity): Promise<void> {
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
      await this.#witness?.failing(work, messageOf(error))
    const about = { err: error, kind, subject, attempts }
    if (isExhausted) log.error(about, 'due work is exhausted: a person has to look')
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
