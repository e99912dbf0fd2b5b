import { expect, test } from 'vitest'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { signPayload } from '../../../../cloud/platform/http/signature.ts'
import { receiveWebhook } from '../../../../cloud/commerce/payments/webhook.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { walletBalance, walletTransactions } from '../../../../cloud/commerce/ledger/wallet.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop, ShopOptions } from '../../../world/shop.ts'
import { balanceOf, ledgerAddsUp } from '../../support/wallets.ts'
import { deliver, SECRET, sendEvent } from '../../support/webhooks.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const MINUTE = 60_000
const put = (shop: Shop, userId: number, method: string | null = 'pm_card_visa', requestKey?: string) =>
  deposit(shop.services, { userId, amountCents: 2500, method, requestKey })
const listed = (shop: Shop, userId: number) =>
  walletTransactions(shop.context.db.kysely, userId, { limit: 50, offset: 0 })
const balance = (shop: Shop, userId: number) => walletBalance(shop.context.db.kysely, shop.context, userId)
const intents = (shop: Shop) => shop.bank.intents()
const lookedAfter = (shop: Shop) =>
  shop.context.db.kysely
    .selectFrom('due_work')
    .select('subject')
    .where('kind', '=', 'money/deposit')
    .execute()

const wrapped = (change: (sandbox: CardProcessor) => Partial<CardProcessor>): ShopOptions => ({
  wrapProcessor: (sandbox) => ({ ...sandbox, ...change(sandbox) }),
})

