import { z } from 'zod'
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

/** Told of what a scenario asks for and is not possible. */
export type Complain = (event: Scenario[number], reason: string) => void

/** Lets a scenario happen. What cannot happen when its time comes is complained of and passed over. */
export function playScenario(
  scenario: Scenario,
  hub: SimulatedHub,
  clock: Clock,
  complain: Complain,
): Cancel {
  const cancels = scenario.map((event) => clock.after(event.at_ms, () => happen(event, hub, complain)))
  return () => {
    for (const cancel of cancels) cancel()
  }
}

/** For a terminal. */
export const complaintOf: (...about: Parameters<Complain>) => string = (event, reason) => {
  const asked = 'act' in event ? event.act.action : 'fault' in event ? event.fault.type : 'power'
  return `The scenario asks for ${asked} at ${event.at_ms} ms, which is not possible: ${reason}.`
}

function happen(event: Scenario[number], hub: SimulatedHub, complain: Complain): void {
  if ('power' in event) {
    const { state, controller, for_ms } = event.power
    hub.power(state, controller, for_ms)
    return
  }
  if ('act' in event) {
    const result = hub.act(event.act)
    if (!result.ok) complain(event, result.reason)
    return
  }
  try {
    hub.faults.raise(event.fault)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    complain(event, error.message)
  }
}
