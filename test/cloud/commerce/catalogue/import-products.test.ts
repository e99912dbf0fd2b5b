import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { importProducts, ProductFile } from '../../../../cloud/commerce/catalogue/import-products.ts'
import { countStock, pendingCounts } from '../../../../cloud/commerce/catalogue/shelf-stock.ts'
import { insertLayout } from '../../../../cloud/demo/hub-data.ts'
import type { Tx } from '../../../../cloud/platform/store/database.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const place = (cabinet: number, shelf: number, row: number) => ({ cabinet, shelf, row })
const cola = {
  upc: '036000291452',
  name: 'Çola',
  category: 'Drinks, new',
  subcategory: 'Soft',
  price: 189,
  purchase_price: 70,
}

onEachDatabase('products from a file', (open) => {
  async function shopWithLayout(): Promise<Shop> {
    const shop = await openShop(await open())
    await shop.context.db.transact((tx) => insertLayout(tx, 1, undefined))
    return shop
  }
  const load = ({ context }: Shop, products: unknown) =>
    importProducts(context, 1, ProductFile.parse(products), 'test')
  const productOf = ({ context }: Shop, upc: string) =>
    context.db.kysely.selectFrom('products').selectAll().where('upc', '=', upc).executeTakeFirstOrThrow()
  const facingsOf = ({ context }: Shop, productId: number) =>
    context.db.kysely
      .selectFrom('facings')
      .select(['cabinet', 'shelf', 'row', 'quantity', 'is_primary'])
      .where('product_id', '=', productId)
      .orderBy('cabinet')
      .execute()

  test('an import adds a product with its rows, and a repeated import changes nothing', async () => {
    const shop = await shopWithLayout()
    const file = [{ ...cola, facings: [place(4, 1, 1), place(4, 1, 2)], quantity: 7 }]
    expect(await load(shop, file)).toMatchObject({ created: 1, updated: 0, counted: 1 })
    const made = await productOf(shop, cola.upc)
    expect(made).toMatchObject({ name: 'Çola', search_name: 'cola', original_price: 189, cabinet: 4, row: 1 })
    expect(made.quantity).toBe(7)
    expect(await facingsOf(shop, made.id)).toMatchObject([{ is_primary: 1 }, { is_primary: 0 }])
    expect(await load(shop, file)).toMatchObject({ created: 0, updated: 1 })
    expect(await productOf(shop, cola.upc)).toEqual(made)
  })

  test('a product that is taken out of sale needs no restock, and its alarm ends', async () => {
    const shop = await shopWithLayout()
    const file = { ...cola, facings: [place(4, 1, 1)] }
    await load(shop, [{ ...file, quantity: 7 }])
    await load(shop, [{ ...file, quantity: 1 }])
    const open = () =>
      shop.context.db.kysely.selectFrom('alarms').select('kind').where('cleared_at', 'is', null).execute()
    expect(await open()).toEqual([{ kind: 'stock_low' }])
    await load(shop, [{ ...cola, is_active: false }])
    expect(await open()).toEqual([])
  })

  test('an import waits for a checkout at its hub before it locks a product that the checkout reserves', async () => {
    const shop = await shopWithLayout()
    const { db } = shop.context
    const { upc } = await db.kysely
      .updateTable('products')
      .set({ upc: '012345678905' })
      .where('id', '=', 1)
      .returning('upc')
      .executeTakeFirstOrThrow()
    const importing = await db.transact(async (tx) => {
      await tx.forUpdate(tx.q.selectFrom('hubs').select('id').where('id', '=', 1)).execute()
      const loaded = load(shop, [{ ...cola, upc, facings: [place(4, 1, 1)] }])
      // On SQLite the other transaction waits for this whole one.
      if (tx.kind === 'sqlite') return { loaded }
      await lockWaits(db)
      const free = await sql`select id from products where id = 1 for no key update skip locked`.execute(tx.q)
      expect(free.rows).toEqual([{ id: 1 }])
      return { loaded }
    })
    expect(await importing.loaded).toMatchObject({ updated: 1 })
  })

  test('an import changes a known product by its UPC; kept rows keep their stock, other rows are empty', async () => {
    const shop = await shopWithLayout()
    const q = shop.context.db.kysely
    const { id, upc } = await q
      .updateTable('products')
      .set({ upc: '012345678905' })
      .where('id', '=', 1)
      .returningAll()
      .executeTakeFirstOrThrow()
    const [held] = await facingsOf(shop, id)
    const { cabinet, shelf, row } = held!
    await load(shop, [
      { ...cola, upc, price: 5, facings: [place(cabinet, shelf, row), place(4, 5, 6)], markdown_percent: 10 },
    ])
    expect(await productOf(shop, upc)).toMatchObject({
      id,
      original_price: 5,
      markdown_percent: 10,
      quantity: held!.quantity,
    })
    expect(await facingsOf(shop, id)).toEqual([held, { ...place(4, 5, 6), quantity: 0, is_primary: 0 }])
    const { detail } = await q
      .selectFrom('audit_log')
      .select('detail')
      .where('action', '=', 'products.import')
      .executeTakeFirstOrThrow()
    expect(JSON.parse(detail)).toMatchObject({ products: 1, prices: [{ upc, to: { original_price: 5 } }] })
  })

  test('an import of many products is one audit record, with the changed prices and the counts', async () => {
    const shop = await shopWithLayout()
    const upcs = ['036000291452', '012345678905', '000000000017']
    const file = upcs.map((upc, index) => ({
      ...cola,
      upc,
      name: `P${index}`,
      facings: [place(4, 2, index + 1)],
      quantity: index,
    }))
    await load(shop, file)
    await load(shop, [file[0]!, { ...file[1]!, price: 777 }])
    const records = await shop.context.db.kysely
      .selectFrom('audit_log')
      .select(['object', 'detail'])
      .where('action', '=', 'products.import')
      .orderBy('id')
      .execute()
    expect(records).toHaveLength(2)
    expect(JSON.parse(records[0]!.detail)).toMatchObject({
      products: 3,
      counts: upcs.map((upc, quantity) => ({ upc, quantity })),
    })
    expect(JSON.parse(records[1]!.detail)).toMatchObject({
      products: 2,
      prices: [{ upc: upcs[1], from: { original_price: cola.price }, to: { original_price: 777 } }],
    })
  })

  test('a count of a row with another product is dropped, and returns with no later planogram', async () => {
    const shop = await shopWithLayout()
    const water = { ...cola, upc: '012345678905', name: 'Water' }
    const [here, there] = [[place(4, 1, 1)], [place(4, 1, 2)]]
    await load(shop, [
      { ...cola, facings: here },
      { ...water, facings: there },
    ])
    const { id } = await productOf(shop, cola.upc)
    const { db } = shop.context
    const count = (location: ReturnType<typeof place>, quantity: number) =>
      db.transact((tx) => countStock(tx, shop.context, { hubId: 1, productId: id, location, quantity }))
    await count(here[0]!, 9)
    const pending = () => db.transact((tx) => pendingCounts(tx, 1))
    await load(shop, [{ ...cola, facings: here }])
    expect(await pending()).toHaveLength(1)
    await load(shop, [
      { ...cola, facings: there },
      { ...water, facings: here },
    ])
    expect(await pending()).toEqual([])
    await load(shop, [
      { ...cola, facings: here },
      { ...water, facings: there },
    ])
    expect((await productOf(shop, cola.upc)).quantity).toBe(0)
  })

  test('the hub gets the whole planogram after an import, with products that the file does not name', async () => {
    const shop = await shopWithLayout()
    const q = shop.context.db.kysely
    const epoch = 'a'.repeat(32)
    await q
      .insertInto('hub_outboxes')
      .values({ hub_id: 1, epoch, base: 0, base_tag: 0, last: 0 })
      .onConflict((conflict) =>
        conflict.column('hub_id').doUpdateSet({ epoch, base: 0, base_tag: 0, last: 0 }),
      )
      .execute()
    await q.deleteFrom('hub_outbox_entries').execute()
    const before = await q.selectFrom('facings').selectAll().where('hub_id', '=', 1).execute()
    await load(shop, [{ ...cola, facings: [place(4, 1, 1)], quantity: 3 }])
    const entries = await q.selectFrom('hub_outbox_entries').select('body').orderBy('seq').execute()
    const [planogram, count] = entries.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
    expect(planogram).toMatchObject({ kind: 'planogram' })
    expect(planogram!['facings']).toHaveLength(before.length + 1)
    expect(count).toMatchObject({ kind: 'stock.count', count: { quantity: 3 } })
  })

  test('a long import runs in small transactions, between which the service writes', async () => {
    const shop = await shopWithLayout()
    let transactions = 0
    const { db } = shop.context
    const counting = {
      ...db,
      transact: <T>(work: (tx: Tx) => Promise<T>): Promise<T> => {
        transactions += 1
        return db.transact(work)
      },
    }
    const upcOf = (number: number) => {
      const digits = String(number).padStart(11, '0')
      const sum = digits
        .split('')
        .reduce((total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 3 : 1), 0)
      return `${digits}${(10 - (sum % 10)) % 10}`
    }
    const products = Array.from({ length: 250 }, (_, number) => ({
      ...cola,
      upc: upcOf(number + 1),
      facings: [],
      quantity: undefined,
      is_active: false,
    }))
    const file = ProductFile.parse(products)
    const imported = await importProducts({ ...shop.context, db: counting }, 1, file, 'test')
    expect(imported).toMatchObject({ created: 250 })
    expect(transactions).toBeGreaterThanOrEqual(4)
  })

  test('a row that the hub does not have, or that another product uses, is refused, and nothing is written', async () => {
    const shop = await shopWithLayout()
    const q = shop.context.db.kysely
    const taken = await q.selectFrom('facings').selectAll().where('hub_id', '=', 1).executeTakeFirstOrThrow()
    const { cabinet, shelf, row } = taken
    await expect(load(shop, [{ ...cola, facings: [place(4, 5, 7)] }])).rejects.toThrow(/no such place: 4-5-7/)
    await expect(load(shop, [{ ...cola, facings: [place(cabinet, shelf, row)] }])).rejects.toThrow(
      /holds product \d+, which the file does not name/,
    )
    expect(await q.selectFrom('products').select('id').where('upc', '=', cola.upc).execute()).toEqual([])
  })
})

test.each([
  ['a UPC without its check digit', [{ ...cola, upc: '036000291453', facings: [place(1, 1, 1)] }]],
  [
    'a repeated UPC',
    [
      { ...cola, facings: [place(1, 1, 1)] },
      { ...cola, facings: [place(1, 1, 2)] },
    ],
  ],
  [
    'a repeated row',
    [
      { ...cola, facings: [place(1, 1, 1)] },
      { ...cola, upc: '012345678905', facings: [place(1, 1, 1)] },
    ],
  ],
  ['an active product without a row', [cola]],
  ['a negative price', [{ ...cola, price: -1, facings: [place(1, 1, 1)] }]],
  ['a price of 0', [{ ...cola, price: 0, facings: [place(1, 1, 1)] }]],
  ['an unknown field', [{ ...cola, colour: 'red', facings: [place(1, 1, 1)] }]],
])('a file with %s is refused', (_, file) => {
  expect(ProductFile.safeParse(file).success).toBe(false)
})
