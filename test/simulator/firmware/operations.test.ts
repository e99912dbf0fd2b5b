import { describe, expect, test } from 'vitest'
import { openRoom } from '../../world/room.ts'
import { operation } from '../../world/room-host.ts'

describe('operations of a controller (SPEC §6)', () => {
  test('a dispense turns the row, senses the drop, and the unit lies in the bin', () => {
    const bench = openRoom()
    expect(bench.dispense(1)).toMatchObject({ state: 'done', moved: true, drops: 1, ms: 1800 })
    expect(bench.actsOf(1)).toMatchObject([{ action: 'dispense', detail: { shelf: 1, row: 1, fallen: 1 } }])
    const { rows, bins } = bench.hub.state()
    expect(rows.find(({ cabinet, shelf, row }) => cabinet + shelf + row === 3)?.units).toBe(4)
    expect(bins[0]).toMatchObject({ bin: 'bin-1', units: 1 })
    expect(bench.host.of('EVT').at(-1)).toMatchObject({ dev: 'bin-1', occ: true })
  })

  test('I1: a repeated command gets the stored result, and nothing moves again', () => {
    const bench = openRoom()
    const first = bench.dispense(1)
    for (let repetition = 0; repetition < 5; repetition++)
      expect(bench.dispense(1, {}, 200)).toMatchObject({ state: first.state, drops: 1, ms: first.ms })
    // The other fields of a repetition do not matter.
    expect(bench.dispense(1, { row: 2 })).toMatchObject({ state: 'done', drops: 1 })
    expect(bench.actsOf(1)).toHaveLength(1)
  })

  test('a repetition during the operation is reported as running, and gets the result at the end', () => {
    const bench = openRoom()
    expect(bench.dispense(1, {}, 500)).toEqual({})
    expect(bench.dispense(1, {}, 100)).toMatchObject({ state: 'running', moved: true })
    bench.clock.advance(3000)
    expect(bench.host.last('RES')).toMatchObject({ state: 'done', drops: 1 })
    expect(bench.actsOf(1)).toHaveLength(1)
  })

  test('a result is repeated until it is acknowledged', () => {
    const bench = openRoom()
    bench.host.acknowledges = false
    bench.dispense(1, {}, 4000)
    expect(bench.host.of('RES').length).toBeGreaterThan(5)
    bench.host.acknowledges = true
    bench.clock.advance(1000)
    const count = bench.host.of('RES').length
    bench.clock.advance(2000)
    expect(bench.host.of('RES')).toHaveLength(count)
  })

  test('the result of an operation of a former session goes to the present session', () => {
    const bench = openRoom()
    bench.dispense(1, {}, 300)
    bench.reconnect()
    bench.clock.advance(3000)
    expect(bench.host.last('RES')).toMatchObject({ op: operation(1), state: 'done' })
  })

  test('I7: the controller ends a motion at its maximum duration without the host', () => {
    const bench = openRoom()
    expect(bench.perform(1, 'bin-1', 'raise_lift', { max: 1000 })).toMatchObject({
      state: 'failed',
      why: 'timeout',
      moved: true,
      ms: 1000,
    })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'between' })
    // The host may also be disconnected.
    const other = openRoom()
    other.perform(1, 'bin-1', 'raise_lift', { max: 1000 }, 10)
    other.host.close()
    other.clock.advance(1500)
    expect(other.hub.state().bins[0]).toMatchObject({ lift: 'between' })
    expect(other.actsOf(1)).toHaveLength(1)
  })

  test('a device that is already in position is done at once, without a motion', () => {
    const bench = openRoom()
    expect(bench.perform(1, 'bin-1', 'close_door')).toMatchObject({ state: 'done', moved: false, ms: 0 })
    expect(bench.hub.actuations()).toEqual([])
    expect(bench.ask(1)).toMatchObject({ state: 'done', moved: false })
  })

  test.each([
    ['unknown_device', 'bin-3', 'open_door', {}],
    ['unknown_device', 'cabinet-2', 'dispense', { shelf: 1, row: 1, bin: 1 }],
    ['unsupported', 'bin-1', 'dispense', { shelf: 1, row: 1, bin: 1 }],
    ['unsupported', 'cabinet-1', 'open_door', {}],
    ['bad_argument', 'cabinet-1', 'dispense', { shelf: 1, row: 1 }],
    ['bad_argument', 'cabinet-1', 'dispense', { shelf: 1, row: 4, bin: 1 }],
    ['bad_argument', 'cabinet-1', 'dispense', { shelf: 9, row: 1, bin: 1 }],
    ['bad_argument', 'bin-1', 'open_door', { max: 0 }],
  ])('the controller refuses a command with the reason %s (%s %s)', (why, device, action, extra) => {
    const bench = openRoom()
    expect(bench.perform(1, device, action, extra)).toEqual({ refused: why })
    expect(bench.ask(1)).toMatchObject({ state: 'none', moved: false })
    expect(bench.hub.actuations()).toEqual([])
  })

  test('each cabinet dispenses one unit at a time', () => {
    const bench = openRoom()
    bench.dispense(1, {}, 100)
    expect(bench.dispense(2, { row: 2, bin: 2 })).toEqual({ refused: 'busy' })
    expect(bench.actsOf(2)).toEqual([])
  })

  test('a refusal is final for its operation id: a late repetition moves nothing', () => {
    const bench = openRoom()
    bench.dispense(1, {}, 100)
    expect(bench.dispense(2, { row: 2, bin: 2 }, 100)).toEqual({ refused: 'busy' })
    bench.clock.advance(10_000)
    expect(bench.dispense(2, { row: 2, bin: 2 })).toEqual({ refused: 'busy' })
    expect(bench.actsOf(2)).toEqual([])
    expect(bench.dispense(3, { row: 2, bin: 2 })).toMatchObject({ state: 'done' })
  })

  test('an interlock prevents a lift motion with an open door', () => {
    const bench = openRoom()
    bench.perform(1, 'bin-1', 'open_door', {}, 3000)
    expect(bench.perform(2, 'bin-1', 'raise_lift', {}, 100)).toEqual({ refused: 'interlock' })
    expect(bench.perform(3, 'bin-1', 'lower_lift', {}, 100)).toEqual({ refused: 'interlock' })
    expect(bench.hub.actuations()).toHaveLength(1)
  })

  test('an interlock stops the lift when its door is forced open', () => {
    const bench = openRoom()
    bench.perform(1, 'bin-1', 'raise_lift', {}, 500)
    bench.hub.faults.raise({ type: 'door_forced', target: 'bin-1' })
    bench.clock.advance(100)
    expect(bench.host.last('RES')).toMatchObject({ state: 'failed', why: 'interlock', moved: true })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'between', door: 'open' })
  })

  test('an interlock prevents the door from opening while the lift moves', () => {
    const bench = openRoom()
    bench.perform(1, 'bin-1', 'raise_lift', {}, 500)
    expect(bench.perform(2, 'bin-1', 'open_door', {}, 3000)).toEqual({ refused: 'busy' })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'up', door: 'closed' })
  })

  test('an interlock prevents a dispense into an open bin, a raised lift or a moving bin', () => {
    const bench = openRoom()
    bench.perform(1, 'bin-1', 'open_door', {}, 100)
    expect(bench.dispense(2, {}, 100)).toEqual({ refused: 'busy' })
    bench.clock.advance(2000)
    expect(bench.dispense(3, {}, 100)).toEqual({ refused: 'interlock' })
    bench.perform(4, 'bin-2', 'raise_lift', {}, 2900)
    expect(bench.dispense(5, { bin: 2 }, 100)).toEqual({ refused: 'interlock' })
    expect(bench.hub.state().rows[0]?.units).toBe(5)
  })
})
