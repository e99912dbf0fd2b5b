import { sql } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { isUpc } from '../../../protocol/model/upc.ts'
import { insertLayout } from '../../../cloud/demo/hub-data.ts'
import { localDay, minuteOfDay } from '../../../cloud/platform/calendar/zone.ts'
import { dealsOfHub, toEngine } from '../../../cloud/commerce/deals/deal-rows.ts'
import { chooseDeals } from '../../../cloud/commerce/deals/engine/apply-deal.ts'
import { statusOf } from '../../../cloud/commerce/deals/engine/judge-deal.ts'
import { seedDemo, type DemoData } from '../../../cloud/demo/seed-database.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { readFridges, readLayout } from '../../../cloud/commerce/catalogue/layout.ts'
import { orderHistory } from '../../../cloud/commerce/orders/order-list.ts'
import { SeedResult } from '../../../simulator/demo/places.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { seedHubs } from '../../world/seeds.ts'
import { onEachDatabase } from '../../world/database.ts'
import { demoHub } from '../../support/demo-hub.ts'

const rows = new Map(
  demoHub.controllers
    .flatMap(({ devices }) => devices)
    .flatMap((device) => (device.kind === 'cabinet' ? [device] : []))
    .flatMap(({ number, shelves }) =>
      shelves.flatMap(({ shelf, rows: count, depth }) =>
        Array.from({ length: count }, (_, index) => [`${number}-${shelf}-${index + 1}`, depth] as const),
      ),
    ),
)

