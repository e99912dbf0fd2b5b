import { expect, test } from 'vitest'
import { done } from '../../../edge/local-api/bodies.ts'
import { countProblem, restockProblem } from '../../../protocol/model/counting.ts'

test.each([
  [0, 10, true],
  [10, 10, true],
  [11, 10, false],
  [-1, 10, false],
  [1.5, 10, false],
  [Number.NaN, 10, false],
  [0, 0, true],
  [1, 0, false],
])('%d units are a valid count of a row with capacity %d: %s', (units, capacity, isOne) => {
  expect(countProblem(units, capacity) === undefined).toBe(isOne)
})

test.each([
  [1, 9, true],
  [2, 9, false],
  [0, 0, false],
  [-1, 5, false],
  [10, 0, true],
  [1, 12, false],
])('%d units can be added to %d in a row with capacity 10: %s', (units, quantity, canBe) => {
  expect(restockProblem(units, { quantity, capacity: 10 }) === undefined).toBe(canBe)
})

test('the hub refuses an invalid count with the code of the API, 422 invalid_quantity', () => {
  const refused = { ok: false, reason: 'invalid_quantity', why: 'the row holds 10 units' } as const
  expect(() => done({} as never, refused)).toThrow(
    expect.objectContaining({ code: 'invalid_quantity', status: 422, details: { why: refused.why } }),
  )
})
