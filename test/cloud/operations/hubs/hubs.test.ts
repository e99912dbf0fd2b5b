import { expect, test } from 'vitest'
import { insertLayout } from '../../../../cloud/demo/hub-data.ts'
import { doorHandlers } from '../../../../cloud/operations/doors/handlers.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { HardwareDescription } from '../../../../protocol/model/hardware.ts'
import { errorOf, openCloud, type TestCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

const hardware = HardwareDescription.parse({
  hubId: 1,
  controllers: [
    {
      id: 'vending',
      port: 'vending',
      devices: [
        { kind: 'cabinet', number: 2, shelves: [{ shelf: 1, rows: 4 }] },
        {
          kind: 'cabinet',
          number: 1,
          shelves: [
            { shelf: 2, rows: 6 },
            { shelf: 1, rows: 3 },
          ],
        },
      ],
    },
  ],
  gpio: { chipLabel: 'none', lines: [] },
  fridgeDoors: [{ fridge: 1, left: 1, middle: 1, right: 2 }],
})

interface World {
  app: TestCloud
  shop: Shop
  get: (path: string) => Promise<unknown>
}

async function openWorld(open: OpenDatabase): Promise<World> {
  const db = await open()
  let shop: Shop | undefined
  const app = await openCloud({
    db,
    handlersOf: (context) =>
      doorHandlers({ context, commands: { send: (request) => shop!.services.commands.send(request) } }),
  })
  shop = await openShop(db)
  await db.transact((tx) => insertLayout(tx, 1, hardware))
  const key = await app.key(['hubs:read', 'hubs:write'])
  const get = async (path: string) => {
    const answer = await app.call('GET', `/api/v1/owners/${path}`, { key })
    expect(answer.status).toBe(200)
    return answer.json
  }
  await heard({ app })
  return { app, shop, get }
}

const heard = ({ app }: Pick<World, 'app'>, msAgo = 0) =>
  app.context.db.kysely
    .updateTable('hub_sessions')
    .set({ last_heard_at: app.runtime.clock.now() - msAgo })
    .execute()

onEachDatabase('O §4.1', (open) => {
  test('hub_ids lists the hubs that the credential reaches', async () => {
    const { app, get } = await openWorld(open)
    expect(await get('hub_ids')).toEqual([1])
    const none = await app.call('GET', '/api/v1/owners/hub_ids', {
      key: await app.key(['hubs:read'], { hubs: [9] }),
    })
    expect(none.json).toEqual([])
    const other = await app.call('GET', '/api/v1/owners/hub_ids', {
      key: await app.key(['hubs:read'], { ownerId: 2 }),
    })
    expect(other.json).toEqual([2])
  })

  test('get_hub_info returns the place as GeoJSON, longitude first, and the time zone', async () => {
    const { get } = await openWorld(open)
    expect(await get('hubs/get_hub_info/?hub_id=1')).toEqual({
      success: true,
      id: 1,
      name: 'Hub 1',
      street_address_1: '1 Main Street',
      street_address_2: null,
      city: 'Springfield',
      state: 'IL',
      hub_status: 'active',
      postal_code: '62701',
      geojson_location: { type: 'Point', coordinates: [-89.65, 39.8] },
      timezone: 'America/Chicago',
    })
  })

  test('hub_layout and the fridge map return the stored layout', async () => {
    const { get } = await openWorld(open)
    expect(await get('hubs/hub_layout/?hub_id=1')).toEqual({
      layout: {
        1: {
          shelves: [
            { shelf_number: 1, total_rows: 3 },
            { shelf_number: 2, total_rows: 6 },
          ],
        },
        2: { shelves: [{ shelf_number: 1, total_rows: 4 }] },
      },
    })
    expect(await get('fridge_door_cabinet_map/?hub_id=1')).toEqual({
      data: { 1: { left: 1, middle: 1, right: 2 } },
    })
  })

  test('the hub reports the states of doors; they are unknown for an offline hub', async () => {
    const world = await openWorld(open)
    await world.shop.hear({
      doors: [
        { door: 'main', status: 'unlocked' },
        { door: 'fridge_1_left', status: 'open' },
      ],
    })
    await heard(world)
    const doors = (status: string[]) =>
      ['main', 'fridge_1_left', 'fridge_1_middle', 'fridge_1_right'].map((door, index) => ({
        door,
        status: status[index],
      }))
    expect(await world.get('get_door_status/?hub_id=1')).toEqual({
      door_status: doors(['unlocked', 'open', 'unknown', 'unknown']),
      order_status: { has_pending_orders: false },
    })
    await heard(world, 600_000)
    expect(await world.get('get_door_status/?hub_id=1')).toMatchObject({
      door_status: doors(['unknown', 'unknown', 'unknown', 'unknown']),
    })
  })

  test('an order is pending from QUEUED to COLLECTING, when the main door stays locked and no command is sent', async () => {
    const { app, shop, get } = await openWorld(open)
    const key = await app.key(['hubs:write'])
    // Advances the shop's clock and then the interface's clock.
    await shop.hear()
    shop.answer({
      kind: 'executed',
      commandId: crypto.randomUUID(),
      data: { door: 'unlocked' },
      durationMs: 1,
    })
    const order = await shop.cart(await shop.customer(), { 1: 1 })
    await heard({ app })
    for (const status of Object.values(OrderStatus)) {
      await app.context.db.kysely
        .updateTable('orders')
        .set({ processing_status: status })
        .where('id', '=', order.id)
        .execute()
      const pending = status >= 20 && status <= 50
      expect(await get('get_door_status/?hub_id=1')).toMatchObject({
        order_status: { has_pending_orders: pending },
      })
      const sent = shop.commands.length
      const answer = await app.call('POST', '/api/v1/owners/request_door_open/?hub_id=1', { key })
      expect([status, answer.status]).toEqual([status, pending ? 409 : 200])
      expect(shop.commands.length - sent).toBe(pending ? 0 : 1)
      if (pending) expect(errorOf(answer).error.code).toBe('order_in_progress')
    }
    expect(shop.commands[0]).toMatchObject({ hubId: 1, body: { name: 'open_main_door' } })
  })

  test('the hub decides last: an order that has just started there keeps the door locked', async () => {
    const { app, shop } = await openWorld(open)
    const key = await app.key(['hubs:write'])
    const commandId = crypto.randomUUID()
    const call = () => app.call('POST', '/api/v1/owners/request_door_open/?hub_id=1', { key })
    shop.answer({ kind: 'refused', commandId, reason: 'interlock', data: null })
    expect(errorOf(await call()).error.code).toBe('order_in_progress')
    shop.answer({ kind: 'refused', commandId, reason: 'not_found', data: null })
    const absent = await call()
    expect([absent.status, errorOf(absent).error]).toEqual([
      502,
      expect.objectContaining({
        code: 'hardware_error',
        details: expect.objectContaining({ reason: 'fault' }) as object,
      }),
    ])
    shop.answer({ kind: 'offline' })
    expect(errorOf(await call()).error.details).toEqual({ reason: 'offline' })
  })
})
