import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  advance,
  isOpen,
  nextAsk,
  type OperationOutcome,
  type Position,
} from '../../../../cloud/commerce/money/operation-state.ts'

const NOW = 1_000_000
const times = { now: NOW, recheckMs: 30_000 }
const outcomes = fc.constantFrom<OperationOutcome>(
  'processing',
  'requires_action',
  'declined',
  'succeeded',
  'canceled',
  'given_up',
)
const fresh: Position = { state: 'unanswered', goal: 'done', give_up_at: NOW + 900_000, given_up_at: null }

/** The positions after each outcome, and how often `succeeded` was booked. */
function run(sequence: readonly OperationOutcome[]) {
  let position = fresh
  let sales = 0
  for (const outcome of sequence) {
    const { effects, ...after } = advance(position, outcome, times)
    if (after.state === 'succeeded' && effects.some((effect) => effect.do === 'book')) sales += 1
    position = after
  }
  return { position, sales }
}

test('an intent that succeeded once ends as succeeded, whatever else is reported, and is booked once', () => {
  fc.assert(
    fc.property(fc.array(outcomes, { maxLength: 12 }), (sequence) => {
      const { position, sales } = run(sequence)
      const hasSucceeded = sequence.includes('succeeded')
      expect(sales).toBe(hasSucceeded ? 1 : 0)
      if (hasSucceeded) expect(position).toMatchObject({ state: 'succeeded', given_up_at: null })
    }),
  )
})

test('an outcome that is reported twice is booked once', () => {
  fc.assert(
    fc.property(fc.array(outcomes, { maxLength: 6 }), outcomes, (before, outcome) => {
      const first = advance(run(before).position, outcome, times)
      const { effects, ...position } = first
      const again = advance(position, outcome, times)
      if (effects.length > 0 && outcome !== 'declined')
        expect(again.effects.some((effect) => effect.do === 'book')).toBe(false)
    }),
  )
})

test('an operation that is open is asked about in the future, and no later than its deadline', () => {
  fc.assert(
    fc.property(fc.array(outcomes, { maxLength: 8 }), fc.constantFrom('done', 'ended'), (sequence, goal) => {
      const position = { ...run(sequence).position, goal }
      const ask = nextAsk(position, times)
      expect(ask.do).toBe(isOpen(position) ? 'ask' : 'rest')
      if (ask.do !== 'ask') return
      expect(ask.at).toBeGreaterThan(NOW)
      expect(ask.at).toBeLessThanOrEqual(fresh.give_up_at!)
    }),
  )
})

test('an operation that was given up is asked about at least once an hour', () => {
  const since = NOW - 40 * 3_600_000
  const position: Position = { ...fresh, give_up_at: since, given_up_at: since }
  expect(nextAsk(position, times)).toEqual({ do: 'ask', at: NOW + 3_600_000 })
  expect(nextAsk({ ...position, given_up_at: NOW }, times)).toEqual({ do: 'ask', at: NOW + 30_000 })
})

test('a refund that succeeded may fail later, and a refund that failed stays failed', () => {
  const refund: Position = { ...fresh, give_up_at: null }
  const { state } = advance({ ...refund, state: 'succeeded' }, 'failed', times)
  expect(state).toBe('failed')
  expect(advance({ ...refund, state: 'failed' }, 'succeeded', times)).toMatchObject({
    state: 'failed',
    effects: [],
  })
})
