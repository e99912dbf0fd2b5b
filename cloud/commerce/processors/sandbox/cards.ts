import type { PaymentMethodType } from '../../../../protocol/contract/consumer-payments.ts'
import type { TestCard } from '../../../../protocol/model/test-cards.ts'
import type { IntentStatus } from '../processor.ts'

interface Card {
  /** The first status of an intent with this card. */
  status: IntentStatus
  declineCode?: string
  refundFailure?: string
  /** Its refunds take a moment, and only a webhook reports them. */
  refundsLater?: true
  /** The bank takes the money back a moment after a payment. */
  isDisputed?: true
  /** Display data; a card without it cannot be saved. */
  brand?: string
  last4?: string
  /** Its issuer refuses to save it, too. */
  isRefused?: true
}

const visa = { brand: 'visa', last4: '4242' } as const

/** Stripe's test tokens that the sandbox supports; `testCards` describes each for people. */
const cards: Readonly<Record<string, Card>> = {
  pm_card_visa: { status: 'succeeded', ...visa },
  pm_card_mastercard: { status: 'succeeded', brand: 'mastercard', last4: '4444' },
  pm_card_amex: { status: 'succeeded', brand: 'amex', last4: '8431' },
  pm_card_chargeDeclined: {
    status: 'failed',
    declineCode: 'generic_decline',
    brand: 'visa',
    last4: '0002',
    isRefused: true,
  },
  pm_card_chargeCustomerFail: {
    status: 'failed',
    declineCode: 'generic_decline',
    brand: 'visa',
    last4: '0341',
  },
  pm_card_authenticationRequired: { status: 'requires_action', brand: 'visa', last4: '3184' },
  pm_card_refundFail: {
    status: 'succeeded',
    refundFailure: 'lost_or_stolen_card',
    brand: 'visa',
    last4: '5126',
  },
  pm_card_pendingRefund: { status: 'succeeded', refundsLater: true, brand: 'visa', last4: '7726' },
  pm_card_createDispute: { status: 'succeeded', isDisputed: true, brand: 'visa', last4: '0259' },
  pm_usBankAccount: { status: 'processing' },
} satisfies Record<TestCard, Card>

/** A payment in the processor's own form: sandbox customers always complete it, after a moment. */
const form: Card = { status: 'processing' }

/** The card with a name of `cardNamed`; the form for null. */
export const cardOf = (name: string | null): Card | undefined =>
  name === null ? form : Object.hasOwn(cards, name) ? cards[name] : undefined

/** Whether it is the id of a saved method, as `attach` makes them (`books.ts`). */
export const isOwnId = (method: string): boolean => /^pm_[0-9a-f]{24}$/.test(method)

/**
 * The name of the card that a method or a wallet token represents. Tokens named like a card (`tok_visa`)
 * represent that card. Any other text that is no card name counts as the token of a wallet that pays.
 */
export function cardNamed(method: string, type: PaymentMethodType): string | undefined {
  if (Object.hasOwn(cards, method)) return method
  if (type === 'card') return undefined
  return walletCard(method)?.name ?? (/^(pm|tok)_/.test(method) ? undefined : 'pm_card_visa')
}

/** The card to save: by its name, or by a wallet token. */
export function cardToSave(method: string): { name: string; type: PaymentMethodType } | undefined {
  return Object.hasOwn(cards, method) ? { name: method, type: 'card' } : walletCard(method)
}

/** A token contains the platform of its wallet, as `card.wallet` does at Stripe; the default is A. */
function walletCard(token: string): { name: string; type: PaymentMethodType } | undefined {
  const [, platform = 'platform_a', card] = /^tok_(?:(platform_[ab])_)?(?:visa_)?(\w+)$/.exec(token) ?? []
  const name = `pm_card_${card}`
  return card !== undefined && Object.hasOwn(cards, name)
    ? { name, type: platform === 'platform_b' ? 'platform_b' : 'platform_a' }
    : undefined
}
