import type { Stripe } from 'stripe'
import type { ProcessorRefund, RefundRequest } from '../processor.ts'
import type { StripeAccount } from './account.ts'
import { orProcessorUnavailable, refusalOf, unavailable } from './errors.ts'

/** Stripe keeps keys for 24 hours. */
const KEY_MS = 20 * 3_600_000
/** More refunds than that no payment has: each gives back a cent at least, and a line at most once. */
const MOST = 1000

/** Gives money back under the request's key; where that may be forgotten or spent, only what is not there yet. */
export async function createRefund(account: StripeAccount, request: RefundRequest): Promise<ProcessorRefund> {
  const isOld = account.clock.now() - request.begunAt > KEY_MS
  const known = isOld ? await find(account, request) : undefined
  if (known) return known
  try {
    const { refund_id, order_id } = request.metadata
    const refund = await account.sdk.refunds.create(
      {
        payment_intent: request.ref,
        amount: request.amount,
        metadata: {
          larder: account.installation,
          refund_id: String(refund_id),
          order_id: String(order_id),
        },
      },
      { idempotencyKey: account.keyOf(isOld ? `${request.idempotencyKey}:again` : request.idempotencyKey) },
    )
    // What is repeated is how things were then.
    const isReplayed = refund.lastResponse.headers['idempotent-replayed'] === 'true'
    return isReplayed ? await readRefund(account, refund.id) : toRefund(refund)
  } catch (error) {
    const refusal = refusalOf(error)
    switch (refusal.kind) {
      case 'declined':
      case 'invalid':
        return { ref: null, status: 'failed', failureReason: refusal.error.code ?? 'refused' }
      case 'method-unknown':
        return { ref: null, status: 'failed', failureReason: 'payment_method_unexpected_state' }
      case 'key-spent': {
        const made = await find(account, request)
        if (made) return made
        throw unavailable(refusal.error)
      }
      case 'unavailable':
        throw unavailable(refusal.error)
    }
  }
}

/** Among all refunds of the payment, of which the list is never late. */
async function find(
  { sdk, installation }: StripeAccount,
  { ref, metadata }: RefundRequest,
): Promise<ProcessorRefund | undefined> {
  const made = await orProcessorUnavailable(
    sdk.refunds.list({ payment_intent: ref, limit: 100 }).autoPagingToArray({ limit: MOST }),
  )
  const own = made.find(
    (refund) =>
      refund.metadata?.['larder'] === installation &&
      refund.metadata['refund_id'] === String(metadata.refund_id),
  )
  return own && toRefund(own)
}

export async function readRefund({ sdk }: StripeAccount, ref: string): Promise<ProcessorRefund> {
  return toRefund(await orProcessorUnavailable(sdk.refunds.retrieve(ref)))
}

export const toRefund = ({ id, status, failure_reason }: Stripe.Refund): ProcessorRefund => ({
  ref: id,
  status: refundStatus(status),
  failureReason: failure_reason ?? (status === 'canceled' ? 'canceled' : null),
})

/** `requires_action`: whoever gets it must say where to. */
export function refundStatus(status: string | null | undefined): ProcessorRefund['status'] {
  if (status === 'succeeded') return 'succeeded'
  return status === 'failed' || status === 'canceled' ? 'failed' : 'pending'
}
