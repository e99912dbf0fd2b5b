import { expect, test } from 'vitest'
import type { Mail } from '../../../cloud/operations/alarms/mail.ts'
import { morningWork } from '../../../cloud/operations/reports/morning-mail.ts'
import { localDay } from '../../../cloud/platform/calendar/zone.ts'
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
})
