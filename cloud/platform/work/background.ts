import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { outageText } from '../store/outage.ts'

type Faults = Pick<CloudContext, 'log' | 'onFault'>
type Turns = Faults & Pick<CloudContext, 'underWay'>

/**
 * Runs work that no caller waits for, started by a message or a timer. An error ends the run and goes to the context's
 * `onFault`. Uncommitted changes are lost, and the cause repeats (a resend, the next tick).
 */
export function background(context: Turns, during: string, work: () => Promise<unknown>): void {
  const turn = isolated(context, during, work).finally(() => context.underWay?.delete(turn))
  context.underWay?.add(turn)
}

/** Waits until no background run is in progress. */
export async function settled({ underWay = new Set() }: Pick<CloudContext, 'underWay'>): Promise<void> {
  for (;;) {
    if (underWay.size === 0) return
    await Promise.allSettled(underWay)
  }
}

/** Runs one of several independent pieces of work and waits for it. Its error does not stop the others. */
export async function isolated(context: Faults, during: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    reportFault(context, error, during)
  }
}

/** Reports an error that stops nothing else. */
export function reportFault(context: Faults, error: unknown, during: string): void {
  if (context.onFault) return context.onFault(error, during)
  const outage = outageText(error)
  if (outage) context.log.error({ during, reason: outage.reason }, outage.sentence)
  else context.log.error({ err: error, during }, `failed: ${during}`)
}

/** Runs `work` every `periodMs` in the background. Skips a run while the previous one is in progress. */
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
