import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { searchText } from '../../../../protocol/model/search-text.ts'
import { orderHistory } from '../../../../cloud/commerce/orders/order-list.ts'
import { soldNames } from '../../../../cloud/commerce/orders/sold-names.ts'
import { insertMany } from '../../../../cloud/demo/hub-data.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const HUB = 1
interface Line {
  name: string
  upc: string
}

/** Orders 1, 2, … of hub 1, paid long ago by customer 1. */
async function writeOrders(db: CloudDatabase, orders: readonly (readonly Line[])[]): Promise<void> {
  await db.transact(async (tx) => {
    for (const table of ['order_items', 'orders', 'sold_names'] as const)
      await tx.q.deleteFrom(table).execute()
    await insertMany(
      tx,
      'orders',
      orders.map((_, index) => ({
        id: index + 1,
        uuid: `order-${index + 1}`,
        user_id: 1,
        hub_id: HUB,
        owner_id: 1,
        processing_status: 60,
        payment_status: 'completed',
        currency: 'USD',
        total_price_original: 100,
        total_price_discounted: 100,
        tax_total: 0,
        total: 100,
        version: 1,
        open_when_ready: 0,
        bins: '[]',
        created_at: 0,
        updated_at: 0,
      })),
    )
    const items = []
    for (const [index, lines] of orders.entries()) {
      const names = await soldNames(tx, HUB, lines)
      items.push(
        ...lines.map(({ name, upc }, line) => ({
          order_id: index + 1,
          product_id: line + 1,
          qty: 1,
          upc,
          name,
          sold_name_id: names[line]!,
          image_url: '',
          unit_price_original: 100,
          unit_price: 100,
          net: 100,
          tax: 0,
          reserved: 0,
          qty_dropped: 1,
          qty_doubtful: 0,
          refunded_quantity: 0,
          bins: '[]',
        })),
      )
    }
    await insertMany(tx, 'order_items', items)
  })
}

const word = fc.constantFrom('Crème', 'creme', 'Çola', 'COLA', 'zero', 'Ω', '50%', 'a_b', 'ß', 'x!', '0')
const line = fc.record({
  name: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join(' ')),
  upc: fc.constantFrom('000000000017', '000000000024', '012345678905'),
})
const history = fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 12 })
const searched = fc.oneof(
  word,
  fc.constantFrom('c', '%', '_', ' ', '0', '3', '0123', 'creme c', 'MEÇ', 'ss', '!'),
)

onEachDatabase('a search in the orders of a hub', (open) => {
  async function opened() {
    const shop = await openShop(await open(), {
      products: [1, 2, 3].map(() => ({ price: 100, quantity: 50 })),
    })
    await shop.customer()
    const { db } = shop.context
    const page = async (
      search: string,
      options: { limit?: number; cursor?: number | null; names?: number },
    ) => {
      const { limit = 100, cursor = null, names = 1000 } = options
      return (
        await orderHistory(db.kysely, { hubId: HUB, ownerId: 1, limit, cursor, search, searchNames: names })
      ).read()
    }
    return { shop, db, page }
  }

  test('a search finds the same orders as a check of each order, in pages of any size', async () => {
    const { db, page } = await opened()
    await fc.assert(
      fc.asyncProperty(history, searched, fc.integer({ min: 1, max: 4 }), async (orders, search, limit) => {
        await writeOrders(db, orders)
        const fits = ({ name, upc }: Line): boolean =>
          searchText(name).includes(searchText(search)) || upc.startsWith(search)
        const expected = orders
          .flatMap((lines, index) => (String(index + 1) === search || lines.some(fits) ? [index + 1] : []))
          .toReversed()
        const seen: number[] = []
        for (let cursor: number | null | undefined; cursor !== null;) {
          const { data, next_cursor, has_more } = await page(search, { limit, cursor: cursor ?? null })
          expect(has_more).toBe(next_cursor !== null)
          seen.push(...data.map(({ id }) => id))
          cursor = next_cursor
        }
        expect(seen).toEqual(expected)
      }),
      { numRuns: db.kind === 'sqlite' ? 100 : 30 },
    )
  })

  test('a search checks a limited number of names, the most recently new ones first', async () => {
    const { db, page } = await opened()
    const named = (name: string): Line[] => [{ name, upc: '000000000017' }]
    await writeOrders(db, [named('Old cola'), named('New cola'), named('Old cola')])
    const found = async (names: number) => (await page('cola', { names })).data.map(({ id }) => id)
    expect(await found(2)).toEqual([3, 2, 1])
    expect(await found(1)).toEqual([2])
  })

  test('a name that is sold again is stored once, and a cart with a failed payment is not found by its names', async () => {
    const { shop, db, page } = await opened()
    await shop.paidOrder({ 1: 1, 2: 1 })
    await shop.paidOrder({ 1: 2 })
    expect(await db.kysely.selectFrom('sold_names').select('search_name').orderBy('id').execute()).toEqual([
      { search_name: 'product 1' },
      { search_name: 'product 2' },
    ])
    const cart = await shop.cart(await shop.customer(), { 1: 1 })
    await shop.paidOrder({ 3: 1 }, 'pm_card_chargeDeclined').catch(() => {})
    expect((await page('product 3', {})).data).toEqual([])
    expect((await page('product 1', {})).data.map(({ id }) => id)).not.toContain(cart.id)
  })
})
