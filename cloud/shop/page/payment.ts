import { signal } from '@preact/signals'
import type { PaymentMethod, PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { surroundings } from '../../../protocol/client/system.ts'
import { BrowserStorage } from '../../../protocol/ui/browser-storage.ts'
import { clearFailures, say } from '../../../protocol/ui/notices.tsx'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { isOutcome, Unanswered } from '../../../protocol/ui/unanswered.ts'
import { answerBank, cardOfForm } from './card-form.ts'
import { requestDeposit } from './deposit-request.ts'
import { filled, money, words } from './language.ts'
import {
  cart,
  checked,
  client,
  customer,
  hub,
  methods,
  readCustomer,
  readShop,
  session,
  setCart,
} from './store.ts'
import { show } from './place.ts'

/** Way to pay: `wallet`, a saved card, a test card, or `stripe` for the processor's own form. */
export const method = signal('')
/** The card is saved after it has paid. */
export const isSaved = signal(false)
export const isPaying = signal(false)
/** A payment that waits for its card's holder. */
export const waiting = signal<PaymentResult | undefined>(undefined)

/** Its bank asks its holder, and the sandbox has no form for the answer of a deposit. */
const ASKS = 'pm_card_authenticationRequired'

/** The test cards of the sandbox that the page offers. */
const testCards = [
  ['pm_card_visa', 'card_visa'],
  ['pm_card_chargeDeclined', 'card_declined'],
  [ASKS, 'card_authenticate'],
] as const

/** A way to pay: value and label. */
export type Way = [value: string, label: string]

export const cardName = ({ brand, last4 }: Pick<PaymentMethod, 'brand' | 'last4'>): string =>
  filled(words().saved_card, { brand: brand.charAt(0).toUpperCase() + brand.slice(1), last4 })

/** The cards that this customer can use to add money. */
export const depositWays = (): Way[] => cardWays().filter(([card]) => card !== ASKS)

/** The cards that this customer can use here: saved ones first. */
export function cardWays(): Way[] {
  const cards = hub.value?.cards
  const further: Way[] =
    cards?.processor === 'sandbox'
      ? testCards.map(([card, text]) => [card, words()[text]])
      : cards?.publishable_key
        ? [['stripe', words().card]]
        : []
  return [...methods.value.map((saved): Way => [saved.payment_method_id, cardName(saved)]), ...further]
}

export const isNewCard = (way: string | undefined): boolean =>
  session.value?.kind === 'person' &&
  way !== 'wallet' &&
  !methods.value.some((saved) => saved.payment_method_id === way)

/** Executes one payment at a time, and shows what its form or bank objects to. */
async function whilePaying(work: () => Promise<void>): Promise<void> {
  if (isPaying.value) return
  isPaying.value = true
  clearFailures()
  try {
    await work()
  } catch (error) {
    say((error as Error).message, true)
  } finally {
    isPaying.value = false
  }
}

/** PENDING_PAYMENT. After a payment that ended unpaid, the order is a cart again. */
const FIRST_AFTER_CART = 10

const chosenCard = async (): Promise<string> =>
  method.value === 'stripe' ? await cardOfForm() : method.value

/** Pays the cart, at the total that the customer sees. */
export const pay = (): Promise<void> =>
  whilePaying(async () => {
    const order = cart.value
    if (!order) return
    const about = { order_id: order.order_id, expected_total: order.total }
    if (method.value === 'wallet') return paid(await client.call('POST /users/wallet/debit', { body: about }))
    const saves = isSaved.value && isNewCard(method.value)
    const body = {
      ...about,
      payment_method_id: await chosenCard(),
      ...(saves && { save_payment_method: true }),
    }
    await paid(await client.call('POST /users/payments/pay', { body }))
  })

async function paid(
  result: Awaited<ReturnType<typeof client.call<'POST /users/payments/pay'>>>,
): Promise<void> {
  const done = checked(result)
  if (!done) return void (await Promise.all([readShop(), readCustomer()]))
  if (done.status === 'requires_action') {
    waiting.value = done
    return readCustomer()
  }
  waiting.value = undefined
  if (done.processing_status < FIRST_AFTER_CART) {
    say(words().payment_ended, true)
    return readCustomer()
  }
  setCart(undefined)
  isSaved.value = false
  show(done.order_id)
}

/** Lets the card's holder confirm the payment, then completes it. */
export const confirm = (): Promise<void> =>
  whilePaying(async () => {
    const payment = waiting.value
    if (!payment) return
    await answerBank(hub.value?.cards.publishable_key, payment.client_secret)
    const body = { order_id: payment.order_id, payment_intent_id: payment.payment_id }
    await paid(await client.call('POST /users/payments/confirm-payment', { body }))
  })

const unanswered = new Unanswered(new BrowserStorage(() => sessionStorage), epochMs)

/** Adds money to the wallet. The processor's event credits it a moment later. */
export const deposit = (cents: number): Promise<void> =>
  whilePaying(async () => {
    const userId = await customer()
    if (userId === undefined) return
    const price = money(cents, hub.value?.currency ?? 'USD')
    const { result, isRepeated } = await requestDeposit(
      { client, unanswered, newKey: surroundings.newKey },
      {
        userId,
        cents,
        way: method.value,
        saves: isSaved.value && isNewCard(method.value),
        card: chosenCard,
        // If the payment is declined, the next try does not save the card again.
        onSaved: () => void (isSaved.value = false),
      },
    )
    const isOpen = !result.ok && !isOutcome(result.error)
    const made = checked(result, isOpen ? ` ${filled(words().deposit_open, { price })}` : '')
    if (made) {
      await answerBank(hub.value?.cards.publishable_key, made.client_secret)
      say(filled(isRepeated ? words().deposited_once : words().deposited, { price }))
    }
    await readCustomer()
  })

export async function removeCard(payment_method_id: string): Promise<void> {
  checked(
    await client.call('DELETE /users/payments/methods/{payment_method_id}', {
      params: { payment_method_id },
    }),
  )
  await readCustomer()
}

/** Cancels the unpaid order with its payment. */
export async function cancel(userId: number, orderId: number): Promise<void> {
  const done = checked(
    await client.call('DELETE /users/{user_id}/orders/{order_id}', {
      params: { user_id: userId, order_id: orderId },
    }),
  )
  waiting.value = undefined
  if (done) say(words().cancelled)
  await Promise.all([readShop(), readCustomer()])
}
