import { signal } from '@preact/signals'
import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { words } from './language.ts'
import { cart, checked, client, hub, readCustomer, readShop } from './store.ts'
import { show } from './place.ts'

/** Way to pay: `wallet`, a test card, or `stripe` for the processor's own form. */
export const method = signal('')
export const isPaying = signal(false)
/** A payment that waits for its card's holder. */
export const waiting = signal<PaymentResult | undefined>(undefined)

/** The test cards of the sandbox that the page offers. */
export const testCards = [
  ['pm_card_visa', 'card_visa'],
  ['pm_card_chargeDeclined', 'card_declined'],
  ['pm_card_authenticationRequired', 'card_authenticate'],
] as const

/** The used part of Stripe's script. */
interface StripeElements {
  create(kind: 'payment'): { mount(at: HTMLElement): void }
  submit(): Promise<{ error?: { message?: string } }>
}
interface Stripe {
  elements(options: object): StripeElements
  createPaymentMethod(
    options: object,
  ): Promise<{ paymentMethod?: { id: string }; error?: { message?: string } }>
  handleNextAction(options: { clientSecret: string }): Promise<{ error?: { message?: string } }>
}
declare global {
  var Stripe: ((key: string) => Stripe) | undefined
}

const SCRIPT = 'https://js.stripe.com/v3/'
let form: { stripe: Stripe; elements: StripeElements } | undefined

/** Loads Stripe's script and shows its form. Only a customer who pays by card loads it. */
export async function openCardForm(at: HTMLElement, total: number, currency: string): Promise<void> {
  const key = hub.value?.cards.publishable_key
  if (!key) return
  if (!globalThis.Stripe)
    await new Promise<void>((resolve, reject) => {
      const script = Object.assign(document.createElement('script'), { src: SCRIPT })
      script.addEventListener('load', () => resolve())
      script.addEventListener('error', () => reject(new Error(words().errors.network_error)))
      document.head.append(script)
    })
  const stripe = globalThis.Stripe!(key)
  const elements = stripe.elements({
    mode: 'payment',
    amount: total,
    currency: currency.toLowerCase(),
    paymentMethodCreation: 'manual',
  })
  elements.create('payment').mount(at)
  form = { stripe, elements }
}

/** The card's id. Undefined if the form is not complete. */
async function cardOfForm(): Promise<string | undefined> {
  if (!form) return undefined
  const { stripe, elements } = form
  const submitted = await elements.submit()
  const made: Awaited<ReturnType<Stripe['createPaymentMethod']>> = submitted.error
    ? submitted
    : await stripe.createPaymentMethod({ elements })
  if (made.paymentMethod) return made.paymentMethod.id
  say(made.error?.message ?? words().errors.other, true)
  return undefined
}

/** Pays the cart, at the total that the customer sees. */
export async function pay(): Promise<void> {
  const order = cart.value
  if (!order || isPaying.value) return
  isPaying.value = true
  try {
    const about = { order_id: order.order_id, expected_total: order.total }
    if (method.value === 'wallet')
      return await paid(await client.call('POST /users/wallet/debit', { body: about }))
    const card = method.value === 'stripe' ? await cardOfForm() : method.value
    if (card === undefined) return
    await paid(await client.call('POST /users/payments/pay', { body: { ...about, payment_method_id: card } }))
  } finally {
    isPaying.value = false
  }
}

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
  cart.value = undefined
  show(done.order_id)
}

/** Lets the card's holder confirm the payment, then completes it. */
export async function confirm(): Promise<void> {
  const payment = waiting.value
  if (!payment || isPaying.value) return
  isPaying.value = true
  try {
    if (form && payment.client_secret) {
      const { error } = await form.stripe.handleNextAction({ clientSecret: payment.client_secret })
      if (error) return say(error.message ?? words().errors.other, true)
    }
    const body = { order_id: payment.order_id, payment_intent_id: payment.payment_id }
    await paid(await client.call('POST /users/payments/confirm-payment', { body }))
  } finally {
    isPaying.value = false
  }
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
