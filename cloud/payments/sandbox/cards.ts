import type { IntentStatus } from '../processor.ts'

interface Card {
  /** What an intent with it begins as. */
  status: IntentStatus
  declineCode?: string
  refundFailure?: string
  /** Its refunds take a moment, and are reported by webhook alone. */
  refundsLater?: true
}

/** Stripe's test tokens, as far as the sandbox plays them (contract §13). `pm_usBankAccount` pays after a moment. */
const cards: Readonly<Record<string, Card>> = {
  pm_card_visa: { status: 'succeeded' },
  pm_card_mastercard: { status: 'succeeded' },
  pm_card_chargeDeclined: { status: 'failed', declineCode: 'generic_decline' },
  pm_card_authenticationRequired: { status: 'requires_action' },
  pm_card_refundFail: { status: 'succeeded', refundFailure: 'lost_or_stolen_card' },
  pm_card_pendingRefund: { status: 'succeeded', refundsLater: true },
  pm_usBankAccount: { status: 'processing' },
}

/** What is paid in the processor's own form: the sandbox's customers always do, after a moment. */
const form: Card = { status: 'processing' }

export const cardOf = (method: string | null): Card | undefined =>
  method === null ? form : Object.hasOwn(cards, method) ? cards[method] : undefined
