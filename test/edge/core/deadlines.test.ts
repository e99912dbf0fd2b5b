import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { config, HubBench } from './hub-bench.ts'

const MINUTE = 60_000

test('an order that came too late to begin is timed out and moves nothing', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 1 }, { start_by: bench.core.cloudNow() - 1 })
  bench.run(1000)
  expect(bench.entries('order.timed_out')).toMatchObject([
    { order_id: uuid(1), bins: [], lines: [{ dropped: 0, doubtful: 0 }] },
  ])
  expect(bench.motions()).toEqual([])
})

test('an order that cannot begin until start_by is timed out then', () => {
  const bench = HubBench.ready()
  bench.room.power('off', 'vending')
  bench.run(10_000)
  bench.queue(1, { 4: 1 })
  bench.run(9 * MINUTE)
  expect(bench.phase(1)).toBe('queued')
  bench.run(2 * MINUTE)
  expect(bench.phase(1)).toBe('timed_out')
  bench.room.power('on', 'vending')
  bench.run(MINUTE)
  expect(bench.dispenses()).toEqual([])
})

test('an order of which nothing has dropped by its deadline is timed out, and its bin is free again', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 2 })
  bench.runUntil(() => bench.phase(1) === 'preparing')
  bench.room.power('off', 'vending')
  bench.run(12 * MINUTE)
  expect(bench.entries('order.timed_out')).toMatchObject([{ order_id: uuid(1), lines: [{ dropped: 0 }] }])
  expect(bench.entries('order.ready')).toEqual([])
  bench.room.power('on', 'vending')
  bench.run(MINUTE)
  expect(bench.dispenses().length).toBeLessThanOrEqual(1)
})

test('an order that cannot be finished is handed over with what dropped: its customer opens the bin', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 3 })
  bench.runUntil(() => bench.entries('stock.dropped').length === 1)
  bench.room.power('off', 'vending')
  bench.run(12 * MINUTE)
  expect(bench.entries('order.timed_out')).toEqual([])
  expect(bench.entries('order.ready')).toMatchObject([
    { order_id: uuid(1), bins: [1], lines: [{ dropped: 1 }] },
  ])
  expect(bench.core.health().bins[0]).toMatchObject({
    order_id: uuid(1),
    occupied: true,
    lift: 'up',
    door: 'closed',
  })
  bench.room.power('on', 'vending')
  bench.run(MINUTE)
  expect(bench.dispenses().length).toBeLessThanOrEqual(2)
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.run(20_000)
  expect(bench.phase(1)).toBe('completed')
  expect(bench.core.health().bins[0]).toMatchObject({ order_id: null, door: 'closed', lift: 'down' })
})

test('past the deadline a lift that nobody can raise keeps no order: it is ready all the same', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 3 })
  bench.runUntil(() => bench.entries('stock.dropped').length === 1)
  bench.room.power('off')
  bench.run(13 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  bench.room.power('on')
  bench.run(MINUTE)
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.run(20_000)
  expect(bench.phase(1)).toBe('completed')
})

test('an operation that was under way when its order was given up is unknown until its controller speaks', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 2 })
  bench.runUntil(() => bench.entries('stock.dropped').length === 1)
  bench.run(300)
  bench.fault('silent_port', 'vending', { for_ms: 15 * MINUTE })
  bench.run(12 * MINUTE)
  expect(bench.entries('order.ready')[0]?.lines[0]).toMatchObject({ dropped: 1, doubtful: 1 })
  expect(bench.entries('operation.unknown')).toHaveLength(1)
  bench.run(10 * MINUTE)
  expect(bench.entries('operation.settled')).toMatchObject([{ by: 'sensor', happened: true }])
  expect(bench.entries('stock.dropped').at(-1)).toMatchObject({ delivered: 0 })
  expect(bench.stockErrors()).toEqual([])
})

test('an order that nobody claims ends, and its bin waits for a person', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.run(config.unclaimed_timeout_ms + 1000)
  expect(bench.phase(1)).toBe('unclaimed')
  expect(bench.entries('order.unclaimed')).toHaveLength(1)
  expect(bench.core.health().bins[0]).toMatchObject({ order_id: uuid(1) })
})

