import { expect, test } from 'vitest'
import { backupWork, keptOf, latestSlot } from '../../../../cloud/operations/backup/schedule.ts'
import type { BackupTarget } from '../../../../cloud/operations/backup/target.ts'
import { appendAudit } from '../../../../cloud/platform/audit/audit.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

test('the slot of a daily backup is the latest such time of day in UTC', () => {
  const at = (text: string) => Date.parse(text)
  expect(latestSlot('02:30', at('2026-05-04T02:30:00Z'))).toBe(at('2026-05-04T02:30:00Z'))
  expect(latestSlot('02:30', at('2026-05-04T02:29:59Z'))).toBe(at('2026-05-03T02:30:00Z'))
})

test('two years of daily backups are reduced to 7 days, 4 weeks and 12 months', () => {
  const newest = Date.parse('2026-11-26T02:00:00Z')
  const days = Array.from({ length: 730 }, (_, index) => newest - index * DAY)
  // The set shrinks once a day, so each new set follows from the former one.
  let stored: number[] = []
  for (const day of days.toReversed()) stored = [...keptOf([...stored, day])]
  const kept = stored.toSorted((a, b) => b - a).map((time) => new Date(time).toISOString().slice(0, 10))
  expect(kept.slice(0, 7)).toEqual(['26', '25', '24', '23', '22', '21', '20'].map((day) => `2026-11-${day}`))
  expect(kept.slice(7)).toEqual([
    '2026-11-15',
    '2026-11-08',
    ...['10-31', '09-30', '08-31', '07-31', '06-30', '05-31', '04-30', '03-31', '02-28', '01-31'].map(
      (day) => `2026-${day}`,
    ),
    '2025-12-31',
  ])
})

onEachDatabase('the schedule of backups', (open) => {
  test('one backup a day is made, a failed one is repeated, and the alarm lasts from 36 hours until the next success', async () => {
    const { context, clock } = await openShop(await open())
    const removed: string[] = []
    const state = { made: 0, fails: false }
    const schedule = {
      daily: '02:00',
      async create() {
        if (state.fails) throw new Error('the disk is full')
        state.made += 1
        const record = { actor: 'command line', hubId: null, object: 'database', result: 'executed' }
        await appendAudit(context.db.kysely, context.runtime, { ...record, action: 'backup.create' })
      },
      target: {
        list: () => Promise.resolve([]),
        remove: (name: string) => Promise.resolve(void removed.push(name)),
      } as unknown as BackupTarget,
    }
    const run = () =>
      backupWork(context, schedule)['backup']!.run({ kind: 'backup', subject: 'all', attempts: 1 })
    const openAlarms = async () =>
      (
        await context.db.kysely
          .selectFrom('alarms')
          .select('kind')
          .where('kind', '=', 'backup_overdue')
          .where('cleared_at', 'is', null)
          .execute()
      ).length
    const first = await run()
    expect(state.made).toBe(1)
    expect(first.next).toBe(latestSlot('02:00', clock.now()) + DAY)
    await run()
    expect(state.made).toBe(1)
    state.fails = true
    clock.advance(DAY)
    expect(await run()).toMatchObject({ failure: new Error('the disk is full') })
    expect(await openAlarms()).toBe(0)
    clock.advance(13 * HOUR)
    await run()
    expect(await openAlarms()).toBeGreaterThan(0)
    state.fails = false
    await run()
    expect([state.made, await openAlarms()]).toEqual([2, 0])
  })

  test('the schedule deletes only its own old backups', async () => {
    const { context, clock } = await openShop(await open())
    const removed: string[] = []
    const listed = Array.from({ length: 20 }, (_, index) => ({
      name: `${index % 2 ? 'scheduled' : 'by hand'} ${index}`,
      created_at: new Date(clock.now() - index * HOUR).toISOString(),
      scheduled: index % 2 === 1,
    }))
    const schedule = {
      daily: '02:00',
      create: () => Promise.resolve(),
      target: {
        list: () => Promise.resolve(listed),
        remove: (name: string) => Promise.resolve(void removed.push(name)),
      } as unknown as BackupTarget,
    }
    await backupWork(context, schedule)['backup']!.run({ kind: 'backup', subject: 'all', attempts: 1 })
    expect(removed.length).toBeGreaterThan(5)
    expect(removed.filter((name) => name.startsWith('by hand'))).toEqual([])
  })
})
