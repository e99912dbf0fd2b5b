import { expect, test } from 'vitest'
import type { z } from 'zod'
import { eventData } from '../../../protocol/contract/event-data.ts'
import { Event } from '../../../protocol/contract/owner-events.ts'
import { eventTypes, type EventType } from '../../../protocol/model/event-types.ts'
import { appendEvent } from '../../../cloud/events/append-event.ts'
import { publish } from '../../../cloud/events/publish.ts'
import { publishHubChange } from '../../../cloud/operations/hubs/hub-events.ts'
import { schedule } from '../../../cloud/platform/work/queue.ts'
import { schemaDifferences } from '../../contract/walk/shape.ts'
import { openService, type Service } from '../../world/service.ts'
import { onEachDatabase } from '../../world/database.ts'
import { drop } from '../../world/shop.ts'
import { healthy } from '../../world/health.ts'

interface Page {
  data: z.infer<typeof Event>[]
  next_cursor: string | null
  has_more: boolean
}

async function list({ owner }: Service, query = ''): Promise<Page> {
  const { status, json } = await owner('GET', `events?limit=100${query}`)
  expect([status, json]).toEqual([200, expect.anything()])
  return json as Page
}
const typesOf = ({ data }: Page): string[] => data.map(({ type }) => type)

onEachDatabase('events', (open) => {
  test('an order publishes each of its status changes in order, as its API shows it', async () => {
    const service = await openService(open)
    const { shop } = service
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [2] })
    await shop.report(drop(item!, 1, 4), {
      kind: 'order.ready',
      order_id,
      bins: [2],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [2] }],
    })
    await shop.work.drain()
    await shop.report({ kind: 'order.collecting', order_id })
    await shop.report({ kind: 'order.completed', order_id })
    const { data } = await list(service)
    expect(data.map(({ type, data }) => [type, (data as { payment_status: string }).payment_status])).toEqual(
      [
        ['order.paid', 'completed'],
        ['order.ready', 'completed'],
        ['order.refunded', 'partially_refunded'],
        ['order.collecting', 'partially_refunded'],
        ['order.completed', 'partially_refunded'],
      ],
    )
    for (const { type, hub_id, data: order } of data) {
      expect([type, hub_id]).toEqual([type, 1])
      expect(schemaDifferences(eventData[type], order)).toEqual([])
    }
    expect(data.map(({ data }) => (data as { processing_status: number }).processing_status)).toEqual([
      20, 40, 40, 50, 60,
    ])
    const order = await shop.order(order_id)
    const token = await service.tokenOf('ada')
    await service.customer('ada', 'POST', '/users/user/bootstrap')
    await shop.context.db.kysely
      .updateTable('users')
      .set({ identity: null })
      .where('identity', '=', 'ada')
      .execute()
    await shop.context.db.kysely
      .updateTable('users')
      .set({ identity: 'ada' })
      .where('id', '=', order.user_id)
      .execute()
    const shown = await service.send('GET', `/users/${order.user_id}/orders/${order_id}?hub_id=1`, {
      Authorization: `Bearer ${token}`,
    })
    expect(data.at(-1)!.data).toEqual(shown.json)
  })

  test('status changes that a hub reports together are published one by one, each with its own state', async () => {
    const service = await openService(open)
    const { shop } = service
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    await shop.report(drop(item!, 1, 4), { kind: 'order.completed', order_id })
    const { data } = await list(service)
    expect(
      data.map(({ type, data }) => [type, (data as { processing_status: number }).processing_status]),
    ).toEqual([
      ['order.paid', 20],
      ['order.ready', 40],
      ['order.completed', 60],
    ])
  })

  test('an uncommitted change publishes nothing, and a rolled-back entry removes its events', async () => {
    const service = await openService(open)
    const { context } = service.shop
    const { db } = context
    const event = {
      type: 'intake.changed',
      hubId: 1,
      data: { accepting_orders: true, hub_status: 'active' },
    } as const
    await expect(
      db.transact(async (tx) => {
        appendEvent(tx, context, event)
        await Promise.resolve()
        throw new Error('undone')
      }),
    ).rejects.toThrow('undone')
    await db.transact(async (tx) => {
      appendEvent(tx, context, event)
      await tx
        .savepoint(async () => {
          appendEvent(tx, context, { ...event, type: 'hub.online' })
          await Promise.resolve()
          throw new Error('undone')
        })
        .catch(() => {})
    })
    expect(typesOf(await list(service))).toEqual(['intake.changed'])
  })

  test('a poller continues from the last id; an unknown, an expired and another owner’s cursor are refused', async () => {
    const service = await openService(open)
    const { shop, owner } = service
    const { context } = shop
    const append = (type: EventType, ownerId?: number): Promise<void> =>
      context.db.transact(async (tx) => {
        const data = { accepting_orders: true, hub_status: 'active' }
        appendEvent(tx, context, {
          type,
          data,
          ...(ownerId === undefined ? { hubId: 1 } : { hubId: null, ownerId }),
        })
        await Promise.resolve()
      })
    expect(await list(service)).toEqual({ data: [], next_cursor: null, has_more: false })
    for (let index = 0; index < 5; index += 1) await append('intake.changed')
    const first = (await owner('GET', 'events?limit=2')).json as Page
    expect([first.data.length, first.has_more, first.next_cursor]).toEqual([2, true, first.data[1]!.id])
    const rest = await list(service, `&after=${first.next_cursor}`)
    expect([rest.data.length, rest.has_more]).toEqual([3, false])
    const idle = await list(service, `&after=${rest.next_cursor}`)
    expect(idle).toEqual({ data: [], next_cursor: rest.next_cursor, has_more: false })
    await append('hub.online').catch(() => {})
    expect(typesOf(await list(service, `&after=${rest.next_cursor}&types=intake.changed`))).toEqual([])
    await context.db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
    await append('intake.changed', 2)
    await publish(context)
    const strange = await context.db.kysely
      .selectFrom('events')
      .select('id')
      .where('owner_id', '=', 2)
      .executeTakeFirstOrThrow()
    for (const after of [strange.id, 'evt_nonsense'])
      expect((await owner('GET', `events?after=${after}`)).json).toMatchObject({
        error: { code: 'invalid_cursor' },
      })
    shop.clock.advance(31 * 86_400_000)
    await context.db.transact((tx) => schedule(tx, 'retention', 'events', shop.clock.now()))
    for (let batch = 0; batch < 20; batch += 1) {
      await service.cloud.work.drain(['retention'])
      shop.clock.advance(1000)
    }
    expect((await owner('GET', `events?after=${first.next_cursor}`)).status).toBe(400)
    const wrong = await owner('GET', 'events?types=order.paid&types=order.lost')
    expect([wrong.status, wrong.json]).toEqual([
      422,
      expect.objectContaining({ detail: [expect.objectContaining({ type: 'literal_error' })] }),
    ])
  })

  test('a hub publishes changes of its presence, devices and order intake, and nothing else', async () => {
    const service = await openService(open)
    const { shop, cloud } = service
    const { context } = shop
    const tell = () => context.db.transact((tx) => publishHubChange(tx, context, 1))
    const bins = (status: 'healthy' | 'fault') => healthy.bins.map((bin) => ({ ...bin, status }))
    await tell()
    await tell()
    expect(typesOf(await list(service))).toEqual(['hub.online'])
    await shop.hear({ bins: [{ ...bins('fault')[0]! }, ...bins('healthy').slice(1)] })
    await tell()
    await tell()
    await shop.hear({ accepting_orders: false })
    await tell()
    await cloud.work.ensureRecurring()
    await cloud.work.drain()
    shop.clock.advance(context.settings.onlineWithinMs + 2)
    await cloud.work.drain()
    await cloud.work.drain()
    await shop.hear()
    await tell()
    const page = await list(service)
    expect(typesOf(page)).toEqual([
      'hub.online',
      'bin.status_changed',
      'intake.changed',
      'bin.status_changed',
      'hub.offline',
      'hub.online',
      'intake.changed',
    ])
    for (const { type, data } of page.data) expect(schemaDifferences(eventData[type], data)).toEqual([])
    expect(page.data[1]!.data).toMatchObject({
      bin_number: 1,
      enabled: true,
      status: 'fault',
      order_id: null,
      reserved_for_order: null,
    })
    expect(page.data[4]!.data).toMatchObject({ online: false, network_status: 'disconnected' })
  })

  test('stock publishes when it falls below its limit and when it is gone, and each count once', async () => {
    const service = await openService(open)
    const { shop, owner } = service
    await owner('PUT', 'hubs/product/1/update_quantity', { quantity: 3 })
    const counted = await list(service)
    expect(typesOf(counted)).toEqual(['inventory.counted'])
    const at = { cabinet: 1, shelf: 1, row: 2 }
    const count = (quantity: number, number: number) =>
      shop.report({
        kind: 'stock.counted',
        product_id: 2,
        location: at,
        delta: -1,
        quantity,
        count_id: `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`,
      })
    await count(2, 1)
    await count(2, 1)
    await count(0, 2)
    const page = await list(service)
    expect(typesOf(page).toSorted()).toEqual(
      [
        'inventory.counted',
        'inventory.counted',
        'inventory.counted',
        'inventory.low_stock',
        'inventory.out_of_stock',
        'alarm.raised',
      ].toSorted(),
    )
    for (const { type, data } of page.data) {
      expect([type, schemaDifferences(eventData[type], data)]).toEqual([type, []])
      expect(data).toMatchObject({ hub_id: 1 })
    }
  })

  test('every type of event has a schema of its data', () => {
    expect(Object.keys(eventData).toSorted()).toEqual([...eventTypes].toSorted())
  })
})
