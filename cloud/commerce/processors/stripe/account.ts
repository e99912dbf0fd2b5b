import { Stripe } from 'stripe'
import type { Clock } from '../../../../protocol/model/runtime.ts'
import type { Log } from '../../../../protocol/model/log.ts'

export interface StripeOptions {
  apiKey: string
  /** Of the API; an http(s) origin. */
  url?: string
  /** Tells this installation's objects from those of others that share the account (`installation.ts`). */
  installation: string
  clock: Clock
  log: Log
  timeoutMs: number
  /** How often the SDK repeats a call that got no answer, before it gives up. */
  retries?: number
}

/** An account at Stripe, as the parts of this folder share it. */
export interface StripeAccount {
  sdk: Stripe
  installation: string
  clock: Clock
  log: Log
  /** An idempotency key of this installation's own: row 1 of another database is another payment. */
  keyOf: (key: string) => string
}

export function openAccount(options: StripeOptions): StripeAccount {
  const { apiKey, url = 'https://api.stripe.com', installation, clock, log, timeoutMs, retries = 1 } = options
  const { protocol, hostname, port } = new URL(url)
  const isPlain = protocol === 'http:'
  const sdk = new Stripe(apiKey, {
    protocol: isPlain ? 'http' : 'https',
    host: hostname,
    port: port === '' ? (isPlain ? 80 : 443) : Number(port),
    timeout: timeoutMs,
    maxNetworkRetries: retries,
    telemetry: false,
    appInfo: { name: 'larder' },
  })
  return { sdk, installation, clock, log, keyOf: (key) => `${installation}:${key}` }
}
