import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'

type Faults = Pick<CloudContext, 'log' | 'onFault'>

/**
 * Runs work that nobody waits for: what a message or a timer set off. An error ends that turn and goes to the context's
 * `onFault`; whatever the turn had not committed did not happen, and its cause comes again (a resend, the next tick).
 */
export function background(context: Faults, during: string, work: () => Promise<unknown>): void {
  void isolated(context, during, work)
}

/** The same, waited for: one of several turns, of which each is to have its chance whatever becomes of the others. */
export async function isolated(context: Faults, during: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (context.onFault) context.onFault(error, during)
    else context.log.error({ err: error, during }, `failed: ${during}`)
  }
}

/** Runs `work` every `periodMs` in the background; a turn that is still under way when the next is due is not doubled. */
export function everyInBackground(
  context: Faults & Pick<CloudContext, 'runtime'>,
  periodMs: number,
  during: string,
  work: () => Promise<unknown>,
): Cancel {
  let underWay = false
  return every(context.runtime.clock, periodMs, () => {
    if (underWay) return
    underWay = true
    background(context, during, () => work().finally(() => (underWay = false)))
  })
}