test('orders are served as they came; one that does not fit lets nobody past', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 6: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.queue(2, { 6: 6 })
  bench.queue(3, { 3: 1 })
  bench.run(20_000)
  expect([bench.phase(2), bench.phase(3)]).toEqual(['queued', 'queued'])
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.runUntil(() => bench.phase(2) === 'ready')
  expect(bench.entries('order.ready').at(-1)?.bins).toEqual([1, 2])
})

test('a reserved bin is kept for its order', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 1 }, { bin: 2, open_when_ready: true })
  bench.queue(2, { 3: 1 })
  bench.runUntil(() => bench.phase(1) === 'collecting' && bench.phase(2) === 'ready')
  expect(bench.entries('order.ready').map((entry) => [entry.order_id, entry.bins])).toEqual(
    expect.arrayContaining([
      [uuid(1), [2]],
      [uuid(2), [1]],
    ]),
  )
})

test('a disabled bin serves nobody; whether the hub takes orders depends on no bin', () => {
  const bench = HubBench.ready()
  let changes = 0
  bench.core.onHealthChange(() => changes++)
  bench.apply({ kind: 'config', config: { ...config, disabled_bins: [1] } })
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  expect(bench.entries('order.ready')[0]?.bins).toEqual([2])
  expect(bench.core.health()).toMatchObject({ accepting_orders: true, bins: [{ status: 'maintenance' }, {}] })
  bench.apply({ kind: 'config', config: { ...config, disabled_bins: [1, 2] } })
  expect(bench.core.health().accepting_orders).toBe(true)
  bench.apply({ kind: 'config', config: { ...config, accepting_orders: false } })
  expect(bench.core.health().accepting_orders).toBe(false)
  expect(changes).toBeGreaterThan(1)
})

test('with the internet unplugged an order is dispensed after a restart, by the last known time', () => {
  const bench = HubBench.ready()
  bench.core.setCloudClock(bench.clock.now() + 3_000_000 - bench.clock.monotonic(), { passing: false })
  const cloudNow = bench.core.cloudNow()
  bench.queue(1, { 4: 1 })
  bench.kill()
  // The board has no battery: its clock comes back wrong.
  bench.clock.shiftWall(-bench.clock.now())
  bench.run(60_000)
  bench.begin()
  expect(bench.core.cloudNow()).toBeGreaterThanOrEqual(cloudNow)
  expect(bench.core.cloudNow()).toBeLessThan(cloudNow + 60_000)
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
})

/** Queues an order that waits for its controller, and lets the hub be off for half an hour. */
function offForHalfAnHour(bench: HubBench): void {
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.room.power('off', 'vending')
  bench.run(10_000)
  bench.queue(1, { 4: 1 })
  bench.kill()
  bench.run(30 * MINUTE)
}

test('after a restart no clock but the cloud’s says that a deadline has passed', () => {
  const bench = HubBench.ready()
  offForHalfAnHour(bench)
  bench.begin()
  bench.run(5000)
  expect(bench.phase(1)).toBe('queued')
  bench.core.setCloudClock(bench.clock.now() - 5000, { passing: false })
  expect(bench.phase(1)).toBe('timed_out')
  bench.room.power('on', 'vending')
  bench.run(MINUTE)
  expect(bench.dispenses()).toEqual([])
})

test('without the cloud the time of several lives counts towards a deadline, as long as they lasted', () => {
  const bench = HubBench.ready()
  offForHalfAnHour(bench)
  bench.begin()
  // Housekeeping writes the time down every ten minutes.
  bench.run(7 * MINUTE)
  expect(bench.phase(1)).toBe('queued')
  bench.run(4 * MINUTE)
  expect(bench.phase(1)).toBe('timed_out')
})

test('a clock that is ahead ends nothing: an order that waits for its customer waits on', () => {
  const bench = HubBench.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.run(MINUTE)
  bench.kill()
  bench.clock.shiftWall(3 * 60 * MINUTE)
  bench.begin()
  bench.run(30 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  // The cloud tells the right time.
  bench.core.setCloudClock(bench.clock.now() - 3 * 60 * MINUTE - 30 * MINUTE, { passing: false })
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.run(20_000)
  expect(bench.phase(1)).toBe('completed')
})

test('a clock that is ahead takes no unit from its order: one that falls after the restart is delivered', () => {
  const bench = HubBench.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'preparing')
  bench.run(2000)
  bench.kill()
  bench.clock.shiftWall(3 * 60 * MINUTE)
  bench.begin()
  expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
  expect(bench.dispenses()).toHaveLength(1)
})

