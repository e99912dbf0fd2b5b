import { expect, test } from 'vitest'
import type { CommandBody } from '../../../protocol/model/hub-commands.ts'
import { uuid } from '../../support/uuid.ts'
import { Crash, TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

const cycle = { name: 'cycle_bin', bin: 1, cycles: 3 } as const
const actions = (bench: TestHub): string[] => bench.motions().map((act) => act.action)
const gpioActs = (bench: TestHub): string[] =>
  bench.room
    .actuations()
    .filter(({ action }) => action === 'lock' || action === 'unlock')
    .map(({ action, device }) => `${action} ${device}`)

test('a door is cycled as often as requested, and no order takes the bin between two motions', () => {
  const bench = TestHub.ready()
  const { results } = bench.command(cycle)
  bench.queue(1, { 4: 1 }, { bin: 1 })
  bench.runUntil(() => results.length > 0, 30_000)
  expect(results).toMatchObject([
    {
      outcome: 'executed',
      data: { cycles_completed: 3, door: 'closed', duration_ms: expect.any(Number) as number },
    },
  ])
  const doors = bench.motions().filter(({ device, action }) => device === 'bin-1' && action.endsWith('door'))
  expect(doors.map(({ action }) => action)).toEqual(
    Array.from({ length: 3 }, () => ['open_door', 'close_door']).flat(),
  )
  expect(bench.entries('command.finished')).toHaveLength(1)
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
})

test('after a crash at any point a cycle is not continued, but ends once with its completed motions', () => {
  for (let at = 0; at < 24; at++) {
    const bench = TestHub.ready()
    let passed = 0
    bench.onCheckpoint = (point) => {
      if (passed++ === at) throw new Crash(point)
    }
    bench.command({ ...cycle, cycles: 2 }, uuid(5))
    bench.run(7000)
    const crashed = !bench.alive
    const before = bench.motions().length
    if (crashed) bench.begin()
    bench.run(30_000)
    // A motion in progress may have ended after the crash; no new motion has started.
    if (crashed) expect(bench.motions().length, `crash ${at}`).toBeLessThanOrEqual(before + 1)
    const finished = bench.entries('command.finished')
    expect(finished.length, `crash ${at}`).toBeLessThanOrEqual(1)
    if (finished.length === 0) expect(actions(bench), `crash ${at}`).toEqual([])
    const closed = actions(bench).filter((action) => action === 'close_door').length
    if (finished[0]) expect(finished[0].data?.['cycles_completed'] ?? 0, `crash ${at}`).toBe(closed)
    bench.command({ ...cycle, cycles: 2 }, uuid(5))
    bench.run(10_000)
    if (finished.length === 1) expect(bench.entries('command.finished'), `crash ${at}`).toHaveLength(1)
    bench.kill()
  }
})

test('a cycle that loses its controller has failed, and reports its completed motions', () => {
  const bench = TestHub.ready()
  const { results } = bench.command({ ...cycle, cycles: 10 })
  bench.run(6000)
  bench.room.power('off', 'bins', 1000)
  bench.run(20_000)
  expect(results).toMatchObject([{ outcome: 'failed', data: { cycles_completed: 2 } }])
  const count = actions(bench).length
  bench.run(60_000)
  // Only the half-open door is completed.
  expect(
    actions(bench)
      .slice(count)
      .every((action) => action === 'close_door'),
  ).toBe(true)
})

const doors: { body: CommandBody; act: string; door: string; relockMs: number }[] = [
  { body: { name: 'open_main_door' }, act: 'unlock main', door: 'main', relockMs: 10_000 },
  {
    body: { name: 'open_fridge', fridge: 1, side: 'middle' },
    act: 'unlock fridge_1_middle',
    door: 'fridge_1_middle',
    relockMs: 30_000,
  },
]

test.each(doors)(
  'the command $act is journaled, then driven once, and locked again',
  ({ body, act, door, relockMs }) => {
    const bench = TestHub.ready()
    const { results } = bench.command(body, uuid(1))
    expect(results).toMatchObject([{ outcome: 'executed', reason: null, data: { door: 'unlocked' } }])
    bench.command(body, uuid(1))
    expect(gpioActs(bench)).toEqual([act])
    bench.run(relockMs - 1)
    expect(bench.room.gpio.get(`${door}_lock`)).toBe(1)
    bench.run(2)
    expect(gpioActs(bench)).toEqual([act, `lock ${door}`])
    expect(bench.entries('command.finished')).toMatchObject([{ outcome: 'executed' }])
  },
)

test.each(doors)(
  'after a crash at any point of $act the door is locked, and the command has one outcome',
  ({ body }) => {
    for (let at = 0; at < 8; at++) {
      const bench = TestHub.ready()
      let passed = 0
      bench.onCheckpoint = (point) => {
        if (passed++ === at) throw new Crash(point)
      }
      bench.command(body, uuid(1))
      const crashed = !bench.alive
      if (crashed) {
        bench.begin()
        bench.run(1000)
        expect(
          bench.room.state().doors.every(({ locked }) => locked),
          `crash ${at}`,
        ).toBe(true)
      }
      const before = gpioActs(bench).length
      bench.command(body, uuid(1))
      const finished = bench.entries('command.finished')
      expect(finished, `crash ${at}`).toHaveLength(1)
      // A command journaled before the crash is not executed after it.
      if (finished[0]?.outcome === 'unknown') expect(gpioActs(bench).length, `crash ${at}`).toBe(before)
      bench.kill()
    }
  },
)

test('an unknown fridge and a side without a lock are not found', () => {
  const bench = TestHub.ready()
  for (const body of [
    { name: 'open_fridge', fridge: 2, side: 'left' },
    { name: 'close_fridge', fridge: 2 },
    { name: 'reconnect_fridge', fridge: 2 },
    { name: 'reconnect_bin', bin: 4 },
    { name: 'cycle_bin', bin: 4, cycles: 1 },
  ] as const)
    expect(bench.command(body).results).toMatchObject([{ outcome: 'refused', reason: 'not_found' }])
  expect(bench.room.actuations()).toEqual([])
})

test('the main door is not unlocked while an order is at the hub', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  expect(bench.command({ name: 'open_main_door' }).results).toMatchObject([
    { outcome: 'refused', reason: 'interlock' },
  ])
  expect(gpioActs(bench)).toEqual([])
})

