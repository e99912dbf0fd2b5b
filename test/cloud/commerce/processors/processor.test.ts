import { expect, test } from 'vitest'
import {
  METHOD_UNKNOWN,
  MethodRefused,
  type IntentRequest,
  type RefundRequest,
} from '../../../../cloud/commerce/processors/processor.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'

/** The contract of every card processor (`processor.ts`). */
function asking({ services, clock }: Shop) {
  const { processor } = services
  let payments = 0
  const intent = (more: Partial<IntentRequest> = {}): IntentRequest => {
    payments += 1
    return {
      idempotencyKey: `payment:${payments}`,
      startedAt: clock.now(),
      amount: 541,
      currency: 'USD',
      method: 'pm_card_visa',
      type: 'card',
      customer: null,
      saves: false,
      metadata: { payment_id: `${payments}.0`, order_id: 1 },
      ...more,
    }
  }
  const refund = (ref: string, more: Partial<RefundRequest> = {}): RefundRequest => ({
    idempotencyKey: 'refund:1',
    startedAt: clock.now(),
    ref,
    amount: 100,
    metadata: { refund_id: '1.0', order_id: 1 },
    ...more,
  })
  const customer = (userId = 1): Promise<string> =>
    processor.createCustomer({ idempotencyKey: `customer:${userId}`, startedAt: clock.now(), userId })
  return { processor, intent, refund, customer }
}

