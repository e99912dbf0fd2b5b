import { expect, test } from 'vitest'
import { facingHandlers } from '../../../../cloud/commerce/catalogue/facings.ts'
import { availableOf } from '../../../../cloud/commerce/catalogue/reservations.ts'
import { countStock } from '../../../../cloud/commerce/catalogue/shelf-stock.ts'
import { blockDisabled } from '../../../../cloud/commerce/catalogue/units.ts'
import type { Facing } from '../../../../protocol/contract/owner-inventory.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const products = [
  { price: 100, quantity: 6 },
  { price: 100, quantity: 2 },
]

/**
 * Hub 1 with rows 1-1-1 to 1-1-3 of ten units each: product 1 in the first and third, product 2 in the
 * second.
 */
async function openRows(open: OpenDatabase) {
  const db = await open()
  const app = await openCloud({ db, handlersOf: facingHandlers })
  const shop = await openShop(db, { products })
  const q = db.kysely
  await q
    .insertInto('hub_shelves')
    .values({ hub_id: 1, cabinet: 1, shelf: 1, total_rows: 4, depth: 10 })
    .execute()
  await q
    .insertInto('hub_fridges')
    .values({ hub_id: 1, fridge: 1, left_cabinet: 1, middle_cabinet: 1, right_cabinet: 1 })
    .execute()
  await q.updateTable('hub_sessions').set({ is_connected: 0 }).execute()
  const third = { hub_id: 1, cabinet: 1, shelf: 1, row: 3 }
  await q
    .insertInto('facings')
    .values({ ...third, product_id: 1, is_primary: 0, quantity: 4, counted_at: null })
    .execute()
  await q.updateTable('products').set({ quantity: 10 }).where('id', '=', 1).execute()
  const key = await app.key(['inventory:read', 'inventory:write'])
  const list = async (): Promise<Facing[]> =>
    (await app.call('GET', '/api/v1/owners/hubs/facings?hub_id=1', { key })).json as Facing[]
  const count = (row: number, quantity: number) =>
    app.call('PUT', '/api/v1/owners/hubs/facings', {
      key,
      body: { hub_id: 1, cabinet: 1, shelf: 1, row, quantity },
    })
  const now = (): string => new Date(app.runtime.clock.now()).toISOString()
  return { now, shop, list, count, sellable: () => availableOf(q, 1) }
}

const block = (shop: Shop, row: number, blocked: string | null): Promise<void> =>
  shop.report({
    kind: 'state',
    state: { of: 'row', location: { cabinet: 1, shelf: 1, row }, blocked, since: 1 },
  })

