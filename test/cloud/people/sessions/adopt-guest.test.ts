import { expect, test } from 'vitest'
import { post } from '../../../../cloud/commerce/ledger/ledger.ts'
import type { VerifiedIdentity } from '../../../../cloud/platform/credentials/identity-token.ts'
import { adoptGuest } from '../../../../cloud/people/sessions/adopt-guest.ts'
import { credentialOf } from '../../../../cloud/people/sessions/session-routes.ts'
import { exportUser } from '../../../../cloud/people/users/export-user.ts'
import { bootstrapGuest } from '../../../../cloud/people/users/bootstrap.ts'
import type { PaymentMethod } from '../../../../protocol/contract/consumer-payments.ts'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'
import { ledgerAddsUp } from '../../support/wallets.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const PAYMENTS = '/api/v1/users/payments'

onEachDatabase('a guest who signs in to an account that exists', (open) => {
  async function begin() {
    const service = await openService(open, { isDemo: true })
    await service.connectHub()
    const { shop, cloud } = service
    const desk = new TestBrowser(cloud.app)
    await desk.signIn('Customer')
    const { user_id: account } = (await desk.call('POST', '/api/v1/users/user/bootstrap')).json as {
      user_id: number
    }
    const phone = new TestBrowser(cloud.app)
    const guest = await phone.becomeGuest()
    const cart = async (browser: TestBrowser, userId: number): Promise<number> => {
      const made = await browser.call('POST', `/api/v1/users/${userId}/orders?hub_id=1`)
      const { order_id } = made.json as { order_id: number }
      const path = `/api/v1/users/${userId}/orders/${order_id}/order_item?hub_id=1`
      await browser.call('PUT', path, { body: { product_id: 1, quantity: 1 } })
      return order_id
    }
    const pays = async (browser: TestBrowser, userId: number, method = 'pm_card_visa', more = {}) => {
      const order_id = await cart(browser, userId)
      const body = { order_id, payment_method_id: method, ...more }
      const { json } = await browser.call('POST', `${PAYMENTS}/pay`, { body })
      return { order_id, payment_intent_id: (json as { payment_id: string }).payment_id }
    }
    const deposits = async (amount_cents: number, method = 'pm_card_visa') => {
      const body = { amount_cents, payment_method_id: method }
      return (await phone.call('POST', '/api/v1/users/wallet/deposit', { body })).json as {
        payment_intent_id: string
      }
    }
    const q = shop.context.db.kysely
    return {
      shop,
      desk,
      phone,
      account,
      guest,
      cart,
      pays,
      deposits,
      q,
      statusOf: async (browser: TestBrowser, path: string) => (await browser.call('GET', path)).status,
      wallets: () =>
        q
          .selectFrom('ledger_accounts')
          .select(['user_id', 'account', 'balance', 'debt'])
          .orderBy('user_id')
          .orderBy('account')
          .execute(),
      guestIdentity: async (): Promise<VerifiedIdentity> => {
        const { identity } = await q
          .selectFrom('users')
          .select('identity')
          .where('id', '=', guest)
          .executeTakeFirstOrThrow()
        const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
        return { identity: identity!, claims }
      },
    }
  }

  test('a guest who has paid keeps the order, its receipt and its refund after a sign-in', async () => {
    const { shop, phone, account, guest, pays, statusOf, q } = await begin()
    const { order_id } = await pays(phone, guest)
    await phone.signIn('Customer')
    expect(await statusOf(phone, `/api/v1/users/${account}/orders/${order_id}?hub_id=1`)).toBe(200)
    expect(await statusOf(phone, `/api/v1/users/${account}/orders/${order_id}/receipt`)).toBe(200)
    expect(await statusOf(phone, `/api/v1/users/${guest}/orders/${order_id}?hub_id=1`)).toBe(403)
    expect(await shop.payments(order_id)).toMatchObject([{ user_id: account, status: 'completed' }])
    const buyers = q.selectFrom('sales_customers').select('user_id').distinct().where('orders', '>', 0)
    expect(await buyers.execute()).toEqual([{ user_id: account }])
    await shop.report({ kind: 'order.failed', order_id, bins: [], lines: [], reason: 'jam' })
    await shop.work.drain()
    expect((await shop.order(order_id)).payment_status).toBe('refunded')
  })

  test('a guest who signs in during an authentication confirms the payment afterwards', async () => {
    const { shop, phone, account, guest, pays } = await begin()
    const body = await pays(phone, guest, 'pm_card_authenticationRequired')
    await phone.signIn('Customer')
    const confirmed = await phone.call('POST', `${PAYMENTS}/confirm-payment`, { body })
    const { user_id, processing_status } = await shop.order(body.order_id)
    expect([confirmed.status, user_id, processing_status]).toEqual([200, account, S.QUEUED])
  })

  test('the wallet and the points of a guest are added to those of the account, as entries of both ledgers', async () => {
    const { shop, phone, account, guest, deposits, wallets, q } = await begin()
    const { context } = shop
    const points = { account: 'points', type: 'earned', cents_per_point: 100 } as const
    await context.db.transact(async (tx) => {
      await post(tx, context, { ...points, user_id: account, amount: 2, cause: 'a' })
      await post(tx, context, { ...points, user_id: guest, amount: 5, cause: 'b' })
    })
    await deposits(500)
    await deliver(shop)
    await phone.signIn('Customer')
    expect(await wallets()).toEqual([
      { user_id: account, account: 'points', balance: 7, debt: 0 },
      { user_id: account, account: 'wallet', balance: 500, debt: 0 },
      { user_id: guest, account: 'points', balance: 0, debt: 0 },
      { user_id: guest, account: 'wallet', balance: 0, debt: 0 },
    ])
    await ledgerAddsUp(q)
    const { json } = await phone.call('GET', '/api/v1/users/wallet/transactions')
    expect(json).toMatchObject([{ amount_cents: 500, description: 'Wallet from before you signed in' }])
  })

  test('the export of an account contains the wallet entries of its former guest', async () => {
    const { shop, phone, account, guest, deposits, q } = await begin()
    await deposits(500)
    await deliver(shop)
    await phone.signIn('Customer')
    const entries = (await exportUser(q, account))['ledger_entries'] as { id: number }[]
    expect(entries.toSorted((a, b) => a.id - b.id)).toMatchObject([
      { user_id: guest, type: 'deposit', amount: 500 },
      { user_id: guest, type: 'adjustment', amount: -500 },
      { user_id: account, type: 'adjustment', amount: 500 },
    ])
  })

  test('a deposit that the processor reports after the sign-in is credited to the account', async () => {
    const { shop, phone, account, deposits, wallets, q } = await begin()
    await deposits(500)
    await phone.signIn('Customer')
    await deliver(shop)
    expect(await wallets()).toEqual([{ user_id: account, account: 'wallet', balance: 500, debt: 0 }])
    await ledgerAddsUp(q)
  })

  test('a guest’s deposit that its bank takes back after the sign-in is owed by the account', async () => {
    const { shop, phone, account, guest, pays, deposits, wallets, q } = await begin()
    const { payment_intent_id } = await deposits(500)
    await deliver(shop)
    await phone.signIn('Customer')
    const order_id = (await pays(phone, account, 'nothing')).order_id
    expect((await phone.call('POST', '/api/v1/users/wallet/debit', { body: { order_id } })).status).toBe(200)
    const object = { id: 'dp_1', status: 'succeeded', amount: 500, payment_intent: payment_intent_id }
    await sendEvent(shop, { id: 'evt_d', type: 'dispute.updated', object })
    const [wallet, former] = await wallets()
    expect(wallet).toMatchObject({ user_id: account, balance: 0 })
    expect(wallet!.debt).toBeGreaterThan(0)
    expect(former).toMatchObject({ user_id: guest, balance: 0, debt: 0 })
    await ledgerAddsUp(q)
  })

  test('a guest’s debt is paid from the wallet of the account', async () => {
    const { shop, phone, account, guest, wallets, q } = await begin()
    const { context } = shop
    const entry = { account: 'wallet', type: 'adjustment' } as const
    await context.db.transact(async (tx) => {
      await post(tx, context, { ...entry, user_id: guest, amount: 0, owed: 300, cause: 'a' })
      await post(tx, context, { ...entry, user_id: account, amount: 1000, cause: 'b' })
    })
    await phone.signIn('Customer')
    expect(await wallets()).toEqual([
      { user_id: account, account: 'wallet', balance: 700, debt: 0 },
      { user_id: guest, account: 'wallet', balance: 0, debt: 0 },
    ])
    await ledgerAddsUp(q)
  })

  test.each([false, true])(
    'a guest keeps the saved card after a sign-in (account with a saved card: %s)',
    async (hasCard) => {
      const { desk, phone, account, guest, pays, q } = await begin()
      const ended = { processing_status: S.COMPLETED }
      const saves = { save_payment_method: true }
      if (hasCard) {
        const { order_id } = await pays(desk, account, 'pm_card_mastercard', saves)
        await q.updateTable('orders').set(ended).where('id', '=', order_id).execute()
      }
      await pays(phone, guest, 'pm_card_visa', saves)
      await phone.signIn('Customer')
      const methods = (await phone.call('GET', `${PAYMENTS}/methods`)).json as {
        payment_method_id: string
        brand: string
        is_default: boolean
      }[]
      expect(methods.map(({ brand }) => brand)).toEqual(hasCard ? ['mastercard', 'visa'] : ['visa'])
      expect(methods.filter(({ is_default }) => is_default)).toHaveLength(1)
      const { payment_method_id } = methods.find(({ brand }) => brand === 'visa')!
      const removed = await phone.call('DELETE', `${PAYMENTS}/methods/${payment_method_id}`)
      expect(removed.status).toBe(200)
    },
  )

  /** A guest with two saved cards has signed in to an account with one. */
  async function joined() {
    const world = await begin()
    const { desk, phone } = world
    const save = (browser: TestBrowser, method: string, set_default = false) =>
      browser.call('POST', `${PAYMENTS}/save-payment-method`, {
        body: { payment_method_id: method, set_default },
      })
    await save(desk, 'pm_card_mastercard')
    await save(phone, 'pm_card_visa')
    await save(phone, 'pm_card_amex')
    await phone.signIn('Customer')
    const list = async () => (await phone.call('GET', `${PAYMENTS}/methods`)).json as PaymentMethod[]
    const idOf = async (brand: string) =>
      (await list()).find((method) => method.brand === brand)!.payment_method_id
    return {
      ...world,
      brands: async () => (await list()).map(({ brand, is_default }) => (is_default ? `${brand} *` : brand)),
      choose: async (brand: string) => (await save(phone, await idOf(brand), true)).status,
      remove: async (brand: string) =>
        (await phone.call('DELETE', `${PAYMENTS}/methods/${await idOf(brand)}`)).status,
    }
  }

  test('after a guest with saved cards signs in to an account with one, exactly one card is the default', async () => {
    const { brands, choose, remove } = await joined()
    expect(await brands()).toEqual(['mastercard *', 'amex', 'visa'])
    expect([await choose('visa'), await brands()]).toEqual([200, ['visa *', 'amex', 'mastercard']])
    expect([await choose('mastercard'), await brands()]).toEqual([200, ['mastercard *', 'amex', 'visa']])
    expect([await remove('visa'), await brands()]).toEqual([200, ['mastercard *', 'amex']])
    expect([await remove('mastercard'), await brands()]).toEqual([200, ['amex *']])
  })

  test('changes of the default at the same moment leave exactly one, also among the cards of a former guest', async () => {
    const { brands, choose, remove } = await joined()
    const chosen = await Promise.all(['visa', 'amex', 'mastercard'].map(choose))
    expect(chosen).toEqual([200, 200, 200])
    expect((await brands()).filter((brand) => brand.endsWith('*'))).toHaveLength(1)
    await Promise.all([remove('visa'), remove('mastercard')])
    expect(await brands()).toEqual(['amex *'])
  })

  test('a guest’s default card stays the default in an account without cards', async () => {
    const { desk, phone } = await begin()
    const path = `${PAYMENTS}/methods`
    const save = async (browser: TestBrowser, method: string) =>
      (await browser.call('POST', `${PAYMENTS}/save-payment-method`, { body: { payment_method_id: method } }))
        .json as PaymentMethod
    const { payment_method_id } = await save(desk, 'pm_card_mastercard')
    await desk.call('DELETE', `${path}/${payment_method_id}`)
    await save(phone, 'pm_card_visa')
    await phone.signIn('Customer')
    expect((await phone.call('GET', path)).json).toMatchObject([{ brand: 'visa', is_default: true }])
  })

  test('an account that is deleted takes the cards of its former guest away from the processor', async () => {
    const { shop, phone } = await joined()
    expect((await phone.call('DELETE', '/api/v1/users/user')).status).toBe(204)
    expect(await shop.bank.customers()).toEqual([])
  })

  test('the processor no longer has a former guest as a customer after its last card is removed', async () => {
    const { shop, remove } = await joined()
    await remove('visa')
    await remove('amex')
    shop.clock.advance(2 * 3_600_000)
    await shop.work.drain()
    expect(await shop.bank.customers()).toHaveLength(1)
  })

  test('a paid order of a guest takes the place of the account’s cart at the hub', async () => {
    const { shop, desk, phone, account, guest, cart, pays } = await begin()
    await cart(desk, account)
    const { order_id } = await pays(phone, guest)
    await phone.signIn('Customer')
    expect(await shop.order(order_id)).toMatchObject({ user_id: account, processing_status: S.QUEUED })
  })

  test('a sign-in is refused while guest and account both have a paid order at one hub, and the guest keeps everything', async () => {
    const { desk, phone, account, guest, pays, statusOf } = await begin()
    await pays(desk, account)
    const { order_id } = await pays(phone, guest)
    await phone.signIn('Customer')
    expect(await phone.session()).toMatchObject({ kind: 'guest', user_id: guest })
    expect(await statusOf(phone, `/api/v1/users/${guest}/orders/${order_id}?hub_id=1`)).toBe(200)
  })

  test('a repeated or simultaneous sign-in of a guest moves nothing twice', async () => {
    const { shop, account, guest, deposits, wallets, guestIdentity, q } = await begin()
    await deposits(500)
    await deliver(shop)
    const { identity } = await q
      .selectFrom('users')
      .select('identity')
      .where('id', '=', account)
      .executeTakeFirstOrThrow()
    const known = await guestIdentity()
    const person = credentialOf({ identity: identity!, claims: { ...known.claims, anonymous: false } })
    await Promise.all([1, 2, 3].map(() => adoptGuest(shop.context, known, person)))
    await adoptGuest(shop.context, known, person)
    expect(await wallets()).toEqual([
      { user_id: account, account: 'wallet', balance: 500, debt: 0 },
      { user_id: guest, account: 'wallet', balance: 0, debt: 0 },
    ])
    await ledgerAddsUp(q)
  })

  test('two guests who sign in as one new person at the same moment become one user', async () => {
    const { shop, q } = await begin()
    const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
    const guests = ['guest-a', 'guest-b'].map((identity) => ({ identity, claims }))
    for (const one of guests) await bootstrapGuest(shop.context, credentialOf(one))
    const person = credentialOf({
      identity: 'paul',
      claims: { ...claims, anonymous: false, email: 'paul@example.org', emailVerified: true },
    })
    await Promise.all(guests.map((one) => adoptGuest(shop.context, one, person)))
    const users = await q.selectFrom('users').select('deleted_at').where('id', '>', 2).orderBy('id').execute()
    expect(users.filter(({ deleted_at }) => deleted_at === null)).toHaveLength(1)
  })

  test('a guest with an open order or with money in the wallet cannot sign out', async () => {
    const { shop, phone, guest, pays, deposits, statusOf, q } = await begin()
    const { order_id } = await pays(phone, guest)
    const refused = await phone.call('DELETE', '/session')
    expect([refused.status, refused.json]).toMatchObject([409, { error: { code: 'order_in_progress' } }])
    expect(await statusOf(phone, `/api/v1/users/${guest}/orders/${order_id}?hub_id=1`)).toBe(200)
    const ended = { processing_status: S.COMPLETED }
    await q.updateTable('orders').set(ended).where('id', '=', order_id).execute()
    await deposits(500)
    await deliver(shop)
    const again = await phone.call('DELETE', '/session')
    expect([again.status, again.json]).toMatchObject([409, { error: { code: 'wallet_not_empty' } }])
    await q.updateTable('ledger_accounts').set({ balance: 0 }).execute()
    expect((await phone.call('DELETE', '/session')).status).toBe(204)
  })
})