onEachProcessor('deposits', (open) => {
  test.for(['pm_card_visa', 'pm_usBankAccount', null])(
    'a deposit (payment method: %s) is pending until the webhook credits it',
    async (method) => {
      const shop = await open()
      const userId = await shop.customer()
      const begun = await put(shop, userId, method)
      expect(begun).toEqual({
        transaction_id: 1,
        payment_intent_id: expect.stringMatching(/^pi_/),
        client_secret: expect.stringContaining('_secret_'),
        status: 'pending',
        amount_cents: 2500,
      })
      expect(await balance(shop, userId)).toEqual({ balance_cents: 0, pending_cents: 2500, currency: 'USD' })
      expect(await listed(shop, userId)).toEqual([
        {
          id: 1,
          type: 'deposit',
          amount_cents: 2500,
          balance_after_cents: null,
          status: 'pending',
          order_id: null,
          payment_intent_id: begun.payment_intent_id,
          description: 'Deposit',
          created_at: new Date(shop.clock.now()).toISOString(),
        },
      ])
      // The answer does not credit it.
      expect(await balanceOf(shop, userId)).toBe(0)
      if (method === null) await shop.bank.approve(begun.payment_intent_id)
      await deliver(shop)
      await deliver(shop)
      expect(await balance(shop, userId)).toEqual({ balance_cents: 2500, pending_cents: 0, currency: 'USD' })
      expect(await listed(shop, userId)).toMatchObject([{ status: 'completed', balance_after_cents: 2500 }])
      await ledgerAddsUp(shop.context.db.kysely)
    },
  )

  test('a deposit is credited once by ten deliveries of an event, in sequence and simultaneously, and by another success event', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_intent_id: id } = await put(shop, userId)
    const [body] = await deliver(shop, 10)
    const again = signPayload(body!, SECRET, shop.clock.now())
    await Promise.all(
      Array.from({ length: 10 }, () =>
        receiveWebhook(shop.context, SECRET, body!, again, shop.services.processor.readEvent),
      ),
    )
    const other = { type: 'payment_intent.succeeded', object: { id, metadata: { deposit_id: '1.0' } } }
    await Promise.all(['a', 'b', 'c'].map((event) => sendEvent(shop, { id: event, ...other })))
    expect(await balanceOf(shop, userId)).toBe(2500)
    expect(await shop.context.db.kysely.selectFrom('ledger_entries').selectAll().execute()).toHaveLength(1)
  })

  test('two simultaneous requests with one key make one deposit', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { db } = shop.context
    // On PostgreSQL both have begun before either can record a deposit; SQLite executes one transaction at a time.
    const { requests } = await db.transact(async (tx) => {
      await tx.forUpdate(tx.q.selectFrom('users').select('id').where('id', '=', userId)).execute()
      const both = [1, 2].map(() => put(shop, userId, 'pm_card_visa', 'key'))
      await lockWaits(db, 2)
      return { requests: Promise.all(both) }
    })
    const [one, other] = await requests
    expect(one!.transaction_id).toBe(other!.transaction_id)
    expect(await intents(shop)).toHaveLength(1)
    await deliver(shop)
    expect(await balanceOf(shop, userId)).toBe(2500)
  })

  test('a deposit that is declined at once is 402, stays on record as failed, and moves nothing', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await expect(put(shop, userId, 'pm_card_chargeDeclined')).rejects.toMatchObject({
      code: 'card_declined',
      details: { decline_code: 'generic_decline', transaction_id: 1 },
    })
    await deliver(shop)
    expect(await listed(shop, userId)).toMatchObject([{ status: 'failed', balance_after_cents: null }])
    expect(await balance(shop, userId)).toMatchObject({ balance_cents: 0, pending_cents: 0 })
    // It cannot be completed; at the sandbox it ends with the refusal.
    shop.clock.advance(MINUTE)
    await shop.work.drain()
    expect(['canceled', 'failed']).toContain((await intents(shop))[0]!.status)
    expect(await lookedAfter(shop)).toEqual([])
  })

  test.for([
    ['payment_intent.payment_failed', 'failed'],
    ['payment_intent.canceled', 'canceled'],
  ] as const)(
    'a deposit for which the webhook reports %s is %s, and a later success is credited',
    async ([type, status]) => {
      const shop = await open()
      const userId = await shop.customer()
      const { payment_intent_id: id } = await put(shop, userId, 'pm_card_authenticationRequired')
      const object = { id, metadata: { deposit_id: '1.0' } }
      await sendEvent(shop, { id: 'evt_1', type, object })
      expect(await listed(shop, userId)).toMatchObject([{ status }])
      expect(await balance(shop, userId)).toMatchObject({ balance_cents: 0, pending_cents: 0 })
      await sendEvent(shop, { id: 'evt_2', type: 'payment_intent.succeeded', object })
      expect(await balanceOf(shop, userId)).toBe(2500)
      await sendEvent(shop, { id: 'evt_3', type, object })
      expect(await listed(shop, userId)).toMatchObject([{ status: 'completed' }])
      await ledgerAddsUp(shop.context.db.kysely)
    },
  )

  test('an abandoned deposit is cancelled at the processor', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await put(shop, userId, 'pm_card_authenticationRequired')
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    expect(await listed(shop, userId)).toMatchObject([{ status: 'canceled' }])
    expect(await intents(shop)).toMatchObject([{ status: 'canceled' }])
  })

  test('a paid deposit with a lost webhook is credited once by a query', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_intent_id: id } = await put(shop, userId)
    expect(await balanceOf(shop, userId)).toBe(0)
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(await balanceOf(shop, userId)).toBe(2500)
    // The event was late, not lost.
    await sendEvent(shop, { id: 'evt', type: 'payment_intent.succeeded', object: { id } })
    expect(await balanceOf(shop, userId)).toBe(2500)
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a failed deposit that its customer completes with another card is credited, although the webhook is lost', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_intent_id: ref } = await put(shop, userId, null)
    const object = { id: ref, metadata: { deposit_id: '1.0' } }
    await sendEvent(shop, { id: 'evt_failed', type: 'payment_intent.payment_failed', object })
    expect(await listed(shop, userId)).toMatchObject([{ status: 'failed' }])
    await shop.bank.take(ref)
    shop.clock.advance(30 * MINUTE)
    await shop.work.drain()
    expect(await balance(shop, userId)).toMatchObject({ balance_cents: 2500, pending_cents: 0 })
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a failed deposit that its customer abandons is cancelled at the processor, and not queried any more', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_intent_id: ref } = await put(shop, userId, null)
    const object = { id: ref, metadata: { deposit_id: '1.0' } }
    await sendEvent(shop, { id: 'evt_failed', type: 'payment_intent.payment_failed', object })
    shop.clock.advance(30 * MINUTE)
    await shop.work.drain()
    expect(await intents(shop)).toMatchObject([{ status: 'canceled' }])
    expect(await listed(shop, userId)).toMatchObject([{ status: 'failed' }])
    expect(await lookedAfter(shop)).toEqual([])
  })

  test('a deposit that its bank works on for long is queried repeatedly', async () => {
    const shop = await open(
      wrapped((real) => ({
        readIntent: async (ref) => ({ ...(await real.readIntent(ref)), status: 'processing' }),
        cancelIntent: async (ref) => {
          const intent = await real.readIntent(ref)
          return shop.clock.now() < start + 60 * MINUTE ? { ...intent, status: 'processing' } : intent
        },
      })),
    )
    const start = shop.clock.now()
    const userId = await shop.customer()
    await put(shop, userId)
    for (let quarter = 0; quarter < 3; quarter += 1) {
      shop.clock.advance(16 * MINUTE)
      await shop.work.drain()
      expect(await listed(shop, userId)).toMatchObject([{ status: 'pending' }])
    }
    shop.clock.advance(16 * MINUTE)
    await shop.work.drain()
    expect(await balanceOf(shop, userId)).toBe(2500)
  })

  test('a deposit that is abandoned at the moment of its payment is credited once', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await put(shop, userId, 'pm_card_authenticationRequired')
    await shop.bank.take()
    shop.clock.advance(15 * MINUTE)
    await shop.work.drain()
    expect(await listed(shop, userId)).toMatchObject([{ status: 'completed' }])
    const [intent] = await intents(shop)
    const object = { id: intent!.id, metadata: { deposit_id: '1.0' } }
    await sendEvent(shop, { id: 'evt', type: 'payment_intent.succeeded', object })
    expect(await balanceOf(shop, userId)).toBe(2500)
  })

  test('a deposit outside its bounds is 422 in FastAPI’s wording, and one by an unknown method is not found', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const of = (amountCents: number, method = 'pm_card_visa') =>
      deposit(shop.services, { userId, amountCents, method })
    await expect(of(99)).rejects.toMatchObject({
      code: 'validation_error',
      items: [{ loc: ['body', 'amount_cents'], type: 'greater_than_equal', ctx: { ge: 100 } }],
    })
    await expect(of(50_001)).rejects.toMatchObject({
      items: [{ loc: ['body', 'amount_cents'], type: 'less_than_equal', ctx: { le: 50_000 } }],
    })
    await expect(of(100, 'pm_none')).rejects.toMatchObject({ code: 'payment_method_not_found' })
    // Stripe was asked about the method; the sandbox knows its own.
    expect((await listed(shop, userId)).filter(({ status }) => status !== 'failed')).toEqual([])
    expect([(await of(100)).amount_cents, (await of(50_000)).amount_cents]).toEqual([100, 50_000])
  })

  test('a deposit is at least the processor’s minimum, for any setting of the operator', async () => {
    const shop = await open()
    const userId = await shop.customer()
    shop.context.settings.depositMinCents = 1
    const put = (amountCents: number) =>
      deposit(shop.services, { userId, amountCents, method: 'pm_card_visa' })
    await expect(put(49)).rejects.toMatchObject({ code: 'validation_error', items: [{ ctx: { ge: 50 } }] })
    expect(await put(50)).toMatchObject({ status: 'pending', amount_cents: 50 })
    shop.context.settings.currency = 'CZK'
    await expect(put(1499)).rejects.toMatchObject({ code: 'validation_error' })
  })

  test('a deposit that is requested twice under one key is one intent; another key or user creates another one', async () => {
    const shop = await open()
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    const first = await put(shop, ada, 'pm_card_visa', 'k')
    expect(await put(shop, ada, 'pm_card_visa', 'k')).toEqual(first)
    expect((await put(shop, ada, 'pm_card_visa', 'l')).transaction_id).toBe(2)
    expect((await put(shop, eve, 'pm_card_visa', 'k')).transaction_id).toBe(3)
    expect(await intents(shop)).toHaveLength(3)
    shop.clock.advance(25 * 60 * MINUTE)
    expect((await put(shop, ada, 'pm_card_visa', 'k')).transaction_id).toBe(4)
  })

  test('a deposit without an answer is 503: it is not made later, and can be repeated under its key', async () => {
    let isDown = true
    const shop = await open(
      wrapped((sandbox) => ({
        createIntent: (request) =>
          isDown ? Promise.reject(new ProcessorUnavailable('down')) : sandbox.createIntent(request),
      })),
    )
    const userId = await shop.customer()
    const asking = () => put(shop, userId, 'pm_card_visa', 'k')
    await expect(asking()).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect(await balance(shop, userId)).toMatchObject({ pending_cents: 2500 })
    isDown = false
    shop.clock.advance(31_000)
    await shop.work.drain()
    await deliver(shop)
    expect(await balance(shop, userId)).toMatchObject({ balance_cents: 0, pending_cents: 0 })
    expect(await intents(shop)).toMatchObject([{ status: 'canceled' }])
    await asking()
    await deliver(shop)
    expect(await balanceOf(shop, userId)).toBe(2500)
  })

  test('an event of another installation changes neither a deposit nor a payment', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await put(shop, userId)
    const stranger = { id: 'pi_elsewhere', metadata: { deposit_id: '1.0' } }
    await sendEvent(shop, { id: 'evt', type: 'payment_intent.succeeded', object: stranger })
    expect(await balanceOf(shop, userId)).toBe(0)
  })

  test('a deposit with an outcome that the processor does not report raises an alarm for every owner until the outcome is known', async () => {
    let isDown = false
    const silent = () => Promise.reject(new ProcessorUnavailable('silent'))
    const shop = await open(
      wrapped((real) => ({
        readIntent: (ref) => (isDown ? silent() : real.readIntent(ref)),
        cancelIntent: (ref) => (isDown ? silent() : real.cancelIntent(ref)),
      })),
    )
    const { kysely } = shop.context.db
    await kysely.insertInto('owners').values({ name: 'Another', created_at: 0 }).execute()
    const openAlarms = () =>
      kysely
        .selectFrom('alarms')
        .select(['owner_id', 'kind', 'subject'])
        .where('cleared_at', 'is', null)
        .orderBy('owner_id')
        .execute()
    const userId = await shop.customer()
    await put(shop, userId, null)
    isDown = true
    shop.clock.advance(shop.context.settings.paymentAbandonMs - MINUTE)
    await shop.work.drain()
    expect(await openAlarms()).toEqual([])
    shop.clock.advance(2 * MINUTE)
    await shop.work.drain()
    const stuck = { kind: 'payment_stuck', subject: 'deposit 1' }
    expect(await openAlarms()).toEqual([1, 2].map((owner_id) => ({ owner_id, ...stuck })))
    isDown = false
    shop.clock.advance(60 * MINUTE)
    await shop.work.drain()
    expect(await openAlarms()).toEqual([])
    expect(await listed(shop, userId)).toMatchObject([{ status: 'canceled' }])
  })

  test('a deposit that a bank works on for days raises no alarm', async () => {
    const shop = await open()
    await put(shop, await shop.customer(), 'pm_usBankAccount')
    shop.clock.advance(shop.context.settings.paymentAbandonMs + MINUTE)
    await shop.work.drain()
    expect(await shop.context.db.kysely.selectFrom('alarms').select('kind').execute()).toEqual([])
  })
})

onEachProcessor('transactions of a wallet', (open) => {
  test('transactions of a wallet are listed newest first, in pages, only to their owner', async () => {
    const shop = await open()
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    for (let i = 0; i < 5; i += 1) await put(shop, ada)
    await put(shop, eve)
    const page = async (limit: number, offset: number) =>
      (await walletTransactions(shop.context.db.kysely, ada, { limit, offset })).map(({ id }) => id)
    expect([await page(2, 0), await page(2, 2), await page(2, 4), await page(2, 6)]).toEqual([
      [5, 4],
      [3, 2],
      [1],
      [],
    ])
    expect((await listed(shop, eve)).map(({ id }) => id)).toEqual([6])
  })
})
