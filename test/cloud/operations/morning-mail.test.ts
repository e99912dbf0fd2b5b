import { expect, test } from 'vitest'
import { rebuildSales } from '../../../cloud/commerce/analytics/rebuild.ts'
import type { Mail } from '../../../cloud/operations/alarms/mail.ts'
import { composeMorning, morningWork } from '../../../cloud/operations/reports/morning-mail.ts'
import { localDay } from '../../../cloud/platform/calendar/zone.ts'
import { hubsWithContact } from '../../../cloud/platform/credentials/hub-access.ts'
import { WorkRunner } from '../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../world/database.ts'
import { openService } from '../../world/service.ts'

const DAY_MS = 86_400_000
const ZONE = 'UTC'

onEachDatabase('the mail of a morning', (open) => {
  test('a contact that wants it gets one a day, from two processes and after restarts, with the revenue of the sales report', async () => {
    const { shop, owner } = await openService(open)
    const { context, clock } = shop
    const contact = { owner_id: 1, name: null, severity: 'critical', created_at: 0, confirmed_at: 0 } as const
    await context.db.kysely
      .insertInto('alarm_contacts')
      .values([
        { ...contact, email: 'ann@larder.example', morning_mail: 1 },
        { ...contact, email: 'bob@larder.example', morning_mail: 0 },
      ])
      .execute()
    await shop.paidOrder({ 1: 3 })
    await context.db.transact((tx) => rebuildSales(tx, 1))
    const sold = localDay(ZONE, clock.now())
    const mails: Mail[] = []
    const send = (mail: Mail): Promise<void> => Promise.resolve(void mails.push(mail))
    // Every hour of two days, two new processes look at the work.
    for (let hour = 0; hour < 48; hour += 1) {
      clock.advance(DAY_MS / 24)
      const both = [1, 2].map(() => new WorkRunner(context, morningWork(context, send)))
      for (const one of both) await one.ensureRecurring()
      await Promise.all(both.map((one) => one.drain()))
    }
    const { json } = await owner('GET', `sales?hub_id=1&from=${sold}&to=${sold}`)
    const { gross_revenue } = (json as { totals: { gross_revenue: number } }).totals
    expect(gross_revenue).toBeGreaterThan(0)
    const figures = `Yesterday (${sold}): ${(gross_revenue / 100).toFixed(2)} USD, 1 order, 3 units.`
    const [about, ...others] = mails.filter(({ text }) => text.includes(figures))
    expect(others).toEqual([])
    expect(about).toMatchObject({ to: { address: 'ann@larder.example' } })
    expect(about!.text).toContain('Nothing is broken.')
    expect(mails.map(({ id }) => id)).toEqual(['morning-1-2026-01-01-1', 'morning-1-2026-01-02-1'])
  })

  test('the mail, the fleet and the list of rows to refill say that sales are not known while the summaries are rebuilt', async () => {
    const { shop, owner } = await openService(open)
    const { db } = shop.context
    const { kysely: q } = db
    await shop.paidOrder({ 1: 3 })
    await db.transact((tx) => rebuildSales(tx, 1))
    shop.clock.advance(DAY_MS)
    const at = { day: localDay(ZONE, shop.clock.now()), now: shop.clock.now(), currency: 'USD' }
    const compose = async () =>
      composeMorning(q, await hubsWithContact(q).where('hubs.id', '=', 1).executeTakeFirstOrThrow(), at)
    const headers = () =>
      Promise.all(
        ['fleet', 'restock'].map(async (path) => (await owner('GET', path)).headers.has('X-Incomplete')),
      )
    expect((await compose()).subject).toMatch(/USD yesterday/)
    expect(await headers()).toEqual([false, false])
    await q.updateTable('sales_calendars').set({ is_whole: 0 }).execute()
    await q.deleteFrom('sales_days').execute()
    const { subject, text } = await compose()
    expect([subject, text]).toEqual([
      expect.stringContaining('sales not known yet'),
      expect.stringContaining('the summaries of this hub are being rebuilt'),
    ])
    expect(`${subject} ${text}`).not.toContain('0.00')
    expect(await headers()).toEqual([true, true])
  })
})
