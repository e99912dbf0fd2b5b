import type { PaymentMethodType } from '../../../../protocol/contract/consumer-payments.ts'
import type { TestCard } from '../../../../protocol/model/test-cards.ts'
import type { IntentStatus } from '../processor.ts'

interface Card {
  /** What an intent with it begins as. */
  status: IntentStatus
  declineCode?: string
  refundFailure?: string
  /** Its refunds take a moment, and are reported by webhook alone. */
  refundsLater?: true
  /** A moment after a payment with it its bank takes the money back. */
  isDisputed?: true
  /** What it looks like; what looks like nothing cannot be saved. */
  brand?: string
  last4?: string
  /** Its issuer does not let it be saved either. */
  isRefused?: true
}

const visa = { brand: 'visa', last4: '4242' } as const

/** Stripe's test tokens, as far as the sandbox plays them; `testCards` says for people what each does. */
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

/** What is paid in the processor's own form: the sandbox's customers always do, after a moment. */
const form: Card = { status: 'processing' }

/** The card behind a name of `cardNamed`; behind null, the form. */
export const cardOf = (name: string | null): Card | undefined =>
  name === null ? form : Object.hasOwn(cards, name) ? cards[name] : undefined

/** A saved method's own id, as `attach` makes them (`books.ts`). */
export const isOwnId = (method: string): boolean => /^pm_[0-9a-f]{24}$/.test(method)

/**
 * The name of the card that a method or a wallet's token stands for. Wallets give tokens: those named like the cards
 * (`tok_visa`) stand for them, any other text than a name is taken for the token of a wallet that pays.
 */
export function cardNamed(method: string, type: PaymentMethodType): string | undefined {
  if (Object.hasOwn(cards, method)) return method
  if (type === 'card') return undefined
  return walletCard(method)?.name ?? (/^(pm|tok)_/.test(method) ? undefined : 'pm_card_visa')
}

/** The card behind what is to be saved: one by its name, or in a wallet by the wallet's token. */
export function cardToSave(method: string): { name: string; type: PaymentMethodType } | undefined {
  return Object.hasOwn(cards, method) ? { name: method, type: 'card' } : walletCard(method)
}

/** A token says of which platform its wallet is, as `card.wallet` does at Stripe; of A where it says nothing. */
function walletCard(token: string): { name: string; type: PaymentMethodType } | undefined {
  const [, platform = 'platform_a', card] = /^tok_(?:(platform_[ab])_)?(?:visa_)?(\w+)$/.exec(token) ?? []
  const name = `pm_card_${card}`
  return card !== undefined && Object.hasOwn(cards, name)
    ? { name, type: platform === 'platform_b' ? 'platform_b' : 'platform_a' }
    : undefined
}
