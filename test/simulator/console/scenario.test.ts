import { expect, test } from 'vitest'
import { complaintOf, playScenario, Scenario } from '../../../simulator/console/scenario.ts'
import { createBench } from '../support/bench.ts'

test('a scenario happens in its time; what is not possible then is passed over with a word', () => {
  const bench = createBench()
  const complaints: string[] = []
  const scenario = Scenario.parse([
    { at_ms: 1000, fault: { type: 'door_forced', target: 'bin-1' } },
    { at_ms: 2000, act: { action: 'close_door', target: 'bin-1' } },
    { at_ms: 3000, act: { action: 'take_items', target: 'bin-1' } },
    { at_ms: 3000, fault: { type: 'jam', target: 'bin-9' } },
    { at_ms: 4000, power: { state: 'off', controller: 'back' } },
  ])
  playScenario(scenario, bench.hub, bench.time.clock, (event, reason) =>
    complaints.push(complaintOf(event, reason)),
  )
  bench.time.pass(1500)
  expect(bench.hub.actuations().map(({ action }) => action)).toEqual(['force_open'])
  bench.time.pass(3000)
  expect(bench.hub.actuations().map(({ action }) => action)).toEqual(['force_open', 'close_door'])
  expect(bench.hub.controllers.get('back')!.isPowered).toBe(false)
  expect(complaints).toEqual([
    'The scenario asks for take_items at 3000 ms, which is not possible: the door of bin-1 is closed, not open.',
    'The scenario asks for jam at 3000 ms, which is not possible: there is no bin-9 at this hub.',
  ])
})

test('a scenario that cannot be read is refused', () => {
  for (const event of [
    { at_ms: -1, power: { state: 'on' } },
    { at_ms: 1 },
    { at_ms: 1, fault: { type: 'explode' } },
  ])
    expect(Scenario.safeParse([event]).success).toBe(false)
})
