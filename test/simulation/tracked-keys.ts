import { makeKey } from '../../edge/enrolment/enrol.ts'
import type { Scheduler } from './scheduler.ts'

let current: Scheduler | undefined

/** Virtual time stands still while keys are made and signatures are computed: WebCrypto works in threads of its own. */
export async function trackKeys(scheduler: Scheduler): Promise<void> {
  if (current === undefined) {
    const { prototype } = crypto.subtle.constructor as unknown as { prototype: Record<string, Work> }
    for (const name of ['generateKey', 'sign', 'verify', 'importKey', 'exportKey', 'digest']) {
      const work = prototype[name]!
      prototype[name] = function (...input) {
        return current!.track(work.apply(this, input))
      }
    }
    current = scheduler
    // The first use loads modules, which no scheduler can wait for.
    await makeKey()
  }
  current = scheduler
}

type Work = (this: unknown, ...input: unknown[]) => Promise<unknown>
