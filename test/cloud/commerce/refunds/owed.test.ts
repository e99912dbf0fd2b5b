import { expect, test } from 'vitest'
import { owedRefunds } from '../../../../cloud/commerce/refunds/owed.ts'

/** An order of 2 units of line 1 and 2 units of line 2, 250 and 21 of tax each. */
const UNIT = 271
const order = { tax_total: 84 }
const payment = { id: 1, amount: 4 * UNIT, is_late: 0 as const }

interface Given {
  /** Null: the order as a whole. */
  line: number | null
  units?: number
  amount?: number
  status: 'failed' | 'succeeded' | 'pending'
  reason?: 'short' | 'customer' | 'processor' | 'dispute'
  settles?: number
  /** The newest refund when it failed; default: itself. */
  after?: number
}

/** The refunds that are owed, as `id: units, amount`; the ids count from 1. */
function owed(...given: Given[]): string[] {
  const refunds = given.map(
    ({ line, units = 0, amount = units * UNIT, status, reason, settles, after }, index) => ({
      id: index + 1,
      payment_id: 1,
      item_id: line,
      quantity: units,
      amount,
      tax: units * 21,
      reason: reason ?? 'customer',
      status,
      failure_reason: status === 'failed' ? 'no' : null,
      failed_after: after ?? null,
      settles: settles ?? null,
    }),
  )
  const found = owedRefunds(order, [payment], refunds)
  for (const one of found) expect(one.tax).toBeLessThanOrEqual(one.amount)
  return found.map(({ id, quantity, amount }) => `${id}: ${quantity}, ${amount}`)
}

const bothFail = { line: 1, units: 2, status: 'failed', reason: 'short' } as const

test('a refund that is repeated unit by unit is owed less with each unit, and not at all after the last', () => {
  const one = { line: 1, units: 1, status: 'succeeded' } as const
  expect(owed(bothFail)).toEqual(['1: 2, 542'])
  expect(owed(bothFail, one)).toEqual(['1: 1, 271'])
  expect(owed(bothFail, { ...one, status: 'pending' })).toEqual(['1: 1, 271'])
  expect(owed(bothFail, one, one)).toEqual([])
})

test('a repetition of one unit that fails takes that unit over, so that the sum stays the same', () => {
  const one = { line: 1, units: 1, status: 'failed' } as const
  expect(owed(bothFail, one)).toEqual(['1: 1, 271', '2: 1, 271'])
  expect(owed(bothFail, one, one)).toEqual(['2: 1, 271', '3: 1, 271'])
  expect(owed(bothFail, one, { ...one, status: 'succeeded' }, { ...one, status: 'succeeded' })).toEqual([])
})

test('after a smaller refund of the whole order the rest of the failed refund is owed', () => {
  const whole = { line: null, amount: 4 * UNIT, status: 'failed' } as const
  expect(owed(whole, { line: null, amount: 100, status: 'succeeded' })).toEqual(['1: 0, 984'])
})

test('a due refund takes over earlier due refunds, and its own amount of a refund that a person requested', () => {
  const due = { line: 1, units: 1, status: 'failed', reason: 'short' } as const
  expect(owed(bothFail, due)).toEqual(['2: 1, 271'])
  expect(owed({ ...bothFail, reason: 'customer' }, { ...due, status: 'succeeded' })).toEqual(['1: 1, 271'])
})

test('refunds of another line, earlier refunds, and those of the bank or the processor repeat none', () => {
  expect(owed(bothFail, { line: 2, units: 2, status: 'succeeded' })).toEqual(['1: 2, 542'])
  const late = { ...bothFail, units: 1, after: 2 } as const
  expect(owed(late, { line: 1, units: 1, status: 'succeeded' })).toEqual(['1: 1, 271'])
  expect(owed(bothFail, { line: 1, units: 2, status: 'succeeded', reason: 'processor' })).toEqual([
    '1: 2, 542',
  ])
})

test('a settlement takes over exactly its refund, whatever its amount', () => {
  const other = { line: 2, units: 1, status: 'failed' } as const
  expect(owed(bothFail, other, { line: 1, amount: 500, status: 'succeeded', settles: 1 })).toEqual([
    '2: 1, 271',
  ])
})

test('no more is owed than is left of the payment, also after a dispute of the whole payment', () => {
  const dispute = { line: null, status: 'succeeded', reason: 'dispute' } as const
  expect(owed(bothFail, { ...dispute, amount: 3 * UNIT })).toEqual(['1: 2, 271'])
  expect(owed(bothFail, { ...dispute, amount: 4 * UNIT })).toEqual([])
})
