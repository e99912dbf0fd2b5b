import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../../cloud/platform/calendar/days.ts'
import {
  instantOf,
  localDay,
  startOfDay,
  timeOfDay,
  isZone,
} from '../../../../cloud/platform/calendar/zone.ts'

const HOUR = 3_600_000
/** Zones that change their clocks by an hour, by half an hour, at midnight, never, or that skipped a day. */
const zones = [
  'UTC',
  'America/New_York',
  'America/Chicago',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'Pacific/Kiritimati',
  'Africa/Cairo',
  'America/Havana',
  'America/Santiago',
  'Asia/Beirut',
  'Europe/London',
]
const zone = fc.constantFrom(...zones)
/** 2012 to 2040: after Apia's skipped day. */
const instant = fc.integer({
  min: Date.parse('2012-01-01T00:00:00Z'),
  max: Date.parse('2040-01-01T00:00:00Z'),
})
const at = (text: string) => Date.parse(text)

describe('a local day', () => {
  test.each([
    ['America/New_York', '2025-03-09T04:59:59.999Z', '2025-03-08'],
    ['America/New_York', '2025-03-09T05:00:00Z', '2025-03-09'],
    ['America/New_York', '2025-03-10T03:59:59Z', '2025-03-09'],
    ['America/New_York', '2025-03-10T04:00:00Z', '2025-03-10'],
    ['America/New_York', '2026-01-01T04:59:59Z', '2025-12-31'],
    ['America/New_York', '2026-01-01T05:00:00Z', '2026-01-01'],
    ['Asia/Kathmandu', '2025-12-31T18:14:59Z', '2025-12-31'],
    ['Asia/Kathmandu', '2025-12-31T18:15:00Z', '2026-01-01'],
    ['Australia/Lord_Howe', '2025-04-05T12:59:59Z', '2025-04-05'],
    ['Australia/Lord_Howe', '2025-04-05T13:00:00Z', '2025-04-06'],
    ['Australia/Lord_Howe', '2025-04-06T13:29:59Z', '2025-04-06'],
    ['Australia/Lord_Howe', '2025-04-06T13:30:00Z', '2025-04-07'],
    ['Pacific/Apia', '2011-12-30T09:59:59Z', '2011-12-29'],
    ['Pacific/Apia', '2011-12-30T10:00:00Z', '2011-12-31'],
    ['Pacific/Kiritimati', '2025-12-31T10:00:00Z', '2026-01-01'],
  ])('the local day in %s at %s is %s', (name, text, day) => {
    expect(localDay(name, at(text))).toBe(day)
  })

  test('the local day is the date that clocks in the zone show', () => {
    fc.assert(
      fc.property(zone, instant, (name, now) => {
        expect(localDay(name, now)).toBe(
          new Date(now).toLocaleString('sv-SE', { timeZone: name }).slice(0, 10),
        )
      }),
      { numRuns: 500 },
    )
  })

  test('the local day in an unknown zone is that of UTC', () => {
    expect([isZone('America/New_York'), isZone('Mars/Olympus')]).toEqual([true, false])
    expect(localDay('Mars/Olympus', at('2025-12-31T23:59:59Z'))).toBe('2025-12-31')
  })
})

describe('the start of a day', () => {
  test('the start of a day is its first instant, and days follow each other without a gap', () => {
    fc.assert(
      fc.property(zone, instant, (name, now) => {
        const day = localDay(name, now)
        const start = startOfDay(name, day)
        expect(localDay(name, start)).toBe(day)
        expect(localDay(name, start - 1)).toBe(addDays(day, -1))
        expect(start).toBeLessThanOrEqual(now)
        expect(startOfDay(name, addDays(day, 1))).toBeGreaterThan(now)
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['America/New_York', '2025-03-09', 23],
    ['America/New_York', '2025-11-02', 25],
    ['Australia/Lord_Howe', '2025-10-05', 23.5],
    ['Australia/Lord_Howe', '2025-04-06', 24.5],
    // Clocks jump over midnight: the day starts at one o'clock.
    ['Asia/Beirut', '2025-03-30', 23],
    ['Asia/Kathmandu', '2025-03-30', 24],
  ])('the day in %s on %s has %d hours', (name, day, hours) => {
    expect(startOfDay(name, addDays(day, 1)) - startOfDay(name, day)).toBe(hours * HOUR)
  })

  test('the start of a day that a zone skipped is the start of the next day', () => {
    expect(startOfDay('Pacific/Apia', '2011-12-30')).toBe(at('2011-12-30T10:00:00Z'))
    expect(startOfDay('Pacific/Apia', '2011-12-31')).toBe(at('2011-12-30T10:00:00Z'))
  })
})

describe('the instant of a time of day', () => {
  test.each([
    ['America/New_York', '2025-11-06', 15.5, '2025-11-06T20:30:00Z'],
    ['America/New_York', '2025-06-01', 15.5, '2025-06-01T19:30:00Z'],
    // The days when clocks change, with times before and after the change.
    ['America/New_York', '2025-03-09', 1.5, '2025-03-09T06:30:00Z'],
    ['America/New_York', '2025-03-09', 15.5, '2025-03-09T19:30:00Z'],
    ['America/New_York', '2025-11-02', 15.5, '2025-11-02T20:30:00Z'],
    // A skipped time is the instant of the jump.
    ['America/New_York', '2025-03-09', 2.5, '2025-03-09T07:00:00Z'],
    ['Asia/Beirut', '2025-03-30', 0.5, '2025-03-29T22:00:00Z'],
    ['Australia/Lord_Howe', '2025-10-05', 2.25, '2025-10-04T15:30:00Z'],
    // A repeated time is its first occurrence.
    ['America/New_York', '2025-11-02', 1.5, '2025-11-02T05:30:00Z'],
    ['America/Havana', '2025-11-02', 0.5, '2025-11-02T04:30:00Z'],
    // A day that the zone skipped.
    ['Pacific/Apia', '2011-12-30', 12, '2011-12-30T10:00:00Z'],
    ['Asia/Kathmandu', '2025-12-31', 24, '2025-12-31T18:15:00Z'],
  ])('the instant in %s on %s at %d h is %s', (name, day, hours, text) => {
    expect(new Date(instantOf(name, day, hours * HOUR))).toEqual(new Date(text))
  })

  test('the instant of a time of day is the first one at which the zone’s clock shows it', () => {
    fc.assert(
      fc.property(zone, instant, (name, now) => {
        const day = localDay(name, now)
        const time = timeOfDay(name, now)
        const first = instantOf(name, day, time)
        expect(first).toBeLessThanOrEqual(now)
        expect([localDay(name, first), timeOfDay(name, first)]).toEqual([day, time])
        expect(new Date(now).toLocaleString('sv-SE', { timeZone: name }).slice(11)).toBe(
          new Date(time).toISOString().slice(11, 19),
        )
      }),
      { numRuns: 500 },
    )
  })
})