test('a reconnection closes the port and completes a handshake on a new one; running operations are looked up', () => {
  const bench = TestHub.ready()
  const sessions = () => bench.room.state().controllers.map(({ sessions: count }) => count)
  const before = sessions()
  const motion = bench.command({ name: 'raise_bin', bin: 2 })
  bench.run(500)
  const { results } = bench.command({ name: 'reconnect_bin', bin: 1 })
  bench.run(8000)
  expect(results).toMatchObject([{ outcome: 'executed', data: { connected: true } }])
  expect(sessions()).toEqual([before[0]! + 1, before[1], before[2]])
  expect(motion.results).toMatchObject([{ outcome: 'executed', data: { lift: 'up' } }])
  expect(actions(bench)).toEqual(['raise_lift'])
})

test('a reconnection does not wait for the pauses of earlier attempts', () => {
  const bench = TestHub.ready()
  bench.fault('silent_port', 'bins')
  bench.run(120_000)
  bench.room.faults.clearAll()
  const { results } = bench.command({ name: 'reconnect_bin', bin: 1 })
  bench.run(500)
  expect(results).toMatchObject([{ outcome: 'executed' }])
})

test('a reconnection to a silent controller fails after its time-out', () => {
  const bench = TestHub.ready()
  bench.fault('silent_port', 'bins')
  const { results } = bench.command({ name: 'reconnect_bin', bin: 1 })
  bench.run(7999)
  expect(results).toEqual([])
  bench.run(2)
  expect(results).toMatchObject([{ outcome: 'failed', reason: 'timeout', data: { connected: false } }])
})

test('a reconnection that a crash interrupted has one outcome', () => {
  const bench = TestHub.ready()
  bench.fault('silent_port', 'bins')
  bench.command({ name: 'reconnect_bin', bin: 1 }, uuid(3))
  bench.restart()
  bench.run(20_000)
  expect(bench.entries('command.finished')).toMatchObject([{ outcome: 'unknown', reason: 'interrupted' }])
  expect(bench.command({ name: 'reconnect_bin', bin: 1 }, uuid(3)).results).toMatchObject([
    { outcome: 'unknown' },
  ])
})

