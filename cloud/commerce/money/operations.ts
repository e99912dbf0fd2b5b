import type { Selectable } from 'kysely'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type Work, type WorkKinds } from '../../platform/work/runner.ts'
import {
  EXTERNAL,
  identityOf,
  orUnconfirmed,
  processorBackoff,
  ProcessorUnavailable,
  requireProcessor,
  sealedSecret,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import {
  advance,
  isOpen,
  isOver,
  nextAsk,
  type AskTimes,
  type Goal,
  type OperationOutcome,
  type OperationState,
} from './operation-state.ts'

/**
 * Runs money operations in three steps: begin in the caller's transaction, ask the processor outside of any
 * transaction, book the answer and its changes in one transaction. Answers, events, due work and the recovery
 * after a crash all use these steps.
 */
export type Operation = Selectable<Tables['money_operations']>
export type OperationKind = Operation['kind']

/** The processor's answer about an operation. `Extra` is data of one kind only. */
export interface Answer<Extra = unknown> {
  outcome: OperationOutcome
  /** The processor's id of the operation. */
  ref?: string | null
  clientSecret?: string | null
  /** The issuer's decline code. */
  reason?: string | null
  extra?: Extra
}

/** A change of an operation that a kind books. */
export interface Change<Subject, Extra> {
  subject: Subject
  /** The operation after the change. */
  operation: Operation
  before: Operation
  outcome: OperationOutcome
  extra: Extra | undefined
}

/** The locked rows of an operation, as its transaction leaves them. */
interface Booked<Subject> {
  subject: Subject
  operation: Operation
}

/** The asker: the request of a caller who waits for the answer, or due work. */
type AskedBy = 'caller' | 'recovery'

/** The part of one kind. `Found` is its row without a lock; `Subject` contains the locked rows that booking needs. */
interface MoneyKind<Found, Subject = Found, Extra = never> {
  readonly name: OperationKind
  find(q: Queries, id: number): Promise<Found | undefined>
  /**
   * Asks the processor for the operation's goal, with the same parameters and the same key (`keyOf`) every
   * time. Null: no question is left. Throws `ProcessorUnavailable`.
   */
  request(
    services: MoneyServices,
    operation: Operation,
    found: Found,
    by: AskedBy,
  ): Promise<Answer<Extra> | null>
  /** Locks the rows that `apply` changes, in the first statement. Undefined if they are gone. */
  lock(tx: Tx, found: Found): Promise<Subject | undefined>
  /** Books a change, in the transaction that stores it. Updates the rows of the subject, too. */
  apply(tx: Tx, context: CloudContext, change: Change<Subject, Extra>): Promise<void>
  /** The goal in a new state; unchanged if absent. */
  goalAfter?(operation: Operation, state: OperationState): Goal
  /** The time limit (milliseconds since the Unix epoch) of an operation without `give_up_at`. Absent: none. */
  giveUpAt?(context: CloudContext, operation: Operation): number
  /** A caller without an answer gets 503: due work then cancels anything that the processor may have done. */
  readonly endsUnanswered?: boolean
  /** Due work of an operation that needs no further question. */
  rest?(services: MoneyServices, operation: Operation): Promise<void>
}

/** The kind of due work of one kind of operation: each has a queue of its own, so that none waits behind another. */
export const workOf = (kind: OperationKind): string => `money/${kind}`

/** The idempotency key of an operation at its processor. */
export const keyOf = (operation: Pick<Operation, 'kind' | 'subject' | 'started_at'>): string =>
  `${operation.kind}:${nameOf(operation)}`

/** Names the operation in the processor's metadata. */
export const nameOf = ({ subject, started_at }: Pick<Operation, 'subject' | 'started_at'>): string =>
  identityOf({ id: subject, created_at: started_at })

type NewOperation = Pick<Operation, 'kind' | 'subject' | 'processor' | 'started_at'> &
  Partial<Pick<Operation, 'state' | 'goal' | 'processor_ref' | 'give_up_at' | 'given_up_at'>>

/** Begins operations in the transaction of their rows. Due work executes them at `dueAt` if no answer has come. */
export async function begin(
  tx: Tx,
  context: CloudContext,
  operations: NewOperation | readonly NewOperation[],
  dueAt?: number,
): Promise<void> {
  const rows = [operations].flat().map(rowOf)
  const [first, ...others] = rows
  if (!first) return
  const ask = nextAsk(first, timesOf(context))
  await Promise.all([
    others.length === 0
      ? insertOperation(tx.q, first)
      : tx.q.insertInto('money_operations').values(rows).execute(),
    ask.do === 'ask' &&
      schedule(
        tx,
        workOf(first.kind),
        rows.map(({ subject }) => subject),
        dueAt ?? ask.at,
      ),
  ])
}

const rowOf = (one: NewOperation): Required<NewOperation> => ({
  kind: one.kind,
  subject: one.subject,
  processor: one.processor,
  state: one.state ?? 'unanswered',
  goal: one.goal ?? 'done',
  processor_ref: one.processor_ref ?? null,
  give_up_at: one.give_up_at ?? null,
  given_up_at: one.given_up_at ?? null,
  started_at: one.started_at,
})

const timesOf = ({ runtime, settings }: CloudContext): AskTimes => ({
  now: runtime.clock.now(),
  recheckMs: settings.paymentRecheckMs,
})

const insertOperation = statement((q, one: Required<NewOperation>) =>
  q.insertInto('money_operations').values(rowOf(one)),
)

export async function readOperation(
  q: Queries,
  kind: OperationKind,
  subject: number,
): Promise<Operation | undefined> {
  const [operation] = await operationOf(q, { kind, subject })
  return operation
}

const operationOf = statement((q, { kind, subject }: Pick<Operation, 'kind' | 'subject'>) =>
  q
    .selectFrom('money_operations')
    .select(allOf('money_operations'))
    .where('kind', '=', kind)
    .where('subject', '=', subject),
)

/**
 * Finds an operation by the processor's id. If the processor's event arrives before the answer with that id,
 * finds it by our name for it.
 */
export async function findOperation(
  q: Queries,
  ref: string,
  named?: { kind: OperationKind; name: string | null | undefined },
): Promise<Operation | undefined> {
  const [known] = await operationByRef(q, { ref })
  const [, id, startedAt] = /^(\d{1,15})\.(\d{1,15})$/.exec(named?.name ?? '') ?? []
  if (known || id === undefined) return known
  const found = await readOperation(q, named!.kind, Number(id))
  return found?.started_at === Number(startedAt) && found.processor_ref === null ? found : undefined
}

const operationByRef = statement((q, { ref }: { ref: string }) =>
  q.selectFrom('money_operations').select(allOf('money_operations')).where('processor_ref', '=', ref),
)

type Mutable = 'state' | 'goal' | 'in_doubt' | 'processor_ref' | 'client_secret' | 'reason' | 'given_up_at'

const storeOperation = statement((q, one: Pick<Operation, 'kind' | 'subject' | Mutable>) =>
  q
    .updateTable('money_operations')
    .set({
      state: one.state,
      goal: one.goal,
      in_doubt: one.in_doubt,
      processor_ref: one.processor_ref,
      client_secret: one.client_secret,
      reason: one.reason,
      given_up_at: one.given_up_at,
    })
    .where('kind', '=', one.kind)
    .where('subject', '=', one.subject),
)

/** Changes an operation's goal, under the lock of its kind. The caller makes it due. */
export async function setGoal(tx: Tx, operation: Operation, goal: Goal): Promise<void> {
  if (operation.goal !== goal) await storeOperation(tx.q, { ...operation, goal, in_doubt: 0 })
}

/** Ends unfinished operations now, whether or not the processor can be reached. */
export async function endNow(
  tx: Tx,
  { runtime }: CloudContext,
  kind: OperationKind,
  subjects: readonly number[],
): Promise<void> {
  if (subjects.length === 0) return
  const now = runtime.clock.now()
  await tx.q
    .updateTable('money_operations')
    .set({ goal: 'ended', give_up_at: now })
    .where('kind', '=', kind)
    .where('subject', 'in', subjects)
    .execute()
  await schedule(tx, workOf(kind), subjects, now)
}

/** Records that the processor is about to be asked. Returns false if its goal is another by now. Under the kind's lock. */
export async function markAsked(tx: Tx, { kind, subject, goal }: Operation): Promise<boolean> {
  const operation = await readOperation(tx.q, kind, subject)
  if (operation?.goal !== goal) return false
  if (operation.in_doubt === 0) await storeOperation(tx.q, { ...operation, in_doubt: 1 })
  return true
}

/** The operation's row is gone; nothing is left to ask. */
export async function erase(tx: Tx, kind: OperationKind, subject: number): Promise<void> {
  await tx.q.deleteFrom('money_operations').where('kind', '=', kind).where('subject', '=', subject).execute()
  await unschedule(tx, workOf(kind), subject)
}

/** All operations of one kind. */
export class MoneyOperations<Found, Subject = Found, Extra = never> {
  readonly #kind: MoneyKind<Found, Subject, Extra>

  constructor(kind: MoneyKind<Found, Subject, Extra>) {
    this.#kind = kind
  }

  get name(): OperationKind {
    return this.#kind.name
  }

  /**
   * Asks the processor about an operation, books its answer, and returns the answer with the booked rows. Throws
   * `ProcessorUnavailable` if there is no answer, unless an event was faster: then the books already contain the
   * result.
   */
  async execute(
    services: MoneyServices,
    found: Found,
    operation: Operation,
    { by, ask }: { by: AskedBy; ask?: () => Promise<Answer<Extra>> },
  ): Promise<(Answer<Extra> & { booked: Booked<Subject> | undefined }) | undefined> {
    const { context, processor } = services
    const { name } = this.#kind
    context.checkpoint(`${name}.before-processor`)
    let answer: Answer<Extra> | null
    try {
      if (operation.processor !== EXTERNAL) requireProcessor(processor, operation.processor)
      const asked = ask ? ask() : this.#kind.request(services, operation, found, by)
      answer = await orUnconfirmed(context, asked)
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable)) throw error
      const isKnown = await context.db.transact((tx) => this.#noteDoubt(tx, found, operation, by))
      if (isKnown) return undefined
      throw error
    }
    context.checkpoint(`${name}.after-processor`)
    if (answer === null) return undefined
    const answered = answer
    const booked = await context.db.transact((tx) => this.apply(tx, context, found, operation, answered))
    return { ...answered, booked }
  }

  /** No answer came. Returns true if an event has already brought the answer. */
  async #noteDoubt(tx: Tx, found: Found, asked: Operation, by: AskedBy): Promise<boolean> {
    const subject = await this.#kind.lock(tx, found)
    const now = await readOperation(tx.q, asked.kind, asked.subject)
    if (!subject || !now) return false
    if (now.state !== asked.state) return true
    const isEnded = by === 'caller' && this.#kind.endsUnanswered === true && now.state === 'unanswered'
    const doubt = { ...now, in_doubt: 1, goal: isEnded ? 'ended' : now.goal } as const
    if (now.state === 'unanswered' || now.state === 'processing') await storeOperation(tx.q, doubt)
    return false
  }

  /**
   * The only place where an operation changes, in any order and however often (I3). Takes the kind's lock. Returns the
   * rows after the change; undefined if they are gone.
   */
  async apply(
    tx: Tx,
    context: CloudContext,
    found: Found,
    { kind, subject: id }: Pick<Operation, 'kind' | 'subject'>,
    answer: Answer<Extra>,
  ): Promise<Booked<Subject> | undefined> {
    // One after the other: the operation is read under the lock.
    const [subject, before] = await Promise.all([this.#kind.lock(tx, found), readOperation(tx.q, kind, id)])
    if (subject === undefined || !before) return undefined
    const { outcome, extra } = answer
    const isLost = outcome === 'declined' || outcome === 'failed' || outcome === 'canceled'
    const known = {
      ...before,
      processor_ref: before.processor_ref ?? answer.ref ?? null,
      client_secret: before.client_secret ?? (isLost ? null : sealedSecret(context, answer.clientSecret)),
    }
    const goalAfter = (state: OperationState) => this.#kind.goalAfter?.(known, state) ?? known.goal
    const { effects, ...step } = advance(known, outcome, timesOf(context), goalAfter)
    const isBooked = effects.some((effect) => effect.do === 'book')
    const after: Operation = { ...known, ...step, reason: (isBooked ? answer.reason : null) ?? before.reason }
    const isNews = (Object.keys(after) as Mutable[]).some((column) => after[column] !== before[column])
    await Promise.all([
      isNews && storeOperation(tx.q, after),
      ...effects.map((effect) => {
        if (effect.do === 'ask') return schedule(tx, workOf(kind), id, effect.at)
        if (effect.do === 'rest') return unschedule(tx, workOf(kind), id)
        return undefined
      }),
      isBooked && this.#kind.apply(tx, context, { subject, operation: after, before, outcome, extra }),
    ])
    return { subject, operation: after }
  }

  /** Applies an event of the processor. */
  async applyEvent(
    tx: Tx,
    context: CloudContext,
    operation: Operation,
    answer: Answer<Extra>,
  ): Promise<void> {
    // Mostly the answer has been booked already: nothing is locked for that.
    if (operation.state === 'succeeded' && answer.outcome === 'succeeded') return
    const found = await this.#kind.find(tx.q, operation.subject)
    if (found !== undefined) await this.apply(tx, context, found, operation, answer)
  }

  /** Due work: asks about an unfinished operation, and ends it when its time is over. */
  async run(services: MoneyServices, id: number): Promise<Outcome> {
    const { context } = services
    const { kysely: q } = context.db
    const operation = await readOperation(q, this.name, id)
    const found = operation && (await this.#kind.find(q, id))
    if (!operation || found === undefined) return done
    if (!isOpen(operation)) {
      await this.#kind.rest?.(services, operation)
      return done
    }
    const giveUpAt = operation.give_up_at ?? this.#kind.giveUpAt?.(context, operation) ?? null
    const isTimeUp = isOver({ give_up_at: giveUpAt }, context.runtime.clock.now())
    const asked = isTimeUp ? { ...operation, goal: 'ended' as const } : operation
    try {
      await this.execute(services, found, asked, { by: 'recovery' })
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable) || giveUpAt === null || operation.given_up_at !== null)
        throw error
      // A back-off does not prolong the time.
      if (!isTimeUp) return { next: giveUpAt, failure: error }
    }
    if (isTimeUp) await this.giveUp(context, found, operation)
    // Later work has been scheduled with the answer.
    return done
  }

  /** Nothing waits for an operation any more. Changes nothing if the processor has given its final answer. */
  async giveUp(context: CloudContext, found: Found, operation: Operation): Promise<void> {
    await context.db.transact((tx) => this.apply(tx, context, found, operation, { outcome: 'given_up' }))
  }
}

/** The part of each kind that due work uses. */
type AnyOperations = Pick<MoneyOperations<unknown>, 'name' | 'run'>

/** The one kind of due work of all operations. */
export const moneyWork = (services: MoneyServices, kinds: readonly AnyOperations[]): WorkKinds => ({
  money: {
    backoff: processorBackoff(services.context),
    run({ kind, subject }: Work) {
      const operations = kinds.find(({ name }) => workOf(name) === kind)
      return operations ? operations.run(services, Number(subject)) : Promise.resolve(done)
    },
  },
})
