import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type WorldRecord, foldRecords } from '../../../simulator/physics/world-state.ts'
import { openRoom, type Bench } from '../../world/room.ts'
import { smallHub } from '../support/hardware.ts'

const records = (bench: Bench): WorldRecord[] => bench.storage.open<WorldRecord>('world').read()

/** Actions of people and motors, in any order. */
const deeds: ((bench: Bench, n: number) => void)[] = [
  (bench, n) => bench.dispense(n, { row: 1 + (n % 3), bin: 1 + (n % 2) }, 4000),
  (bench, n) => bench.perform(n, `bin-${1 + (n % 2)}`, 'raise_lift', {}, 3000),
  (bench, n) => bench.perform(n, `bin-${1 + (n % 2)}`, 'lower_lift', {}, 700),
  (bench, n) => bench.perform(n, `bin-${1 + (n % 2)}`, 'open_door', {}, 1300),
  (bench, n) => bench.perform(n, `bin-${1 + (n % 2)}`, 'close_door', {}, 300),
  (bench, n) => bench.hub.act({ action: 'take_items', target: `bin-${1 + (n % 2)}` }),
  (bench) =>
    bench.hub.act({ action: 'restock', target: 'cabinet-1', shelf: 1, row: 1, units: 1, product_id: 7 }),
  (bench) => bench.hub.act({ action: 'open_door', target: 'main' }),
  (bench) => bench.hub.act({ action: 'close_door', target: 'main' }),
  (bench, n) => bench.hub.gpio.drive('main_lock', n % 2 ? 1 : 0),
  (bench) => bench.hub.faults.raise({ type: 'jam', for_ms: 4000 }),
  (bench) => bench.hub.faults.raise({ type: 'late_drop', for_ms: 4000 }),
  (bench) => bench.hub.faults.raise({ type: 'door_forced', target: 'bin-1' }),
]

