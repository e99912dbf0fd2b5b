import { describe, expect, test } from 'vitest'
import { faultKinds, faultTypes, type FaultType } from '../../../simulator/faults/fault-types.ts'
import { openRoom, type Bench } from '../../world/room.ts'
import { operation, TestHost } from '../../world/room-host.ts'

const row = (bench: Bench): number => bench.hub.state().rows[0]!.units
const bin = (bench: Bench) => bench.hub.state().bins[0]!
const raise = (bench: Bench, type: FaultType, target?: string, extra = {}): void =>
  void bench.hub.faults.raise({ type, target, ...extra })

/** A host with a session at the controller of the fridge. */
function fridgeHost({ hub, clock }: Bench): TestHost {
  const host = new TestHost(hub, 'back', clock)
  clock.advance(1)
  host.hello()
  clock.advance(100)
  return host
}

/** Checks the visible effect of each fault. */
const effects: Record<FaultType, (bench: Bench) => void> = {
  jam(bench) {
    raise(bench, 'jam', 'bin-1')
    expect(bench.perform(1, 'bin-1', 'raise_lift')).toMatchObject({
      state: 'failed',
      why: 'jam',
      moved: true,
    })
    expect(bin(bench).lift).toBe('between')
    raise(bench, 'jam', 'cabinet-1')
    expect(bench.dispense(2, { bin: 2 })).toMatchObject({
      state: 'failed',
      why: 'jam',
      moved: true,
      drops: 0,
    })
    expect(row(bench)).toBe(5)
    expect(bench.actsOf(2)).toHaveLength(1)
  },
  jam_without_motion(bench) {
    raise(bench, 'jam_without_motion', 'cabinet-1')
    expect(bench.dispense(1)).toMatchObject({ state: 'failed', why: 'jam', moved: false, drops: 0 })
    expect(bench.actsOf(1)).toEqual([])
  },
  missed_drop(bench) {
    raise(bench, 'missed_drop')
    expect(bench.dispense(1)).toMatchObject({ state: 'failed', why: 'no_drop', moved: true, drops: 0 })
    expect([row(bench), bin(bench).units]).toEqual([4, 1])
  },
  empty_turn(bench) {
    raise(bench, 'empty_turn')
    expect(bench.dispense(1)).toMatchObject({ state: 'failed', why: 'no_drop', moved: true, drops: 0 })
    expect([row(bench), bin(bench).units]).toEqual([5, 0])
    expect(bench.actsOf(1)).toHaveLength(1)
  },
  late_drop(bench) {
    raise(bench, 'late_drop')
    expect(bench.dispense(1, {}, 3000)).toMatchObject({ state: 'failed', why: 'no_drop', drops: 0 })
    bench.clock.advance(20_000)
    expect(bench.host.of('EVT').find(({ drop }) => drop !== undefined)).toMatchObject({
      dev: 'cabinet-1',
      drop: 1,
      op: operation(1),
    })
    expect([row(bench), bin(bench).units]).toEqual([4, 1])
    expect(bench.ask(1)).toMatchObject({ state: 'failed', drops: 1 })
  },
  double_drop(bench) {
    raise(bench, 'double_drop')
    expect(bench.dispense(1)).toMatchObject({ state: 'done', drops: 2 })
    expect([row(bench), bin(bench).units]).toEqual([3, 2])
    expect(bench.actsOf(1)).toHaveLength(1)
  },
  slow_motion(bench) {
    raise(bench, 'slow_motion')
    expect(bench.perform(1, 'bin-1', 'raise_lift')).toMatchObject({ state: 'done', ms: 10_000 })
    expect(bench.perform(2, 'bin-1', 'lower_lift', { max: 5000 })).toMatchObject({ why: 'timeout', ms: 5000 })
  },
  obstructed_door(bench) {
    bench.perform(1, 'bin-1', 'open_door')
    raise(bench, 'obstructed_door')
    expect(bench.perform(2, 'bin-1', 'close_door')).toMatchObject({ why: 'obstructed', moved: true })
    expect(bin(bench).door).toBe('open')
  },
  sensor_bounce(bench) {
    raise(bench, 'sensor_bounce')
    bench.perform(1, 'bin-1', 'open_door')
    const doors = bench.host.of('EVT').map(({ door }) => door)
    expect(doors.filter((door) => door === 'unknown').length).toBeGreaterThan(1)
    expect(doors.at(-1)).toBe('open')
    const levels: number[] = []
    bench.hub.gpio.drive('main_lock', 1)
    bench.hub.gpio.onChange((name, level) => void (name === 'main_door' && levels.push(level)))
    bench.hub.act({ action: 'open_door', target: 'main' })
    bench.clock.advance(1000)
    expect(levels.length).toBeGreaterThan(2)
    expect(levels.at(-1)).toBe(1)
  },
  sensor_fault(bench) {
    raise(bench, 'sensor_fault', 'bin-1')
    expect(bench.perform(1, 'bin-1', 'open_door')).toMatchObject({ why: 'sensor_fault', moved: true })
    expect(bench.host.last('EVT')).toMatchObject({ door: 'unknown', lift: 'unknown' })
  },
  weak_supply(bench) {
    raise(bench, 'weak_supply', 'front')
    expect(bench.perform(1, 'bin-1', 'open_door')).toMatchObject({
      state: 'failed',
      why: 'power',
      moved: false,
    })
    expect(bench.hub.actuations()).toEqual([])
  },
  flash_fault(bench) {
    raise(bench, 'flash_fault')
    expect(bench.perform(1, 'bin-1', 'open_door')).toEqual({ refused: 'memory_fault' })
    expect(bench.hub.actuations()).toEqual([])
  },
  silent_port(bench) {
    raise(bench, 'silent_port', 'front')
    const before = bench.host.received.length
    bench.perform(1, 'bin-1', 'open_door')
    expect(bench.host.received).toHaveLength(before)
    expect(bench.hub.actuations()).toEqual([])
  },
  corrupted_lines(bench) {
    raise(bench, 'corrupted_lines', 'front', { probability: 1 })
    const before = bench.host.received.length
    for (let t = 0; t < 50; t++) bench.host.send({ type: 'PING', t })
    bench.clock.advance(100)
    const arrived = bench.host.received.length - before
    expect(arrived).toBeLessThan(30)
  },
  lost_replies(bench) {
    raise(bench, 'lost_replies', 'front', { probability: 1 })
    const before = bench.host.received.length
    bench.perform(1, 'bin-1', 'open_door')
    expect(bench.host.received).toHaveLength(before)
    expect(bench.actsOf(1)).toHaveLength(1)
    bench.hub.faults.clearAll()
    bench.clock.advance(1000)
    expect(bench.host.last('RES')).toMatchObject({ op: operation(1), state: 'done' })
  },
  brown_out(bench) {
    const { boot, mem } = bench.host.last('WELCOME')!
    bench.perform(1, 'bin-1', 'raise_lift', {}, 1000)
    raise(bench, 'brown_out', 'bin-1', { for_ms: 700 })
    expect(bench.hub.controllers.get('front')!.isPowered).toBe(false)
    expect(bench.hub.controllers.get('back')!.isPowered).toBe(true)
    expect(bin(bench).lift).toBe('between')
    bench.clock.advance(800)
    bench.reconnect()
    expect(bench.host.last('WELCOME')).toMatchObject({ mem, last: operation(1) })
    expect(bench.host.last('WELCOME')!.boot).not.toBe(boot)
    expect(bench.ask(1)).toMatchObject({ state: 'interrupted', moved: true })
  },
  brown_out_in_motion(bench) {
    raise(bench, 'brown_out_in_motion', 'bin-1')
    bench.perform(1, 'bin-1', 'raise_lift', {}, 5000)
    expect(bin(bench).lift).toBe('between')
    expect(bench.actsOf(1)).toMatchObject([{ detail: { completed: false } }])
    expect(bench.hub.faults.active()).toEqual([])
    bench.reconnect()
    expect(bench.ask(1)).toMatchObject({ state: 'interrupted' })
  },
  memory_loss(bench) {
    const { mem } = bench.host.last('WELCOME')!
    bench.dispense(1)
    raise(bench, 'memory_loss', 'front')
    bench.clock.advance(2000)
    bench.reconnect()
    expect(bench.host.last('WELCOME')!.mem).not.toBe(mem)
    expect(bench.ask(1)).toMatchObject({ state: 'none' })
  },
  used_board(bench) {
    const { mem } = bench.host.last('WELCOME')!
    bench.dispense(1)
    raise(bench, 'used_board', 'front')
    bench.clock.advance(2000)
    bench.reconnect()
    const welcome = bench.host.last('WELCOME')!
    expect(welcome).toMatchObject({ hub: 1_000_001, ctl: 'front', last: expect.any(String) })
    expect(welcome.mem).not.toBe(mem)
    expect(bench.ask(1)).toMatchObject({ state: 'none' })
  },
  crossed_cable(bench) {
    raise(bench, 'crossed_cable', 'front')
    bench.reconnect()
    expect(bench.perform(1, 'bin-1', 'open_door').refused).toBeDefined()
    bench.hub.faults.clearAll()
    bench.reconnect()
    expect(bench.perform(2, 'bin-1', 'open_door')).toMatchObject({ state: 'done' })
  },
  crossed_bins(bench) {
    raise(bench, 'crossed_bins', 'bin-1')
    expect(bench.perform(1, 'bin-1', 'open_door')).toMatchObject({ state: 'done' })
    expect(bench.hub.state().bins.map(({ bin, door }) => [bin, door])).toEqual([
      ['bin-1', 'closed'],
      ['bin-2', 'open'],
    ])
    expect(bench.host.last('EVT')).toMatchObject({ dev: 'bin-1', door: 'open' })
    bench.hub.faults.clearAll()
    bench.clock.advance(100)
    expect(bench.host.last('EVT')).toMatchObject({ dev: 'bin-2', door: 'open' })
  },
  crossed_rows(bench) {
    raise(bench, 'crossed_rows', 'cabinet-1')
    expect(bench.dispense(1)).toMatchObject({ state: 'done', drops: 1 })
    const [first, second] = bench.hub.state().rows
    expect([first!.units, second!.units]).toEqual([5, 4])
  },
  inverted_sensor(bench) {
    raise(bench, 'inverted_sensor', 'main')
    expect(bench.hub.gpio.get('main_door')).toBe(1)
    bench.hub.gpio.drive('main_lock', 1)
    bench.hub.act({ action: 'open_door', target: 'main' })
    expect(bench.hub.gpio.get('main_door')).toBe(0)
    bench.hub.faults.clearAll()
    expect(bench.hub.gpio.get('main_door')).toBe(1)
  },
  door_forced(bench) {
    raise(bench, 'door_forced', 'bin-1')
    raise(bench, 'door_forced', 'fridge_1_left')
    bench.clock.advance(100)
    expect(bench.host.last('EVT')).toMatchObject({ dev: 'bin-1', door: 'open' })
    expect(bench.hub.gpio.get('fridge_1_left_door')).toBe(1)
    expect(bench.hub.gpio.get('fridge_1_left_lock')).toBe(0)
    expect(bench.hub.actuations()).toMatchObject([
      { device: 'bin-1', action: 'force_open' },
      { device: 'fridge_1_left', action: 'force_open' },
    ])
  },
  broken_probe(bench) {
    const host = fridgeHost(bench)
    raise(bench, 'broken_probe', 'fridge-1')
    bench.clock.advance(6000)
    expect(host.last('EVT')).toMatchObject({ dev: 'fridge-1', temp: 'none' })
    bench.hub.faults.clearAll()
    bench.clock.advance(6000)
    expect(host.last('EVT')).toMatchObject({ dev: 'fridge-1', temp: expect.any(Number) as number })
  },
  frozen_probe(bench) {
    const host = fridgeHost(bench)
    raise(bench, 'frozen_probe', 'fridge-1')
    raise(bench, 'warm_fridge', 'fridge-1')
    bench.clock.advance(600_000)
    expect(bench.hub.state().fridges[0]!.celsius).toBeGreaterThan(8)
    const temperatures = host.of('EVT').flatMap(({ temp }) => temp ?? [])
    expect(temperatures.length).toBeGreaterThan(15)
    expect(new Set(temperatures.slice(1)).size).toBe(1)
  },
  probe_outliers(bench) {
    const host = fridgeHost(bench)
    raise(bench, 'probe_outliers', 'fridge-1')
    bench.clock.advance(600_000)
    const temperatures = host.of('EVT').flatMap(({ temp }) => temp ?? [])
    expect(temperatures).toEqual(expect.arrayContaining([18_500, 4500, 13_000]))
    expect(bench.hub.state().fridges[0]!.celsius).toBeCloseTo(4, 0)
  },
  blinking_contact(bench) {
    raise(bench, 'blinking_contact', 'bin-1')
    raise(bench, 'blinking_contact', 'main')
    let changes = 0
    bench.hub.gpio.onChange((name) => void (name === 'main_door' && changes++))
    bench.clock.advance(2000)
    const occupied = bench.host.of('EVT').flatMap(({ dev, occ }) => (dev === 'bin-1' ? [occ] : []))
    expect(occupied.length).toBeGreaterThan(6)
    expect(new Set(occupied)).toEqual(new Set([true, false]))
    expect(changes).toBeGreaterThan(6)
    bench.hub.faults.clearAll()
    bench.clock.advance(1000)
    expect(bench.hub.gpio.get('main_door')).toBe(0)
    expect(bench.host.last('EVT')).toMatchObject({ dev: 'bin-1', occ: false })
  },
  warm_fridge(bench) {
    raise(bench, 'warm_fridge', 'fridge-1')
    bench.clock.advance(3_600_000)
    expect(bench.hub.state().fridges[0]!.celsius).toBeGreaterThan(15)
    bench.hub.faults.clearAll()
    bench.clock.advance(3_600_000)
    expect(bench.hub.state().fridges[0]!.celsius).toBeCloseTo(4, 0)
  },
}

