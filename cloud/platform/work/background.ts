import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { outageInWords } from '../store/outage.ts'

type Faults = Pick<CloudContext, 'log' | 'onFault'>
type Turns = Faults & Pick<CloudContext, 'underWay'>

/**
 * Runs work that nobody waits for: what a message or a timer set off. An error ends that turn and goes to the context's
 * `onFault`; whatever the turn had not committed did not happen, and its cause comes again (a resend, the next tick).
 */
export function background(context: Turns, during: string, work: () => Promise<unknown>): void {
  const turn = isolated(context, during, work).finally(() => context.underWay?.delete(turn))
  context.underWay?.add(turn)
}

/** Waits until no turn is under way. */
export async function settled({ underWay = new Set() }: Pick<CloudContext, 'underWay'>): Promise<void> {
  for (;;) {
    if (underWay.size === 0) return
    await Promise.allSettled(underWay)
  }
}

/** The same, waited for: one of several turns, of which each is to have its chance whatever becomes of the others. */
export async function isolated(context: Faults, during: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    reportFault(context, error, during)
  }
}

/** An error that ends nothing else: an operator is told of it. */
export function reportFault(context: Faults, error: unknown, during: string): void {
  if (context.onFault) return context.onFault(error, during)
  const outage = outageInWords(error)
  if (outage) context.log.error({ during, reason: outage.reason }, outage.sentence)
  else context.log.error({ err: error, during }, `failed: ${during}`)
}

/** Runs `work` every `periodMs` in the background; a turn that is still under way when the next is due is not doubled. */
export function everyInBackground(
  context: Turns & { runtime: Pick<CloudContext['runtime'], 'clock'> },
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