onEachProcessor('card processors', (open) => {
  test.for([
    ['pm_card_visa', 'succeeded'],
    ['pm_card_mastercard', 'succeeded'],
    ['pm_card_authenticationRequired', 'requires_action'],
    ['pm_usBankAccount', 'processing'],
    [null, 'either'],
  ] as const)(
    'a processor creates an intent of %s with the state %s, and returns the same when asked',
    async ([method, status]) => {
      const shop = await open()
      const { processor, intent } = asking(shop)
      const made = await processor.createIntent(intent({ method }))
      if (status !== 'either') expect(made).toMatchObject({ status, declineCode: null })
      // The customer has yet to choose; the sandbox's customers do so automatically.
      else expect(['requires_action', 'processing']).toContain(made.status)
      expect(made.ref).toMatch(/^pi_/)
      expect(made.clientSecret).toContain('_secret_')
      expect(await processor.readIntent(made.ref!)).toMatchObject({ ref: made.ref, status: made.status })
      expect(await shop.bank.intents()).toMatchObject([{ id: made.ref, amount: 541, refunded: 0 }])
    },
  )

  test('a processor returns the reason of a decline, and keeps the intent as failed', async () => {
    const shop = await open()
    const { processor, intent } = asking(shop)
    const made = await processor.createIntent(intent({ method: 'pm_card_chargeDeclined' }))
    expect(made).toMatchObject({ status: 'failed', declineCode: 'generic_decline' })
    expect(made.ref).toMatch(/^pi_/)
    expect(await processor.readIntent(made.ref!)).toMatchObject({ status: 'failed' })
  })

  test('a processor recognises possible method names, and creates nothing for others', async () => {
    const shop = await open()
    const { processor, intent } = asking(shop)
    for (const method of ['', 'external', 'wallet', 'visa', "pm_'; drop", 'pi_1'])
      expect([method, processor.knowsMethod(method, 'card')]).toEqual([method, false])
    expect(processor.knowsMethod('pm_card_visa', 'card')).toBe(true)
    if (processor.name === 'sandbox') return expect(processor.knowsMethod('pm_none', 'card')).toBe(false)
    expect(await processor.createIntent(intent({ method: 'pm_none' }))).toMatchObject({
      ref: null,
      status: 'failed',
      declineCode: METHOD_UNKNOWN,
    })
  })

  test.for([
    ['tok_visa', 'succeeded', null],
    ['tok_chargeDeclined', 'failed', 'generic_decline'],
    ['tok_visa_chargeDeclined', 'failed', 'generic_decline'],
    ['tok_authenticationRequired', 'requires_action', null],
    ['pm_card_visa', 'succeeded', null],
  ] as const)(
    'a processor accepts %s of a mobile wallet, which is %s',
    async ([method, status, declineCode]) => {
      const shop = await open()
      const { processor, intent } = asking(shop)
      for (const type of ['platform_a', 'platform_b'] as const) {
        expect(processor.knowsMethod(method, type)).toBe(true)
        const made = await processor.createIntent(intent({ method, type }))
        expect(made).toMatchObject({ status, declineCode })
      }
    },
  )

  test('a processor creates one intent per key for any number of simultaneous calls, and returns its present state', async () => {
    const shop = await open()
    const { processor, intent } = asking(shop)
    const request = intent({ method: 'pm_card_authenticationRequired' })
    const first = await processor.createIntent(request)
    const all = await Promise.all(Array.from({ length: 5 }, () => processor.createIntent(request)))
    expect(all.map(({ ref }) => ref)).toEqual(Array.from({ length: 5 }, () => first.ref))
    await processor.cancelIntent(first.ref!)
    expect(await processor.createIntent(request)).toMatchObject({ ref: first.ref, status: 'canceled' })
    expect(await shop.bank.intents()).toHaveLength(1)
    const declined = intent({ method: 'pm_card_chargeDeclined' })
    const [one, two] = [await processor.createIntent(declined), await processor.createIntent(declined)]
    expect(two).toMatchObject({ ref: one.ref, status: 'failed', declineCode: 'generic_decline' })
    expect(await shop.bank.intents()).toHaveLength(2)
  })

  test('a processor confirms an intent that its customer has authenticated, and finished intents stay unchanged', async () => {
    const shop = await open()
    const { processor, intent } = asking(shop)
    const { ref } = await processor.createIntent(intent({ method: 'pm_card_authenticationRequired' }))
    await shop.bank.approve(ref!)
    expect(await processor.confirmIntent(ref!)).toMatchObject({ ref, status: 'succeeded' })
    expect(await processor.confirmIntent(ref!)).toMatchObject({ ref, status: 'succeeded' })
    const gone = await processor.createIntent(intent({ method: 'pm_card_authenticationRequired' }))
    await processor.cancelIntent(gone.ref!)
    expect(await processor.confirmIntent(gone.ref!)).toMatchObject({ status: 'canceled' })
  })

  test('a processor cancels an unfinished intent once, and returns the end of a finished one', async () => {
    const shop = await open()
    const { processor, intent } = asking(shop)
    const waiting = await processor.createIntent(intent({ method: 'pm_card_authenticationRequired' }))
    expect(await processor.cancelIntent(waiting.ref!)).toMatchObject({ status: 'canceled' })
    expect(await processor.cancelIntent(waiting.ref!)).toMatchObject({ status: 'canceled' })
    const done = await processor.createIntent(intent())
    expect(await processor.cancelIntent(done.ref!)).toMatchObject({ ref: done.ref, status: 'succeeded' })
  })

  test('a processor refunds once per key, in parts up to the whole, and no further', async () => {
    const shop = await open()
    const { processor, intent, refund } = asking(shop)
    const { ref } = await processor.createIntent(intent())
    const first = await processor.createRefund(refund(ref!))
    expect(first).toMatchObject({ status: 'succeeded', failureReason: null })
    const again = await Promise.all([1, 2, 3].map(() => processor.createRefund(refund(ref!))))
    expect(again).toEqual([first, first, first])
    expect(await processor.readRefund(first.ref!)).toEqual(first)
    const next = { metadata: { refund_id: '2.0', order_id: 1 } }
    const rest = refund(ref!, { ...next, idempotencyKey: 'refund:2', amount: 441 })
    expect(await processor.createRefund(rest)).toMatchObject({ status: 'succeeded' })
    const more = refund(ref!, { ...next, idempotencyKey: 'refund:3', amount: 1 })
    const refused = await processor.createRefund(more)
    expect(refused.status).toBe('failed')
    expect(refused.failureReason).toBeTruthy()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 541, refunded: 541 }])
  })

  test('a processor refuses to refund money that it has not taken, or that a bank refuses', async () => {
    const shop = await open()
    const { processor, intent, refund } = asking(shop)
    const waiting = await processor.createIntent(intent({ method: 'pm_card_authenticationRequired' }))
    expect(await processor.createRefund(refund(waiting.ref!))).toMatchObject({ status: 'failed' })
    const { ref } = await processor.createIntent(intent({ method: shop.bank.unrefundable }))
    const other = refund(ref!, { idempotencyKey: 'refund:2' })
    expect(await processor.createRefund(other)).toMatchObject({
      status: 'failed',
      failureReason: 'lost_or_stolen_card',
    })
    expect((await shop.bank.intents()).map(({ refunded }) => refunded)).toEqual([0, 0])
  })

  test('a refund may be pending for a while, and returns its state when asked', async () => {
    const shop = await open()
    const { processor, intent, refund } = asking(shop)
    const { ref } = await processor.createIntent(intent({ method: 'pm_card_pendingRefund' }))
    const begun = await processor.createRefund(refund(ref!))
    expect(begun.status).toBe('pending')
    await shop.bank.arrive()
    expect(await processor.readRefund(begun.ref!)).toMatchObject({ ref: begun.ref, status: 'succeeded' })
  })

  test('a processor creates one customer per key, who can enter a method in its form', async () => {
    const shop = await open()
    const { processor, customer } = asking(shop)
    const [one, same, other] = [await customer(), await customer(), await customer(2)]
    expect([one, other]).toEqual([same, expect.not.stringMatching(one)])
    const setup = { idempotencyKey: 'setup:1', customer: one }
    const form = await processor.createSetupIntent(setup)
    expect(form).toMatchObject({ status: 'requires_payment_method' })
    expect([form.ref, form.clientSecret]).toEqual([
      expect.stringMatching(/^seti_/),
      expect.stringContaining('_secret_'),
    ])
    expect(await processor.createSetupIntent(setup)).toEqual(form)
  })

  test('a processor saves a method of a customer once per key, and charges it', async () => {
    const shop = await open()
    const { processor, intent, customer } = asking(shop)
    const owner = await customer()
    const request = { idempotencyKey: 'method:1', method: 'pm_card_mastercard', customer: owner }
    const saved = await processor.attachMethod(request)
    expect(saved).toEqual({
      ref: expect.stringMatching(/^pm_/),
      type: 'card',
      brand: 'mastercard',
      last4: '4444',
      expMonth: 12,
      expYear: 2034,
    })
    expect(await processor.attachMethod(request)).toEqual(saved)
    const again = { ...request, method: saved.ref, idempotencyKey: 'method:2' }
    expect(await processor.attachMethod(again)).toEqual(saved)
    expect(await shop.bank.customers()).toEqual([{ id: owner, methods: [saved.ref] }])
    const paid = await processor.createIntent(intent({ method: saved.ref, customer: owner }))
    expect(paid.status).toBe('succeeded')
    expect(await processor.createIntent(intent({ method: saved.ref, customer: owner }))).toMatchObject({
      status: 'succeeded',
    })
  })

  test('a saved method can be charged only for the customer who has it, while it is saved', async () => {
    const shop = await open()
    const { processor, intent, customer } = asking(shop)
    const [owner, other] = [await customer(1), await customer(2)]
    const attach = (method: string, to: string) =>
      processor.attachMethod({ idempotencyKey: `method:${method} ${to}`, method, customer: to })
    const { ref: method } = await attach('pm_card_visa', owner)
    await expect(attach(method, other)).rejects.toBeInstanceOf(MethodRefused)
    const unknown = { ref: null, status: 'failed', declineCode: METHOD_UNKNOWN }
    for (const stranger of [other, null])
      expect(await processor.createIntent(intent({ method, customer: stranger }))).toEqual(
        expect.objectContaining(unknown),
      )
    expect(await shop.bank.intents()).toEqual([])
    const request = intent({ method, customer: owner })
    const paid = await processor.createIntent(request)
    await processor.detachMethod({ method, customer: owner })
    expect(await processor.createIntent(request)).toMatchObject({ ref: paid.ref, status: 'succeeded' })
    expect(await processor.createIntent(intent({ method, customer: owner }))).toMatchObject(unknown)
    await expect(attach(method, owner)).rejects.toBeInstanceOf(MethodRefused)
  })

  test.for([
    ['pm_card_chargeDeclined', 'generic_decline'],
    ['pm_none', null],
    ['pm_usBankAccount', null],
  ] as const)('a processor does not save %s', async ([method, declineCode]) => {
    const shop = await open()
    const { processor, customer } = asking(shop)
    const owner = await customer()
    const refused = processor.attachMethod({ idempotencyKey: 'method:1', method, customer: owner })
    await expect(refused).rejects.toBeInstanceOf(MethodRefused)
    await expect(refused).rejects.toMatchObject({ declineCode })
    expect(await shop.bank.customers()).toEqual([{ id: owner, methods: [] }])
  })

  test('a processor removes a method, and a customer with every method; a repetition is no error', async () => {
    const shop = await open()
    const { processor, customer } = asking(shop)
    const owner = await customer()
    const attach = (method: string) =>
      processor.attachMethod({ idempotencyKey: `method:${method}`, method, customer: owner })
    const [visa, amex] = [await attach('pm_card_visa'), await attach('pm_card_amex')]
    for (let times = 0; times < 2; times += 1)
      await processor.detachMethod({ method: visa.ref, customer: owner })
    expect(await shop.bank.customers()).toEqual([{ id: owner, methods: [amex.ref] }])
    for (let times = 0; times < 2; times += 1) await processor.removeCustomer(owner)
    expect(await shop.bank.customers()).toEqual([])
    await expect(attach('pm_card_mastercard')).rejects.toBeInstanceOf(MethodRefused)
  })
})
