import { expect, onTestFinished, test, vi } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { putBack } from '../../cloud/clock-step.ts'
import { renewClaimCode } from '../../cloud/enrolment/claim-codes.ts'
import { alarmWork, clearAlarm, raiseAlarm } from '../../cloud/events/alarms/alarms.ts'
import { localDay } from '../../cloud/platform/calendar/zone.ts'
import { ensureScheduled } from '../../cloud/platform/work/queue.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import { startWorker } from '../../cloud/platform/work/workers.ts'
import { deposit } from '../../cloud/commerce/ledger/deposit.ts'
import { onEachDatabase } from '../world/database.ts'
import { openShop, type Shop } from '../world/shop.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const identity = { processId: 'one', name: 'cloud', pid: 1 }

/** Starts a process as far as its clock matters; resolves after its first heartbeat. */
async function live(shop: Shop): Promise<{ end: () => void }> {
  const worker = startWorker(shop.context, identity, putBack)
  // The last heartbeat may still be in flight; the database waits for it.
  onTestFinished(() => worker.stop())
  await vi.waitFor(async () => {
    const rows = await shop.context.db.kysely.selectFrom('workers').select('heartbeat_at').execute()
    expect(rows.map(({ heartbeat_at }) => heartbeat_at)).toEqual([shop.clock.now()])
  })
  return { end: () => shop.clock.clear() }
}

