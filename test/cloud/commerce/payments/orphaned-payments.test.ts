import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { paymentCommands } from '../../../../cloud/cli/payments.ts'
import { acknowledgeAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { noteRestored } from '../../../../cloud/commerce/orders/restored.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { uuid } from '../../../support/uuid.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { fillWallet } from '../../support/wallets.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const HOUR = 3_600_000
const booked = [
  'sales',
  'refunds',
  'money_operations',
  'ledger_entries',
  'ledger_accounts',
  'payments',
  'order_items',
  'orders',
] as const

/** Restores a copy from before the first sale. The processor keeps its data. */
async function restore({ context, clock }: Shop): Promise<void> {
  const { db } = context
  for (const table of booked) await db.kysely.deleteFrom(table).execute()
  for (const table of ['orders', 'payments', 'ledger_entries'] as const)
    await (
      db.kind === 'sqlite'
        ? sql`delete from sqlite_sequence where name = ${table}`
        : sql`alter table ${sql.table(table)} alter column id restart with 1`
    ).execute(db.kysely)
  await db.kysely.deleteFrom('due_work').where('kind', 'not like', 'processor.check').execute()
  clock.advance(60_000)
}

/** The hourly comparison. */
async function compare(shop: Shop): Promise<void> {
  shop.clock.advance(HOUR)
  await shop.work.ensureRecurring()
  await shop.work.drain(['processor.check', 'money'])
  await shop.hear()
}

const alarms = (shop: Shop, kind: 'payment_orphaned' | 'database_restored') =>
  shop.context.db.kysely
    .selectFrom('alarms')
    .selectAll()
    .where('kind', '=', kind)
    .where('cleared_at', 'is', null)
    .orderBy('owner_id')
    .orderBy('seq')
    .execute()
const detailsOf = ({ details }: { details: string }) => JSON.parse(details) as Record<string, unknown>

onEachProcessor('payments that the books have lost', (open) => {
  test('a lost payment raises the critical alarm with its order, once, until it is refunded at the processor', async () => {
    const shop = await open()
    const order = await shop.paidOrder({ 1: 1 })
    const { processor_ref: ref, amount } = (await shop.payments(order.id))[0]!
    await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    await restore(shop)
    for (let count = 0; count < 3; count += 1) await compare(shop)
    const [alarm, ...others] = await alarms(shop, 'payment_orphaned')
    expect(others).toEqual([])
    expect(alarm).toMatchObject({ severity: 'critical', subject: `payment ${ref}`, owner_id: 1 })
    expect(detailsOf(alarm!)).toMatchObject({
      amount,
      order_uuid: order.uuid,
      order_id: order.id,
      hub_id: 1,
    })
    expect((await shop.bank.intents())[0]).toMatchObject({ refunded: 0 })

    await shop.bank.giveBack(ref!, 100)
    await deliver(shop)
    await shop.work.drain()
    expect(await alarms(shop, 'payment_orphaned')).toHaveLength(1)
    await shop.bank.giveBack(ref!, amount - 100)
    await deliver(shop)
    await shop.work.drain()
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
  })

  test('a lost payment is refunded once by the service if ORPHANED_PAYMENTS is refund', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    await shop.paidOrder({ 1: 1 })
    await shop.paidOrder({ 2: 1 })
    await restore(shop)
    for (let count = 0; count < 3; count += 1) await compare(shop)
    for (const { amount, refunded } of await shop.bank.intents()) expect(refunded).toBe(amount)
    expect(await shop.bank.refunds()).toHaveLength(2)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    expect(await alarms(shop, 'database_restored')).toHaveLength(1)
  })

  test('a lost payment is refunded once if the answer to its refund is lost', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    const { amount } = (await shop.payments((await shop.paidOrder({ 1: 1 })).id))[0]!
    await restore(shop)
    const { processor } = shop.services
    const createRefund = processor.createRefund.bind(processor)
    processor.createRefund = async (request) => {
      await createRefund(request)
      throw new ProcessorUnavailable('the answer is lost')
    }
    await compare(shop)
    processor.createRefund = createRefund
    for (let count = 0; count < 2; count += 1) await compare(shop)
    expect(await shop.bank.intents()).toMatchObject([{ refunded: amount }])
    expect(await shop.bank.refunds()).toHaveLength(1)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
  })

  test('a lost payment raises the alarm if its refund is refused', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    await shop.paidOrder({ 1: 1 }, shop.bank.unrefundable)
    await restore(shop)
    await compare(shop)
    const [alarm] = await alarms(shop, 'payment_orphaned')
    expect(alarm?.message).toContain('its refund failed')
  })

  test('a lost payment is refunded again if a bank returns its refund', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    const { amount } = (await shop.payments((await shop.paidOrder({ 1: 1 })).id))[0]!
    await restore(shop)
    for (let count = 0; count < 2; count += 1) await compare(shop)
    const [made] = await shop.bank.refunds()
    await shop.bank.returnRefund(made!.id)
    for (let count = 0; count < 3; count += 1) await compare(shop)
    expect(await shop.bank.intents()).toMatchObject([{ refunded: amount }])
    expect(await shop.bank.refunds()).toHaveLength(2)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    const audit = await shop.context.db.kysely.selectFrom('audit_log').select(['action', 'result']).execute()
    const closed = { action: 'payments.orphan', result: 'refunded' }
    expect(audit.filter(({ action }) => action === closed.action)).toEqual([closed, closed])
  })

  test('a lost payment raises its alarm again if a bank returns the refund that a person made', async () => {
    const shop = await open()
    const { processor_ref: ref, amount } = (await shop.payments((await shop.paidOrder({ 1: 1 })).id))[0]!
    await restore(shop)
    await compare(shop)
    await shop.bank.giveBack(ref!, amount)
    await deliver(shop)
    await shop.work.drain()
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    const [made] = await shop.bank.refunds()
    await shop.bank.returnRefund(made!.id)
    await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toHaveLength(1)
  })

  test('a disputed lost payment is refunded when its dispute is won', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    const { processor_ref: ref, amount } = (await shop.payments((await shop.paidOrder({ 1: 1 })).id))[0]!
    await restore(shop)
    await shop.bank.dispute(ref!)
    await deliver(shop)
    for (let count = 0; count < 24; count += 1) await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toHaveLength(1)
    await shop.bank.endDispute(ref!, 'won')
    await deliver(shop)
    await compare(shop)
    expect(await shop.bank.intents()).toMatchObject([{ refunded: amount }])
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
  })

  test('a refused refund of a lost payment is tried again REFUND_RETRIES times', async () => {
    const shop = await open()
    shop.context.settings.orphanedPayments = 'refund'
    await shop.paidOrder({ 1: 1 }, shop.bank.unrefundable)
    await restore(shop)
    for (let count = 0; count < 24 * 4; count += 1) await compare(shop)
    expect(await shop.bank.refunds()).toHaveLength(1 + shop.context.settings.refundRetries)
    expect(await alarms(shop, 'payment_orphaned')).toHaveLength(1)
  })

  test('a lost payment is closed by `payments settle`, and stays closed', async () => {
    const shop = await open()
    await shop.paidOrder({ 1: 1 })
    await restore(shop)
    await compare(shop)
    const { subcommands } = paymentCommands
    const { context } = shop
    const { db, runtime } = context
    const parts = { db, q: db.kysely, context, runtime }
    const call = (name: string, id?: string): Promise<unknown> =>
      subcommands[name]!.run({ ...parts, options: id === undefined ? {} : { id } } as never)
    const [orphan] = (await call('orphaned')) as { ref: string }[]
    expect(orphan).toMatchObject({ kind: 'order', order_uuid: expect.any(String) as string })
    await expect(call('settle', 'pi_unknown')).rejects.toThrow('pi_unknown')
    expect(await call('settle', orphan!.ref)).toMatchObject({ settled: true })
    expect(await call('orphaned')).toEqual([])
    await shop.bank.dispute(orphan!.ref)
    await shop.bank.endDispute(orphan!.ref, 'won')
    await deliver(shop)
    await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    const acts = await db.kysely.selectFrom('audit_log').select(['action', 'object']).execute()
    expect(acts).toContainEqual({ action: 'payments.settle', object: `payment-${orphan!.ref}` })
  })

  test('a lost deposit counts as a lost payment too', async () => {
    const shop = await open()
    await fillWallet(shop, await shop.customer(), 700)
    await restore(shop)
    await compare(shop)
    const [alarm] = await alarms(shop, 'payment_orphaned')
    expect(detailsOf(alarm!)).toMatchObject({ kind: 'deposit', amount: 700 })
  })

  test('a lost payment that its customer has not completed is cancelled', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId, method: 'pm_card_authenticationRequired' })
    await restore(shop)
    await compare(shop)
    expect(await shop.bank.intents()).toMatchObject([{ status: 'canceled' }])
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
  })

  test('a payment without a success event is not lost: it is booked and refunded as late', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const { payment_id: ref } = await pay(shop.services, {
      userId,
      orderId,
      method: 'pm_card_authenticationRequired',
    })
    await shop.context.db.kysely
      .updateTable('payments')
      .set({ status: 'canceled' })
      .where('order_id', '=', orderId)
      .execute()
    await shop.context.db.kysely.deleteFrom('due_work').where('kind', '=', 'money/payment').execute()
    await shop.bank.take(ref)
    await compare(shop)
    await shop.work.drain()
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
  })

  test('lost payments show the highest issued order number, and no number is issued twice', async () => {
    const shop = await open({ products: [{ price: 250, quantity: 50 }] })
    for (let count = 0; count < 3; count += 1) await shop.paidOrder({ 1: 1 })
    await restore(shop)
    await compare(shop)
    expect((await shop.paidOrder({ 1: 1 })).id).toBe(4)
  })

  test('a lost payment raises database_restored with the period and the orders, until it is acknowledged', async () => {
    const shop = await open({ products: [{ price: 250, quantity: 50 }] })
    const kept = shop.clock.now()
    const before = await shop.paidOrder({ 1: 1 })
    shop.clock.advance(HOUR)
    await shop.hear()
    const lost = [await shop.paidOrder({ 1: 1 }), await shop.paidOrder({ 1: 1 })]
    const { db } = shop.context
    for (const { id } of lost) {
      await db.kysely.deleteFrom('sales').where('order_id', '=', id).execute()
      await db.kysely
        .deleteFrom('money_operations')
        .where('subject', 'in', db.kysely.selectFrom('payments').select('id').where('order_id', '=', id))
        .execute()
      await db.kysely.deleteFrom('payments').where('order_id', '=', id).execute()
      await db.kysely.deleteFrom('order_items').where('order_id', '=', id).execute()
      await db.kysely.deleteFrom('orders').where('id', '=', id).execute()
    }
    await compare(shop)
    const [alarm, ...others] = await alarms(shop, 'database_restored')
    expect([others, alarm?.severity, alarm?.subject]).toEqual([[], 'critical', null])
    const { from, to, orders } = detailsOf(alarm!) as { from: string; to: string; orders: unknown[] }
    expect(Date.parse(from)).toBeGreaterThanOrEqual(kept)
    expect(Date.parse(from)).toBeLessThan(kept + HOUR)
    expect(Date.parse(to)).toBe(shop.clock.now())
    expect(orders).toHaveLength(2)
    expect(orders).toEqual(
      expect.arrayContaining(
        lost.map(({ uuid: order_uuid, id }) => ({ order_uuid, order_id: id, hub_id: 1 })),
      ),
    )
    expect(JSON.stringify(orders)).not.toContain(before.uuid)
    await db.transact((tx) => acknowledgeAlarm(tx, shop.context, alarm!.id, 'key:owner'))
    await compare(shop)
    expect(await alarms(shop, 'database_restored')).toEqual([])
  })

  test('a payment of another installation, and a refunded payment, are not lost', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 1 })
    const [payment] = await shop.payments(id)
    await shop.bank.giveBack(payment!.processor_ref!, payment!.amount)
    await restore(shop)
    if (shop.bank.name === 'stripe') {
      await shop.services.processor.createIntent({
        idempotencyKey: 'other',
        startedAt: shop.clock.now(),
        amount: 900,
        currency: 'USD',
        method: 'pm_card_visa',
        type: 'card',
        customer: null,
        saves: false,
        metadata: { larder: 'another', payment_id: '1.1', order_id: 1 } as never,
      })
    }
    await compare(shop)
    expect(await alarms(shop, 'payment_orphaned')).toEqual([])
  })

  test('a payment has the order’s UUID in the processor’s metadata', async () => {
    const shop = await open()
    const { uuid: orderUuid } = await shop.paidOrder({ 1: 1 })
    const { payments } = await shop.services.processor.listPayments({ since: 0, after: null, limit: 10 })
    expect(payments).toMatchObject([{ orderUuid, hubId: 1, status: 'succeeded' }])
    await sendEvent(shop, { id: 'evt_any', type: 'payment_intent.created', object: { id: 'pi_any' } })
  })
})

