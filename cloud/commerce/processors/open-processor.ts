import type { CloudContext } from '../../platform/context.ts'
import { stripeUrlOf, type CloudConfig } from '../../platform/settings/config.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'
import type { CardProcessor } from './processor.ts'
import { createSandbox } from './sandbox/sandbox.ts'

/**
 * The card processor that the settings name. Throws `UsageError` if its key lacks a permission: the service
 * would take money and never receive its disputes.
 */
export async function openProcessor(
  config: CloudConfig,
  { db, runtime, log }: CloudContext,
): Promise<CardProcessor> {
  const url = stripeUrlOf(config)
  if (url === undefined) return createSandbox({ db, runtime })
  // The SDK is loaded only if needed: it is larger than everything else.
  const { createStripe } = await import('./stripe/stripe.ts')
  const { missingPermissions, readInstallation } = await import('./stripe/account.ts')
  const options = {
    apiKey: config.PAYMENTS_API_KEY!,
    url,
    installation: await readInstallation(db, runtime),
    clock: runtime.clock,
    log,
    timeoutMs: config.PAYMENTS_TIMEOUT_MS,
  }
  const missing = await missingPermissions(options)
  if (missing.length > 0)
    throw new UsageError(
      `PAYMENTS_API_KEY: the restricted key lacks ${missing.length === 1 ? 'a permission' : 'permissions'} at Stripe: ` +
        `${missing.join(', ')}. Add ${missing.length === 1 ? 'it' : 'them'} in Stripe's dashboard (Developers, API keys)`,
    )
  return createStripe(options)
}
