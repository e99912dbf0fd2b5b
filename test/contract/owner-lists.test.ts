import { expect, test } from 'vitest'
import type { AuditRecord, FleetHub, RestockRow } from '../../protocol/contract/owner-reports.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { onEachDatabase } from '../world/database.ts'
import type { Call, Caller } from './walk/call.ts'
import { openWorld, type World } from './walk/world.ts'

interface Page<Row> {
  data: Row[]
  next_cursor: string | null
  has_more: boolean
}

type Name = 'owner.restock.list' | 'owner.fleet.list' | 'owner.audit.read'

const asker =
  <Row>(name: Name) =>
  async (world: World, query: Call['query'] = {}, as: Caller = 'owner') =>
    (await world.ask(routes[name], { as, query })).json as Page<Row>
const restock = asker<RestockRow>('owner.restock.list')
const fleet = asker<FleetHub>('owner.fleet.list')
const audit = asker<AuditRecord>('owner.audit.read')

const DAY = 86_400_000

onEachDatabase('restock', (open) => {
  test('rows that are not full are listed by place, with the rate and the day on which the stock ends', async () => {
    const world = await openWorld(open)
    const { shop } = world
    const q = shop.context.db.kysely
    await q
      .insertInto('hub_shelves')
      .values({ hub_id: 1, cabinet: 1, shelf: 1, total_rows: 4, depth: 5 })
      .onConflict((conflict) => conflict.columns(['hub_id', 'cabinet', 'shelf']).doUpdateSet({ depth: 5 }))
      .execute()
    await shop.paidOrder({ 2: 1 })
    shop.clock.advance(DAY)
    const today = new Date(shop.clock.now()).toISOString().slice(0, 10)
    const { data } = await restock(world, { days: 10 })
    // Product 1 has 5 of 5 units; product 2 has 3 of 5, and sold one in ten days.
    expect(data).toEqual([
      {
        hub_id: 1,
        hub_name: expect.any(String) as string,
        cabinet: 1,
        shelf: 1,
        row: 2,
        product_id: 2,
        upc: '000000000002',
        name: 'Product 2',
        capacity: 5,
        quantity: 3,
        refill: 2,
        sold_per_day: 0.1,
        empty_by: new Date(Date.parse(today) + 30 * DAY).toISOString().slice(0, 10),
        blocked: false,
      },
    ])
    await q
      .insertInto('blocked_places')
      .values({ hub_id: 1, source: 'hub', cabinet: 1, shelf: 1, row: 1, reason: 'jam', since: 0 })
      .execute()
    await q.updateTable('products').set({ quantity: 0 }).where('id', '=', 2).execute()
    const page = await restock(world, { limit: 1 })
    expect(page.data).toMatchObject([{ row: 1, refill: 0, blocked: true, sold_per_day: 0, empty_by: null }])
    expect(page.has_more).toBe(true)
    expect(await restock(world, { limit: 1, cursor: page.next_cursor! })).toMatchObject({
      data: [{ row: 2, empty_by: today }],
      next_cursor: null,
    })
    expect((await restock(world, {}, 'other-owner')).data).toEqual([])
    const csv = await world.ask(routes['owner.restock.list'], {
      as: 'owner',
      headers: { Accept: 'text/csv' },
    })
    expect((csv.json as string).split('\r\n')[0]).toBe(
      'hub_id,hub_name,cabinet,shelf,row,product_id,upc,name,capacity,quantity,refill,sold_per_day,empty_by,blocked',
    )
  })
})

onEachDatabase('the fleet', (open) => {
  test('each hub shows its state, open alarms and sales of today, and no sales without the scope for them', async () => {
    const world = await openWorld(open)
    await world.shop.paidOrder({ 1: 1 })
    await world.shop.hear()
    const { data } = await fleet(world)
    expect(data).toEqual([
      {
        hub_id: 1,
        name: expect.any(String) as string,
        hub_status: 'active',
        online: true,
        last_heartbeat: expect.any(String) as string,
        version: 'test',
        alarms: { critical: 0, warning: 0, info: 0 },
        sales_today: { total_orders: 1, units_sold: 1, gross_revenue: 250 },
        free_bins: 3,
        warmest_fridge: null,
      },
    ])
    const key = await world.key({ scopes: ['hubs:read'] })
    const [withoutSales] = (await fleet(world, {}, { headers: { 'X-API-Key': key } })).data
    expect(withoutSales!.sales_today).toBeNull()
    world.shop.clock.advance(DAY)
    expect((await fleet(world)).data).toMatchObject([
      { online: false, version: 'test', free_bins: 0, sales_today: { total_orders: 0 } },
    ])
    expect((await fleet(world, {}, 'other-owner')).data).toMatchObject([{ hub_id: 2 }])
  })
})

onEachDatabase('the audit list', (open) => {
  test('diag:read reads all records, and a key with hubs:read those of its owner', async () => {
    const world = await openWorld(open)
    const { shop } = world
    const act = (actor: string, hub_id: number | null, object: string, action = 'controls.open_bin') =>
      shop.context.db.kysely
        .insertInto('audit_log')
        .values({
          at: shop.clock.now(),
          actor,
          action,
          hub_id,
          object,
          result: 'executed',
          detail: '{"a":1}',
        })
        .execute()
    const limited = await world.key({ scopes: ['hubs:read'], hubs: [1] })
    const whole = await world.key({ scopes: ['hubs:read'] })
    const prefix = limited.slice(3, 11)
    await act('x', 1, 'bin-1')
    await act('x', 2, 'bin-2')
    await act(`key:${prefix}`, null, 'webhook')
    await act('=x', null, 'owner-2', 'owners.rename')
    const as = (key: string) => ({ headers: { 'X-API-Key': key } })
    const objects = async (caller: Caller, query: Call['query'] = {}) =>
      (await audit(world, query, caller)).data.map(({ object }) => object)
    expect(await objects('owner')).toEqual(['owner-2', 'webhook', 'bin-2', 'bin-1'])
    expect(await objects(as(whole))).toEqual(['webhook', 'bin-1'])
    expect(await objects(as(limited))).toEqual(['webhook', 'bin-1'])
    expect(await objects('owner', { action: 'controls.', hub_id: 2 })).toEqual(['bin-2'])
    expect(await objects('owner', { actor: 'x', limit: 1 })).toEqual(['bin-2'])
    const today = new Date(shop.clock.now()).toISOString().slice(0, 10)
    expect(await objects('owner', { from: today, to: today })).toHaveLength(4)
    expect(await objects('owner', { to: '2000-01-01' })).toEqual([])
    const { data, next_cursor } = await audit(world, { limit: 2 })
    expect(data[0]).toMatchObject({ id: expect.any(String) as string, hub_id: null, detail: { a: 1 } })
    expect(await objects('owner', { cursor: next_cursor! })).toEqual(['bin-2', 'bin-1'])
    const csv = await world.ask(routes['owner.audit.read'], { as: 'owner', headers: { Accept: 'text/csv' } })
    const lines = (csv.json as string).split('\r\n')
    expect(lines[0]).toBe('id,at,actor,action,hub_id,object,result,detail')
    expect(lines[1]).toMatch(/^4,[^,]+,'=x,owners\.rename,,owner-2,executed,"{""a"":1}"$/)
  })
})
