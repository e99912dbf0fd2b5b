import { words, language } from './language.ts'

/** The used part of Stripe's script (docs.stripe.com/js). */
interface StripeElement {
  mount(at: HTMLElement): void
  destroy(): void
}
interface StripeElements {
  create(kind: 'payment'): StripeElement
  update(options: { amount: number }): void
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
let stripe: Stripe | undefined
let form: { elements: StripeElements; element: StripeElement } | undefined

async function load(key: string): Promise<Stripe> {
  if (!globalThis.Stripe)
    await new Promise<void>((resolve, reject) => {
      const script = Object.assign(document.createElement('script'), { src: SCRIPT })
      script.addEventListener('load', () => resolve())
      script.addEventListener('error', () => reject(new Error(words().errors.network_error)))
      document.head.append(script)
    })
  return (stripe ??= globalThis.Stripe!(key))
}

/** Shows Stripe's form in an empty element, until the signal aborts. Only a customer who pays by card loads its script. */
export async function openCardForm(
  at: HTMLElement,
  { key, amount, currency, signal }: { key: string; amount: number; currency: string; signal: AbortSignal },
): Promise<void> {
  const loaded = await load(key)
  if (signal.aborted) return
  const elements = loaded.elements({
    mode: 'payment',
    amount,
    currency: currency.toLowerCase(),
    paymentMethodCreation: 'manual',
    locale: language.value,
  })
  const element = elements.create('payment')
  element.mount(at)
  form = { elements, element }
  signal.addEventListener('abort', () => {
    element.destroy()
    form = undefined
  })
}

/** The form shows the amount in mobile wallets. */
export const setFormAmount = (amount: number): void => form?.elements.update({ amount })

/** The id of the card in the form. Throws with a sentence for the customer if the form is not complete. */
export async function cardOfForm(): Promise<string> {
  if (!form || !stripe) throw new Error(words().errors.other)
  const submitted = await form.elements.submit()
  const made: Awaited<ReturnType<Stripe['createPaymentMethod']>> = submitted.error
    ? submitted
    : await stripe.createPaymentMethod({ elements: form.elements })
  if (!made.paymentMethod) throw new Error(made.error?.message ?? words().errors.other)
  return made.paymentMethod.id
}

/** Lets the card's holder answer the bank. Without Stripe's script the service decides. Throws with a sentence. */
export async function answerBank(key: string | null | undefined, clientSecret: string | null): Promise<void> {
  if (!key || !clientSecret) return
  const { error } = await (await load(key)).handleNextAction({ clientSecret })
  if (error) throw new Error(error.message ?? words().errors.other)
}
