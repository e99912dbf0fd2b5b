import type { Runtime } from '../../protocol/model/runtime.ts'
import { Scheduler } from '../simulation/scheduler.ts'

/** A clock that moves only on request, and constant random numbers. `pass` runs the due work in order. */
export function manualRuntime(): Runtime & { pass(ms: number): Promise<void> } {
  const scheduler = new Scheduler()
  const life = scheduler.newLife('test', () => {})
  return {
    clock: scheduler.clock(life, () => 0),
    random: { bytes: (count) => new Uint8Array(count), fraction: () => 0.5 },
    async pass(ms) {
      await scheduler.run(scheduler.time + ms)
      if (scheduler.failure !== undefined) throw scheduler.failure
    },
  }
}
