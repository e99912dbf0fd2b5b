import * as fc from 'fast-check'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { StockEntry } from '../../../../protocol/mqtt/hub-entries.ts'
import { applyStockEntries } from '../../../../cloud/commerce/catalogue/apply-stock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

const apply = (shop: Shop, entries: readonly StockEntry[]) =>
  shop.context.db.transact((tx) => applyStockEntries(tx, shop.context, 1, entries))

/** Every ledger sums to its shelf, and every product to its shelves (I5). */
async function addsUp({ context }: Shop, initial: number): Promise<boolean> {
  const { rows } = await sql<{ ok: boolean | number }>`
    select facings.quantity = ${initial} + coalesce((
        select sum(l.delta) from stock_ledger as l
        where l.cabinet = facings.cabinet and l.shelf = facings.shelf and l."row" = facings."row"), 0)
      and products.quantity = (select sum(f.quantity) from facings as f where f.product_id = products.id) as ok
    from facings join products on products.id = facings.product_id`.execute(context.db.kysely)
  return rows.every(({ ok }) => Boolean(ok))
}

interface Change {
  row: number
  kind: 'dropped' | 'counted' | 'restocked'
  size: number
}

/** A hub's ledger: each entry contains the stock of its facing after it. */
function ledgerOf(changes: readonly Change[], initial: number): StockEntry[] {
  const shelves = new Map<number, number>()
  return changes.map(({ row, kind, size }, index) => {
    const before = shelves.get(row) ?? initial
    const delta = kind === 'dropped' ? -1 : kind === 'restocked' ? 1 + size : size - before
    shelves.set(row, before + delta)
    const id = `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`
    const common = {
      at: index + 0.5,
      product_id: row,
      location: { cabinet: 1, shelf: 1, row },
      delta,
      quantity: before + delta,
    }
    switch (kind) {
      case 'dropped':
        return {
          ...common,
          kind: 'stock.dropped',
          operation_id: id,
          order_id: null,
          line_id: null,
          delivered: 0,
          bin: null,
        }
      case 'counted':
        return { ...common, kind: 'stock.counted', count_id: id }
      case 'restocked':
        return { ...common, kind: 'stock.restocked', restock_id: id }
    }
  })
}

const change = fc.record({
  row: fc.integer({ min: 1, max: 3 }),
  kind: fc.constantFrom('dropped' as const, 'counted' as const, 'restocked' as const),
  size: fc.nat({ max: 9 }),
})

