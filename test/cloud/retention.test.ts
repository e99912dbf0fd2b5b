import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { deadLettersChanged } from '../../cloud/operations/alarms/hub-alarms.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { readDue, schedule } from '../../cloud/platform/work/queue.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import { retentionWork } from '../../cloud/retention.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import { virtualRuntime, type VirtualRuntime } from '../world/clock.ts'
import { onEachDatabase } from '../world/database.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { openShop } from '../world/shop.ts'
import { seedHub } from '../world/seeds.ts'
import { testContext } from '../world/context.ts'
import { testMedia } from './support/media.ts'

const DAY = 24 * 3_600_000
const OLD = 100 * DAY
const ANCIENT = 400 * DAY
const hex = (digit: string): string => digit.repeat(32)

/**
 * Deletes old rows batch after batch, as due work does in half an hour. Returns the number of rows of each
 * table.
 */
async function deleteOld(context: CloudContext): Promise<Record<string, number>> {
  const { db, runtime } = context
  const tables = retentionWork(context, testMedia(context))['retention']!.recurring!
  const before = await countRows(db, tables)
  const start = runtime.clock.now()
  await db.transact((tx) => schedule(tx, 'retention', tables, start))
  for (let at: number | undefined = start; at !== undefined && at < start + 1_800_000;) {
    const now: number = at
    const then = { ...context, runtime: { ...runtime, clock: { ...runtime.clock, now: () => now } } }
    await new WorkRunner(then, retentionWork(then, testMedia(then))).drain()
    at = (await readDue(db.kysely, now)).nextAt
  }
  const after = await countRows(db, tables)
  return Object.fromEntries(
    tables.flatMap((table, index) => {
      const deleted = before[index]! - after[index]!
      return deleted > 0 ? [[table, deleted]] : []
    }),
  )
}

async function countRows({ kysely }: CloudDatabase, tables: readonly string[]): Promise<number[]> {
  const counts: number[] = []
  for (const table of tables) {
    const { rows } = await sql<{ n: number | string }>`select count(*) as n from ${sql.table(table)}`.execute(
      kysely,
    )
    counts.push(Number(rows[0]!.n))
  }
  return counts
}