onEachDatabase('the rows of a hub', (open) => {
  test('rows of a hub are listed with their product, stock and the reason if they are blocked', async () => {
    const { shop, list, sellable } = await openRows(open)
    await block(shop, 1, 'jam')
    const row = { cabinet: 1, shelf: 1, capacity: 10, counted_at: null }
    expect(await list()).toEqual([
      { ...row, row: 1, product_id: 1, quantity: 6, blocked: true, blocked_reason: 'jam' },
      { ...row, row: 2, product_id: 2, quantity: 2, blocked: false, blocked_reason: null },
      { ...row, row: 3, product_id: 1, quantity: 4, blocked: false, blocked_reason: null },
      { ...row, row: 4, product_id: null, quantity: 0, blocked: false, blocked_reason: null },
    ])
    expect(await sellable()).toBe(4)
    const state = { of: 'cabinet', cabinet: 1, since: 1 } as const
    await shop.report({ kind: 'state', state: { ...state, withheld: 'silent' } })
    expect((await list()).map(({ blocked_reason }) => blocked_reason)).toEqual(Array(4).fill('silent'))
    expect(await sellable()).toBe(0)
    await shop.report({ kind: 'state', state: { ...state, withheld: null } })
    await block(shop, 1, null)
    await shop.context.db.transact((tx) => blockDisabled(tx, 1, [1], 5))
    expect((await list()).map(({ blocked_reason }) => blocked_reason)).toEqual(Array(4).fill('disabled'))
    expect(await sellable()).toBe(0)
    await shop.context.db.transact((tx) => blockDisabled(tx, 1, [], 6))
    expect(await sellable()).toBe(10)
  })

  test('rows of a hub are counted one by one: a count is shown at once, and confirmed by the hub later', async () => {
    const { now, shop, list, count, sellable } = await openRows(open)
    const answer = await count(3, 9)
    expect(answer).toMatchObject({ status: 200, json: { row: 3, quantity: 9, blocked: false } })
    expect((await shop.product(1)).quantity).toBe(15)
    expect((await list())[2]).toMatchObject({
      quantity: 9,
      counted_at: now(),
    })
    const [sent] = (await shop.outbox()) as unknown as { count: { count_id: string; location: unknown } }[]
    expect(sent).toMatchObject({
      kind: 'stock.count',
      count: { product_id: 1, location: { cabinet: 1, shelf: 1, row: 3 }, quantity: 9 },
    })
    // One unit of this row and one of the other row dropped before the hub had the count.
    await shop.report({
      kind: 'stock.counted',
      product_id: 1,
      location: { cabinet: 1, shelf: 1, row: 3 },
      delta: 4,
      quantity: 8,
      count_id: sent!.count.count_id,
    })
    expect((await list())[2]).toMatchObject({ quantity: 8 })
    expect((await shop.product(1)).quantity).toBe(14)
    expect(await sellable()).toBe(14)
  })

  test('a count of a blocked row sells none of its units before the hub has confirmed it', async () => {
    const { shop, count, sellable } = await openRows(open)
    await block(shop, 1, 'no_drop')
    await count(1, 10)
    expect((await shop.product(1)).quantity).toBe(14)
    expect(await sellable()).toBe(4)
    await block(shop, 1, null)
    expect(await sellable()).toBe(14)
  })

  test('a count of a row replaces the row’s earlier count, and a count of the product replaces those of its rows', async () => {
    const { shop, count, list } = await openRows(open)
    await count(1, 1)
    await count(1, 2)
    await count(3, 3)
    expect((await list()).map(({ quantity }) => quantity)).toEqual([2, 2, 3, 0])
    expect((await shop.product(1)).quantity).toBe(5)
    const whole = { hubId: 1, productId: 1, location: null, quantity: 20 }
    await shop.context.db.transact((tx) => countStock(tx, shop.context, whole))
    expect((await shop.product(1)).quantity).toBe(20)
  })

  test('for a product with one row the later count applies to both, the row and the product', async () => {
    const { shop, count, list } = await openRows(open)
    const both = async () => [(await shop.product(2)).quantity, (await list())[1]!.quantity]
    const countProduct = (quantity: number) => {
      shop.clock.advance(10)
      const whole = { hubId: 1, productId: 2, location: null, quantity }
      return shop.context.db.transact((tx) => countStock(tx, shop.context, whole))
    }
    await countProduct(9)
    expect(await both()).toEqual([9, 9])
    shop.clock.advance(10)
    await count(2, 4)
    expect(await both()).toEqual([4, 4])
    await countProduct(7)
    expect(await both()).toEqual([7, 7])
  })

  test('a count that is entered while the hub’s report of an earlier drop is written is shown', async () => {
    const { shop, list } = await openRows(open)
    const { db } = shop.context
    const both = async () => [(await shop.product(2)).quantity, (await list())[1]!.quantity]
    const fell = {
      kind: 'stock.dropped',
      product_id: 2,
      location: { cabinet: 1, shelf: 1, row: 2 },
      delta: -1,
      quantity: 1,
      operation_id: '00000000-0000-7000-8000-000000000001',
      order_id: null,
      line_id: null,
      delivered: 0,
      bin: null,
    } as const
    const { reporting } = await db.transact(async (tx) => {
      await tx.forUpdate(tx.q.selectFrom('products').select('id').where('id', '=', 2)).execute()
      await countStock(tx, shop.context, { hubId: 1, productId: 2, location: null, quantity: 9 })
      const reported = shop.report(fell)
      await lockWaits(db)
      return { reporting: reported }
    })
    await reporting
    expect(await both()).toEqual([9, 9])
  })
})
