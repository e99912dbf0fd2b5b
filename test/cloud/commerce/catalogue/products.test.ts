import { expect, test, vi } from 'vitest'
import type { z } from 'zod'
import { importProducts, ProductFile } from '../../../../cloud/commerce/catalogue/import-products.ts'
import {
  type ProductSearch,
  readProduct,
  FoundTotals,
  searchProducts,
} from '../../../../cloud/commerce/catalogue/products.ts'
import { searchText } from '../../../../protocol/model/search-text.ts'
import { insertLayout } from '../../../../cloud/demo/hub-data.ts'
import { openService } from '../../../world/service.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const melon = {
  upc: '036000291452',
  name: 'Watermelon',
  category: 'Fruit',
  price: 189,
  purchase_price: 70,
  facings: [{ cabinet: 4, shelf: 1, row: 1 }],
}

const names = [
  'Crème Brûlée',
  'creme fraiche',
  'ÄPFEL-SAFT',
  'Apfelsaft 100%',
  'Große Weiße',
  'ΟΔΟΣ Νερό',
  'İçecek',
  'Water_still',
  'Waterfall',
  'Zero Sugar Cola',
  'Cola  Zero',
  'Ｆullwidth',
]

/** A hub with products of these names, in another order. */
async function hubWith(open: OpenDatabase) {
  const shop = await openShop(await open(), { products: names.map(() => ({ price: 100, quantity: 1 })) })
  const q = shop.context.db.kysely
  for (const [index, name] of names.toReversed().entries())
    await q
      .updateTable('products')
      .set({ name, search_name: searchText(name) })
      .where('id', '=', index + 1)
      .execute()
  const search = (options: Partial<ProductSearch> = {}) =>
    searchProducts(q, { hubId: 1, page: 1, size: 50, ...options }, new FoundTotals(10))
  return {
    shop,
    q,
    search,
    find: async (name: string) => (await search({ name })).products.map((product) => product.name),
  }
}

onEachDatabase('product search', (open) => {
  test('the number of products that a search finds is cached, and counted again after a change of the catalogue', async () => {
    const { shop, q } = await hubWith(open)
    await shop.context.db.transact((tx) => insertLayout(tx, 1, undefined))
    const totals = new FoundTotals(10)
    const total = async () =>
      (await searchProducts(q, { hubId: 1, name: 'water', page: 1, size: 1 }, totals)).total
    const load = (product: Partial<z.input<typeof ProductFile>[number]>) =>
      importProducts(shop.context, 1, ProductFile.parse([{ ...melon, ...product }]), 'test')
    expect(await total()).toBe(2)
    const counted = vi.spyOn(totals, 'keep')
    expect([await total(), counted.mock.calls.length]).toEqual([2, 0])
    await load({})
    expect([await total(), counted.mock.calls.length]).toEqual([3, 1])
    await load({ name: 'Melon' })
    expect(await total()).toBe(2)
    await load({})
    expect(await total()).toBe(3)
    await load({ is_active: false, facings: [] })
    expect(await total()).toBe(2)
  })

  test('a search finds a name in any case, with or without accents', async () => {
    const { find } = await hubWith(open)
    expect(await find('CREME')).toEqual(['Crème Brûlée', 'creme fraiche'])
    expect(await find('crème')).toEqual(['Crème Brûlée', 'creme fraiche'])
    expect(await find('bru\u0302le\u0301e')).toEqual(['Crème Brûlée'])
    expect(await find('äpfel')).toEqual(['ÄPFEL-SAFT', 'Apfelsaft 100%'])
    expect(await find('GROSSE')).toEqual(['Große Weiße'])
    expect(await find('weiß')).toEqual(['Große Weiße'])
    expect(await find('οδος')).toEqual(['ΟΔΟΣ Νερό'])
    expect(await find('ΝΕΡΟ')).toEqual(['ΟΔΟΣ Νερό'])
    expect(await find('içecek')).toEqual(['İçecek'])
    expect(await find('fullwidth')).toEqual(['Ｆullwidth'])
  })

  test('a search treats wildcards and quotes literally', async () => {
    const { find } = await hubWith(open)
    expect(await find('%')).toEqual(['Apfelsaft 100%'])
    expect(await find('r_s')).toEqual(['Water_still'])
    expect(await find("'; drop table products; --")).toEqual([])
    expect(await find('!')).toEqual([])
    expect(await find('\\')).toEqual([])
  })

  test('a search requires every word, in any order and with any spaces between', async () => {
    const { find } = await hubWith(open)
    expect(await find('cola zero')).toEqual(['Cola  Zero', 'Zero Sugar Cola'])
    expect(await find('  zero   cola ')).toEqual(['Cola  Zero', 'Zero Sugar Cola'])
    expect(await find('cola sugar')).toEqual(['Zero Sugar Cola'])
    expect(await find(' ')).toHaveLength(names.length)
  })

  test('a search has the same order in both databases, and pages without gaps or duplicates', async () => {
    const { search } = await hubWith(open)
    const all = await search()
    expect(all.products.map(({ name }) => name)).toEqual(
      names.toSorted((a, b) => (searchText(a) < searchText(b) ? -1 : 1)),
    )
    const pages = [
      await search({ size: 5 }),
      await search({ size: 5, page: 2 }),
      await search({ size: 5, page: 3 }),
    ]
    expect(pages.flatMap(({ products }) => products.map(({ id }) => id))).toEqual(
      all.products.map(({ id }) => id),
    )
    expect(pages.map(({ total }) => total)).toEqual([12, 12, 12])
    expect(await search({ size: 5, page: 4 })).toEqual({ products: [], total: 12 })
    expect(await search({ size: 6, page: 2 })).toMatchObject({ total: 12 })
  })

  test('a search shows the units that can still be bought, and no product that is not on sale', async () => {
    const { q, shop, search } = await hubWith(open)
    await shop.paidOrder({ 1: 1 })
    await q.updateTable('products').set({ is_active: 0 }).where('id', '=', 2).execute()
    await q.updateTable('products').set({ is_bestseller: 1 }).where('id', '=', 3).execute()
    const { products, total } = await search()
    expect(total).toBe(11)
    expect(products.find(({ id }) => id === 1)).toMatchObject({ quantity: 0, in_stock: false })
    expect(products.filter((product) => product.is_bestseller).map(({ id }) => id)).toEqual([3])
    await expect(readProduct(q, 1, 2)).rejects.toMatchObject({ code: 'product_not_found' })
    await expect(readProduct(q, 9, 1)).rejects.toMatchObject({ code: 'hub_not_found' })
    await expect(search({ hubId: 9 })).rejects.toMatchObject({ code: 'hub_not_found' })
    await q.updateTable('hubs').set({ retired_at: 1 }).where('id', '=', 1).execute()
    expect((await search()).products.filter((product) => product.in_stock)).toEqual([])
  })

  test('a search accepts any number as a category and any page, and returns an empty list', async () => {
    const { customer } = await openService(open)
    const most = Number.MAX_SAFE_INTEGER
    const ask = async (query: string) => {
      const { status, json, headers } = await customer('ada', 'GET', `/hubs/1/products?${query}`)
      return [query, status, json, headers.get('X-Total-Count')]
    }
    for (const category of [0, 999, most])
      for (const query of [`category_id=${category}`, `subcategory_id=${category}`])
        expect(await ask(query)).toEqual([query, 200, [], '0'])
    expect(await ask(`page=${most}`)).toEqual([`page=${most}`, 200, [], '2'])
  })
})
