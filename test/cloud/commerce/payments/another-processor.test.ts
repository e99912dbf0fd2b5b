import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { paymentCommands } from '../../../../cloud/cli/payments.ts'
import { commerceWork } from '../../../../cloud/commerce/work.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { settleRefunds } from '../../../../cloud/commerce/refunds/settle-refunds.ts'
import type { MoneyServices } from '../../../../cloud/commerce/services.ts'
import { saveMethod } from '../../../../cloud/commerce/methods/methods.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

const HOUR = 3_600_000

/** The operator's commands for stuck payments. */
function commandsOf({ context }: Shop) {
  const { stuck, settle } = paymentCommands.subcommands
  const { db, runtime } = context
  const invocation = (options = {}) => ({
    options,
    runtime,
    context,
    q: db.kysely,
    db,
    settings: { limits: { rules: context.settings } } as never,
    environment: {},
    terminal: { print: () => {}, signal: new AbortController().signal },
  })
  return {
    stuck: () => stuck!.run(invocation()),
    settle: (id: string) => settle!.run(invocation({ id })),
  }
}

onEachDatabase('a change of the card processor', (open) => {
  test('a new processor is not asked about money of the former one, for which orders do not wait', async () => {
    let isDown = false
    const faults: unknown[] = []
    const shop = await openShop(await open(), {
      onFault: (error) => void faults.push(error),
      wrapProcessor: (real) => ({
        ...real,
        createIntent: (request) =>
          isDown ? Promise.reject(new ProcessorUnavailable('down')) : real.createIntent(request),
        detachMethod: () => Promise.reject(new ProcessorUnavailable('down')),
      }),
    })
    const userId = await shop.customer()
    const begin = async (method: string): Promise<number> => {
      const customer = await shop.customer()
      const { id } = await shop.cart(customer, { 1: 1 })
      await pay(shop.services, { userId: customer, orderId: id, method }).catch(() => {})
      return id
    }
    await saveMethod(shop.services, { userId, method: 'pm_card_visa', setDefault: false })
    const waiting = await begin('pm_card_authenticationRequired')
    const paid = await begin('pm_card_visa')
    isDown = true
    const unknown = await begin('pm_card_visa')
    await deposit(shop.services, { userId, amountCents: 500, method: null }).catch(() => {})
    await shop.report({ kind: 'order.failed', order_id: paid, reason: 'jam', bins: [], lines: [] })

    const asked: PropertyKey[] = []
    const other = new Proxy({ name: 'stripe' } as CardProcessor, {
      get: (target, name) => {
        if (name !== 'name') asked.push(name)
        return Reflect.get(target, name)
      },
    })
    const work = new WorkRunner(shop.context, commerceWork({ context: shop.context, processor: other }))
    for (let hour = 0; hour < 3; hour += 1) {
      shop.clock.advance(HOUR)
      await work.drain()
    }
    expect([asked, faults]).toEqual([[], []])
    for (const orderId of [waiting, unknown]) {
      expect((await shop.order(orderId)).processing_status).toBe(S.EXPIRED)
      expect(await shop.payments(orderId)).toMatchObject([
        { status: 'canceled', given_up_at: expect.any(Number) as number },
      ])
    }
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    expect(await shop.refunds(paid)).toMatchObject([{ status: 'pending' }])

    isDown = false
    shop.clock.advance(HOUR)
    await shop.work.drain()
    expect(await shop.refunds(paid)).toMatchObject([{ status: 'succeeded' }])
    for (const orderId of [waiting, unknown])
      expect(await shop.payments(orderId)).toMatchObject([{ status: 'canceled', given_up_at: null }])
  })

  test('stuck payments of a former processor are listed for an operator, who resolves them manually', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId, method: 'pm_card_authenticationRequired' })
    const processor = { ...shop.services.processor, name: 'stripe' } as CardProcessor
    await deleteOrder({ ...shop.services, processor }, { userId, orderId }, 'user')
    const { stuck, settle } = commandsOf(shop)
    expect(await stuck()).toMatchObject([{ id: 1, order_id: orderId, amount: 271 }])
    await expect(settle('7')).rejects.toThrow('no such payment is stuck: 7')
    expect(await settle('1')).toMatchObject({ settled: true })
    expect(await stuck()).toEqual([])
    const work = shop.context.db.kysely.selectFrom('due_work').select('subject')
    expect(await work.where('kind', '=', 'money/payment').execute()).toEqual([])
  })

  test('a stuck deposit of a former processor is listed for an operator, who resolves it manually', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    await deposit(shop.services, { userId, amountCents: 500, method: null })
    const processor = { ...shop.services.processor, name: 'stripe' } as CardProcessor
    const work = new WorkRunner(shop.context, commerceWork({ context: shop.context, processor }))
    for (let hour = 0; hour < 3; hour += 1) {
      shop.clock.advance(HOUR)
      await work.drain()
    }
    const { stuck, settle } = commandsOf(shop)
    expect(await stuck()).toMatchObject([{ id: 'deposit-1', user_id: userId, amount: 500 }])
    await expect(settle('deposit-7')).rejects.toThrow('no such deposit is stuck: deposit-7')
    const alarms = shop.context.db.kysely.selectFrom('alarms').select('kind').where('cleared_at', 'is', null)
    expect(await alarms.execute()).toEqual([{ kind: 'payment_stuck' }])
    expect(await settle('deposit-1')).toMatchObject({ settled: true })
    expect([await stuck(), await alarms.execute()]).toEqual([[], []])
    const [entry] = await shop.context.db.kysely.selectFrom('ledger_entries').select('status').execute()
    expect(entry).toEqual({ status: 'canceled' })
  })

  test('a stuck refund of a former processor is listed for an operator, and a record of its payment ends its alarm', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    const processor = { ...shop.services.processor, name: 'stripe' } as CardProcessor
    const services = { ...shop.services, processor }
    const work = new WorkRunner(shop.context, commerceWork(services))
    for (let day = 0; day < 16; day += 1) {
      shop.clock.advance(24 * HOUR)
      await work.drain()
    }
    const { stuck, settle } = commandsOf(shop)
    const [refund] = await shop.refunds(id)
    expect(await stuck()).toMatchObject([
      { id: `refund-${refund!.id}`, order_id: id, payment_id: 1, processor: 'sandbox', amount: 271 },
    ])
    await expect(settle(`refund-${refund!.id}`)).rejects.toThrow('ends with its result at the processor')
    const alarms = shop.context.db.kysely.selectFrom('alarms').select('kind').where('cleared_at', 'is', null)
    expect(await alarms.execute()).toEqual([{ kind: 'payment_stuck' }])
    const paid = { ids: [refund!.id], amount: 271, reason: 'cash', actor: 'owner' }
    await shop.context.db.transact((tx) => settleRefunds(tx, services, id, paid))
    expect([await stuck(), await alarms.execute()]).toEqual([[], []])
    expect((await shop.order(id)).payment_status).toBe('refunded')
  })

  test('a refund at the former processor can be recorded as paid by a person, and the processor is not asked again', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })
    const [refund] = await shop.refunds(id)
    const settle = (services: MoneyServices) =>
      shop.context.db.transact((tx) =>
        settleRefunds(tx, services, id, { ids: [refund!.id], amount: 271, reason: 'cash', actor: 'owner' }),
      )
    await expect(settle(shop.services)).rejects.toMatchObject({ code: 'order_state_conflict' })
    const processor = { ...shop.services.processor, name: 'stripe' } as CardProcessor
    await settle({ ...shop.services, processor })
    await expect(settle({ ...shop.services, processor })).rejects.toMatchObject({
      code: 'order_state_conflict',
    })
    expect(await shop.refunds(id)).toMatchObject([
      { status: 'failed', failure_reason: 'processor_not_configured' },
      { status: 'succeeded', settles: refund!.id, amount: 271 },
    ])
    expect((await shop.order(id)).payment_status).toBe('refunded')
    shop.clock.advance(HOUR)
    await shop.work.drain()
    expect(await shop.bank.refunds()).toEqual([])
    expect(await shop.context.db.kysely.selectFrom('alarms').select('kind').execute()).toEqual([])
  })

  test.for(['delete', 'pay again'] as const)(
    'a customer with a pending payment at the former processor can %s at once',
    async (what) => {
      const shop = await openShop(await open())
      const userId = await shop.customer()
      const { id: orderId } = await shop.cart(userId, { 1: 1 })
      await pay(shop.services, { userId, orderId, method: 'pm_card_authenticationRequired' })
      const { processor: sandbox } = shop.services
      const other = { ...sandbox, name: 'stripe' } as CardProcessor
      const services = { ...shop.services, processor: other }
      if (what === 'delete') expect(await deleteOrder(services, { userId, orderId }, 'user')).toBe('deleted')
      else
        expect(await pay(services, { userId, orderId, method: 'pm_card_visa' })).toMatchObject({
          status: 'succeeded',
        })
      expect((await shop.payments(orderId))[0]).toMatchObject({
        status: 'canceled',
        processor: 'sandbox',
        given_up_at: expect.any(Number) as number,
      })
    },
  )
})