onEachDatabase('retention', (open) => {
  let db: CloudDatabase
  let runtime: VirtualRuntime
  const ago = (ms: number): number => runtime.clock.now() - ms
  const sweep = () => deleteOld(testContext(db, runtime))

  beforeEach(async () => {
    db = await open()
    runtime = virtualRuntime()
    await seedHub(db, 1)
  })

  const temperature = (seq: number, at: number) => ({
    hub_id: 1,
    epoch: hex('a'),
    seq,
    fridge_number: 1,
    celsius: 4,
    at,
  })
  const command = (at: number, state: 'sent' | 'executed' | 'unknown') => ({
    id: uuidv7({ ...runtime, clock: { ...runtime.clock, now: () => at } }),
    hub_id: 1,
    session: hex('5'),
    body: '{}',
    object: 'bin-1',
    state,
    reason: null,
    data: null,
    actor: 'key:test',
    created_at: at,
    finished_at: state === 'sent' ? null : at,
  })
  const alarm = (subject: string, cleared_at: number | null) => ({
    id: `alm_${subject}`,
    owner_id: 1,
    hub_id: 1,
    kind: 'fridge_warm' as const,
    incident: subject,
    key: subject,
    subject,
    severity: 'warning' as const,
    message: '',
    details: '{}',
    raised_at: ago(ANCIENT),
    count: 1,
    quiet_since: null,
    is_flapping: 0 as const,
    cleared_at,
    acknowledged_at: null,
    acknowledged_by: null,
  })

  test('any amount of old telemetry is deleted', async () => {
    const rows = Array.from({ length: 1200 }, (_, seq) => temperature(seq, ago(OLD)))
    for (let from = 0; from < rows.length; from += 300)
      await db.kysely
        .insertInto('telemetry')
        .values(rows.slice(from, from + 300))
        .execute()
    await db.kysely
      .insertInto('telemetry')
      .values([temperature(9000, ago(DAY)), temperature(9001, ago(0))])
      .execute()
    expect(await sweep()).toEqual({ telemetry: 1200 })
    const left = await db.kysely.selectFrom('telemetry').select('seq').orderBy('seq').execute()
    expect(left.map(({ seq }) => seq)).toEqual([9000, 9001])
    expect(await sweep()).toEqual({})
  })

  test('idempotency keys are deleted after a day, batch by batch', async () => {
    const key = (name: string, at: number) => ({
      credential: 'key:test',
      key: name,
      fingerprint: 'f',
      status: 200,
      headers: '{}',
      body: '',
      locked_until: at,
      created_at: at,
    })
    const old = Array.from({ length: 1201 }, (_, number) => key(`old-${number}`, ago(DAY)))
    for (let from = 0; from < old.length; from += 100)
      await db.kysely
        .insertInto('idempotency_keys')
        .values(old.slice(from, from + 100))
        .execute()
    await db.kysely
      .insertInto('idempotency_keys')
      .values(key('young', ago(DAY - 600_000)))
      .execute()
    await sweep()
    expect(await db.kysely.selectFrom('idempotency_keys').select('key').execute()).toEqual([{ key: 'young' }])
  })

  test('every growing table has an index for its old rows', async () => {
    if (db.kind !== 'sqlite') return
    const columns = {
      telemetry: 'at',
      processor_events: 'received_at',
      sandbox_events: 'delivered_at',
      deal_redemptions: 'expires_at',
      notifications: 'updated_at',
      alarms: 'cleared_at',
      task_runs: 'started_at',
      dead_letters: 'at',
      idempotency_keys: 'created_at',
      commands: 'finished_at',
    }
    const guests = await sql<{ detail: string }>`explain query plan
      select 1 from users where is_anonymous = 1 and updated_at < 0`.execute(db.kysely)
    expect(guests.rows[0]!.detail).toContain('users_guests_by_age')
    for (const [table, column] of Object.entries(columns)) {
      const plan = await sql<{ detail: string }>`
        explain query plan select 1 from ${sql.table(table)} where ${sql.ref(column)} < ${'0'}`.execute(
        db.kysely,
      )
      expect([table, plan.rows[0]!.detail]).toEqual([table, expect.stringMatching(/USING (COVERING )?INDEX/)])
    }
  })

  test('finished commands are deleted, and a command without a recorded outcome stays', async () => {
    const recent = command(ago(DAY), 'executed')
    const open = command(ago(OLD), 'sent')
    await db.kysely
      .insertInto('commands')
      .values([command(ago(OLD), 'executed'), command(ago(OLD), 'unknown'), open, recent])
      .execute()
    expect(await sweep()).toEqual({ commands: 2 })
    const left = await db.kysely.selectFrom('commands').select('id').orderBy('created_at').execute()
    expect(left.map(({ id }) => id)).toEqual([open.id, recent.id])
  })

  test('commands of requests with an idempotency key are deleted and kept like others, although their ids have no time', async () => {
    const named = (at: number, digit: string) => ({
      ...command(at, 'executed'),
      id: `${digit.repeat(8)}-0000-8000-8000-${String(at).slice(-12).padStart(12, '0')}`,
    })
    const recent = named(ago(DAY), '0')
    await db.kysely
      .insertInto('commands')
      .values([named(ago(OLD), '0'), named(ago(OLD), 'f'), recent])
      .execute()
    expect(await sweep()).toEqual({ commands: 2 })
    const left = await db.kysely.selectFrom('commands').select('id').execute()
    expect(left).toEqual([{ id: recent.id }])
  })

  test('ended alarms are deleted after a longer time, open alarms never', async () => {
    await db.kysely
      .insertInto('alarms')
      .values([alarm('fridge 1', ago(ANCIENT)), alarm('fridge 2', ago(OLD)), alarm('fridge 3', null)])
      .execute()
    expect(await sweep()).toEqual({ alarms: 1 })
    const left = await db.kysely.selectFrom('alarms').select('subject').orderBy('seq').execute()
    expect(left).toEqual([{ subject: 'fridge 2' }, { subject: 'fridge 3' }])
  })

  test('dead letters and left epochs are deleted after a longer time, the present epoch never', async () => {
    const letter = { hub_id: 1, stream: 'ledger', epoch: hex('a'), body: '{}', error: 'no' }
    await db.kysely
      .insertInto('dead_letters')
      .values([
        { ...letter, seq: 1, at: ago(ANCIENT) },
        { ...letter, seq: 2, at: ago(OLD) },
      ])
      .execute()
    const stream = { hub_id: 1, stream: 'ledger' as const, cursor: 5, tag: 1, created_at: ago(ANCIENT) }
    await db.kysely
      .insertInto('hub_streams')
      .values([
        { ...stream, epoch: hex('a'), is_current: 0 },
        { ...stream, epoch: hex('b'), is_current: 1 },
        { ...stream, epoch: hex('c'), is_current: 0, created_at: ago(OLD) },
      ])
      .execute()
    expect(await sweep()).toEqual({ dead_letters: 1, hub_streams: 1 })
    const epochs = await db.kysely.selectFrom('hub_streams').select('epoch').orderBy('epoch').execute()
    expect(epochs.map(({ epoch }) => epoch)).toEqual([hex('b'), hex('c')])
  })

  test('the alarm of dead letters ends with the last dead letter', async () => {
    const letter = (seq: number, at: number) => ({
      hub_id: 1,
      stream: 'ledger',
      epoch: hex('a'),
      seq,
      body: '{}',
      error: 'no',
      at,
    })
    const context = testContext(db, runtime)
    await db.kysely
      .insertInto('dead_letters')
      .values([letter(1, ago(ANCIENT)), letter(2, ago(OLD))])
      .execute()
    await db.transact((tx) => Promise.resolve(deadLettersChanged(tx, context, 1)))
    const isOpen = async (): Promise<boolean> =>
      (await db.kysely.selectFrom('alarms').select('id').where('cleared_at', 'is', null).execute()).length > 0
    await sweep()
    expect(await isOpen()).toBe(true)
    runtime.clock.advance(ANCIENT - OLD)
    await sweep()
    expect(await db.kysely.selectFrom('dead_letters').select('id').execute()).toEqual([])
    expect(await isOpen()).toBe(false)
  })

  test('events of the processor are deleted; pending events and the audit log stay', async () => {
    await db.kysely
      .insertInto('processor_events')
      .values([
        { id: 'old', type: 't', received_at: ago(OLD) },
        { id: 'new', type: 't', received_at: ago(DAY) },
      ])
      .execute()
    const event = { body: '{}', created_at: ago(OLD) }
    await db.kysely
      .insertInto('sandbox_events')
      .values([
        { ...event, id: 'delivered', delivered_at: ago(OLD) },
        { ...event, id: 'waiting', delivered_at: null },
      ])
      .execute()
    const audit = {
      at: ago(ANCIENT),
      actor: 'a',
      action: 'b',
      hub_id: 1,
      object: 'c',
      result: 'd',
      detail: '{}',
    }
    await db.kysely.insertInto('audit_log').values(audit).execute()
    expect(await sweep()).toEqual({ processor_events: 1, sandbox_events: 1 })
    expect(await db.kysely.selectFrom('audit_log').select('id').execute()).toHaveLength(1)
  })
})

