import { expect, test } from 'vitest'
import { constraintProblem, type ConstraintType } from '../../../../protocol/model/deal-terms.ts'
import {
  hubTime,
  judgeDeal,
  statusOf,
  type Uses,
} from '../../../../cloud/commerce/deals/engine/judge-deal.ts'
import { cart, circumstances, deal, noon, reward, trigger, type Wording } from './support/deal.ts'

const rewards = [reward('PERCENT_OFF', 10)]
const one = cart([1, 2, 250])
const judge = (given: Omit<Wording, 'rewards'>, at: Parameters<typeof circumstances>[0] = {}) =>
  judgeDeal(deal({ rewards, ...given }), one, circumstances(at))

test('the dates of a deal are inclusive, and null is open', () => {
  expect(judge({ start: '2025-06-04', end: '2025-06-04' })).toBeNull()
  expect(judge({ start: '2025-06-05' })).toBe('scheduled')
  expect(judge({ end: '2025-06-03' })).toBe('expired')
  expect(judge({ isActive: false })).toBe('inactive')
})

test('a deal’s status depends on the switch, the dates and the uses, in that order', () => {
  const limited = deal({ rewards, end: '2025-06-03', constraints: { MAXUSES: '2' } })
  expect(statusOf(limited, '2025-06-03', 1)).toBe('active')
  expect(statusOf(limited, '2025-06-03', 2)).toBe('exhausted')
  expect(statusOf(limited, '2025-06-04', 2)).toBe('expired')
  expect(statusOf({ ...limited, isActive: false }, '2025-06-04', 2)).toBe('inactive')
})

test.each([
  ['3', null],
  ['1,2,3', null],
  ['4', 'wrong_weekday'],
  ['7', 'wrong_weekday'],
])('a deal for the weekdays %s on a Wednesday has the obstacle %s', (value, verdict) => {
  expect(judge({ constraints: { WEEKDAYS: value } })).toBe(verdict)
})

test.each([
  ['09:00-17:00', '08:59', 'wrong_time'],
  ['09:00-17:00', '09:00', null],
  ['09:00-17:00', '17:00', null],
  ['09:00-17:00', '17:01', 'wrong_time'],
  ['22:00-02:00', '21:59', 'wrong_time'],
  ['22:00-02:00', '22:00', null],
  ['22:00-02:00', '00:00', null],
  ['22:00-02:00', '02:00', null],
  ['22:00-02:00', '02:01', 'wrong_time'],
  ['00:00-23:59', '23:59', null],
])('a deal with the window %s at %s has the obstacle %s', (value, clock, verdict) => {
  const [hours, minutes] = clock.split(':').map(Number) as [number, number]
  expect(
    judge({ constraints: { TIMEWINDOW: value } }, { time: { ...noon, minute: hours * 60 + minutes } }),
  ).toBe(verdict)
})

test('the hours after midnight belong to the night that started the day before', () => {
  const fridayNight = { WEEKDAYS: '5', TIMEWINDOW: '22:00-02:00' }
  const at = (weekday: number, minute: number) =>
    judge({ constraints: fridayNight }, { time: { day: '2025-06-06', weekday, minute } })
  expect(at(5, 23 * 60)).toBeNull()
  expect(at(6, 60)).toBeNull()
  expect(at(5, 60)).toBe('wrong_weekday')
  expect(at(6, 23 * 60)).toBe('wrong_weekday')
  expect(
    judge(
      { constraints: { ...fridayNight, WEEKDAYS: '7' } },
      { time: { day: '2025-06-09', weekday: 1, minute: 0 } },
    ),
  ).toBeNull()
})

test('the minimum value of a cart counts before any discount', () => {
  expect(judge({ constraints: { SALEAMT: '500' } })).toBeNull()
  expect(judge({ constraints: { SALEAMT: '501' } })).toBe('cart_too_small')
})

test.each([
  [0, null],
  [1, 'not_first_order'],
  [null, 'not_first_order'],
])('a first-order deal with %s earlier orders has the obstacle %s', (paidOrders, verdict) => {
  expect(judge({ constraints: { FIRSTORDER: '1' } }, { buyer: { paidOrders } })).toBe(verdict)
  expect(judge({ triggers: [trigger('FIRST_ORDER')] }, { buyer: { paidOrders } })).toBe(verdict)
  expect(judge({ constraints: { FIRSTORDER: '0' } }, { buyer: { paidOrders } })).toBeNull()
})