describe('the world', () => {
  test('the state of the world is the fold of its log, after any actions and at every restart', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: deeds.length - 1 }), { maxLength: 40 }), (choices) => {
        const bench = openRoom()
        for (const [n, choice] of choices.entries()) deeds[choice]!(bench, n + 1)
        bench.clock.advance(30_000)
        expect(foldRecords(smallHub, records(bench))).toEqual(bench.hub.world.chronicle.state)
        const { bins, rows, doors } = bench.hub.state()
        const acts = bench.hub.actuations()
        bench.killAndRestart()
        expect(bench.hub.state()).toMatchObject({ bins, rows })
        expect(bench.hub.state().doors.map(({ open }) => open)).toEqual(doors.map(({ open }) => open))
        expect(bench.hub.actuations()).toEqual(acts)
      }),
      { numRuns: 100 },
    )
  })

  test('acts are numbered from 1 without a gap, and can be read from any number on', () => {
    const bench = openRoom()
    for (let n = 1; n <= 4; n++) bench.perform(n, 'bin-1', n % 2 ? 'open_door' : 'close_door', {}, 2000)
    const acts = bench.hub.actuations()
    expect(acts.map(({ n }) => n)).toEqual([1, 2, 3, 4])
    expect(bench.hub.actuations(2)).toEqual(acts.slice(2))
    expect(bench.hub.actuations(99)).toEqual([])
    expect(acts[0]).toEqual({
      n: 1,
      at: expect.stringMatching(/^2026-01-01T00:00:0\d\.\d{3}Z$/) as string,
      device: 'bin-1',
      action: 'open_door',
      operation_id: '01900000-0000-7000-8000-000000000001',
      detail: { from: 'closed', to: 'open', lift: 'down', completed: true },
    })
  })

  test('shelves are loaded once at the start, and unlisted rows are empty', () => {
    const loaded = [{ cabinet: 1, shelf: 1, row: 2, product_id: 42, units: 3 }]
    const first = openRoom({ loaded })
    const units = (bench: Bench): number[] => bench.hub.state().rows.map((row) => row.units)
    expect(units(first)).toEqual([0, 3, 0, 0, 0, 0, 0])
    first.dispense(1, { row: 2 })
    expect(first.hub.state().bins[0]!.contents).toEqual([42])
    const again = openRoom({ loaded, storage: first.storage })
    expect(units(again)).toEqual([0, 2, 0, 0, 0, 0, 0])
  })

  test('the motor of an empty row turns, and nothing drops', () => {
    const bench = openRoom({ loaded: [] })
    expect(bench.dispense(1)).toMatchObject({ state: 'failed', why: 'no_drop', moved: true, drops: 0 })
  })

  test('locks obey the hub, doors obey locks, and sensors follow doors', () => {
    const { hub } = openRoom()
    expect(hub.act({ action: 'open_door', target: 'main' })).toEqual({
      ok: false,
      reason: 'door main is locked',
    })
    hub.gpio.drive('main_lock', 1)
    expect(hub.act({ action: 'open_door', target: 'main' }).ok).toBe(true)
    expect(hub.gpio.get('main_door')).toBe(1)
    hub.gpio.drive('main_lock', 0)
    expect(hub.act({ action: 'close_door', target: 'main' }).ok).toBe(true)
    expect(hub.gpio.get('main_door')).toBe(0)
    expect(hub.actuations().map(({ device, action }) => [device, action])).toEqual([
      ['main', 'unlock'],
      ['main', 'open_door'],
      ['main', 'lock'],
      ['main', 'close_door'],
    ])
  })

  test('I7: without power locks fall back to locked, and motors stop', () => {
    const bench = openRoom()
    bench.hub.gpio.drive('fridge_1_left_lock', 1)
    bench.perform(1, 'bin-1', 'raise_lift', {}, 500)
    bench.hub.power('off')
    expect(bench.hub.gpio.get('fridge_1_left_lock')).toBe(0)
    expect(bench.hub.state().bins[0]!.lift).toBe('between')
    bench.clock.advance(10_000)
    expect(bench.hub.state().controllers.every(({ powered }) => !powered)).toBe(true)
    bench.hub.power('on')
    bench.reconnect()
    expect(bench.ask(1)).toMatchObject({ state: 'interrupted' })
  })

  test('a person’s act is refused with the obstacle', () => {
    const { hub } = openRoom()
    const reason = (deed: Parameters<typeof hub.act>[0]): string | undefined => {
      const result = hub.act(deed)
      return result.ok ? undefined : result.reason
    }
    expect(reason({ action: 'take_items', target: 'bin-1' })).toMatch(/closed, not open/)
    expect(reason({ action: 'take_items', target: 'cabinet-1' })).toMatch(/no bin cabinet-1/)
    expect(reason({ action: 'open_door', target: 'bin-1' })).toMatch(/moved by its motor/)
    expect(reason({ action: 'open_door', target: 'attic' })).toMatch(/no door attic; doors: main/)
    expect(reason({ action: 'close_door', target: 'main' })).toMatch(/closed already/)
    expect(reason({ action: 'restock', target: 'cabinet-1', shelf: 1, row: 1, units: 1 })).toMatch(
      /only 0 more/,
    )
    expect(reason({ action: 'restock', target: 'cabinet-1', shelf: 9, row: 1, units: 1 })).toMatch(
      /no shelf 9/,
    )
    expect(reason({ action: 'press', target: 'attic' })).toMatch(/needs a controller: front, back/)
    expect(hub.actuations()).toEqual([])
  })

  test('a reset button restarts its controller', () => {
    const bench = openRoom()
    expect(bench.hub.act({ action: 'press', target: 'front' }).ok).toBe(true)
    expect(bench.hub.controllers.get('front')!.isPowered).toBe(false)
    bench.clock.advance(200)
    expect(bench.hub.controllers.get('front')!.isPowered).toBe(true)
  })
})
