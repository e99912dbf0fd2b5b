import { expect, test } from 'vitest'
import { addEndpoint } from '../../../../cloud/events/webhooks/endpoints.ts'
import { workAlarmWork, workObserver } from '../../../../cloud/operations/alarms/work-alarms.ts'
import { schedule, unschedule } from '../../../../cloud/platform/work/queue.ts'
import { Unavailable, WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

onEachDatabase('work that fails again and again', (open) => {
  test('failing work is an alarm of the owner that it concerns, and of all owners only if it concerns none', async () => {
    const shop = await openShop(await open())
    const { context } = shop
    const { kysely: q } = context.db
    await q.insertInto('owners').values({ name: 'Two' }).execute()
    const order = await shop.paidOrder({ 1: 1 })
    const contact = await q
      .insertInto('alarm_contacts')
      .values({
        owner_id: 1,
        email: 'ann@larder.example',
        name: null,
        severity: 'info',
        created_at: 1,
        confirmed_at: 1,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    const fields = { url: 'https://a.example/', description: null, event_types: ['*' as const], hub_ids: [] }
    const endpoint = await context.db.transact((tx) => addEndpoint(tx, context, 1, fields))
    const { id: payment } = (await shop.payments(order.id))[0]!
    const observer = workObserver(context)
    const cases: [kind: string, subject: string | number, places: string[]][] = [
      ['alarm.mail', contact.id, ['owner 1']],
      [`webhook/${endpoint.id}`, 'dlv_1', ['owner 1']],
      ['order.overdue', order.id, ['hub 1']],
      ['notice.moved', order.id, ['hub 1']],
      ['money/payment', payment, ['hub 1']],
      ['refund.external', payment, ['hub 1']],
      ['bestsellers.hub', 1, ['hub 1']],
      ['hub.silent', 1, ['hub 1']],
      ['retention', 'all', ['owner 1', 'owner 2']],
    ]
    for (const [kind, subject, places] of cases) {
      const work = { kind, subject: String(subject), attempts: 8, claim: 'c' }
      await observer.failing(work, '550 no such user: ann@larder.example')
      const alarms = () =>
        q.selectFrom('alarms').selectAll().where('cleared_at', 'is', null).orderBy('seq').execute()
      expect([
        kind,
        (await alarms()).map(({ hub_id, owner_id }) =>
          hub_id === null ? `owner ${owner_id}` : `hub ${hub_id}`,
        ),
      ]).toEqual([kind, places])
      await observer.recovered(work)
      expect(await alarms()).toEqual([])
    }
  })

  test.each(['removed from the queue', 'made due anew'] as const)(
    'the alarm of failing work ends when the work was %s, and stays while it fails',
    async (end) => {
      const shop = await openShop(await open())
      const { context } = shop
      const fails = { run: () => Promise.reject(new Unavailable('away')), backoff: { firstMs: 1, maxMs: 1 } }
      const kinds = { money: fails, ...workAlarmWork(context) }
      const runner = new WorkRunner(context, kinds, workObserver(context))
      const due = () =>
        context.db.transact((tx) => schedule(tx, 'money/payment', 99, context.runtime.clock.now()))
      const isOpen = async (): Promise<boolean> =>
        (await context.db.kysely
          .selectFrom('alarms')
          .select('id')
          .where('cleared_at', 'is', null)
          .executeTakeFirst()) !== undefined
      const check = async (): Promise<void> => {
        shop.clock.advance(10 * 60_000)
        await runner.ensureRecurring()
        await runner.drain(['alarm.work'])
      }
      await due()
      for (let time = 0; time < context.settings.workAlarmAttempts; time += 1) {
        await runner.drain(['money'])
        shop.clock.advance(10)
      }
      expect(await isOpen()).toBe(true)
      await check()
      expect(await isOpen()).toBe(true)
      if (end === 'made due anew') await due()
      else await context.db.transact((tx) => unschedule(tx, 'money/payment', 99))
      await check()
      expect(await isOpen()).toBe(false)
    },
  )
})