onEachDatabase('the mirror of a hub’s stock', (open) => {
  test('the cloud’s stock ends as in the hub’s ledger, for any batches and repetitions of its entries', async () => {
    const db = await open()
    const shop = await openShop(db, {
      products: [1, 2, 3].map(() => ({ price: 100, quantity: 5 })),
    })
    const plan = fc.record({
      changes: fc.array(change, { minLength: 1, maxLength: 30 }),
      cuts: fc.array(fc.nat({ max: 29 }), { maxLength: 4 }),
      // An older copy of the hub's store repeats the start, under its own epoch.
      again: fc.nat({ max: 30 }),
    })
    await fc.assert(
      fc.asyncProperty(plan, async ({ changes, cuts, again }) => {
        await sql`delete from stock_ledger`.execute(db.kysely)
        await sql`update facings set quantity = 5`.execute(db.kysely)
        await sql`update products set quantity = 5`.execute(db.kysely)
        const entries = ledgerOf(changes, 5)
        const ends = [...new Set([...cuts.filter((cut) => cut < entries.length), entries.length])]
        let from = 0
        for (const to of ends.toSorted((a, b) => a - b)) {
          await apply(shop, entries.slice(from, to))
          from = to
        }
        await apply(shop, entries.slice(0, again))
        for (const row of [1, 2, 3]) {
          const last = entries.findLast((entry) => entry.location.row === row)
          expect((await shop.product(row)).quantity).toBe(last?.quantity ?? 5)
        }
        expect(await addsUp(shop, 5)).toBe(true)
        const { rows } = await sql<{ n: number }>`select count(*) as n from stock_ledger`.execute(db.kysely)
        expect(rows[0]!.n).toBe(entries.length)
      }),
      { numRuns: db.kind === 'sqlite' ? 100 : 20 },
    )
  })

  test('entries that one batch repeats, as at the start of an epoch, are applied once', async () => {
    const shop = await openShop(await open(), { products: [{ price: 100, quantity: 5 }] })
    const fell = ledgerOf([{ row: 1, kind: 'dropped', size: 0 }], 5)
    const counted = ledgerOf([{ row: 1, kind: 'counted', size: 3 }], 4)
    await apply(shop, [...fell, ...fell, ...counted, ...counted, ...fell])
    expect((await shop.product(1)).quantity).toBe(3)
    const { rows } = await sql<{ delta: number }>`select delta from stock_ledger order by id`.execute(
      shop.context.db.kysely,
    )
    expect(rows).toEqual([{ delta: -1 }, { delta: -1 }])
    expect(await addsUp(shop, 5)).toBe(true)
  })

  test('thousands of stock entries can be one batch', async () => {
    const shop = await openShop(await open(), { products: [{ price: 100, quantity: 5 }] })
    const entries = ledgerOf(
      Array.from({ length: 2000 }, () => ({ row: 1, kind: 'dropped' as const, size: 0 })),
      5,
    )
    await apply(shop, entries)
    expect((await shop.product(1)).quantity).toBe(-1995)
    expect(await addsUp(shop, 5)).toBe(true)
  })

  test('a drop that the books had lost is recorded, and creates no facing', async () => {
    const db = await open()
    const shop = await openShop(db, { products: [{ price: 100, quantity: 5 }] })
    await apply(shop, [
      {
        kind: 'stock.dropped',
        at: 1,
        product_id: 1,
        location: { cabinet: 1, shelf: 2, row: 1 },
        delta: 0,
        quantity: 0,
        operation_id: '00000000-0000-7000-8000-000000000001',
        order_id: null,
        line_id: null,
        delivered: 0,
        bin: 1,
      },
    ])
    expect((await shop.product(1)).quantity).toBe(5)
    expect(await db.kysely.selectFrom('facings').select('shelf').execute()).toEqual([{ shelf: 1 }])
    expect(await db.kysely.selectFrom('stock_ledger').select('delta').execute()).toEqual([{ delta: 0 }])
  })

  test('one count may concern several facings', async () => {
    const shop = await openShop(await open())
    const count_id = '00000000-0000-7000-8000-000000000001'
    const counted = (row: number, delta: number, quantity: number): StockEntry => ({
      kind: 'stock.counted',
      at: 1,
      product_id: 1,
      location: { cabinet: 1, shelf: 2, row },
      delta,
      quantity,
      count_id,
    })
    await apply(shop, [counted(1, 4, 4), counted(2, 3, 3)])
    expect((await shop.product(1)).quantity).toBe(12)
  })

  test('a snapshot replaces the listed stock, and the ledger explains the difference', async () => {
    const shop = await openShop(await open(), {
      products: [
        { price: 100, quantity: 5 },
        { price: 100, quantity: 5 },
      ],
    })
    const stock = [{ product_id: 1, location: { cabinet: 1, shelf: 1, row: 1 }, quantity: 2 }]
    const bare = { kind: 'snapshot' as const, states: [], alarms: [] }
    await shop.report({ ...bare, stock }, { ...bare, stock: [] })
    expect((await shop.product(1)).quantity).toBe(2)
    expect((await shop.product(2)).quantity).toBe(5)
    expect(await addsUp(shop, 5)).toBe(true)
  })

  test('an entry of an unknown product is refused, and its whole batch is rolled back', async () => {
    const shop = await openShop(await open())
    const entries = ledgerOf(
      [
        { row: 1, kind: 'dropped', size: 0 },
        { row: 9, kind: 'dropped', size: 0 },
      ],
      5,
    )
    await expect(apply(shop, entries)).rejects.toThrow('no product 9')
    expect((await shop.product(1)).quantity).toBe(5)
  })
})