onEachDatabase('the alarm of a restored database', (open) => {
  test('the alarm names orders of a hub only to its owner, and adds orders that are found later', async () => {
    const shop = await openShop(await open())
    const { db, context } = { ...shop.context, context: shop.context }
    await db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
    const lost = (order_uuid: string, order_id: number | null = null) => ({ order_uuid, order_id, hub_id: 1 })
    const note = (...orders: ReturnType<typeof lost>[]) =>
      db.transact((tx) => noteRestored(tx, context, orders))
    await note()
    await note(lost(uuid(1)))
    await note(lost(uuid(2), 12), lost(uuid(1), 11))
    const rows = await alarms(shop, 'database_restored')
    expect(rows.map(({ owner_id, details }) => [owner_id, detailsOf({ details })['orders']])).toEqual([
      [1, [lost(uuid(1), 11), lost(uuid(2), 12)]],
      [2, []],
    ])
    expect((await shop.paidOrder({ 1: 1 })).id).toBe(13)
  })

  test('the alarm raises order numbers by at most LOST_ORDER_NUMBERS', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    shop.context.settings.lostOrderNumbers = 100
    for (const number of [id + 101, 2 ** 53, -5, 1.5])
      await shop.context.db.transact((tx) =>
        noteRestored(tx, shop.context, [{ order_uuid: uuid(9), order_id: number, hub_id: 1 }]),
      )
    expect((await shop.paidOrder({ 1: 1 })).id).toBe(id + 1)
  })
})