describe('faults', () => {
  test.each(faultTypes)('the fault %s has its effect', (type) => effects[type](openRoom()))

  test('a fault ends after for_ms, or when it is cleared', () => {
    const bench = openRoom()
    raise(bench, 'weak_supply', undefined, { for_ms: 1000 })
    expect(bench.perform(1, 'bin-1', 'open_door', {}, 500)).toMatchObject({ why: 'power' })
    bench.clock.advance(600)
    expect(bench.hub.faults.active()).toEqual([])
    expect(bench.perform(2, 'bin-1', 'open_door')).toMatchObject({ state: 'done' })
    const { id } = bench.hub.faults.raise({ type: 'weak_supply' })
    expect(bench.hub.faults.clear(id)).toBe(true)
    expect(bench.hub.faults.clear(id)).toBe(false)
    expect(bench.perform(3, 'bin-1', 'close_door')).toMatchObject({ state: 'done' })
  })

  test('a fault affects only its target', () => {
    const bench = openRoom()
    raise(bench, 'jam', 'bin-2')
    expect(bench.perform(1, 'bin-1', 'raise_lift')).toMatchObject({ state: 'done' })
    expect(bench.perform(2, 'bin-2', 'raise_lift')).toMatchObject({ why: 'jam' })
  })

  test.each([
    ['jam', { state: 'failed', why: 'jam' }],
    ['jam_without_motion', { state: 'failed', why: 'jam' }],
    ['empty_turn', { state: 'failed', why: 'no_drop' }],
    ['missed_drop', { state: 'failed', why: 'no_drop' }],
  ] as const)('the fault %s at one row does not affect the other rows of its cabinet', (type, failure) => {
    const bench = openRoom()
    expect(bench.hub.faults.raise({ type, target: 'row 1/1/2' })).toMatchObject({ target: 'row 1/1/2' })
    expect(bench.dispense(1)).toMatchObject({ state: 'done' })
    expect(bench.dispense(2, { row: 2 })).toMatchObject(failure)
    expect(() => bench.hub.faults.raise({ type, target: 'row 1/9/9' })).toThrow('there is no row 1/9/9')
  })

  test('equal seeds give equal faults, and a probability is met', () => {
    const run = (seed: number): string[] => {
      const bench = openRoom({ seed })
      raise(bench, 'jam_without_motion', 'bin-1', { probability: 0.3 })
      const outcomes: string[] = []
      for (let n = 1; n <= 60; n++)
        outcomes.push(bench.perform(n, 'bin-1', n % 2 ? 'open_door' : 'close_door', {}, 2000).state ?? '')
      return outcomes
    }
    const outcomes = run(5)
    expect(run(5)).toEqual(outcomes)
    expect(run(6)).not.toEqual(outcomes)
    const failed = outcomes.filter((state) => state === 'failed').length
    expect(failed).toBeGreaterThan(5)
    expect(failed).toBeLessThan(35)
  })

  test.each([
    [{ type: 'jam', target: 'fridge-1' }, 'fault jam cannot hit fridge-1: it hits a bin or cabinet'],
    [{ type: 'jam', target: 'bin-9' }, 'there is no bin-9 at this hub'],
    [{ type: 'door_forced' }, 'fault door_forced needs a target (bin or door)'],
    [{ type: 'jam', probability: 0 }, 'probability must be greater than 0 and at most 1'],
    [{ type: 'jam', for_ms: -1 }, 'for_ms must be greater than 0'],
  ] as const)('the fault %j is refused with a sentence', (request, message) => {
    expect(() => openRoom().hub.faults.raise(request)).toThrow(message)
  })

  test('every fault describes its effect and its targets', () => {
    for (const { description, targets } of Object.values(faultKinds)) {
      expect(description.length).toBeGreaterThan(20)
      expect(targets.length).toBeGreaterThan(0)
    }
  })
})
