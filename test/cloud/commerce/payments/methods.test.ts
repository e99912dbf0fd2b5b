import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { createSetupIntent, removeMethod, saveMethod } from '../../../../cloud/commerce/methods/methods.ts'
import { listMethods } from '../../../../cloud/commerce/methods/method-rows.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { deliver } from '../../support/webhooks.ts'

const save = (shop: Shop, userId: number, method: string, setDefault = false) =>
  saveMethod(shop.services, { userId, method, setDefault })
const list = (shop: Shop, userId: number) =>
  listMethods(shop.context.db.kysely, userId, shop.services.processor.name)
const remove = (shop: Shop, userId: number, method: string) => removeMethod(shop.services, { userId, method })
const brands = async (shop: Shop, userId: number) =>
  (await list(shop, userId)).map(({ brand, is_default }) => (is_default ? `${brand} (default)` : brand))

const payWith = async (shop: Shop, userId: number, method: string, saves = false) => {
  const { id: orderId } = await shop.cart(userId, { 1: 1 })
  return pay(shop.services, { userId, orderId, method, saves })
}

/** A processor that executes a call, or does not, and gives no answer while `trouble.is`. */
function silent(call: 'attachMethod' | 'createCustomer', does: boolean) {
  const trouble = { is: true }
  const wrapProcessor = (real: CardProcessor): CardProcessor => ({
    ...real,
    async [call](request: never) {
      const answer = trouble.is && !does ? undefined : await real[call](request)
      if (trouble.is) throw new ProcessorUnavailable('silent')
      return answer
    },
  })
  return { trouble, wrapProcessor }
}

