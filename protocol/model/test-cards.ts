/** The sandbox's test cards under Stripe's names, each with its effect in words. */
export const testCards = {
  pm_card_visa: 'pays',
  pm_card_mastercard: 'pays',
  pm_card_amex: 'pays',
  pm_card_chargeDeclined: 'is declined (`card_declined`), and cannot be saved',
  pm_card_chargeCustomerFail: 'can be saved, and is declined when it is to pay',
  pm_card_authenticationRequired: 'wants its holder (`requires_action`): `confirm-payment` completes it',
  pm_card_refundFail: 'pays; its refunds fail',
  pm_card_pendingRefund: 'pays; its refunds take a moment',
  pm_card_createDispute: 'pays; a moment later its bank takes the money back',
  pm_usBankAccount: 'pays after a moment (`pending`)',
} as const
export type TestCard = keyof typeof testCards
