import { expect, onTestFinished, test } from 'vitest'
import { signPayload } from '../../../../../cloud/platform/http/signature.ts'
import { oidcIssuer } from '../../../support/oidc-issuer.ts'
import { programFolder, startCloud } from '../../../support/program.ts'
import { STRIPE_KEY, startStripeServer, type StripeServer } from '../../../support/stripe/server.ts'

const WEBHOOK_SECRET = 'whsec_of_the_endpoint'

async function stripeNow(): Promise<StripeServer> {
  const stripe = await startStripeServer()
  stripe.reset(Date.now)
  onTestFinished(() => stripe.close())
  return stripe
}

test(
  'production runs with Stripe and an outside issuer: a card is saved, and a deposit credited by Stripe’s webhook',
  { timeout: 90_000 },
  async () => {
    const stripe = await stripeNow()
    const oidc = await oidcIssuer({ claims: { email: 'ada@example.org', email_verified: true } })
    const folder = programFolder()
    const settings = {
      NODE_ENV: 'production',
      DATA_DIR: folder,
      PAYMENTS_URL: `stripe:${stripe.url}`,
      PAYMENTS_API_KEY: STRIPE_KEY,
      PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
      IDENTITY_ISSUER: oidc.issuer,
      MEDIA_SECRET: 'm'.repeat(32),
      STORE_SECRET: 's'.repeat(32),
    }
    const program = startCloud(settings)
    const base = `http://127.0.0.1:${await program.ready()}`
    const token = await oidc.token()
    const call = async (method: string, path: string, body?: object) => {
      const answer = await fetch(`${base}${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
    }
    expect((await call('POST', '/users/user/bootstrap')).status).toBe(201)
    expect((await call('POST', '/users/payments/setup-intent')).json).toMatchObject({
      status: 'requires_payment_method',
    })
    const card = { payment_method_id: 'pm_card_visa' }
    const saved = await call('POST', '/users/payments/save-payment-method', card)
    expect([saved.status, saved.json]).toEqual([200, expect.objectContaining({ last4: '4242' })])
    const { payment_method_id } = saved.json
    const deposit = { amount_cents: 2500, payment_method_id }
    expect((await call('POST', '/users/wallet/deposit', deposit)).json).toMatchObject({ status: 'pending' })
    // The comparison with the processor that follows each start may credit it before the event, and never twice.

    const tell = async (body: string, secret: string): Promise<number> => {
      const headers = { 'Stripe-Signature': signPayload(body, secret, Date.now()) }
      return (await fetch(`${base}/webhooks/payments`, { method: 'POST', headers, body })).status
    }
    const event = stripe.books.events.find(({ body }) => body.includes('payment_intent.succeeded'))!
    expect(await tell(event.body, 'whsec_of_somebody_else')).toBe(400)
    expect([await tell(event.body, WEBHOOK_SECRET), await tell(event.body, WEBHOOK_SECRET)]).toEqual([
      200, 200,
    ])
    expect((await call('GET', '/users/wallet/balance')).json).toMatchObject({ balance_cents: 2500 })

    // After a restart it is the same installation for Stripe.
    program.child.kill('SIGTERM')
    expect(await program.exited).toBe(0)
    const names = () =>
      new Set(stripe.calls.flatMap(({ key }) => (key === undefined ? [] : [key.split(':')[0]])))
    const before = names()
    const again = startCloud(settings)
    const port = await again.ready()
    const answer = await fetch(`http://127.0.0.1:${port}/users/payments/setup-intent`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
    })
    expect([answer.status, names(), before.size]).toEqual([200, before, 1])
    for (const secret of [STRIPE_KEY, WEBHOOK_SECRET])
      expect(program.output() + again.output()).not.toContain(secret)
  },
)

test(
  'a Stripe key without the permission to read disputes ends the start with its name',
  { timeout: 60_000 },
  async () => {
    const stripe = await stripeNow()
    stripe.fail('forbidden', ({ path }) => path === '/v1/disputes')
    const program = startCloud({
      PAYMENTS_URL: `stripe:${stripe.url}`,
      PAYMENTS_API_KEY: STRIPE_KEY,
      PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
    })
    expect(await program.exited).toBe(1)
    expect(program.output()).toContain('Disputes (read)')
  },
)
