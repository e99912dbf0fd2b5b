import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openProcessor } from '../../../../../cloud/commerce/processors/open-processor.ts'
import { UsageError } from '../../../../../cloud/platform/settings/usage-error.ts'
import { testContext } from '../../../../world/context.ts'
import { emptySqlite } from '../../../../world/database.ts'
import { openDatabase } from '../../../../../cloud/platform/store/database.ts'
import { STRIPE_KEY, startStripeServer, type StripeServer } from '../../../support/stripe/server.ts'
import { systemRuntime } from '../../../../../protocol/system-runtime.ts'

let stripe: StripeServer
beforeAll(async () => {
  stripe = await startStripeServer()
})
beforeEach(() => stripe.reset(() => 0))
afterAll(() => stripe.close())

async function start(url = stripe.url) {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const config = { PAYMENTS_URL: `stripe:${url}`, PAYMENTS_API_KEY: STRIPE_KEY, PAYMENTS_TIMEOUT_MS: 500 }
  return openProcessor(config as never, testContext(db, systemRuntime()))
}

test.for([
  ['/v1/payment_intents', 'PaymentIntents (write)'],
  ['/v1/refunds', 'Charges and Refunds (write)'],
  ['/v1/disputes', 'Disputes (read)'],
  ['/v1/setup_intents', 'SetupIntents (write)'],
  ['/v1/payment_methods', 'PaymentMethods (write)'],
  ['/v1/customers', 'Customers (write)'],
] as const)(
  'a restricted key that may not call %s does not start the service, and the error names %s',
  async ([path, name]) => {
    stripe.fail('forbidden', (call) => call.path === path)
    const refused = await start().catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(UsageError)
    expect((refused as Error).message).toContain(`PAYMENTS_API_KEY`)
    expect((refused as Error).message).toContain(name)
  },
)

test('every missing permission is named at once', async () => {
  stripe.fail('forbidden', ({ path }) => path === '/v1/disputes' || path === '/v1/customers')
  await expect(start()).rejects.toThrow(/Disputes \(read\), Customers \(write\)/)
})

test('a key with all permissions starts the service, and nothing is written at Stripe', async () => {
  expect((await start()).name).toBe('stripe')
  expect(stripe.calls.every(({ method }) => method === 'GET')).toBe(true)
})

test('an unreachable or failing Stripe does not keep the service from starting', async () => {
  expect((await start('http://127.0.0.1:9')).name).toBe('stripe')
  stripe.fail('error-before')
  expect((await start()).name).toBe('stripe')
})