onEachProcessor('payment methods', (open) => {
  test('payment methods are saved with their description; the first is the default until another is chosen', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const visa = await save(shop, userId, 'pm_card_visa')
    expect(visa).toEqual({
      payment_method_id: expect.stringMatching(/^pm_/),
      type: 'card',
      brand: 'visa',
      last4: '4242',
      exp_month: 12,
      exp_year: 2034,
      is_default: true,
      created_at: new Date(shop.clock.now()).toISOString(),
    })
    await save(shop, userId, 'pm_card_mastercard')
    expect(await brands(shop, userId)).toEqual(['visa (default)', 'mastercard'])
    await save(shop, userId, 'pm_card_amex', true)
    expect(await brands(shop, userId)).toEqual(['amex (default)', 'mastercard', 'visa'])
    expect(await save(shop, userId, visa.payment_method_id)).toEqual({ ...visa, is_default: false })
    expect(await save(shop, userId, visa.payment_method_id, true)).toEqual(visa)
    expect(await brands(shop, userId)).toEqual(['visa (default)', 'amex', 'mastercard'])
    const [customer, ...others] = await shop.bank.customers()
    expect([customer!.methods.length, others]).toEqual([3, []])
  })

  test('a payment method that is saved three times simultaneously is saved once', async () => {
    let calls = 0
    let arrive = (): void => undefined
    const allHere = new Promise<void>((resolve) => (arrive = resolve))
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        async attachMethod(request) {
          calls += 1
          if (calls === 3) arrive()
          await allHere
          return real.attachMethod(request)
        },
      }),
    })
    const userId = await shop.customer()
    const answers = await Promise.all([1, 2, 3].map(() => save(shop, userId, 'pm_card_visa')))
    const ids = new Set(answers.map(({ payment_method_id }) => payment_method_id))
    expect((await list(shop, userId)).map(({ payment_method_id }) => payment_method_id)).toEqual([...ids])
    expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
  })

  test('payment methods of one user are invisible to others, who cannot use, remove or select them', async () => {
    const shop = await open()
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    const { payment_method_id: id } = await save(shop, ada, 'pm_card_visa')
    await save(shop, eve, 'pm_card_amex')
    await expect(remove(shop, eve, id)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    await expect(remove(shop, eve, 'pm_none')).rejects.toMatchObject({ code: 'payment_method_not_found' })
    expect(await brands(shop, ada)).toEqual(['visa (default)'])
    expect(await brands(shop, eve)).toEqual(['amex (default)'])
    await expect(save(shop, eve, id)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    await expect(payWith(shop, eve, id)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    expect((await shop.bank.intents()).length).toBe(0)
    // The cart is unchanged, and another card pays it.
    expect(await payWith(shop, eve, 'pm_card_visa')).toMatchObject({ status: 'succeeded' })
  })

  test('two saved Visas are two payment methods, and each can be removed alone', async () => {
    const shop = await open()
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    const saved = []
    for (const userId of [ada, ada, eve]) saved.push(await save(shop, userId, 'pm_card_visa'))
    const [first, second] = saved.map(({ payment_method_id }) => payment_method_id)
    const ids = new Set(saved.map(({ payment_method_id }) => payment_method_id))
    expect([ids.size, ids.has('pm_card_visa')]).toEqual([3, false])
    await remove(shop, ada, first!)
    expect((await list(shop, ada)).map(({ payment_method_id }) => payment_method_id)).toEqual([second])
    await expect(payWith(shop, ada, first!)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    await expect(save(shop, ada, first!)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    expect(await payWith(shop, ada, second!)).toMatchObject({ status: 'succeeded' })
  })

  test('a saved card keeps its behaviour: a slow refund is slow', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_method_id: method } = await save(shop, userId, 'pm_card_pendingRefund')
    const { order_id: id } = await payWith(shop, userId, method)
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([{ status: 'pending' }])
    await deliver(shop)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
  })

  test('a card of a mobile wallet is saved by its token with its description, and pays', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const a = await save(shop, userId, 'tok_visa')
    const b = await save(shop, userId, 'tok_platform_b_mastercard')
    expect([a, b]).toMatchObject([
      { payment_method_id: expect.stringMatching(/^pm_/), type: 'platform_a', brand: 'visa', last4: '4242' },
      { payment_method_id: expect.stringMatching(/^pm_/), type: 'platform_b', brand: 'mastercard' },
    ])
    expect((await list(shop, userId)).map(({ type }) => type)).toEqual(['platform_a', 'platform_b'])
    expect(await payWith(shop, userId, b.payment_method_id)).toMatchObject({ status: 'succeeded' })
    await expect(save(shop, userId, 'tok_chargeDeclined')).rejects.toMatchObject({ code: 'card_declined' })
    await expect(save(shop, userId, 'tok_none')).rejects.toMatchObject({ code: 'payment_method_not_found' })
    expect(await list(shop, userId)).toHaveLength(2)
  })

  test('a card of a mobile wallet is saved once, for any lost answer of the processor', async () => {
    const { trouble, wrapProcessor } = silent('attachMethod', true)
    const shop = await open({ wrapProcessor })
    const userId = await shop.customer()
    await expect(save(shop, userId, 'tok_visa')).rejects.toMatchObject({ code: 'processor_unavailable' })
    trouble.is = false
    shop.clock.advance(3_600_000)
    await shop.work.drain()
    expect((await list(shop, userId)).map(({ type }) => type)).toEqual(['platform_a'])
    expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
  })

  test.for([
    ['pm_card_chargeDeclined', 'card_declined'],
    ['pm_none', 'payment_method_not_found'],
    ['pm_usBankAccount', 'payment_method_not_found'],
    ['visa', 'payment_method_not_found'],
  ] as const)(
    'a payment method that the processor refuses is not saved: %s is %s',
    async ([method, code]) => {
      const shop = await open()
      const userId = await shop.customer()
      await expect(save(shop, userId, method)).rejects.toMatchObject({ code })
      shop.clock.advance(60_000)
      await shop.work.drain()
      expect(await list(shop, userId)).toEqual([])
      expect(await shop.context.db.kysely.selectFrom('payment_methods').selectAll().execute()).toEqual([])
    },
  )

  test('a user has at most 50 payment methods', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_method_id } = await save(shop, userId, 'pm_card_visa')
    const q = shop.context.db.kysely
    const { id: _, ...row } = await q.selectFrom('payment_methods').selectAll().executeTakeFirstOrThrow()
    for (let n = 0; n < 49; n += 1)
      await q
        .insertInto('payment_methods')
        .values({ ...row, ref: `pm_${n}`, is_default: 0 })
        .execute()
    await expect(save(shop, userId, 'pm_card_amex')).rejects.toMatchObject({ code: 'validation_error' })
    expect(await save(shop, userId, payment_method_id)).toBeDefined()
    expect(await list(shop, userId)).toHaveLength(50)
  })

  test('a payment method is entered in the processor’s form with a secret, and a user is one customer there, also simultaneously', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const forms = await Promise.all(
      ['k1', 'k'.repeat(255), undefined].map((key) => createSetupIntent(shop.services, userId, key)),
    )
    expect(new Set(forms.map(({ setup_intent_id }) => setup_intent_id)).size).toBe(3)
    expect(forms[0]).toEqual({
      setup_intent_id: expect.stringMatching(/^seti_/),
      client_secret: expect.stringContaining('_secret_'),
      status: 'requires_payment_method',
    })
    expect(await createSetupIntent(shop.services, userId, 'k1')).toEqual(forms[0])
    await save(shop, userId, 'pm_card_visa')
    expect(await shop.bank.customers()).toHaveLength(1)
  })

  test('a saved payment method pays orders repeatedly, and credits the wallet', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_method_id: method } = await save(shop, userId, 'pm_card_visa')
    for (let times = 0; times < 2; times += 1) {
      const result = await payWith(shop, userId, method)
      expect(result).toMatchObject({ status: 'succeeded', processing_status: S.QUEUED })
      await shop.report({
        kind: 'order.failed',
        order_id: result.order_id,
        reason: 'jam',
        bins: [],
        lines: [],
      })
    }
    await deposit(shop.services, { userId, amountCents: 500, method })
    await deliver(shop)
    expect((await shop.bank.intents()).map(({ status }) => status)).toEqual(Array(3).fill('succeeded'))
    expect(await list(shop, userId)).toHaveLength(1)
  })

  test('a saved payment method may be declined later', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_method_id: method } = await save(shop, userId, 'pm_card_chargeCustomerFail')
    await expect(payWith(shop, userId, method)).rejects.toMatchObject({ code: 'card_declined' })
    expect(await list(shop, userId)).toHaveLength(1)
  })

  test('a payment method is saved with a payment on request, after its success, and pays again', async () => {
    const shop = await open()
    const userId = await shop.customer()
    await expect(payWith(shop, userId, 'pm_card_chargeDeclined', true)).rejects.toMatchObject({
      code: 'card_declined',
    })
    expect(await list(shop, userId)).toEqual([])
    const { order_id } = await payWith(shop, userId, 'pm_card_visa', true)
    const [saved, ...others] = await list(shop, userId)
    expect([saved, others]).toEqual([expect.objectContaining({ brand: 'visa', is_default: true }), []])
    await shop.report({ kind: 'order.failed', order_id, reason: 'jam', bins: [], lines: [] })
    const again = await payWith(shop, userId, saved!.payment_method_id, true)
    expect(again).toMatchObject({ status: 'succeeded' })
    expect(await list(shop, userId)).toHaveLength(1)
    expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
  })

  test('a payment method that needs authentication is saved after its payment', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const asked = await payWith(shop, userId, 'pm_card_authenticationRequired', true)
    expect([asked.status, await list(shop, userId)]).toEqual(['requires_action', []])
    await shop.bank.approve(asked.payment_id)
    const { order_id: orderId, payment_id: paymentId } = asked
    await confirmPayment(shop.services, { userId, orderId, paymentId })
    expect(await brands(shop, userId)).toEqual(['visa (default)'])
  })

  test('a payment method is saved on request with a free order too', async () => {
    const shop = await open({ products: [{ price: 1, markdown: 99, quantity: 5 }] })
    const userId = await shop.customer()
    expect(await payWith(shop, userId, 'pm_card_visa', true)).toMatchObject({
      amount: 0,
      status: 'succeeded',
    })
    expect(await brands(shop, userId)).toEqual(['visa (default)'])
    expect(await shop.bank.intents()).toEqual([])
  })

  test.for([
    ['did it', true],
    ['did not', false],
  ] as const)(
    'a payment method without the processor’s confirmation, which %s, is saved once by the recovery',
    async ([, does]) => {
      const { trouble, wrapProcessor } = silent('attachMethod', does)
      const shop = await open({ wrapProcessor })
      const userId = await shop.customer()
      await expect(save(shop, userId, 'pm_card_visa', true)).rejects.toMatchObject({
        code: 'processor_unavailable',
      })
      expect(await list(shop, userId)).toEqual([])
      shop.clock.advance(31_000)
      await shop.work.drain()
      trouble.is = false
      shop.clock.advance(3_600_000)
      await shop.work.drain()
      expect(await brands(shop, userId)).toEqual(['visa (default)'])
      expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
    },
  )

  test('a payment method is saved later if the processor is silent after a payment, which stands', async () => {
    const { trouble, wrapProcessor } = silent('attachMethod', false)
    const shop = await open({ wrapProcessor })
    const userId = await shop.customer()
    expect(await payWith(shop, userId, 'pm_card_visa', true)).toMatchObject({ status: 'succeeded' })
    expect(await list(shop, userId)).toEqual([])
    trouble.is = false
    shop.clock.advance(60_000)
    await shop.work.drain()
    expect(await brands(shop, userId)).toEqual(['visa (default)'])
  })

  test('a customer is found by the next attempt if the processor did not confirm the creation', async () => {
    const { trouble, wrapProcessor } = silent('createCustomer', true)
    const shop = await open({ wrapProcessor })
    const userId = await shop.customer()
    await expect(save(shop, userId, 'pm_card_visa')).rejects.toMatchObject({ code: 'processor_unavailable' })
    trouble.is = false
    await save(shop, userId, 'pm_card_visa')
    expect(await shop.bank.customers()).toHaveLength(1)
  })
})