test('no product of a disabled fridge is dispensed, and other facings replace it if they can', () => {
  const bench = TestHub.ready()
  bench.apply({ kind: 'config', config: { ...config, disabled_fridges: [1] } })
  bench.queue(1, { 4: 1 })
  bench.run(5000)
  expect(bench.phase(1)).toBe('failed')
  expect(bench.dispenses()).toEqual([])
  bench.apply({ kind: 'config', config })
  bench.queue(2, { 4: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
})

test('counts in a snapshot are applied once and confirmed each time, for any store of the hub', () => {
  const bench = TestHub.ready()
  const count = {
    count_id: uuid(70),
    product_id: 4,
    location: null,
    quantity: 2,
    counted_at: bench.core.cloudNow(),
  }
  const nowhere = { ...count, count_id: uuid(71), product_id: 99 }
  for (let again = 0; again < 2; again++) bench.apply(bench.snapshot({ counts: [nowhere, count] }))
  expect(bench.stock()['2-1-2']).toBe(2)
  expect(bench.entries('stock.counted')).toMatchObject([
    { count_id: uuid(70), delta: -4, quantity: 2 },
    { count_id: uuid(70), delta: 0, quantity: 2 },
  ])
  bench.restartOn()
  bench.apply(bench.snapshot({ counts: [count] }))
  bench.run(5000)
  expect(bench.stock()['2-1-2']).toBe(2)
  expect(bench.entries('stock.counted')).toMatchObject([{ count_id: uuid(70) }])
})

test('an event that a wrong clock dated into the future counts as before a later count', () => {
  const bench = TestHub.ready()
  const real = bench.core.cloudNow()
  // The wall clock is years ahead, and this life has no time from the cloud.
  bench.kill()
  bench.journal
    .prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('clock', ?)")
    .run(JSON.stringify({ cloud: real + 10 ** 12, wall: bench.clock.now() }))
  bench.begin()
  bench.run(2000)
  bench.queue(1, { 4: 2 }, { start_by: real + 2 * 10 ** 12 })
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  bench.fault('empty_turn', 'cabinet-2')
  bench.queue(2, { 5: 1 }, { start_by: real + 2 * 10 ** 12 })
  bench.run(60_000)
  expect(bench.entries('operation.unknown')).toHaveLength(1)
  expect(bench.core.cloudNow()).toBeGreaterThan(real + 10 ** 12)
  bench.core.setCloudClock(real + 200_000, { passing: false })
  const counted_at = bench.core.cloudNow()
  bench.apply(
    {
      kind: 'stock.count',
      count: { count_id: uuid(80), product_id: 4, location: null, quantity: 9, counted_at },
    },
    {
      kind: 'stock.count',
      count: { count_id: uuid(81), product_id: 5, location: null, quantity: 2, counted_at },
    },
  )
  expect(bench.stock()).toMatchObject({ '2-1-2': 9, '2-2-1': 2 })
  expect(bench.entries('operation.settled')).toMatchObject([{ by: 'count', happened: false }])
})

test('a lock is not driven if the same turn has started to dispense behind it, or has accepted an order', () => {
  const bench = TestHub.ready()
  const results: unknown[] = []
  const at = (number: number) => ({
    command_id: uuid(number),
    session: 'a'.repeat(32),
    expires_monotonic: Infinity,
  })
  bench.store.transact(() => {
    bench.apply({ kind: 'order.queued', order: bench.order(1, { 3: 1 }) })
    bench.core.execute({ ...at(90), body: { name: 'open_fridge', fridge: 1, side: 'left' } }, (result) =>
      results.push(result),
    )
    bench.core.execute({ ...at(91), body: { name: 'open_main_door' } }, (result) => results.push(result))
  })
  expect(results).toMatchObject([
    { command_id: uuid(90), outcome: 'refused', reason: 'interlock' },
    { command_id: uuid(91), outcome: 'refused', reason: 'interlock' },
  ])
  expect(gpioActs(bench)).toEqual([])
  expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
})

test('a test of a row drops a unit into a free bin, and a fallen unit ends the block of the row', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 2, shelf: 1, row: 2 }
  const jam = bench.fault('jam_without_motion', 'cabinet-2')
  const failed = bench.command({ name: 'test_dispense', location })
  bench.run(20_000)
  expect(failed.results).toMatchObject([{ outcome: 'failed', reason: 'fault', data: { fault: 'jam' } }])
  expect(
    bench.core.stock().find((row) => row.location.cabinet === 2 && row.location.row === 2)?.blocked,
  ).toBe('jam')
  bench.room.faults.clear(jam)
  const tested = bench.command({ name: 'test_dispense', location })
  bench.run(20_000)
  expect(tested.results).toMatchObject([{ outcome: 'executed', data: { drops: 1, bin: 1 } }])
  expect(
    bench.core.stock().find((row) => row.location.cabinet === 2 && row.location.row === 2)?.blocked,
  ).toBe(null)
  expect(bench.command({ name: 'test_dispense', location, bin: 1 }).results).toMatchObject([
    { outcome: 'refused', reason: 'interlock' },
  ])
  expect(
    bench.command({ name: 'test_dispense', location: { ...location, shelf: 20 } }).results,
  ).toMatchObject([{ outcome: 'refused', reason: 'not_found' }])
})

test('a row that a person blocks sells nothing until a person unblocks it, also after a drop', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 2, shelf: 1, row: 2 }
  const blocked = () =>
    bench.core.stock().find((row) => row.location.cabinet === 2 && row.location.row === 2)?.blocked
  expect(bench.command({ name: 'block_row', location }).results).toMatchObject([
    { outcome: 'executed', data: { blocked: true } },
  ])
  expect(blocked()).toBe('blocked_by_person')
  bench.command({ name: 'test_dispense', location })
  bench.run(20_000)
  expect(blocked()).toBe('blocked_by_person')
  expect(bench.command({ name: 'unblock_row', location }).results).toMatchObject([
    { outcome: 'executed', data: { blocked: false } },
  ])
  expect(blocked()).toBe(null)
  for (const name of ['block_row', 'unblock_row'] as const)
    expect(bench.command({ name, location: { ...location, shelf: 20 } }).results).toMatchObject([
      { outcome: 'refused', reason: 'not_found' },
    ])
})
