import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addDays,
  addMonths,
  daysOf,
  monthsOf,
  weekdayOf,
  weekOf,
} from '../../../../cloud/platform/calendar/days.ts'
import { periodOf, stretchBefore, timeframes } from '../../../../cloud/commerce/analytics/totals.ts'

const DAY = 86_400_000
const day = fc
  .integer({ min: Date.parse('1999-01-01') / DAY, max: Date.parse('2050-12-31') / DAY })
  .map((number) => new Date(number * DAY).toISOString().slice(0, 10))

test.each([
  // 2020 and 2026 have an ISO week 53, which reaches into the next year.
  ['2020-12-31', '2020-12-28', '2021-01-03'],
  ['2021-01-03', '2020-12-28', '2021-01-03'],
  ['2021-01-04', '2021-01-04', '2021-01-10'],
  ['2027-01-01', '2026-12-28', '2027-01-03'],
  ['2024-12-30', '2024-12-30', '2025-01-05'],
  ['2024-02-29', '2024-02-26', '2024-03-03'],
])('the week of %s is from %s to %s', (one, monday, sunday) => {
  const week = weekOf(one)
  expect([week[0], week[6], week.length]).toEqual([monday, sunday, 7])
})

test('a week is seven consecutive days from Monday and contains its day', () => {
  fc.assert(
    fc.property(day, (one) => {
      const week = weekOf(one)
      expect(week).toContain(one)
      expect(week.map((each) => weekdayOf(each))).toEqual([0, 1, 2, 3, 4, 5, 6])
      expect(week.map((_, index) => addDays(week[0]!, index))).toEqual(week)
    }),
  )
})

test.each([
  ['2025-01', -1, '2024-12'],
  ['2025-12', 1, '2026-01'],
  ['2025-11', -23, '2023-12'],
  ['2025-06', 0, '2025-06'],
])('the month %s plus %d months is %s', (month, count, expected) => {
  expect(addMonths(month, count)).toBe(expected)
})

test('a year has twelve months', () => {
  expect(monthsOf(2025)).toHaveLength(12)
  expect([monthsOf(2025)[0], monthsOf(2025)[11]]).toEqual(['2025-01', '2025-12'])
})

const october = Array.from({ length: 31 }, (_, index) => `2025-10-${String(index + 1).padStart(2, '0')}`)

test.each([
  ['daily', '2025-03-01', [], '2025-02-28'],
  ['weekly', '2026-01-01', ['2025-12-22', '2025-12-23', '2025-12-24'], '2025-12-25'],
  ['weekly', '2025-11-03', [], '2025-10-27'],
  ['monthly', '2025-11-30', october.slice(0, 29), '2025-10-30'],
  ['monthly', '2025-11-01', [], '2025-10-01'],
  // February lacks this day, so the comparison covers the whole month.
  ['monthly', '2025-03-29', ['2025-02'], null],
  ['monthly', '2025-12-31', ['2025-11'], null],
  ['yearly', '2025-03-01', ['2024-01', '2024-02'], '2024-03-01'],
  ['yearly', '2024-02-29', ['2023-01', '2023-02'], null],
  ['yearly', '2025-01-02', ['2024-01-01'], '2024-01-02'],
] as const)(
  'the comparison period of a %s period for %s is the same part of the period before',
  (timeframe, one, parts, last) => {
    expect(stretchBefore[timeframe](one)).toEqual({ parts, last })
  },
)

describe.each(timeframes)('the stretch before a %s period', (timeframe) => {
  test('the comparison period starts with the period before, and grows with each day', () => {
    fc.assert(
      fc.property(day, (one) => {
        const { first } = periodOf[timeframe](one)
        const before = periodOf[timeframe](addDays(first, -1))
        const covered = (text: string): string[] => (text.length === 7 ? daysOf(text) : [text])
        const daysIn = ({ parts, last }: ReturnType<(typeof stretchBefore)[typeof timeframe]>) => [
          ...parts.flatMap(covered),
          ...(last === null ? [] : [last]),
        ]
        const days = daysIn(stretchBefore[timeframe](one))
        expect(days[0]).toBe(before.first)
        expect(days).toEqual(days.map((_, index) => addDays(before.first, index)))
        expect(days.at(-1)! < before.next).toBe(true)
        const next = addDays(one, 1)
        if (next < periodOf[timeframe](one).next)
          expect(daysIn(stretchBefore[timeframe](next)).length).toBeGreaterThanOrEqual(days.length)
      }),
    )
  })
})

describe.each(timeframes)('a %s period', (timeframe) => {
  test('a period contains its day, and each of its days has the same period', () => {
    fc.assert(
      fc.property(day, (one) => {
        const period = periodOf[timeframe](one)
        expect(period.first <= one && one < period.next).toBe(true)
        expect(periodOf[timeframe](addDays(period.next, -1))).toEqual(period)
      }),
    )
  })
})
