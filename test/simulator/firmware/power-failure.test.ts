import { describe, expect, test } from 'vitest'
import { isLongRun } from '../../support/long-tests.ts'
import { openRoom, type Bench } from '../../world/room.ts'
import { operation } from '../../world/room-host.ts'

const motions: Record<string, (bench: Bench) => void> = {
  open_door: (bench) => bench.host.command({ op: operation(7), dev: 'bin-1', act: 'open_door' }),
  raise_lift: (bench) => bench.host.command({ op: operation(7), dev: 'bin-1', act: 'raise_lift' }),
  dispense: (bench) =>
    bench.host.command({ op: operation(7), dev: 'cabinet-1', act: 'dispense', shelf: 1, row: 1, bin: 1 }),
  double_drop: (bench) => {
    bench.hub.faults.raise({ type: 'double_drop', for_ms: 5000 })
    motions['dispense']!(bench)
  },
  jam: (bench) => {
    bench.hub.faults.raise({ type: 'jam', for_ms: 5000 })
    motions['dispense']!(bench)
  },
  jam_without_motion: (bench) => {
    bench.hub.faults.raise({ type: 'jam_without_motion', for_ms: 5000 })
    motions['dispense']!(bench)
  },
  weak_supply: (bench) => {
    bench.hub.faults.raise({ type: 'weak_supply', for_ms: 5000 })
    motions['dispense']!(bench)
  },
}

const failures: Record<string, (bench: Bench) => void> = {
  'the power': ({ hub }) => hub.faults.raise({ type: 'brown_out', target: 'front', for_ms: 100 }),
  'the simulator': (bench) => bench.killAndRestart(),
}

/** Every instant of an event, and instants between them; every fourth of these in a short run. */
const step = isLongRun ? 15 : 60
const instants = Array.from({ length: 3600 / step }, (_, index) => index * step)

describe.each(Object.keys(failures))('power fails at every instant of an operation: %s', (failure) => {
  test.each(Object.keys(motions))(
    'after a power failure (%s) QRY reports the truth, and a repetition moves nothing',
    (motion) => {
      const states = new Set<string>()
      for (const instant of instants) {
        const bench = openRoom()
        motions[motion]!(bench)
        bench.clock.advance(instant)
        failures[failure]!(bench)
        bench.clock.advance(200)
        bench.hub.faults.clearAll()
        bench.reconnect()
        const told = bench.ask(7)!
        const acts = bench.actsOf(7)
        const fallen = acts.reduce((sum, { detail }) => sum + Number(detail.fallen ?? 0), 0)
        states.add(`${told.state} moved=${told.moved}`)
        expect(acts.length, `at ${instant} ms`).toBeLessThanOrEqual(1)
        if (!told.moved) expect(acts, `at ${instant} ms`).toEqual([])
        expect(told.drops, `at ${instant} ms`).toBeLessThanOrEqual(fallen)
        if (told.state === 'done' && motion === 'dispense') expect(fallen).toBe(1)
        if (told.state === 'none') continue
        motions[
          motion.includes('jam') || motion.includes('weak') || motion === 'double_drop' ? 'dispense' : motion
        ]!(bench)
        bench.clock.advance(5000)
        expect(bench.actsOf(7), `repeated after ${instant} ms`).toEqual(acts)
      }
      // The instants include both ends: before the command arrives, and after the result.
      expect(states).toContain('none moved=false')
      expect([...states].some((state) => state.startsWith('done') || state.startsWith('failed'))).toBe(true)
    },
  )
})

test('a drop that the sensor saw before a power failure is not forgotten', () => {
  const bench = openRoom()
  bench.dispense(7, {}, 1600)
  bench.hub.faults.raise({ type: 'brown_out', target: 'front', for_ms: 100 })
  bench.clock.advance(200)
  bench.reconnect()
  expect(bench.ask(7)).toMatchObject({ state: 'interrupted', moved: true, drops: 1 })
})

test('motions stop with the power, and the simulator’s own death leaves its world unchanged', () => {
  const bench = openRoom()
  bench.perform(1, 'bin-1', 'raise_lift', {}, 1000)
  bench.killAndRestart()
  expect(bench.actsOf(1)).toMatchObject([
    { action: 'raise_lift', detail: { to: 'between', completed: false } },
  ])
  expect(bench.hub.state().bins[0]).toMatchObject({ lift: 'between', door: 'closed' })
  bench.reconnect()
  expect(bench.host.of('EVT')[0]).toMatchObject({ dev: 'bin-1', lift: 'unknown' })
  expect(bench.perform(2, 'bin-1', 'raise_lift')).toMatchObject({ state: 'done', moved: true })
})
