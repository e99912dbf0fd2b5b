import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { derivePaymentStatus } from '../../../../cloud/commerce/orders/payment-status.ts'

const states = ['pending', 'requires_action', 'authorized', 'completed', 'failed', 'canceled'] as const
const payment = fc.record({
  status: fc.constantFrom(...states),
  amount: fc.integer({ min: 1, max: 10_000 }),
  is_late: fc.constantFrom(0 as const, 1 as const),
})
const refund = fc.record({
  index: fc.nat({ max: 3 }),
  status: fc.constantFrom('pending' as const, 'succeeded' as const, 'failed' as const),
  amount: fc.integer({ min: 1, max: 10_000 }),
})
const late = { id: 1, status: 'completed', amount: 500, is_late: 1 } as const
const paid = { id: 2, status: 'completed', amount: 500, is_late: 0 } as const

test('an order without a payment is unpaid, and a completed payment of zero is completed', () => {
  expect(derivePaymentStatus([], [])).toBe('unpaid')
  expect(derivePaymentStatus([{ ...paid, amount: 0 }], [])).toBe('completed')
})

test('a refunded late payment does not change the status of an order that was paid in time', () => {
  const back = { payment_id: 1, status: 'succeeded', amount: 500 } as const
  expect(derivePaymentStatus([late, paid], [back])).toBe('completed')
  expect(derivePaymentStatus([late], [back])).toBe('refunded')
  expect(derivePaymentStatus([late], [])).toBe('completed')
})

test('a second payment in progress takes precedence over a failed one', () => {
  const failed = { ...paid, status: 'failed' } as const
  expect(derivePaymentStatus([failed, { ...paid, id: 3, status: 'requires_action' }], [])).toBe(
    'requires_action',
  )
  expect(derivePaymentStatus([failed], [])).toBe('failed')
})

test('a refund counts only when it has succeeded, and a full refund makes the order refunded', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), fc.array(refund), (amount, refunds) => {
      const rows = refunds.map(({ status, amount: back }) => ({ payment_id: 2, status, amount: back }))
      const back = rows.reduce((sum, row) => sum + (row.status === 'succeeded' ? row.amount : 0), 0)
      const expected = back === 0 ? 'completed' : back < amount ? 'partially_refunded' : 'refunded'
      expect(derivePaymentStatus([{ ...paid, amount }], rows)).toBe(expected)
    }),
  )
})

test('the payment status depends only on the rows: pending and failed refunds change nothing', () => {
  fc.assert(
    fc.property(fc.array(payment, { maxLength: 4 }), fc.array(refund), (payments, refunds) => {
      const rows = payments.map((row, index) => ({ ...row, id: index }))
      const back = refunds.map(({ index, ...row }) => ({ ...row, payment_id: index }))
      const counted = back.filter(({ status }) => status === 'succeeded')
      expect(derivePaymentStatus(rows, back)).toBe(derivePaymentStatus(rows, counted))
    }),
  )
})
