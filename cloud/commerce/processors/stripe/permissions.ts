import { Stripe } from 'stripe'
import { openAccount, type StripeOptions } from './account.ts'

const { StripePermissionError } = Stripe.errors

/** The longest wait for an answer during the start of the service. */
const TIMEOUT_MS = 5000

/** Permissions that an API key needs, by their names in Stripe's dashboard, each with a call that proves it without effects. */
const needed: Readonly<Record<string, (sdk: Stripe, options: Stripe.RequestOptions) => Promise<unknown>>> = {
  'PaymentIntents (write)': (sdk, options) => sdk.paymentIntents.list({ limit: 1 }, options),
  'Charges and Refunds (write)': (sdk, options) => sdk.refunds.list({ limit: 1 }, options),
  'Disputes (read)': (sdk, options) => sdk.disputes.list({ limit: 1 }, options),
  'SetupIntents (write)': (sdk, options) => sdk.setupIntents.list({ limit: 1 }, options),
  'PaymentMethods (write)': (sdk, options) => sdk.paymentMethods.list({ limit: 1 }, options),
  'Customers (write)': (sdk, options) => sdk.customers.list({ limit: 1 }, options),
}

export const neededPermissions: readonly string[] = Object.keys(needed)

/**
 * The permissions that a restricted key lacks. A call that fails for another reason (no answer, a parameter)
 * proves nothing and counts as permitted. Only a write would prove a write permission.
 */
export async function missingPermissions(
  options: Pick<StripeOptions, 'apiKey' | 'url' | 'installation' | 'clock' | 'log' | 'timeoutMs'>,
): Promise<string[]> {
  const { sdk } = openAccount({ ...options, timeoutMs: Math.min(options.timeoutMs, TIMEOUT_MS), retries: 0 })
  const refused = await Promise.all(
    Object.entries(needed).map(async ([name, call]) => {
      try {
        await call(sdk, {})
        return []
      } catch (error) {
        if (error instanceof StripePermissionError) return [name]
        options.log.warn({ err: error, permission: name }, 'a permission of the Stripe key cannot be checked')
        return []
      }
    }),
  )
  return refused.flat()
}