test.each<[ConstraintType, Uses, string | null]>([
  ['MAXUSES', { total: 1, byUser: 1, byDevice: 1 }, null],
  ['MAXUSES', { total: 2, byUser: 0, byDevice: 0 }, 'exhausted'],
  ['MAXUSES_USER', { total: 9, byUser: 1, byDevice: 5 }, null],
  ['MAXUSES_USER', { total: 9, byUser: 2, byDevice: 0 }, 'user_limit'],
  ['MAXUSES_USER', { total: 9, byUser: null, byDevice: 1 }, null],
  ['MAXUSES_USER', { total: 9, byUser: null, byDevice: 2 }, 'user_limit'],
  ['MAXUSES_USER', { total: 0, byUser: null, byDevice: null }, 'user_limit'],
  ['MAXUSES_DEVICE', { total: 9, byUser: 5, byDevice: 1 }, null],
  ['MAXUSES_DEVICE', { total: 9, byUser: 0, byDevice: 2 }, 'device_limit'],
  ['MAXUSES_DEVICE', { total: 9, byUser: 2, byDevice: null }, 'device_limit'],
  ['MAXUSES_DEVICE', { total: 0, byUser: null, byDevice: null }, 'device_limit'],
])('a deal with %s of 2 and the uses %j has the obstacle %s', (type, uses, verdict) => {
  expect(judge({ constraints: { [type]: '2' } }, { usesOf: () => uses })).toBe(verdict)
})

test('the triggers of a deal must be met by the cart', () => {
  expect(judge({ triggers: [trigger('QUANTITY', 2)] })).toBeNull()
  expect(judge({ triggers: [trigger('QUANTITY', 3)] })).toBe('trigger_not_met')
})

test('a deal uses the hub’s own calendar and clock, summer time included', () => {
  const at = (instant: string) => hubTime('America/Chicago', Date.parse(instant))
  expect(at('2025-06-05T04:59:00Z')).toEqual({ day: '2025-06-04', weekday: 3, minute: 23 * 60 + 59 })
  expect(at('2025-06-05T05:00:00Z')).toEqual({ day: '2025-06-05', weekday: 4, minute: 0 })
  expect(at('2025-03-09T07:59:00Z')).toEqual({ day: '2025-03-09', weekday: 7, minute: 119 })
  expect(at('2025-03-09T08:00:00Z')).toEqual({ day: '2025-03-09', weekday: 7, minute: 180 })
  expect(hubTime('nowhere', Date.parse('2025-12-31T23:30:00Z'))).toEqual({
    day: '2025-12-31',
    weekday: 3,
    minute: 23 * 60 + 30,
  })
})

test.each<[ConstraintType, string[], string[]]>([
  ['SALEAMT', ['0', '500', '10000000'], ['', '-1', '1.5', '1e3', '10000001', 'abc', ' 5']],
  ['MAXDISCOUNT', ['1'], ['0', '']],
  ['MAXUSES', ['1', '1000'], ['0', 'x']],
  ['MAXUSES_USER', ['1'], ['0']],
  ['MAXUSES_DEVICE', ['1'], ['0']],
  ['FIRSTORDER', ['0', '1'], ['2', 'true', '']],
  ['STACKABLE', ['0', '1'], ['yes']],
  ['WEEKDAYS', ['1', '1,2,5', '7,6,5,4,3,2,1'], ['', '0', '8', '1,1', '1,', '1 2', '1,2,3,4,5,6,7,1']],
  [
    'TIMEWINDOW',
    ['09:00-17:30', '22:00-02:00'],
    ['', '9:00-17:00', '24:00-01:00', '09:00', '09:00-09:00', '09:00-17:60', '09:00-10:00-11:00'],
  ],
])('the constraint %s accepts %j and refuses values like %j', (type, good, bad) => {
  for (const value of good) expect([value, constraintProblem({ type, value })]).toEqual([value, undefined])
  for (const value of bad)
    expect([value, constraintProblem({ type, value })]).toEqual([value, expect.stringContaining(type)])
})
