import { expect, test } from 'vitest'
import { availableOf } from '../../../../cloud/commerce/catalogue/reservations.ts'
import { configurationHandlers } from '../../../../cloud/operations/controls/configuration.ts'
import { insertLayout } from '../../../../cloud/demo/hub-data.ts'
import type { HubConfig } from '../../../../protocol/mqtt/cloud-entries.ts'
import { openCloud, type TestCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

interface World {
  app: TestCloud
  shop: Shop
  post: (path: string) => Promise<{ status_code: number; response_data: unknown }>
}

/** A disconnected hub: its desired state is stored, and sent when it returns. */
async function openWorld(open: OpenDatabase): Promise<World> {
  const db = await open()
  const commands = { send: () => Promise.reject(new Error('nothing is sent')) }
  const app = await openCloud({ db, handlersOf: (context) => configurationHandlers({ context, commands }) })
  const shop = await openShop(db)
  await shop.hear()
  await db.kysely.updateTable('hub_sessions').set({ is_connected: 0 }).execute()
  await db.transact((tx) => insertLayout(tx, 1, undefined))
  const key = await app.key(['controls:write'])
  return {
    app,
    shop,
    async post(path) {
      const answer = await app.call('POST', `/api/v1/owners/controls/${path}`, { key })
      expect(answer.status).toBe(200)
      return (answer.json as { result: { status_code: number; response_data: unknown } }).result
    },
  }
}

const hubRow = ({ shop }: World) =>
  shop.context.db.kysely
    .selectFrom('hubs')
    .select(['accepting_orders', 'disabled_bins', 'disabled_fridges'])
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
const sent = async ({ shop }: World) =>
  (await shop.outbox()).map((entry) => (entry as unknown as { config: HubConfig }).config)

onEachDatabase('desired state', (open) => {
  test('the desired state is stored and queued for the hub in one transaction, complete each time', async () => {
    const world = await openWorld(open)
    expect(await world.post('disable_bin?hub=1&bin=3')).toEqual({
      success: true,
      status_code: 202,
      response_data: { enabled: false },
    })
    await world.post('disable_bin?hub=1&bin=1')
    await world.post('disable_fridge?hub=1&fridge=1')
    await world.post('stop_orders?hub=1')
    expect(await hubRow(world)).toEqual({
      accepting_orders: 0,
      disabled_bins: '[1,3]',
      disabled_fridges: '[1]',
    })
    expect(await sent(world)).toMatchObject([
      { disabled_bins: [3], disabled_fridges: [], accepting_orders: true },
      { disabled_bins: [1, 3] },
      { disabled_fridges: [1] },
      { disabled_bins: [1, 3], disabled_fridges: [1], accepting_orders: false },
    ])
    await world.post('enable_bin?hub=1&bin=3')
    await world.post('enable_fridge?hub=1&fridge=1')
    await world.post('resume_orders?hub=1')
    expect(await hubRow(world)).toEqual({ accepting_orders: 1, disabled_bins: '[1]', disabled_fridges: '[]' })
  })

  test('an unchanged desired state stays, and is sent again', async () => {
    const world = await openWorld(open)
    for (let again = 0; again < 2; again++) await world.post('disable_bin?hub=1&bin=2')
    expect((await hubRow(world)).disabled_bins).toBe('[2]')
    expect(await sent(world)).toHaveLength(2)
  })

  test('each of 31 simultaneous toggles toggles once', async () => {
    const world = await openWorld(open)
    const answers = await Promise.all(Array.from({ length: 31 }, () => world.post('toggle_bin?hub=1&bin=2')))
    const enabled = answers.filter(({ response_data }) => (response_data as { enabled: boolean }).enabled)
    expect(enabled).toHaveLength(15)
    expect((await hubRow(world)).disabled_bins).toBe('[2]')
    const states = (await sent(world)).map(({ disabled_bins }) => disabled_bins.length)
    expect(states).toEqual(Array.from({ length: 31 }, (_, index) => 1 - (index % 2)))
  })

  test('no product in the cabinets of a disabled fridge can be bought', async () => {
    const world = await openWorld(open)
    const { shop } = world
    const { db } = shop.context
    const before = await availableOf(db.kysely, 1)
    expect(before).toBeGreaterThan(0)
    await world.post('disable_fridge?hub=1&fridge=1')
    expect(await availableOf(db.kysely, 1)).toBe(0)
    await expect(shop.paidOrder({ 1: 1 })).rejects.toMatchObject({ code: 'insufficient_stock' })
    await world.post('enable_fridge?hub=1&fridge=1')
    expect(await availableOf(db.kysely, 1)).toBe(before)
    await expect(shop.paidOrder({ 1: 1 })).resolves.toMatchObject({ processing_status: 20 })
  })
})