test('a cloud whose clock is put right during a session is followed: no order is refused, none ends early', () => {
  const bench = HubBench.ready()
  const real = bench.clock.now() - bench.clock.monotonic()
  const days = 2 * 24 * 60 * MINUTE
  bench.core.setCloudClock(real + days, { passing: false })
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.core.setCloudClock(real, { passing: true })
  expect(bench.core.cloudNow()).toBe(bench.clock.now())
  bench.queue(2, { 3: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready')).toBe(true)
  bench.run(50 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  // The other way round: it was behind.
  bench.core.setCloudClock(real + days, { passing: true })
  bench.run(5 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  bench.run(10 * MINUTE)
  expect(bench.phase(1)).toBe('unclaimed')
})

test('what a message says of the time is a lower bound: one that was under way for long sets no clock back', () => {
  const bench = HubBench.ready()
  const real = bench.clock.now() - bench.clock.monotonic()
  bench.core.setCloudClock(real, { passing: false })
  bench.core.setCloudClock(real - 30_000, { passing: true })
  expect(bench.core.cloudNow()).toBe(bench.clock.now())
  bench.core.setCloudClock(real + 1500, { passing: true })
  expect(bench.core.cloudNow()).toBe(bench.clock.now() + 1500)
})

test('a board whose clock is far from the cloud’s raises an alarm, until it is right', () => {
  const bench = HubBench.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.run(2 * MINUTE)
  expect(bench.entries('alarm')).toEqual([])
  bench.clock.shiftWall(3 * 60 * MINUTE)
  bench.run(2 * MINUTE)
  bench.clock.shiftWall(-3 * 60 * MINUTE)
  bench.run(2 * MINUTE)
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'clock_wrong', raised: true, detail: "the hub's clock is 180 min ahead of the cloud's" },
    { code: 'clock_wrong', raised: false },
  ])
})

test('what was dated before the cloud told the time is put right: no deadline has passed, and counts are after or before', () => {
  const bench = HubBench.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  const reset = bench.clock.now()
  bench.queue(1, { 4: 1 }, { start_by: reset + 3_600_000 * 24 })
  bench.kill()
  // Without a battery, and without power for six hours: the clock goes on where it stood.
  const outage = 6 * 60 * MINUTE
  bench.run(outage)
  const counted = {
    count_id: uuid(90),
    product_id: 4,
    location: null,
    quantity: 5,
    counted_at: bench.clock.now(),
  }
  bench.clock.shiftWall(-outage)
  const begunAt = bench.clock.monotonic()
  bench.begin()
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  expect(bench.core.cloudNow()).toBeLessThan(reset + 10 * MINUTE)
  bench.core.setCloudClock(counted.counted_at, { passing: false })
  expect(bench.core.cloudNow()).toBe(counted.counted_at + bench.clock.monotonic() - begunAt)
  bench.run(5 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  bench.apply({ kind: 'stock.count', count: counted })
  expect(bench.stock()['2-1-2']).toBe(4)
  bench.core.setCloudClock(counted.counted_at + 30 * MINUTE, { passing: false })
  bench.run(50 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  bench.run(10 * MINUTE)
  expect(bench.phase(1)).toBe('unclaimed')
})

test('a bin that still moves when its order is ready, and holds nothing of it, does not keep the order', () => {
  const bench = HubBench.ready()
  bench.command({ name: 'raise_bin', bin: 2 })
  bench.run(10_000)
  bench.fault('slow_motion', 'bin-2')
  const count = {
    count_id: uuid(91),
    product_id: 4,
    location: null,
    quantity: 1,
    counted_at: bench.core.cloudNow(),
  }
  bench.apply({ kind: 'stock.count', count })
  // Two bins for five units, of which there is one.
  bench.queue(1, { 4: 5 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready', MINUTE)).toBe(true)
  expect(bench.entries('order.ready')[0]?.bins).toEqual([1])
  expect(bench.core.health().bins[1]?.lift).toBe('moving')
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.run(30_000)
  expect(bench.phase(1)).toBe('completed')
  expect(bench.core.health().bins[1]).toMatchObject({ order_id: null, lift: 'down' })
})
