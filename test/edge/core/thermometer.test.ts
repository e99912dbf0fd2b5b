import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaultCoreSettings } from '../../../protocol/settings/hub-limits.ts'
import {
  isFrozen,
  newThermometer,
  proofOf,
  takeReport,
  type Thermometer,
} from '../../../edge/core/thermometer.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const { probe, frozen, proof } = defaultCoreSettings
const rules = { ...proof, coldMs: MINUTE }

/** Applies reports, one every `everyMs`. */
function after(
  reports: readonly (number | null)[],
  { everyMs = 30 * SECOND, meter = newThermometer, from = 0 } = {},
): Thermometer {
  return reports.reduce(
    (so, celsius, index) =>
      takeReport(
        so,
        { celsius, at: from + index * everyMs },
        { limitCelsius: 5, maxAgeMs: 5 * MINUTE },
        probe,
      ),
    meter,
  )
}

const repeat = (times: number, ...values: (number | null)[]): (number | null)[] =>
  Array.from({ length: times }, () => values).flat()

describe('proofs of temperature', () => {
  test.each<[string, (number | null)[], 'cold' | 'warm' | undefined]>([
    ['three cold readings over a minute', [4, 4, 4], 'cold'],
    ['two cold readings', [4, 4], undefined],
    ['cold readings with a warm one between them', [4, 4, 5.1, 4, 4], undefined],
    ['two warm readings', [4, 5.1, 5.2], 'warm'],
    ['one warm reading', [4, 4, 4, 5.1], undefined],
    ['cold readings with nonsense between them', [4, 85, 4, -127, 4], 'cold'],
    ['as much nonsense as readings', [4, 85, 4, -127, 4, 85], undefined],
    ['fewer readings than nonsense', [30, 85, -55, 30, 85, -55, 30, 85], undefined],
    ['cold readings with one jump between them', [4, 20, 4, 4], 'cold'],
    ['nonsense alone', [85, -127, 85, 85], undefined],
    ['a jump that stays', [4, 4, 4, 20, 20, 20], 'warm'],
    ['reports without a reading', [null, null, null], undefined],
    ['exactly the limit', [5, 5, 5], 'cold'],
  ])('the readings “%s” %j prove %s', (_, reports, expected) => {
    expect(proofOf(after(reports), rules)).toBe(expected)
  })

  test('three cold readings within a second are no proof', () => {
    expect(proofOf(after([4, 4, 4], { everyMs: 300 }), rules)).toBeUndefined()
  })

  test('cold readings with a gap between them are no proof', () => {
    expect(proofOf(after([4, 4, 4], { everyMs: 6 * MINUTE }), rules)).toBeUndefined()
  })

  test('no single report is a proof, after any history', () => {
    const report = fc.option(fc.double({ min: -120, max: 120, noNaN: true }), { nil: null })
    fc.assert(
      fc.property(fc.array(report, { maxLength: 20 }), report, (before, one) => {
        const meter = after(before)
        const next = after([one], { meter, from: before.length * 30 * SECOND })
        const [was, is] = [proofOf(meter, rules), proofOf(next, rules)]
        // The side changes only through a state without proof.
        expect(was !== undefined && is !== undefined && was !== is).toBe(false)
      }),
    )
  })
})

test('a value out of range, not a number or infinite is not a reading', () => {
  for (const celsius of [-46, 61, 85, -127, Number.NaN, Infinity, null])
    expect(after([celsius]).last).toBeUndefined()
})

test('a probe that starts with nonsense is trusted only when its readings agree', () => {
  expect(after([85, 30]).last).toBeUndefined()
  expect(after([85, 30, -55, 85, 30, -55, 85, 30]).last).toBeUndefined()
  expect(after([85, 4, 4.1, 4]).last?.celsius).toBe(4)
})

describe('a probe with one exact value for hours', () => {
  const still = after(repeat(600, 4.25))
  const now = 5 * HOUR
  const lively = after(repeat(60, 3, 4.5), { from: MINUTE })

  test('a probe with one value for hours is not frozen without other evidence', () => {
    expect(isFrozen(still, { now, others: [], openedAt: undefined }, frozen)).toBe(false)
  })
  test('a probe with one value for hours is frozen if another probe of the hub has changed repeatedly', () => {
    expect(isFrozen(still, { now, others: [lively], openedAt: undefined }, frozen)).toBe(true)
  })
  test('a probe with one value for hours is not frozen if another probe has changed once', () => {
    const once = after([...repeat(10, 3), ...repeat(10, 4.5)], { from: MINUTE })
    expect(isFrozen(still, { now, others: [once], openedAt: undefined }, frozen)).toBe(false)
  })
  test('a probe with one value for hours is frozen if a door of its fridge was open', () => {
    expect(isFrozen(still, { now, others: [], openedAt: HOUR }, frozen)).toBe(true)
  })
  test('a probe is not frozen before hours have passed, or if its value has changed', () => {
    expect(isFrozen(still, { now: 3 * HOUR, others: [lively], openedAt: HOUR }, frozen)).toBe(false)
    const moved = after([4.26], { meter: still, from: now })
    expect(isFrozen(moved, { now, others: [lively], openedAt: HOUR }, frozen)).toBe(false)
  })
})

test('an outlier is no change of a value that repeats, and a believed reading is', () => {
  const since = after([4, 4, 4]).same?.since
  expect(after([4, 4, 20, 4]).same).toMatchObject({ celsius: 4, since, count: 3 })
  expect(after([4, 4, 5, 4]).same).toMatchObject({ celsius: 4, since: 90 * SECOND })
})
