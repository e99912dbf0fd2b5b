import { describe, expect, test } from 'vitest'
import { createBench } from '../support/bench.ts'
import { operation } from '../support/test-host.ts'

describe('operations of a controller (SPEC §6)', () => {
  test('a dispense turns the row, sees the fall, and the unit lies in the bin', () => {
    const bench = createBench()
    expect(bench.dispense(1)).toMatchObject({ state: 'done', moved: true, drops: 1, ms: 1800 })
    expect(bench.actsOf(1)).toMatchObject([{ action: 'dispense', detail: { shelf: 1, row: 1, fallen: 1 } }])
    const { rows, bins } = bench.hub.state()
    expect(rows.find(({ cabinet, shelf, row }) => cabinet + shelf + row === 3)?.units).toBe(4)
    expect(bins[0]).toMatchObject({ bin: 'bin-1', units: 1 })
    expect(bench.host.of('EVT').at(-1)).toMatchObject({ dev: 'bin-1', occ: true })
  })

  test('I1: a repeated command gets the stored result, and nothing moves again', () => {
    const bench = createBench()
    const first = bench.dispense(1)
    for (let repetition = 0; repetition < 5; repetition++)
      expect(bench.dispense(1, {}, 200)).toMatchObject({ state: first.state, drops: 1, ms: first.ms })
    // Whatever else the repetition says.
    expect(bench.dispense(1, { row: 2 })).toMatchObject({ state: 'done', drops: 1 })
    expect(bench.actsOf(1)).toHaveLength(1)
  })

  test('a repetition while the operation runs is told so, and gets the result when there is one', () => {
    const bench = createBench()
    expect(bench.dispense(1, {}, 500)).toEqual({})
    expect(bench.dispense(1, {}, 100)).toMatchObject({ state: 'running', moved: true })
    bench.time.pass(3000)
    expect(bench.host.last('RES')).toMatchObject({ state: 'done', drops: 1 })
    expect(bench.actsOf(1)).toHaveLength(1)
  })

  test('a result is repeated until it is acknowledged', () => {
    const bench = createBench()
    bench.host.acknowledges = false
    bench.dispense(1, {}, 4000)
    expect(bench.host.of('RES').length).toBeGreaterThan(5)
    bench.host.acknowledges = true
    bench.time.pass(1000)
    const count = bench.host.of('RES').length
    bench.time.pass(2000)
    expect(bench.host.of('RES')).toHaveLength(count)
  })

  test('the result of an operation of a former session goes to the session there is', () => {
    const bench = createBench()
    bench.dispense(1, {}, 300)
    bench.reconnect()
    bench.time.pass(3000)
    expect(bench.host.last('RES')).toMatchObject({ op: operation(1), state: 'done' })
  })

  test('I7: the controller alone ends a motion at its maximum duration', () => {
    const bench = createBench()
    expect(bench.perform(1, 'bin-1', 'raise_lift', { max: 1000 })).toMatchObject({
      state: 'failed',
      why: 'timeout',
      moved: true,
      ms: 1000,
    })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'between' })
    // And with the host gone.
    const other = createBench()
    other.perform(1, 'bin-1', 'raise_lift', { max: 1000 }, 10)
    other.host.close()
    other.time.pass(1500)
    expect(other.hub.state().bins[0]).toMatchObject({ lift: 'between' })
    expect(other.actsOf(1)).toHaveLength(1)
  })

  test('a device that stands there already is done at once, and nothing moved', () => {
    const bench = createBench()
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
  ])('refused: %s (%s %s)', (why, device, action, extra) => {
    const bench = createBench()
    expect(bench.perform(1, device, action, extra)).toEqual({ refused: why })
    expect(bench.ask(1)).toMatchObject({ state: 'none', moved: false })
    expect(bench.hub.actuations()).toEqual([])
  })

  test('one dispense at a time for each cabinet', () => {
    const bench = createBench()
    bench.dispense(1, {}, 100)
    expect(bench.dispense(2, { row: 2, bin: 2 })).toEqual({ refused: 'busy' })
    expect(bench.actsOf(2)).toEqual([])
  })

  test('a refusal is final for its operation id: a late repetition moves nothing', () => {
    const bench = createBench()
    bench.dispense(1, {}, 100)
    expect(bench.dispense(2, { row: 2, bin: 2 }, 100)).toEqual({ refused: 'busy' })
    bench.time.pass(10_000)
    expect(bench.dispense(2, { row: 2, bin: 2 })).toEqual({ refused: 'busy' })
    expect(bench.actsOf(2)).toEqual([])
    expect(bench.dispense(3, { row: 2, bin: 2 })).toMatchObject({ state: 'done' })
  })

  test('interlock: no lift motion with its door open', () => {
    const bench = createBench()
    bench.perform(1, 'bin-1', 'open_door', {}, 3000)
    expect(bench.perform(2, 'bin-1', 'raise_lift', {}, 100)).toEqual({ refused: 'interlock' })
    expect(bench.perform(3, 'bin-1', 'lower_lift', {}, 100)).toEqual({ refused: 'interlock' })
    expect(bench.hub.actuations()).toHaveLength(1)
  })

  test('interlock: a door forced open stops the lift', () => {
    const bench = createBench()
    bench.perform(1, 'bin-1', 'raise_lift', {}, 500)
    bench.hub.faults.raise({ type: 'door_forced', target: 'bin-1' })
    bench.time.pass(100)
    expect(bench.host.last('RES')).toMatchObject({ state: 'failed', why: 'interlock', moved: true })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'between', door: 'open' })
  })

  test('interlock: no opening while the lift moves', () => {
    const bench = createBench()
    bench.perform(1, 'bin-1', 'raise_lift', {}, 500)
    expect(bench.perform(2, 'bin-1', 'open_door', {}, 3000)).toEqual({ refused: 'busy' })
    expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'up', door: 'closed' })
  })

  test('interlock: no dispensing into an open bin, a raised lift, or a bin that moves', () => {
    const bench = createBench()
    bench.perform(1, 'bin-1', 'open_door', {}, 100)
    expect(bench.dispense(2, {}, 100)).toEqual({ refused: 'busy' })
    bench.time.pass(2000)
    expect(bench.dispense(3, {}, 100)).toEqual({ refused: 'interlock' })
    bench.perform(4, 'bin-2', 'raise_lift', {}, 2900)
    expect(bench.dispense(5, { bin: 2 }, 100)).toEqual({ refused: 'interlock' })
    expect(bench.hub.state().rows[0]?.units).toBe(5)
  })
})
