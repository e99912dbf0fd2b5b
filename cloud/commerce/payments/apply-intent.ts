import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { IntentExtra } from '../money/intents.ts'
import type { Answer, Operation } from '../money/operations.ts'
import { deposits } from '../ledger/deposit.ts'
import { payments } from './payment.ts'

/** Applies the processor's report on a payment intent: an order's payment, or a deposit. */
export function applyIntent(
  tx: Tx,
  context: CloudContext,
  operation: Operation,
  answer: Answer<IntentExtra>,
): Promise<void> {
  const operations = operation.kind === 'deposit' ? deposits : payments
  return operations.applyEvent(tx, context, operation, answer)
}
