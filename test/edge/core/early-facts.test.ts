import { expect, test } from 'vitest'
import { withTimes } from '../../../edge/journal/correct-times.ts'
import type { HubEntry, TelemetryEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { TestHub } from '../../world/hub.ts'

/** Facts that a hub dates by its own wrong clock, before the cloud's first time. */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const telemetry = (bench: TestHub): TelemetryEntry[] => {
  bench.outbox.flush()
  const { base, last } = bench.outbox.position('telemetry')
  return bench.outbox
    .read('telemetry', base + 1, last - base)
    .entries.map(({ body }) => JSON.parse(body) as TelemetryEntry)
}
const locals = (bench: TestHub): number[] =>
  bench.entries('local').map(({ at }: Extract<HubEntry, { kind: 'local' }>) => at)
function unlock(bench: TestHub): void {
  expect(bench.core.unlockDoor('main', 5000)).toEqual({ ok: true })
}

/**
 * The cloud sends the time to a life of the hub that started at `lifeBeganAt`, together with its monotonic clock.
 */
const welcome = (bench: TestHub, cloudTime: number, lifeBeganAt: number): void =>
  bench.core.setCloudClock(cloudTime - (bench.clock.monotonic() - lifeBeganAt), { passing: false })

test.each([
  ['1970', (now: number) => 20_000 - now],
  ['a year ahead', () => 365 * 24 * HOUR],
  ['an hour behind', () => -HOUR],
])('the reports of a new hub from before its first welcome are dated right (clock: %s)', (_, shift) => {
  const bench = new TestHub()
  const real = bench.clock.now()
  const startedAt = bench.clock.monotonic()
  const trueTime = (): number => real + bench.clock.monotonic() - startedAt
  bench.clock.shiftWall(shift(real))
  bench.begin()
  const first: [from: number, to: number] = [trueTime(), 0]
  bench.run(3 * MINUTE)
  unlock(bench)
  first[1] = trueTime()
  // An earlier life has the same problem: it never had a connection to the cloud.
  bench.kill()
  bench.run(MINUTE)
  bench.begin()
  const lifeBeganAt = bench.clock.monotonic()
  const second: [from: number, to: number] = [trueTime(), 0]
  bench.run(3 * MINUTE)
  unlock(bench)
  second[1] = trueTime()
  bench.run(10_000)
  welcome(bench, trueTime(), lifeBeganAt)
  bench.apply(bench.snapshot())
  bench.run(2000)

  const [early, late] = locals(bench)
  // The off-time of the board between its lives is unknown.
  expect(early).toBeGreaterThanOrEqual(first[0])
  expect(early).toBeLessThanOrEqual(second[0] + MINUTE)
  expect(late).toBeGreaterThan(second[0])
  expect(late).toBeLessThanOrEqual(second[1])
  expect(early).toBeLessThan(late!)
  const readings = telemetry(bench)
  expect(readings.length).toBeGreaterThan(2)
  for (const { at } of readings) {
    expect(at).toBeGreaterThanOrEqual(first[0])
    expect(at).toBeLessThanOrEqual(trueTime())
  }
  for (const entry of bench.ledger()) {
    expect(entry.at, entry.kind).toBeGreaterThanOrEqual(first[0])
    expect(entry.at, entry.kind).toBeLessThanOrEqual(trueTime())
  }
})

test('the reports of a known hub after a start without the cloud are dated right, in order', () => {
  const bench = TestHub.ready()
  const real = bench.clock.now()
  const startedAt = bench.clock.monotonic()
  const trueTime = (): number => real + bench.clock.monotonic() - startedAt
  // It started two seconds ago.
  welcome(bench, real, startedAt - 2000)
  unlock(bench)
  const before = locals(bench)
  bench.kill()
  bench.clock.shiftWall(20_000 - real)
  bench.run(30 * MINUTE)
  bench.begin()
  const [from, lifeBeganAt] = [trueTime(), bench.clock.monotonic()]
  unlock(bench)
  bench.fault('warm_fridge', 'fridge-1')
  bench.run(2 * MINUTE)
  unlock(bench)
  welcome(bench, trueTime(), lifeBeganAt)
  const [first, second, third] = locals(bench)
  expect([first]).toEqual(before)
  expect(second).toBeGreaterThanOrEqual(from)
  expect(third! - second!).toBe(2 * MINUTE)
  expect(third).toBeLessThanOrEqual(trueTime())
  for (const { at } of telemetry(bench).slice(-2)) expect(at).toBeGreaterThanOrEqual(from)
})

test('all times in an entry are corrected, and only they', () => {
  const entry = {
    kind: 'snapshot',
    at: 20,
    stock: [{ product_id: 20, quantity: 20 }],
    alarms: [{ code: 'a', since: 21 }],
    states: [{ of: 'bin', since: 22, state: 'free' }],
    text: 'at 20',
    ended_at: null,
  }
  expect(withTimes(entry, (at) => at + 100)).toEqual({
    ...entry,
    at: 120,
    alarms: [{ code: 'a', since: 121 }],
    states: [{ of: 'bin', since: 122, state: 'free' }],
  })
})
