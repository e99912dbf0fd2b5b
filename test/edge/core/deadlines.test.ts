import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

const MINUTE = 60_000

test('an order that arrives too late is timed out, and moves nothing', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 }, { start_by: bench.core.cloudNow() - 1 })
  bench.run(1000)
  expect(bench.entries('order.timed_out')).toMatchObject([
    { order_id: uuid(1), bins: [], lines: [{ dropped: 0, doubtful: 0 }] },
  ])
  expect(bench.motions()).toEqual([])
})

test('an order that cannot start until start_by is timed out then', () => {
  const bench = TestHub.ready()
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

test('an order without a drop at its deadline is timed out, and its bin is free again', () => {
  const bench = TestHub.ready()
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

test('an unfinished order is handed over with its dropped units: its customer opens the bin', () => {
  const bench = TestHub.ready()
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

test('a lift that cannot be raised does not keep an order past its deadline from READY', () => {
  const bench = TestHub.ready()
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

test('an operation in progress at the time-out of its order is unknown until its controller answers', () => {
  const bench = TestHub.ready()
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

test('an order that no customer collects ends, and its bin waits for a person', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.run(config.unclaimed_timeout_ms + 1000)
  expect(bench.phase(1)).toBe('unclaimed')
  expect(bench.entries('order.unclaimed')).toHaveLength(1)
  expect(bench.core.health().bins[0]).toMatchObject({ order_id: uuid(1) })
})

test('orders are served in sequence, and a blocked one lets none pass', () => {
  const bench = TestHub.ready()
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
  const bench = TestHub.ready()
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

test('a disabled bin serves no order, and the hub’s intake depends on no bin', () => {
  const bench = TestHub.ready()
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

test('without the internet an order is dispensed after a restart, by the last known time', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.clock.now() + 3_000_000 - bench.clock.monotonic(), { passing: false })
  const cloudNow = bench.core.cloudNow()
  bench.queue(1, { 4: 1 })
  bench.kill()
  // The board has no battery: its clock is wrong after the restart.
  bench.clock.shiftWall(-bench.clock.now())
  bench.run(60_000)
  bench.begin()
  expect(bench.core.cloudNow()).toBeGreaterThanOrEqual(cloudNow)
  expect(bench.core.cloudNow()).toBeLessThan(cloudNow + 60_000)
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
})

/** Queues an order that waits for its controller, and switches the hub off for half an hour. */
function offForHalfAnHour(bench: TestHub): void {
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.room.power('off', 'vending')
  bench.run(10_000)
  bench.queue(1, { 4: 1 })
  bench.kill()
  bench.run(30 * MINUTE)
}

test('after a restart only the cloud’s clock can end an order at its deadline', () => {
  const bench = TestHub.ready()
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

test('without the cloud the uptime of several lives counts towards a deadline', () => {
  const bench = TestHub.ready()
  offForHalfAnHour(bench)
  bench.begin()
  // Housekeeping stores the time every ten minutes.
  bench.run(7 * MINUTE)
  expect(bench.phase(1)).toBe('queued')
  bench.run(4 * MINUTE)
  expect(bench.phase(1)).toBe('timed_out')
})

test('a fast clock ends no order: an order that waits for its customer keeps waiting', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.run(MINUTE)
  bench.kill()
  bench.clock.shiftWall(3 * 60 * MINUTE)
  bench.begin()
  bench.run(30 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  // The cloud sends the right time.
  bench.core.setCloudClock(bench.clock.now() - 3 * 60 * MINUTE - 30 * MINUTE, { passing: false })
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  bench.run(20_000)
  expect(bench.phase(1)).toBe('completed')
})

test('a fast clock takes no unit from its order: a unit that drops after the restart is delivered', () => {
  const bench = TestHub.ready()
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

test('the hub follows a correction of the cloud’s clock in a session: no order is refused, and none ends early', () => {
  const bench = TestHub.ready()
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
  // The reverse case: the clock was slow.
  bench.core.setCloudClock(real + days, { passing: true })
  bench.run(5 * MINUTE)
  expect(bench.phase(1)).toBe('ready')
  bench.run(10 * MINUTE)
  expect(bench.phase(1)).toBe('unclaimed')
})

test('the time in a message is a lower bound, so that a delayed message sets no clock back', () => {
  const bench = TestHub.ready()
  const real = bench.clock.now() - bench.clock.monotonic()
  bench.core.setCloudClock(real, { passing: false })
  bench.core.setCloudClock(real - 30_000, { passing: true })
  expect(bench.core.cloudNow()).toBe(bench.clock.now())
  bench.core.setCloudClock(real + 1500, { passing: true })
  expect(bench.core.cloudNow()).toBe(bench.clock.now() + 1500)
})

test('a board with a clock far from the cloud’s raises an alarm until it is corrected', () => {
  const bench = TestHub.ready()
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

test('times from before the cloud’s first time are corrected: no deadline has passed, and counts keep their order', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.clock.now() - bench.clock.monotonic(), { passing: false })
  const reset = bench.clock.now()
  bench.queue(1, { 4: 1 }, { start_by: reset + 3_600_000 * 24 })
  bench.kill()
  // Without a battery and after six hours without power, the clock continues where it stopped.
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
  const startedAt = bench.clock.monotonic()
  bench.begin()
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  expect(bench.core.cloudNow()).toBeLessThan(reset + 10 * MINUTE)
  bench.core.setCloudClock(counted.counted_at, { passing: false })
  expect(bench.core.cloudNow()).toBe(counted.counted_at + bench.clock.monotonic() - startedAt)
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

test('a moving bin that contains nothing of a ready order does not delay the order', () => {
  const bench = TestHub.ready()
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
  // Two bins for five units, of which only one exists.
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
