/** Meaning of Stripe's test tokens, as far as its documentation of testing states it. */
export interface TestCard {
  outcome: 'succeeds' | 'declined' | 'requires-action' | 'processing'
  brand: string
  last4: string
  /** Cannot be attached to a customer. */
  refusesAttach?: true
  /** Refunds: pending at first, refused at once, or returned later by the bank. */
  refund?: 'pending' | 'refused' | 'fails-later'
  isBank?: true
}

const visa = { brand: 'visa', last4: '4242' } as const

export const testCards: Readonly<Record<string, TestCard>> = {
  pm_card_visa: { outcome: 'succeeds', ...visa },
  pm_card_mastercard: { outcome: 'succeeds', brand: 'mastercard', last4: '4444' },
  pm_card_amex: { outcome: 'succeeds', brand: 'amex', last4: '8431' },
  pm_card_chargeDeclined: { outcome: 'declined', brand: 'visa', last4: '0002', refusesAttach: true },
  pm_card_chargeCustomerFail: { outcome: 'declined', brand: 'visa', last4: '0341' },
  pm_card_authenticationRequired: { outcome: 'requires-action', brand: 'visa', last4: '3184' },
  pm_card_pendingRefund: { outcome: 'succeeds', brand: 'visa', last4: '7726', refund: 'pending' },
  pm_card_refundFail: { outcome: 'succeeds', brand: 'visa', last4: '5126', refund: 'fails-later' },
  // Not a card of Stripe: Stripe refuses some refunds at once, and none of its test cards does.
  pm_card_refundRefused: { outcome: 'succeeds', ...visa, refund: 'refused' },
  pm_usBankAccount: { outcome: 'processing', brand: '', last4: '6789', isBank: true },
}

/** The card of a wallet's token (`tok_visa`, `tok_visa_chargeDeclined`). */
export function cardOfToken(token: string): TestCard | undefined {
  const [, name] = /^tok_(?:platform_[ab]_)?(?:visa_)?(\w+)$/.exec(token) ?? []
  return testCards[`pm_card_${name}`]
}
