import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OperationOutcome } from '../../edge/hardware/controller-events.ts'
import { createControllers } from '../../edge/hardware/controllers.ts'
import { defaultLinkSettings } from '../../protocol/settings/hub-limits.ts'
import { deviceId } from '../../protocol/model/hardware.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { SimulatedHub } from '../../simulator/simulated-hub.ts'
import { memoryStorage } from '../world/memory-storage.ts'
import { smallHub } from './support/hardware.ts'
import { virtualClock, virtualRuntime } from '../world/clock.ts'

const operationId = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`

/** The hub's end of the line to a simulated controller. */
function bench(seed: number) {
  const clock = virtualClock()
  const hub = new SimulatedHub({
    hardware: smallHub,
    runtime: virtualRuntime(seed, clock),
    storage: memoryStorage(),
    log: silentLog,
  })
  const outcomes = new Map<string, OperationOutcome>()
  const refused = new Set<string>()
  const doors = new Map<string, string>()
  let ups = 0
  const controllers = createControllers(
    {
      hardware: smallHub,
      openPort: hub.openPort,
      runtime: virtualRuntime(seed + 1, clock),
      log: silentLog,
      settings: defaultLinkSettings,
    },
    {
      onUp: () => void ups++,
      onDown() {},
      onResult: (_, outcome) => void outcomes.set(outcome.operationId, outcome),
      onRefused: (_, id) => void refused.add(id),
      onListed() {},
      onDevice: (_, { device, door }) => void (door && doors.set(device, door)),
    },
  )
  controllers.start()
  clock.advance(100)
  /** Whether the device's controller is connected and has completed the handshake. */
  const isUp = (device: string): boolean | undefined => {
    const onLine = smallHub.controllers.find(({ devices }) =>
      devices.some((each) => deviceId(each) === device),
    )
    return controllers.links().find(({ controller }) => controller === onLine?.id)?.up
  }
  return { clock, hub, isUp, controllers, outcomes, refused, doors, ups: () => ups }
}

const order = (n: number) => ({
  operationId: operationId(n),
  maxMs: 10_000,
  ...(n % 3 === 0
    ? { device: 'bin-2', action: 'open_door' as const }
    : n % 3 === 1
      ? { device: 'cabinet-1', action: 'dispense' as const, shelf: 1, row: 1 + (n % 2), bin: 1 }
      : { device: 'bin-2', action: 'close_door' as const }),
})

test('the hub’s link and the simulated controller understand one another', () => {
  const { clock, hub, isUp, controllers, outcomes, doors } = bench(1)
  expect(isUp('cabinet-2')).toBe(true)
  expect(doors.get('bin-1')).toBe('closed')
  expect(controllers.perform(order(1))).toBe(true)
  clock.advance(4000)
  expect(outcomes.get(operationId(1))).toMatchObject({ state: 'done', moved: true, drops: 1 })
  hub.power('off', 'front', 500)
  clock.advance(10_000)
  expect(isUp('bin-1')).toBe(true)
})

test('after any line fault the hub’s final report equals the simulator’s own log', () => {
  const trouble = fc.constantFrom(
    'corrupted_lines',
    'lost_replies',
    'silent_port',
    'brown_out',
    'brown_out_in_motion',
    'none',
  )
  const step = fc.record({
    trouble,
    forMs: fc.integer({ min: 10, max: 6000 }),
    waitMs: fc.integer({ min: 0, max: 4000 }),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), fc.nat({ max: 1000 }), (steps, seed) => {
      const { clock, hub, isUp, controllers, outcomes, refused, ups } = bench(seed)
      const sent = new Set<number>()
      for (const [index, one] of steps.entries()) {
        if (one.trouble !== 'none') hub.faults.raise({ type: one.trouble, for_ms: one.forMs })
        if (controllers.perform(order(index + 1))) sent.add(index + 1)
        clock.advance(one.waitMs)
      }
      hub.faults.clearAll()
      clock.advance(30_000)
      expect(isUp('bin-1')).toBe(true)
      expect(ups()).toBeGreaterThanOrEqual(2)
      for (const n of sent) controllers.query('bin-1', operationId(n))
      clock.advance(5000)
      for (const n of sent) {
        const acts = hub.actuations().filter((act) => act.operation_id === operationId(n))
        const outcome = outcomes.get(operationId(n))
        expect(outcome, `operation ${n}`).toBeDefined()
        expect(acts.length).toBeLessThanOrEqual(1)
        if (refused.has(operationId(n)) || !outcome!.moved) expect(acts).toEqual([])
        if (outcome!.state === 'done' && outcome!.moved) expect(acts).toHaveLength(1)
      }
    }),
    { numRuns: 200 },
  )
})