onEachDatabase('the demo’s data', (open) => {
  const runtime = virtualRuntime(3)
  let db: CloudDatabase
  let data: DemoData
  // Two years of orders are created once for all reading tests.
  beforeAll(async () => {
    db = await open()
    data = await seedDemo(db, runtime)
  })

  test('the demo’s data match the contract and the simulated hardware', async () => {
    SeedResult.parse(data)
    const products = await db.kysely.selectFrom('products').selectAll().where('hub_id', '=', 1).execute()
    expect(products.length).toBeGreaterThanOrEqual(60)
    expect(products.every(({ upc }) => isUpc(upc))).toBe(true)
    const facings = await db.kysely.selectFrom('facings').selectAll().where('hub_id', '=', 1).execute()
    expect(facings.length).toBeGreaterThan(products.length)
    for (const facing of facings)
      expect(facing.quantity).toBeLessThanOrEqual(
        rows.get(`${facing.cabinet}-${facing.shelf}-${facing.row}`) ?? -1,
      )
    expect(data.shelves).toEqual(
      facings.map(({ cabinet, shelf, row, product_id, quantity: units }) => ({
        cabinet,
        shelf,
        row,
        product_id,
        units,
      })),
    )
    expect(data.hubs.map(({ hub_id }) => hub_id)).toEqual([1, 2, 3])
    expect(await db.kysely.selectFrom('hubs').select(['id', 'owner_id']).orderBy('id').execute()).toEqual([
      { id: 1, owner_id: 1 },
      { id: 2, owner_id: 1 },
      { id: 3, owner_id: 2 },
    ])
  })

  test('stock, ledger and money of the demo’s data add up', async () => {
    const { rows: sums } = await sql<Record<'quantity' | 'shelves' | 'ledger', number>>`
      select quantity,
        (select sum(f.quantity) from facings as f where f.product_id = products.id) as shelves,
        (select sum(l.delta) from stock_ledger as l where l.product_id = products.id) as ledger
      from products`.execute(db.kysely)
    expect(sums.every(({ quantity, shelves, ledger }) => quantity === shelves && quantity === ledger)).toBe(
      true,
    )
    const { rows: orders } = await sql<Record<'total' | 'amount' | 'lines', number>>`
      select orders.total, payments.amount,
        (select sum(i.net + i.tax) from order_items as i where i.order_id = orders.id) as lines
      from orders join payments on payments.order_id = orders.id`.execute(db.kysely)
    expect(orders.length).toBeGreaterThan(5000)
    expect(orders.every(({ total, amount, lines }) => total === amount && total === lines)).toBe(true)
  })

  test('the demo has running, future and past deals, and their savings are in the orders and on record', async () => {
    const day = localDay('America/Chicago', runtime.clock.now())
    const deals = (await dealsOfHub(db.kysely, 1)).map(toEngine)
    const statuses = deals.map((deal) => statusOf(deal, day, 0))
    expect(statuses.filter((status) => status === 'active').length).toBeGreaterThanOrEqual(4)
    expect(new Set(statuses)).toEqual(new Set(['active', 'scheduled', 'expired', 'inactive']))
    // Prices in the shop are not reduced: no running deal applies to a single unit.
    const { rows: products } = await sql<{ id: number; category_id: number; subcategory_id: number }>`
      select id, category_id, subcategory_id from products where hub_id = 1`.execute(db.kysely)
    const running = deals.filter((_, index) => statuses[index] === 'active')
    for (const { id, category_id, subcategory_id } of products) {
      const lines = [
        { productId: id, categoryIds: [category_id, subcategory_id], quantity: 1, unitPrice: 1500 },
      ]
      expect(chooseDeals(running, { lines, total: 1500 }, { paidOrders: 0 }).saving).toBe(0)
    }
    const { rows: saved } = await sql<Record<'off' | 'redeemed', number>>`
      select (select sum(i.unit_price * i.qty - i.net) from order_items as i where i.order_id = o.id) as off,
        (select sum(r.discount_amount) from deal_redemptions as r where r.order_id = o.id) as redeemed
      from orders as o where o.deals <> '[]'`.execute(db.kysely)
    expect(saved.length).toBeGreaterThan(10)
    expect(saved.every(({ off, redeemed }) => off > 0 && off === redeemed)).toBe(true)
  })

  test('sales of the demo are spread over the opening hours of their hub, and so fall on other days in UTC', async () => {
    const sold = await db.kysely
      .selectFrom('orders')
      .innerJoin('hubs', 'hubs.id', 'orders.hub_id')
      .select(['timezone', 'orders.created_at as at'])
      .where('hub_id', '=', 1)
      .orderBy('orders.id', 'desc')
      .limit(500)
      .execute()
    const minutes = sold.map(({ timezone, at }) => minuteOfDay(timezone, at))
    expect([Math.min(...minutes) >= 5 * 60, Math.max(...minutes) <= 24 * 60 - 1]).toEqual([true, true])
    const elsewhere = sold.filter(({ timezone, at }) => localDay(timezone, at) !== localDay('UTC', at))
    expect(elsewhere.length).toBeGreaterThan(50)
  })

  test('the demo’s past covers two years up to now, new rows follow it, and it is created only once', async () => {
    const { clock } = runtime
    const first = await orderHistory(db.kysely, {
      hubId: 1,
      ownerId: 1,
      limit: 5,
      cursor: null,
      search: null,
      searchNames: 10,
    })
    expect(clock.now() - Date.parse(first.read().data[0]!.created_at)).toBeLessThan(3 * 86_400_000)
    const { at } = await db.kysely
      .selectFrom('orders')
      .select((eb) => eb.fn.min('created_at').as('at'))
      .executeTakeFirstOrThrow()
    expect((clock.now() - at) / 86_400_000).toBeGreaterThan(729)
    const { id } = await db.kysely
      .insertInto('owners')
      .values({ name: 'next' })
      .returning('id')
      .executeTakeFirstOrThrow()
    expect(id).toBe(3)
    await expect(seedDemo(db, virtualRuntime(3))).rejects.toThrow('already')
  })

  test('the demo’s layout equals that of its hardware', async () => {
    const empty = await open()
    await seedHubs(empty)
    const layouts = []
    for (const [hub, given] of [
      [1, demoHub],
      [2, undefined],
    ] as const) {
      await empty.transact((tx) => insertLayout(tx, hub, given))
      layouts.push({
        shelves: await readLayout(empty.kysely, hub),
        fridges: await readFridges(empty.kysely, hub),
      })
    }
    expect(layouts[1]).toEqual(layouts[0])
    expect(layouts[0]!.fridges).toEqual(demoHub.fridgeDoors)
    const places = Object.entries(layouts[0]!.shelves).flatMap(([cabinet, { shelves }]) =>
      shelves.flatMap(({ shelf_number, total_rows }) =>
        Array.from({ length: total_rows }, (_, index) => `${cabinet}-${shelf_number}-${index + 1}`),
      ),
    )
    expect(places.toSorted()).toEqual([...rows.keys()].toSorted())
  })
})