onEachDatabase('after a clock that was a day ahead is corrected', (open) => {
  /** Runs work under the wrong clock, before a process has noticed the correction. */
  async function correctClock(begin: (shop: Shop) => Promise<void>): Promise<Shop> {
    const shop = await openShop(await open())
    shop.clock.shiftWall(DAY)
    const life = await live(shop)
    await shop.hear()
    await begin(shop)
    life.end()
    shop.clock.shiftWall(-DAY)
    await live(shop)
    return shop
  }

  test('an order ends in time after a clock correction, and counts for the day of its payment', async () => {
    let orderId = 0
    const shop = await correctClock(async (before) => {
      orderId = (await before.paidOrder({ 1: 1 })).id
    })
    const { kysely } = shop.context.db
    const days = await kysely.selectFrom('sales').select('day').execute()
    expect(days).toEqual([{ day: new Date(shop.clock.now()).toISOString().slice(0, 10) }])
    shop.clock.advance(60 * MINUTE)
    await shop.hear()
    await shop.work.drain()
    expect(await shop.order(orderId)).toMatchObject({
      processing_status: OrderStatus.TIMED_OUT,
      payment_status: 'refunded',
    })
  })

  test('an idle cart and an unpaid claim end in time after a clock correction', async () => {
    const ids: number[] = []
    const shop = await correctClock(async (before) => {
      ids.push((await before.cart(await before.customer(), { 1: 1 })).id)
      ids.push((await before.paidOrder({ 1: 1 }, 'external')).id)
    })
    for (let step = 0; step < 3; step++) {
      shop.clock.advance(31 * MINUTE)
      await shop.work.drain()
    }
    for (const id of ids) expect((await shop.order(id)).processing_status).toBe(OrderStatus.EXPIRED)
  })

  test('a deposit without a result ends after a clock correction', async () => {
    const shop = await correctClock(async (before) => {
      const userId = await before.customer()
      await deposit(before.services, { userId, amountCents: 1000, method: 'pm_card_authenticationRequired' })
    })
    shop.clock.advance(60 * MINUTE)
    await shop.work.drain()
    const deposits = await shop.context.db.kysely.selectFrom('ledger_entries').select('status').execute()
    expect(deposits).toEqual([{ status: 'canceled' }])
  })

  test('a resolved alarm is removed on schedule after the clock is corrected', async () => {
    const line = { hubId: 1, kind: 'controller_silent', subject: 'bin 1' } as const
    const shop = await correctClock(({ context }) =>
      context.db.transact(async (tx) => {
        await raiseAlarm(tx, context, line)
        await clearAlarm(tx, context, line)
      }),
    )
    const { context, clock } = shop
    const open = () =>
      context.db.kysely.selectFrom('alarms').select('kind').where('cleared_at', 'is', null).execute()
    expect(await open()).toEqual([{ kind: 'controller_silent' }])
    clock.advance(context.settings.alarmClearMs)
    await new WorkRunner(context, alarmWork(context)).drain()
    expect(await open()).toEqual([])
  })

  test('a silent hub raises its critical alarm in time after a clock correction', async () => {
    const silent = { hubId: 1, kind: 'hub_silent', subject: null } as const
    const shop = await correctClock(({ context }) =>
      context.db.transact((tx) => raiseAlarm(tx, context, silent)),
    )
    const { context, clock } = shop
    clock.advance(context.settings.hubSilentCriticalMs)
    await new WorkRunner(context, alarmWork(context)).drain()
    const alarms = await context.db.kysely.selectFrom('alarms').select('severity').execute()
    expect(alarms).toEqual([{ severity: 'critical' }])
  })

  test('the morning mail of the next day is due, and a rollout waits no longer than planned', async () => {
    const shop = await correctClock(async ({ context, clock }) => {
      const { kysely } = context.db
      const now = clock.now()
      const ahead = new Date(now + 30 * DAY).toISOString().slice(0, 10)
      await kysely.updateTable('hubs').set({ morning_mail_on: ahead }).execute()
      const rollout = { id: 'one', version: '1', failures: '1', started_at: 0, ended_at: null } as const
      await kysely
        .insertInto('rollouts')
        .values({ ...rollout, state: 'running' })
        .execute()
      const row = { rollout_id: 'one', hub_id: 1, wave: 1, state: 'waiting', error: null } as const
      await kysely
        .insertInto('rollout_hubs')
        .values({ ...row, given_at: now + MINUTE })
        .execute()
    })
    const { kysely } = shop.context.db
    const hub = await kysely
      .selectFrom('hubs')
      .select(['timezone', 'morning_mail_on'])
      .executeTakeFirstOrThrow()
    expect(hub.morning_mail_on).toBe(localDay(hub.timezone, shop.clock.now()))
    const given = await kysely.selectFrom('rollout_hubs').select('given_at').execute()
    expect(given).toEqual([{ given_at: shop.clock.now() + MINUTE }])
  })

  test('a claim code, a command without an answer, and the report of an updater are no older or younger than before', async () => {
    const report = { version: '1', rollout: '019a0000-0000-7000-8000-000000000001', state: 'confirming' }
    const shop = await correctClock(async ({ context, clock }) => {
      const { kysely } = context.db
      const now = clock.now()
      await context.db.transact((tx) => renewClaimCode(tx, context, 1))
      const reported = JSON.stringify({ ...report, since: now + MINUTE })
      await kysely.insertInto('hub_updates').values({ hub_id: 1, desired: null, reported }).execute()
      const command = { id: 'one', hub_id: 1, session: 's', body: '{}', object: 'bin 1', actor: 'a' }
      const open = { state: 'sent', reason: null, data: null, finished_at: null } as const
      await kysely
        .insertInto('commands')
        .values({ ...command, ...open, created_at: now + MINUTE })
        .execute()
    })
    const { kysely } = shop.context.db
    const now = shop.clock.now()
    const hub = await kysely.selectFrom('hubs').select('claim_expires_at').executeTakeFirstOrThrow()
    expect(hub.claim_expires_at! - now).toBeLessThanOrEqual(shop.context.settings.claimCodeMs)
    const update = await kysely.selectFrom('hub_updates').select('reported').executeTakeFirstOrThrow()
    expect(JSON.parse(update.reported!)).toEqual({ ...report, since: now + MINUTE })
    const command = await kysely.selectFrom('commands').select('created_at').executeTakeFirstOrThrow()
    expect(command.created_at).toBe(now + MINUTE)
  })

  test('recurring work keeps its period after a clock correction', async () => {
    const shop = await correctClock((before) =>
      ensureScheduled(before.context.db.kysely, 'sales.calendars', 'all', before.clock.now() + MINUTE),
    )
    const due = await shop.context.db.kysely.selectFrom('due_work').select('due_at').execute()
    expect(due).toEqual([{ due_at: shop.clock.now() + MINUTE }])
  })
})

onEachDatabase('while clocks differ by less than the threshold', (open) => {
  test('a small difference of clocks changes nothing', async () => {
    const shop = await openShop(await open())
    await ensureScheduled(shop.context.db.kysely, 'sales.calendars', 'all', shop.clock.now() + MINUTE)
    const before = await shop.context.db.kysely.selectFrom('due_work').selectAll().execute()
    shop.clock.shiftWall(9000)
    const life = await live(shop)
    life.end()
    shop.clock.shiftWall(-9000)
    await live(shop)
    expect(await shop.context.db.kysely.selectFrom('due_work').selectAll().execute()).toEqual(before)
  })
})
