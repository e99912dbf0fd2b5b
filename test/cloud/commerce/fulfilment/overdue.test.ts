import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { commerceWork } from '../../../../cloud/commerce/work.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { droppedLines, openShop } from '../../../world/shop.ts'

const MINUTE = 60_000

onEachDatabase('overdue orders', (open) => {
  test.each(['not started', 'ready'] as const)(
    'the order of a silent hub that is %s ends only after the cloud has listened for HUB_RETURN_MS',
    async (state) => {
      const shop = await openShop(await open())
      const { id } = await shop.paidOrder({ 1: 1 })
      if (state === 'ready') {
        const lines = droppedLines(await shop.items(id))
        await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
        await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
      }
      let listenedMs = 0
      const context = { ...shop.context, listening: { forMs: () => listenedMs } }
      const work = new WorkRunner(context, commerceWork({ ...shop.services, context }))
      const kinds = ['order.overdue', 'order.unclaimed']
      // The process was suspended, or had no broker or database, for two days.
      shop.clock.advance(48 * 60 * MINUTE)
      for (const ms of [0, 1, context.settings.hubReturnMs - 1]) {
        listenedMs = ms
        expect(await work.drain(kinds)).toEqual([])
        // No alarm is raised either: the hub may have finished the order.
        expect(await context.db.kysely.selectFrom('alarms').select('kind').execute()).toEqual([])
        shop.clock.advance(2 * MINUTE)
      }
      listenedMs = context.settings.hubReturnMs
      expect(await work.drain(kinds)).toEqual([id])
      expect((await shop.order(id)).processing_status).toBe(state === 'ready' ? S.FAILED : S.TIMED_OUT)
    },
  )

  test('a hub that reports while the cloud waits after a suspension keeps its order', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    const context = { ...shop.context, listening: { forMs: () => 0 } }
    const work = new WorkRunner(context, commerceWork({ ...shop.services, context }))
    shop.clock.advance(60 * MINUTE)
    expect(await work.drain(['order.overdue'])).toEqual([])
    const lines = droppedLines(await shop.items(id))
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    shop.clock.advance(5 * MINUTE)
    await work.drain()
    expect((await shop.order(id)).processing_status).toBe(S.READY)
    expect(await shop.refunds(id)).toEqual([])
  })
})
