import { expect, test } from 'vitest'
import { applyStockEntries } from '../../../../cloud/commerce/catalogue/apply-stock.ts'
import { inventoryHandlers } from '../../../../cloud/commerce/catalogue/inventory.ts'
import { pendingCounts } from '../../../../cloud/commerce/catalogue/shelf-stock.ts'
import { insertLayout } from '../../../../cloud/demo/hub-data.ts'
import type { StockEntry } from '../../../../protocol/mqtt/hub-entries.ts'
import { errorOf, openCloud, type CallAnswer, type TestCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

interface World {
  app: TestCloud
  shop: Shop
  put: (path: string, body: unknown, key?: string) => Promise<CallAnswer>
  get: (path: string) => Promise<CallAnswer>
}

/**
 * Hub 1 of owner 1 with product 1 (5 units, 250 cents) and product 2 (marked down by a tenth) in cabinet 1.
 */
async function openWorld(open: OpenDatabase): Promise<World> {
  const db = await open()
  const app = await openCloud({ db, handlersOf: inventoryHandlers })
  const shop = await openShop(db, {
    products: [
      { price: 250, quantity: 5 },
      { price: 199, markdown: 10, quantity: 3 },
    ],
  })
  await db.transact((tx) => insertLayout(tx, 1, undefined))
  const own = await app.key(['inventory:read', 'inventory:write'])
  return {
    app,
    shop,
    put: (path, body, key = own) => app.call('PUT', `/api/v1/owners/${path}`, { key, body }),
    get: (path) => app.call('GET', `/api/v1/owners/${path}`, { key: own }),
  }
}

const product1 = {
  id: 1,
  quantity: 5,
  sellable_quantity: 5,
  original_price: 250,
  discounted_price: 250,
  cabinet: 1,
  shelf: 1,
  row: 1,
  image_url: expect.any(String) as string,
  category: expect.any(String) as string,
}

const refused = (answer: CallAnswer): [number, string] => [answer.status, errorOf(answer).error.code]
const lastAudit = ({ app }: World) =>
  app.context.db.kysely
    .selectFrom('audit_log')
    .select(['actor', 'action', 'hub_id', 'object', 'result', 'detail'])
    .orderBy('id', 'desc')
    .executeTakeFirst()

onEachDatabase('O §4.2: a product by its place', (open) => {
  test('a product has the documented fields', async () => {
    const { get } = await openWorld(open)
    const answer = await get('hubs/product/?hub_id=1&cabinet=1&shelf=1&row=2')
    expect([answer.status, Object.keys(answer.json as object).toSorted()]).toEqual([
      200,
      [
        'category',
        'discounted_price',
        'id',
        'image_url',
        'name',
        'original_price',
        'purchase_price',
        'quantity',
        'sellable_quantity',
        'upc',
      ],
    ])
    expect(answer.json).toMatchObject({ id: 2, original_price: 199, discounted_price: 179, quantity: 3 })
  })

  test('a product shows its sellable stock, without reserved units and rows behind a disabled fridge', async () => {
    const { get, app } = await openWorld(open)
    const q = app.context.db.kysely
    const told = async () => {
      const { json } = await get('hubs/product/?hub_id=1&cabinet=1&shelf=1&row=2')
      const { json: list } = await get('hub_inventory/?hub_id=1')
      const { sellable_quantity: listed } = (list as { id: number; sellable_quantity: number }[]).find(
        ({ id }) => id === 2,
      )!
      const { quantity, sellable_quantity } = json as { quantity: number; sellable_quantity: number }
      return [quantity, sellable_quantity, listed]
    }
    await q.updateTable('products').set({ reserved: 2 }).where('id', '=', 2).execute()
    expect(await told()).toEqual([3, 1, 1])
    await q
      .insertInto('blocked_places')
      .values({ hub_id: 1, source: 'owner', cabinet: 1, shelf: 0, row: 0, reason: 'disabled', since: 1 })
      .execute()
    expect(await told()).toEqual([3, 0, 0])
  })

  test.each([
    { place: 'cabinet=1&shelf=1&row=5', error: [404, 'product_not_found'] },
    { place: 'cabinet=4&shelf=5&row=6', error: [404, 'product_not_found'] },
    { place: 'cabinet=5&shelf=1&row=1', error: [422, 'invalid_location'] },
    { place: 'cabinet=0&shelf=1&row=1', error: [422, 'invalid_location'] },
    { place: 'cabinet=1&shelf=6&row=1', error: [422, 'invalid_location'] },
    { place: 'cabinet=1&shelf=1&row=7', error: [422, 'invalid_location'] },
    { place: 'cabinet=1&shelf=0&row=1', error: [422, 'invalid_location'] },
    { place: 'cabinet=1&shelf=1&row=-1', error: [422, 'invalid_location'] },
    { place: 'cabinet=1&shelf=1&row=99999999999999999999', error: [422, 'invalid_location'] },
  ])('the place $place is $error', async ({ place, error }) => {
    const { get } = await openWorld(open)
    expect(refused(await get(`hubs/product/?hub_id=1&${place}`))).toEqual(error)
  })

  test.each([
    ['cabinet=1&shelf=9999&row=1', 'shelf'],
    ['cabinet=1&shelf=1&row=9999', 'row'],
  ])('the place %s is refused with a list of problems', async (place, part) => {
    const { get } = await openWorld(open)
    const { error, detail } = errorOf(await get(`hubs/product/?hub_id=1&${place}`))
    expect([error.code, detail]).toMatchObject([
      'invalid_location',
      [{ loc: ['query', part], type: 'value_error', input: 9999 }],
    ])
  })
})

onEachDatabase('O §4.2: prices and barcodes', (open) => {
  test('a price above its bound is refused with a sentence that contains the bound', async () => {
    const { put } = await openWorld(open)
    const message = async (path: string, body: object) => errorOf(await put(path, body)).error.message
    expect(await message('product/2/update_price', { price: 100_000_001 })).toBe(
      'price: Input should be less than or equal to 100000000.',
    )
    expect(await message('hubs/product/2/update_quantity', { quantity: 1_000_001 })).toBe(
      'quantity: Input should be less than or equal to 1000000.',
    )
    expect(await message('product/2/update_price', { price: 0 })).toBe(
      'The price must be a positive integer (cents).',
    )
  })

  test('a new price becomes the original price, and the markdown stays', async () => {
    const world = await openWorld(open)
    const answer = await world.put('product/2/update_price', { price: 305 })
    // 305 less a tenth is 274.5: rounded half up.
    expect(answer).toMatchObject({
      status: 200,
      json: { data: { id: 2, original_price: 305, discounted_price: 275 } },
    })
    expect(await lastAudit(world)).toEqual({
      actor: expect.stringMatching(/^key:/) as string,
      action: 'inventory.update_price',
      hub_id: 1,
      object: 'product-2',
      result: 'executed',
      detail: JSON.stringify({ from: 199, to: 305 }),
    })
  })

  test('a purchase price may be 0', async () => {
    const world = await openWorld(open)
    const answer = await world.put('product/1/update_purchase_price', { purchase_price: 0 })
    expect(answer).toMatchObject({ status: 200, json: { data: { ...product1, purchase_price: 0 } } })
    expect(await lastAudit(world)).toMatchObject({ action: 'inventory.update_purchase_price' })
  })

  test('a barcode is unique at its hub, and its check digit is verified', async () => {
    const world = await openWorld(open)
    const answer = await world.put('product/1/update_upc', { upc: '036000291452' })
    expect(answer).toMatchObject({
      status: 200,
      json: { success: true, data: { id: 1, upc: '036000291452' } },
    })
    expect(refused(await world.put('product/2/update_upc', { upc: '036000291452' }))).toEqual([
      409,
      'duplicate_upc',
    ])
    // The same value again changes nothing, and is no error.
    expect((await world.put('product/1/update_upc', { upc: '036000291452' })).status).toBe(200)
    expect(await lastAudit(world)).toMatchObject({ action: 'inventory.update_upc', object: 'product-1' })
    for (const upc of ['036000291453', '36000291452', '0360002914520', 'O36000291452', 12, null, ''])
      expect(refused(await world.put('product/1/update_upc', { upc }))).toEqual([422, 'invalid_upc'])
  })

  test('products of hubs that the credential does not reach do not exist', async () => {
    const { app, put } = await openWorld(open)
    const other = await app.key(['inventory:write'], { ownerId: 2 })
    const limited = await app.key(['inventory:write'], { hubs: [2] })
    const bodies = {
      'hubs/product/1/update_quantity': { quantity: 1 },
      'product/1/update_price': { price: 1 },
      'product/1/update_purchase_price': { purchase_price: 1 },
      'product/1/update_upc': { upc: '036000291452' },
    }
    for (const [path, body] of Object.entries(bodies)) {
      for (const key of [other, limited])
        expect(refused(await put(path, body, key))).toEqual([404, 'product_not_found'])
      expect(refused(await put(path.replace('/1/', '/999/'), body))).toEqual([404, 'product_not_found'])
    }
    await app.context.db.kysely.updateTable('products').set({ is_active: 0 }).where('id', '=', 1).execute()
    for (const [path, body] of Object.entries(bodies))
      expect(refused(await put(path, body))).toEqual([404, 'product_not_found'])
  })
})

onEachDatabase('a count of stock', (open) => {
  const quantity = ({ get }: World) =>
    get('hub_inventory/?hub_id=1').then((answer) => (answer.json as { quantity: number }[])[0]!.quantity)
  const apply = ({ app }: World, ...entries: StockEntry[]) =>
    app.context.db.transact((tx) => applyStockEntries(tx, app.context, 1, entries))
  const location = { cabinet: 1, shelf: 1, row: 1 }
  const dropped = (at: number, after: number, id: number): StockEntry => ({
    kind: 'stock.dropped',
    at,
    product_id: 1,
    location,
    delta: -1,
    quantity: after,
    operation_id: `00000000-0000-7000-8000-${String(id).padStart(12, '0')}`,
    order_id: null,
    line_id: null,
    delivered: 0,
    bin: null,
  })
  const counted = (at: number, delta: number, after: number, count_id: string): StockEntry => ({
    kind: 'stock.counted',
    at,
    product_id: 1,
    location,
    delta,
    quantity: after,
    count_id,
  })
  const pending = ({ app }: World) => app.context.db.transact((tx) => pendingCounts(tx, 1))

  test('a count of stock is shown at once, sent to the hub, and audited', async () => {
    const world = await openWorld(open)
    const answer = await world.put('hubs/product/1/update_quantity', { quantity: 12 })
    expect(answer).toMatchObject({
      status: 200,
      json: { data: { ...product1, quantity: 12, sellable_quantity: 12 } },
    })
    expect(await quantity(world)).toBe(12)
    const [entry] = await world.shop.outbox()
    const now = world.app.runtime.clock.now()
    const count = {
      count_id: expect.any(String) as string,
      location: null,
      product_id: 1,
      quantity: 12,
      counted_at: now,
    }
    expect(entry).toEqual({ kind: 'stock.count', count })
    expect(await pending(world)).toEqual([count])
    expect(await lastAudit(world)).toMatchObject({ action: 'inventory.update_quantity', object: 'product-1' })
  })

  test('a count of stock is reconciled with the hub’s drops before and after it', async () => {
    const world = await openWorld(open)
    const now = world.app.runtime.clock.now()
    await world.put('hubs/product/1/update_quantity', { quantity: 12 })
    const [count] = await pending(world)
    // One unit dropped before the count and was reported late, one dropped after it.
    await apply(world, dropped(now - 5000, 4, 1))
    expect(await quantity(world)).toBe(12)
    await apply(world, dropped(now + 5000, 3, 2))
    expect(await quantity(world)).toBe(11)
    // The hub applies the count: 12 less one later drop.
    await apply(world, counted(now + 6000, 8, 11, count!.count_id))
    expect(await quantity(world)).toBe(11)
    expect(await pending(world)).toEqual([])
    await apply(world, dropped(now + 7000, 10, 3))
    expect(await quantity(world)).toBe(10)
    const sums = await world.app.context.db.kysely
      .selectFrom('stock_ledger')
      .select((eb) => eb.fn.sum<number>('delta').as('sum'))
      .where('product_id', '=', 1)
      .executeTakeFirstOrThrow()
    // I5: 5 units were there at the start.
    expect(5 + sums.sum).toBe(10)
  })

  test('the hub’s stock applies from the time when it has applied the count', async () => {
    const world = await openWorld(open)
    const now = world.app.runtime.clock.now()
    await world.put('hubs/product/1/update_quantity', { quantity: 12 })
    const [count] = await pending(world)
    await apply(world, counted(now + 1000, 3, 8, count!.count_id))
    expect(await quantity(world)).toBe(8)
  })

  test('a newer count replaces an unconfirmed one', async () => {
    const world = await openWorld(open)
    const now = world.app.runtime.clock.now()
    await world.put('hubs/product/1/update_quantity', { quantity: 12 })
    const [first] = await pending(world)
    await world.put('hubs/product/1/update_quantity', { quantity: 7 })
    expect(await pending(world)).toMatchObject([{ quantity: 7 }])
    expect(await world.shop.outbox()).toHaveLength(2)
    await apply(world, counted(now + 1000, 7, 12, first!.count_id))
    expect(await quantity(world)).toBe(7)
  })

  test('sellable stock is never above the count', async () => {
    const { put, shop } = await openWorld(open)
    await shop.hear()
    await put('hubs/product/1/update_quantity', { quantity: 1 })
    await expect(shop.paidOrder({ 1: 2 })).rejects.toMatchObject({ code: 'insufficient_stock' })
    await put('hubs/product/1/update_quantity', { quantity: 9 })
    await expect(shop.paidOrder({ 1: 9 })).resolves.toMatchObject({ processing_status: 20 })
  })
})
