import { beforeEach, describe, expect, test, vi } from 'vitest'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { Fleet } from '../../../simulator/fleet.ts'
import type { Simulator } from '../../../simulator/interface/client.ts'
import type { Act } from '../../../simulator/physics/world-state.ts'
import type { Run } from '../../../simulator/scenarios/results.ts'
import { runAndWatch } from '../../../simulator/scenarios/watch.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { testConsole } from '../support/console.ts'
import { smallHub } from '../support/hardware.ts'

const runtime = systemRuntime()
const { clock, random } = runtime
let simulator: Simulator
let hub: SimulatedHub

beforeEach(async () => {
  const fleet = new Fleet({
    clock,
    wireKept: 100,
    storageOf: () => memoryStorage(),
    worlds: { names: () => [], read: () => undefined, write() {} },
    make: (hardware, storage) => new SimulatedHub({ hardware, storage, runtime, log: silentLog }),
    mount: async () => async () => {},
  })
  hub = (await fleet.add(smallHub)).hub
  simulator = testConsole({ fleet, clock, random }).simulator
})

const scenario = (steps: string, head = ''): string =>
  `name: one\ndescription: something\n${head}\nsteps:\n${steps}`

const run = (text: string, isStopped = () => false): Promise<Run> =>
  runAndWatch({ simulator, clock, isStopped }, { hub_id: 1, text }, () => {})

describe('a scenario without a cloud', () => {
  test('the steps of a scenario run in order, to the end', async () => {
    const result = await run(
      scenario(`  - fault: { type: door_forced, target: bin-1 }
  - act: { action: put_items, target: bin-1, units: 2 }
  - expect: { device: { name: bin-1, is: { door: open, units: 2 } } }
  - act: { action: close_door, target: bin-1 }
  - expect: { motion: { device: bin-1, action: force_open, times: 1 } }`),
    )
    expect(result).toMatchObject({
      state: 'passed',
      steps: Array.from({ length: 5 }, () => ({ state: 'passed' })),
    })
    expect(hub.actuations().map(({ action }) => action)).toEqual(['force_open', 'put_items', 'close_door'])
  })

  test.each([
    ['expect: { device: { name: main, is: { open: true } } }', 'main: open is false, not true'],
    ['expect: { device: { name: attic, is: {} } }', 'there is no attic at this hub'],
    [
      'expect: { motion: { device: bin-2, action: open_door } }',
      'bin-2 open_door happened not at all, it should have at least once; what moved: main force_open',
    ],
    [
      'expect: { motion: { device: main, times: 0 } }',
      'main happened once, it should not have; what moved: main force_open',
    ],
    ['act: { action: take_items, target: bin-1 }', 'the door of bin-1 is closed, not open'],
    [
      'wait_until: { device: { name: 1/1/1, is: { units: 0 } }, within: 50 ms }',
      'after 0.05 s 1/1/1: units is 5, not 0',
    ],
    ['pay: { customer: ann }', 'ann has no cart yet'],
    ['network: away', 'this needs a cloud and a hub: start the simulator with the demo (npm start)'],
  ])(
    'a failed expectation ends the scenario at that step, with a sentence about the difference: %s',
    async (step, seen) => {
      const head =
        '  - fault: { type: door_forced, target: main }\n  - act: { action: close_door, target: main }\n'
      const begun = step.startsWith('expect: { motion')
        ? '  - fault: { type: door_forced, target: main }\n'
        : head
      const result = await run(scenario(`${begun}  - ${step}\n  - wait: 1 h`))
      expect(result.state).toBe('failed')
      expect(result.problem).toMatch(/^step \d \(line \d\), /)
      expect(result.problem!.slice(-seen.length)).toBe(seen)
      expect(result.steps.map(({ state }) => state).slice(-2)).toEqual(['failed', 'waiting'])
    },
  )

  test('a motion before the scenario does not count', async () => {
    hub.faults.raise({ type: 'door_forced', target: 'main' })
    hub.act({ action: 'close_door', target: 'main' })
    expect(await run(scenario('  - expect: { motion: { device: main, times: 0 } }'))).toMatchObject({
      state: 'passed',
    })
  })

  test('a scenario starts in a repaired hub: no fault, no open door', async () => {
    hub.faults.raise({ type: 'jam', target: 'bin-1' })
    hub.faults.raise({ type: 'door_forced', target: 'main' })
    expect(await run(scenario('  - expect: { device: { name: main, is: { open: false } } }'))).toMatchObject({
      state: 'passed',
    })
    expect(hub.faults.active()).toEqual([])
  })

  test('scenarios run one at a time, and a stopped scenario ends before its next step', async () => {
    const text = scenario('  - wait: 300 ms\n  - act: { action: press, target: front }')
    let isStopped = false
    const first = run(text, () => isStopped)
    await vi.waitUntil(async () => (await simulator.ask<Run[]>('GET', '/api/runs')).length === 1)
    await expect(simulator.ask('POST', '/api/runs', { hub_id: 1, text })).rejects.toThrow(
      'a scenario runs at hub 1',
    )
    isStopped = true
    const stopped = await first
    expect([stopped.state, stopped.steps.map(({ state }) => state)]).toEqual([
      'stopped',
      ['passed', 'waiting'],
    ])
  })

  test('a scenario with a seed has the same random events in every run', async () => {
    const drawn = async (seed: number): Promise<number[]> => {
      await run(scenario('  - wait: 1 ms', `seed: ${seed}`))
      hub.faults.raise({ type: 'jam', probability: 0.5 })
      return Array.from({ length: 20 }, () => (hub.faults.strikes('jam', 'bin-1') ? 1 : 0))
    }
    const first = await drawn(5)
    expect(await drawn(5)).toEqual(first)
    expect(await drawn(6)).not.toEqual(first)
  })
})

