/**
 * A money operation is a conversation with the card processor about one payment, deposit, refund, saved method or customer.
 * This file decides; `operations.ts` reads, asks and writes.
 */
export type OperationState =
  | 'unanswered' //       asked, or about to be; whether the processor has it is unknown
  | 'processing' //       the processor works on it
  | 'requires_action' //  the processor waits for the customer
  | 'declined' //         the issuer declined; the customer may still complete it with another card
  | 'succeeded'
  | 'failed' //           the processor refused it, or took its success back
  | 'canceled' //         over without success, or undone at the processor

/** The service's intention. `ended`: the operation is to be cancelled, detached or removed. */
export type Goal = 'done' | 'ended'

/** An input: the processor's answer or event, or the end of the time for which something waits for it. */
export type OperationOutcome =
  | 'processing'
  | 'requires_action'
  | 'declined'
  | 'succeeded'
  | 'failed'
  | 'canceled' //   an unfinished payment was cancelled
  | 'removed' //    a saved method or customer was removed
  | 'returned' //   refunded money of a canceled payment is back at the processor
  | 'given_up' //   its time is over, and the processor has given no final answer

/**
 * Every transition: outcome → from → to. An absent one changes nothing, because answers and events arrive late, twice and
 * in any order. Late success is possible after `canceled`: money moved. `succeeded` may become `failed`: a refund came back.
 */
const operationTransitions: Record<
  Exclude<OperationOutcome, 'given_up'>,
  Partial<Record<OperationState, OperationState>>
> = {
  processing: { unanswered: 'processing' },
  requires_action: { unanswered: 'requires_action', processing: 'requires_action' },
  // An operation that is declined at once has published no client secret: no customer can complete it with
  // another card.
  declined: { unanswered: 'canceled', processing: 'declined', requires_action: 'declined' },
  succeeded: {
    unanswered: 'succeeded',
    processing: 'succeeded',
    requires_action: 'succeeded',
    declined: 'succeeded',
    canceled: 'succeeded',
  },
  failed: { unanswered: 'failed', processing: 'failed', succeeded: 'failed' },
  canceled: {
    unanswered: 'canceled',
    processing: 'canceled',
    requires_action: 'canceled',
    declined: 'canceled',
  },
  removed: { unanswered: 'canceled', succeeded: 'canceled', failed: 'canceled' },
  returned: { canceled: 'processing' },
}

/** The time of the next question to the processor. */
type Pace =
  | 'at once' //  the answer that is booked now calls for another question
  | 'soon' //     after `PAYMENT_RECHECK_MS`
  | 'deadline' // when its time is over: until then its customer acts
  | 'never' //    nothing is left to ask

const paces: Record<OperationState, Record<Goal, Pace>> = {
  unanswered: { done: 'soon', ended: 'soon' },
  processing: { done: 'soon', ended: 'soon' },
  requires_action: { done: 'deadline', ended: 'soon' },
  declined: { done: 'deadline', ended: 'at once' },
  // A saved method is attached, and its customer wants it removed.
  succeeded: { done: 'never', ended: 'at once' },
  failed: { done: 'never', ended: 'never' },
  canceled: { done: 'never', ended: 'never' },
}

export interface Position {
  state: OperationState
  goal: Goal
  give_up_at: number | null
  given_up_at: number | null
}

/** `book`: the kind books what changed. `ask`: due work asks the processor at `at`. `rest`: nothing is left to ask. */
type OperationEffect = { do: 'book' } | NextAsk
type NextAsk = { do: 'ask'; at: number } | { do: 'rest' }

export interface Step extends Position {
  effects: readonly OperationEffect[]
}

/** Milliseconds since the Unix epoch, and the period between two questions. */
export interface AskTimes {
  now: number
  recheckMs: number
}

/** The pure transition function of a money operation. `goalAfter` is the goal in a new state. */
export function advance(
  before: Position,
  outcome: OperationOutcome,
  times: AskTimes,
  goalAfter: (state: OperationState) => Goal = () => before.goal,
): Step {
  const { state, goal, give_up_at, given_up_at } = before
  const stay = { state, goal, give_up_at, given_up_at }
  const book = (after: Position): Step => ({
    ...after,
    effects: [{ do: 'book' }, nextAsk(after, times, true)],
  })
  if (outcome === 'given_up' && isOpen(before) && given_up_at === null)
    return book({ ...stay, given_up_at: times.now })
  const to = outcome === 'given_up' ? undefined : operationTransitions[outcome][state]
  if (to === undefined) return { ...stay, effects: isOpen(before) ? [nextAsk(before, times)] : [] }
  const isUnderWay = to === 'processing' || to === 'requires_action'
  return book({ state: to, goal: goalAfter(to), give_up_at, given_up_at: isUnderWay ? given_up_at : null })
}

/** Whether the time for which something waits for an operation is over. */
export const isOver = ({ give_up_at }: Pick<Position, 'give_up_at'>, now: number): boolean =>
  give_up_at !== null && give_up_at <= now

/** Whether the processor is still asked about an operation. */
export const isOpen = ({ state, goal }: Pick<Position, 'state' | 'goal'>): boolean =>
  paces[state][goal] !== 'never'

/** Questions about an operation whose time is long over become rarer, but come at least once an hour. */
const MOST_MS = 3_600_000

/** Returns when due work asks about an operation next. The deadline comes first, whatever the pace. */
export function nextAsk(
  { state, goal, give_up_at, given_up_at }: Position,
  { now, recheckMs }: AskTimes,
  isNews = false,
): NextAsk {
  const pace = paces[state][goal]
  if (pace === 'never') return { do: 'rest' }
  if (pace === 'at once' && isNews) return { do: 'ask', at: now }
  const deadline = give_up_at !== null && give_up_at > now ? give_up_at : null
  if (pace === 'deadline' && deadline !== null) return { do: 'ask', at: deadline }
  const givenUpMs = given_up_at === null ? 0 : now - given_up_at
  const at = now + Math.max(recheckMs, Math.min(Math.floor(givenUpMs / 4), MOST_MS))
  return { do: 'ask', at: deadline === null ? at : Math.min(at, deadline) }
}
