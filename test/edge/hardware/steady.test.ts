import { expect, test } from 'vitest'
import { Steady } from '../../../edge/hardware/steady.ts'

const rules = { sensorHoldMs: 2000, sensorUnsettledMs: 5000, maxSensorHoldMs: 60_000 }

/** The changes reported over time, with their instants, for a sensor with `values`, read every `everyMs`. */
function reported(values: readonly boolean[], everyMs: number, quietMs = 120_000): [number, unknown][] {
  const steady = new Steady<boolean>(rules)
  const changes: [number, unknown][] = []
  for (let now = 0; now <= values.length * everyMs + quietMs; now += 10) {
    if (now % everyMs === 0 && now / everyMs < values.length) steady.note(values[now / everyMs]!, now)
    const value = steady.value(now)
    if (value !== changes.at(-1)?.[1]) changes.push([now, value])
  }
  return changes
}
const flips = (count: number): boolean[] => Array.from({ length: count }, (_, index) => index % 2 === 1)

test('the first value of a sensor counts at once', () => {
  expect(reported([true], 1000)).toEqual([[0, true]])
})

test('a change of a sensor counts when it has lasted, and a flicker never counts', () => {
  expect(reported([false, true], 1000)).toEqual([
    [0, false],
    [3000, true],
  ])
  expect(reported([false, true, false], 1000)).toEqual([[0, false]])
})

test('a sensor change by a motion counts at once', () => {
  const steady = new Steady<string>(rules)
  steady.note('closed', 0)
  steady.note('open', 10_000, true)
  expect(steady.value(10_000)).toBe('open')
})

test.each([30, 250, 1000, 1900])(
  '40 sensor changes every %i ms are reported once as unsettled',
  (everyMs) => {
    const changes = reported(flips(Math.max(41, 10_000 / everyMs)), everyMs)
    expect(changes.filter(([, value]) => value === 'unsettled')).toHaveLength(1)
    expect(changes.length).toBeLessThanOrEqual(3)
  },
)

test.each([2500, 4000, 6000])(
  'a sensor that changes every %i ms must be stable for longer each time',
  (everyMs) => {
    expect(reported(flips(400), everyMs).length).toBeLessThan(24)
  },
)

test('`waitMs` is the next instant when time alone changes the value', () => {
  const steady = new Steady<boolean>(rules)
  steady.note(false, 0)
  expect(steady.waitMs(0)).toBeUndefined()
  steady.note(true, 1000)
  expect(steady.waitMs(1500)).toBe(1500)
  for (let now = 2000; now <= 5000; now += 500) steady.disturb(now)
  expect(steady.waitMs(5000)).toBe(1000)
  expect([steady.value(5999), steady.value(6000), steady.value(7000)]).toEqual([false, 'unsettled', true])
})