const moved = (acts: readonly Act[]): string[] => acts.map(({ device, action }) => `${device} ${action}`)

test('a session at the console can be recorded, saved and replayed: the motions are the same', async () => {
  const post = (path: string, body: object): Promise<unknown> => simulator.ask('POST', path, body)
  await post('/api/recording', { hub_id: 1 })
  await expect(post('/api/runs', { hub_id: 1, text: scenario('  - wait: 1 s') })).rejects.toThrow(
    /being recorded/,
  )
  await post('/api/hubs/1/faults', { type: 'door_forced', target: 'bin-1' })
  await post('/api/hubs/1/act', { action: 'put_items', target: 'bin-1', units: 3 })
  await expect(post('/api/hubs/1/act', { action: 'open_door', target: 'main' })).rejects.toThrow(/locked/)
  await post('/api/hubs/1/act', { action: 'take_items', target: 'bin-1' })
  await post('/api/steps', { hub_id: 1, step: { act: { action: 'close_door', target: 'bin-1' } } })
  await post('/api/hubs/1/power', { state: 'off', controller: 'back' })
  await post('/api/hubs/1/power', { state: 'on', controller: 'back' })
  const { text } = await simulator.ask<{ text: string }>('DELETE', '/api/recording?name=mine')
  await simulator.ask('PUT', '/api/scenarios/mine', { text })
  const recorded = moved(hub.actuations())
  expect(recorded).toEqual(['bin-1 force_open', 'bin-1 put_items', 'bin-1 take_items', 'bin-1 close_door'])

  const replay = await runAndWatch(
    { simulator, clock, isStopped: () => false },
    { hub_id: 1, name: 'mine' },
    () => {},
  )
  expect(replay).toMatchObject({ name: 'mine', state: 'passed' })
  expect(moved(hub.actuations(recorded.length))).toEqual(recorded)

  // This version expects one hand more than there was.
  const wrong = text
    .replace('action: take_items\n        times: 1', 'action: take_items\n        times: 2')
    .replaceAll('60 s', '100 ms')
  expect(await run(wrong)).toMatchObject({
    state: 'failed',
    problem: expect.stringContaining('bin-1 take_items happened once, it should have 2 times') as string,
  })
})
