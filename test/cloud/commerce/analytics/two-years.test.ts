import { expect, test } from 'vitest'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { demoChance } from '../../../../cloud/demo/chance.ts'
import { seedDemo } from '../../../../cloud/demo/seed-database.ts'
import { refreshPaymentStatus } from '../../../../cloud/commerce/orders/payment-status.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { answers } from './support/answers.ts'
import { differences } from './support/check.ts'
import { recountReports } from './support/reports.ts'

onEachDatabase('two years of the demo’s orders', (open) => {
  test('every analytics call on two years of orders equals a plain recount, before and after refunds', async () => {
    const db = await open()
    const app = await openCloud({ db, handlersOf: analyticsHandlers })
    // The demo creates its own owners and hubs.
    await db.kysely.deleteFrom('hubs').execute()
    await db.kysely.deleteFrom('owners').execute()
    await seedDemo(db, app.runtime)
    const now = app.runtime.clock.now()
    expect(await differences(db)).toEqual([])
    const before = await recountReports(db, now, app.context.settings.topProducts)
    expect(await answers(app, before)).toEqual(before)
    expect(before['total_orders/?hub_id=1']).toMatchObject({ total_orders: expect.any(Number) as number })
    const { total_orders } = before['total_orders/?hub_id=1'] as { total_orders: number }
    expect(total_orders).toBeGreaterThan(5000)

    app.runtime.clock.advance(60_000)
    await refundSome(db)
    const after = await recountReports(db, now + 60_000, app.context.settings.topProducts)
    expect(after['gross_revenue/?hub_id=1']).not.toEqual(before['gross_revenue/?hub_id=1'])
    expect(await answers(app, after)).toEqual(after)
  }, 120_000)
})

/** Refunds whole lines and parts of orders; the processor refuses some of them. */
async function refundSome(db: CloudDatabase): Promise<void> {
  const chance = demoChance(7)
  for (let count = 0; count < 150; count += 1)
    await db.transact(async (tx) => {
      const id = chance.between(1, 5000)
      const payment = await tx.q
        .selectFrom('payments')
        .selectAll()
        .where('order_id', '=', id)
        .executeTakeFirstOrThrow()
      const item = await tx.q
        .selectFrom('order_items')
        .selectAll()
        .where('order_id', '=', id)
        .orderBy('id')
        .executeTakeFirstOrThrow()
      const known = await tx.q
        .selectFrom('refunds')
        .select('id')
        .where('order_id', '=', id)
        .executeTakeFirst()
      if (known) return
      const ofLine = chance.fraction() < 0.5 && item.net! + item.tax! < payment.amount
      const status = chance.fraction() < 0.2 ? 'failed' : 'succeeded'
      await tx.q
        .insertInto('refunds')
        .values({
          order_id: id,
          payment_id: payment.id,
          hub_id: payment.hub_id,
          owner_id: payment.owner_id,
          item_id: ofLine ? item.id : null,
          quantity: ofLine ? item.qty : 0,
          amount: ofLine ? item.net! + item.tax! : Math.floor(payment.amount / 2),
          tax: ofLine ? item.tax! : 3,
          reason: 'customer',
          status,
          failure_reason: null,
          created_at: 0,
          updated_at: 0,
        })
        .execute()
      if (ofLine && status === 'succeeded')
        await tx.q
          .updateTable('order_items')
          .set({ refunded_quantity: item.qty })
          .where('id', '=', item.id)
          .execute()
      await refreshPaymentStatus(tx, id)
    })
}
