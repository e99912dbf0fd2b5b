import type { MoneyServices } from '../services.ts'
import type { Intent, IntentRequest } from '../processors/processor.ts'
import type { Answer, Operation } from './operations.ts'

/** Parts of an answer that only payment intents have. */
export interface IntentExtra {
  /** The method's own id, if the method given was a token for it. */
  method?: string | null
  /** The prefix of the API key by which an integrator confirmed that it took the money. */
  confirmedByKey?: string
}

/** Makes an operation's payment intent, reads it, or cancels it if that is the goal. Throws `ProcessorUnavailable`. */
export async function askIntent(
  { processor }: MoneyServices,
  { state, goal, processor_ref: ref }: Operation,
  request: IntentRequest,
): Promise<Answer<IntentExtra>> {
  if (goal === 'done')
    return answerOf(await (ref === null ? processor.createIntent(request) : processor.readIntent(ref)))
  const answer = answerOf(
    await (ref === null ? processor.abandonIntent(request) : processor.cancelIntent(ref)),
  )
  // Some processors treat a declined intent as final, and need no cancellation.
  return state === 'declined' && answer.outcome === 'declined' ? { ...answer, outcome: 'canceled' } : answer
}

export const answerOf = ({
  ref,
  status,
  clientSecret,
  declineCode,
  method,
}: Intent): Answer<IntentExtra> => ({
  outcome: status === 'failed' ? 'declined' : status,
  ref,
  clientSecret,
  reason: declineCode,
  extra: { method: method ?? null },
})
