import { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { ActBody, FaultBody, PowerBody } from './requests.ts'

/** Something that happens `at_ms` after the simulator's start: as the HTTP interface's bodies say it. */
const at = {
  at_ms: z
    .int()
    .min(0)
    .max(30 * 86_400_000),
}
export const Scenario = z
  .array(
    z.union([
      z.strictObject({ ...at, fault: FaultBody }),
      z.strictObject({ ...at, act: ActBody }),
      z.strictObject({ ...at, power: PowerBody }),
    ]),
  )
  .max(10_000)
export type Scenario = z.infer<typeof Scenario>

/** Lets a scenario happen. What cannot happen when its time comes is logged and passed over. */
export function playScenario(scenario: Scenario, hub: SimulatedHub, clock: Clock, log: Log): Cancel {
  const cancels = scenario.map((event) => clock.after(event.at_ms, () => happen(event, hub, log)))
  return () => {
    for (const cancel of cancels) cancel()
  }
}

function happen(event: Scenario[number], hub: SimulatedHub, log: Log): void {
  if ('power' in event) {
    const { state, controller, for_ms } = event.power
    hub.power(state, controller, for_ms)
    return
  }
  if ('act' in event) {
    const result = hub.act(event.act)
    if (!result.ok) log.warn({ event, reason: result.reason }, 'the scenario asks for what is not possible')
    return
  }
  try {
    hub.faults.raise(event.fault)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    log.warn({ event, reason: error.message }, 'the scenario asks for what is not possible')
  }
}