onEachDatabase('retention of announcements and notices', (open) => {
  test('announcements without an order are deleted, and announcements of an order stay', async () => {
    const shop = await openShop(await open())
    const { kysely: q } = shop.context.db
    const { id: orderId, user_id: userId } = await shop.paidOrder({ 1: 1 })
    const now = shop.clock.now()
    const { id: dealId } = await q
      .insertInto('deals')
      .values({
        hub_id: 1,
        name: 'Deal',
        description: null,
        display_text: null,
        image_key: null,
        priority: 0,
        is_active: 1,
        need: '',
        start_day: null,
        end_day: null,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    const announced = (
      order_id: number | null,
      status: 'pending' | 'completed' | 'released',
      at: number,
    ) => ({
      deal_id: dealId,
      order_id,
      user_id: userId,
      device_uuid: null,
      discount_amount: 10,
      status,
      redeemed_at: at,
      expires_at: at,
    })
    await q
      .insertInto('deal_redemptions')
      .values([
        announced(null, 'pending', now - OLD),
        announced(null, 'released', now - OLD),
        announced(null, 'pending', now - DAY),
        announced(null, 'released', now - DAY),
        announced(orderId, 'completed', now - OLD),
        announced(orderId, 'released', now - OLD),
      ])
      .execute()
    expect(await deleteOld(shop.context)).toEqual({ deal_redemptions: 2 })
    const left = await q.selectFrom('deal_redemptions').select(['status', 'order_id']).orderBy('id').execute()
    expect(left.map(({ status, order_id }) => [status, order_id])).toEqual([
      ['pending', null],
      ['released', null],
      ['completed', orderId],
      ['released', orderId],
    ])
  })

  test('notices are deleted when they are sent or abandoned and their order has ended', async () => {
    const shop = await openShop(await open())
    const { kysely: q } = shop.context.db
    const ended = await shop.paidOrder({ 1: 1 })
    const active = await shop.paidOrder({ 1: 1 })
    await q
      .updateTable('orders')
      .set({ processing_status: OrderStatus.COMPLETED })
      .where('id', '=', ended.id)
      .execute()
    const now = shop.clock.now()
    const notice = (
      order: typeof ended,
      push_config_id: number,
      state: 'sent' | 'failed' | 'pending',
      at: number,
    ) => ({
      user_id: order.user_id,
      order_id: order.id,
      kind: 'order_unclaimed' as const,
      ref: 0,
      push_config_id,
      state,
      error: null,
      created_at: at,
      updated_at: at,
    })
    await q
      .insertInto('notifications')
      .values([
        notice(ended, 1, 'sent', now - OLD),
        notice(ended, 2, 'failed', now - OLD),
        notice(ended, 3, 'pending', now - OLD),
        notice(ended, 4, 'sent', now - DAY),
        notice(active, 1, 'sent', now - OLD),
      ])
      .execute()
    expect(await deleteOld(shop.context)).toEqual({ notifications: 2 })
    const left = await q.selectFrom('notifications').select('push_config_id').orderBy('id').execute()
    expect(left.map(({ push_config_id }) => push_config_id)).toEqual([3, 4, 1])
  })
})
