import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { shutOut } from '../../../../cloud/enrolment/enrol.ts'
import { hubWork, publishHubChange } from '../../../../cloud/operations/hubs/hub-events.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

onEachDatabase('the silence of a hub', (open) => {
  test('a hub that returns during the check of its silence raises no alarm', async () => {
    const { context, clock } = await openShop(await open())
    const { db, settings } = context
    const work = hubWork(context)['hub.silent']!
    const pollNow = () => work.run({ kind: 'hub.silent', subject: '1', attempts: 1 })
    await db.transact((tx) => publishHubChange(tx, context, 1))
    clock.advance(settings.onlineWithinMs + 1)
    expect(await pollNow()).toMatchObject({ next: expect.any(Number) as number })
    clock.advance(settings.hubSilentAlarmMs)
    const { looking } = await db.transact(async (tx) => {
      await tx.q.updateTable('hub_sessions').set({ last_heard_at: clock.now() }).execute()
      await publishHubChange(tx, context, 1)
      let isOver = false
      const looked = pollNow().finally(() => (isOver = true))
      // On SQLite the check waits for this whole transaction.
      if (tx.kind === 'postgres')
        await vi.waitFor(async () => {
          const waiting = await sql`select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(db.kysely)
          expect(isOver || waiting.rows.length === 1).toBe(true)
        }, 10_000)
      return { looking: looked }
    })
    await looking
    const alarms = await db.kysely.selectFrom('alarms').select(['kind', 'cleared_at']).execute()
    expect(alarms).toEqual([])
  })

  test('one search finds the hubs that have become silent, at the time when the first one counts as offline', async () => {
    const { context, clock } = await openShop(await open())
    const { db, settings } = context
    const kinds = hubWork(context)
    const search = () => kinds['hub.unheard']!.run({ kind: 'hub.unheard', subject: 'all', attempts: 1 })
    const silent = () =>
      db.kysely.selectFrom('due_work').select('subject').where('kind', '=', 'hub.silent').execute()
    await db.transact((tx) => publishHubChange(tx, context, 1))
    const heardAt = clock.now()
    const { next } = await search()
    expect(next).toBe(heardAt + settings.onlineWithinMs + 1)
    expect(await silent()).toEqual([])
    clock.advance(next! - heardAt)
    // No hub has reported: the next search is due when a hub that comes online now would be silent.
    expect(await search()).toEqual({ next: clock.now() + settings.onlineWithinMs + 1 })
    expect(await silent()).toEqual([{ subject: '1' }])
    await new WorkRunner(context, { 'hub.silent': kinds['hub.silent']! }).drain()
    const told = await db.kysely.selectFrom('hub_told').select('online').execute()
    expect(told).toEqual([{ online: 0 }])
    expect(await silent()).toEqual([{ subject: '1' }])
  })

  test('a hub that is shut out is published as offline at once, also while its last message is recent', async () => {
    const { context } = await openShop(await open())
    const { db, runtime } = context
    await db.transact((tx) => publishHubChange(tx, context, 1))
    const types = async () =>
      (await db.kysely.selectFrom('events').select('type').orderBy('id').execute()).map(({ type }) => type)
    expect(await types()).toEqual(['hub.online'])
    await db.transact((tx) => shutOut(tx, runtime.random, 1, runtime.clock.now()))
    await new WorkRunner(context, { 'hub.silent': hubWork(context)['hub.silent']! }).drain()
    expect(await types()).toEqual(['hub.online', 'hub.offline'])
  })

  test('a hub that returns and falls silent again is published as offline after the same time as before', async () => {
    const shop = await openShop(await open())
    const { context, clock } = shop
    const { db, settings } = context
    const runner = new WorkRunner(context, hubWork(context))
    const isOnline = async () =>
      (await db.kysely.selectFrom('hub_told').select('online').execute())[0]?.online
    const report = async () => {
      await shop.hear()
      await db.transact((tx) => publishHubChange(tx, context, 1))
    }
    await runner.ensureRecurring()
    for (let silence = 0; silence < 3; silence += 1) {
      await report()
      expect(await isOnline()).toBe(1)
      // The search pauses for a second.
      for (let waited = 0; waited < settings.onlineWithinMs + 2000; waited += 1000) {
        await runner.drain()
        clock.advance(1000)
      }
      await runner.drain()
      expect(await isOnline()).toBe(0)
    }
  })
})
