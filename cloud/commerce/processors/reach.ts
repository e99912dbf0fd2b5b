import type { BackoffOptions } from '../../../protocol/model/runtime.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import { isolated } from '../../platform/work/background.ts'
import type { CloudContext } from '../../platform/context.ts'
import { METHOD_UNKNOWN, ProcessorUnavailable, type CardProcessor } from './processor.ts'

/** Money that another processor took, before this one was configured, is out of reach. */
export function requireProcessor({ name }: CardProcessor, processor: string): void {
  if (processor !== name)
    throw new ProcessorUnavailable(`this is money of the processor "${processor}", which is not configured`)
}

/** For requests: a processor out of reach is 503. What was begun is finished as due work. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ProcessorUnavailable) throw new ApiError('processor_unavailable')
    throw error
  }
}

/** What a decline code means; null where the processor knows no such method. */
export function refusal(declineCode: string | null, details?: ErrorDetails): ApiError {
  if (declineCode === null || declineCode === METHOD_UNKNOWN)
    return new ApiError('payment_method_not_found', undefined, details)
  return new ApiError('card_declined', undefined, { decline_code: declineCode, ...details })
}

/** Does now, for a request that does not wait for its outcome, what due work does otherwise. */
export const tryNow = (context: CloudContext, during: string, work: () => Promise<unknown>): Promise<void> =>
  isolated(context, during, async () => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable)) throw error
      context.log.warn({ err: error, during }, 'the card processor cannot be reached')
    }
  })

/** Pauses between looks at due work for which the processor cannot be reached. */
export const processorBackoff = ({ settings }: CloudContext): BackoffOptions => ({
  firstMs: settings.paymentRecheckMs,
  maxMs: 3_600_000,
})
