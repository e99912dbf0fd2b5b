import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { listOrders, type OrderListQuery } from '../../../../cloud/commerce/orders/order-list.ts'
import { countItems } from '../../../../cloud/commerce/orders/cart.ts'
import { errorOf } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'
import { openService } from '../../../world/service.ts'

/**
 * A user with orders of several statuses: 1 expired, 2 completed, 3 failed, 4 queued, and another user's cart
 * 5.
 */
async function history(open: OpenDatabase) {
  const shop = await openShop(await open(), { products: [{ price: 100, quantity: 50 }], taxMillipercent: 0 })
  const userId = await shop.customer()
  const q = shop.context.db.kysely
  const order = async (quantity: number, status: number, paid = true): Promise<number> => {
    shop.clock.advance(60_000)
    await shop.hear()
    const { id } = await shop.cart(userId, { 1: quantity })
    const frozen = {
      total: quantity * 100,
      total_price_original: quantity * 100,
      total_price_discounted: quantity * 100,
      tax_total: 0,
    }
    if (paid)
      await q
        .updateTable('order_items')
        .set({
          upc: '1',
          name: 'x',
          image_url: '',
          unit_price: 100,
          unit_price_original: 100,
          net: quantity * 100,
          tax: 0,
        })
        .where('order_id', '=', id)
        .execute()
    await q
      .updateTable('orders')
      .set({ processing_status: status as S, ...(paid ? frozen : {}), queued_at: shop.clock.now() })
      .where('id', '=', id)
      .execute()
    return id
  }
  await order(4, S.EXPIRED, false)
  await order(3, S.COMPLETED)
  await order(1, S.FAILED)
  await order(2, S.QUEUED)
  await shop.cart(await shop.customer(), { 1: 1 })
  const list = async (options: Partial<OrderListQuery> = {}) =>
    listOrders(q, shop.context, {
      userId,
      statuses: undefined,
      orderBy: 'created_at',
      descending: false,
      page: 1,
      size: 50,
      ...options,
    })
  return {
    shop,
    userId,
    list,
    ids: async (options?: Partial<OrderListQuery>) =>
      (await list(options)).items.map(({ order_id }) => order_id),
  }
}

onEachDatabase("a user's orders", (open) => {
  test('a user’s orders are listed in any sort order, without those of others', async () => {
    const { ids } = await history(open)
    expect(await ids()).toEqual([1, 2, 3, 4])
    expect(await ids({ descending: true })).toEqual([4, 3, 2, 1])
    expect(await ids({ orderBy: 'order_id', descending: true })).toEqual([4, 3, 2, 1])
    expect(await ids({ orderBy: 'total' })).toEqual([1, 3, 4, 2])
    expect(await ids({ orderBy: 'processing_status' })).toEqual([4, 2, 3, 1])
    expect(await ids({ orderBy: 'updated_at' })).toEqual([1, 2, 3, 4])
  })

  test('a user’s orders can be filtered by statuses, number or name', async () => {
    const { ids } = await history(open)
    expect(await ids({ statuses: [S.COMPLETED] })).toEqual([2])
    expect(await ids({ statuses: ['COMPLETED', S.QUEUED, 'QUEUED'] })).toEqual([2, 4])
    expect(await ids({ statuses: ['NEW'] })).toEqual([])
  })

  test('a user’s orders are listed in pages', async () => {
    const { list } = await history(open)
    const pages = [1, 2, 3].map((page) => list({ page, size: 3 }))
    expect((await Promise.all(pages)).map(({ items, ...page }) => [items.length, page])).toEqual([
      [3, { total: 4, page: 1, size: 3, pages: 2 }],
      [1, { total: 4, page: 2, size: 3, pages: 2 }],
      [0, { total: 4, page: 3, size: 3, pages: 2 }],
    ])
    expect(await list({ userId: 99 })).toEqual({ items: [], total: 0, page: 1, size: 50, pages: 0 })
  })

  test('each listed order equals the order itself', async () => {
    const { list, shop } = await history(open)
    for (const item of (await list()).items) expect(item).toEqual(await shop.view(item.order_id))
  })

  test('a user’s orders are filtered over HTTP by repeated statuses', async () => {
    const { customer } = await openService(open)
    await customer('ada', 'POST', '/users/user/bootstrap')
    await customer('ada', 'POST', '/users/1/orders?hub_id=1')
    const ask = async (query: string) => customer('ada', 'GET', `/users/1/orders${query}`)
    expect((await ask('')).json).toMatchObject({ total: 1, page: 1, size: 50, pages: 1 })
    expect((await ask('?order_processing_statuses=0&order_processing_statuses=20')).json).toMatchObject({
      total: 1,
    })
    expect((await ask('?order_processing_statuses=NEW&is_desc=true&order_by=total')).json).toMatchObject({
      total: 1,
    })
    expect((await ask('?order_processing_statuses=QUEUED')).json).toMatchObject({ total: 0, items: [] })
    for (const query of [
      '?order_processing_statuses=5',
      '?order_processing_statuses=0&order_processing_statuses=LOST',
    ])
      expect(errorOf(await ask(query)).detail).toMatchObject([{ type: 'literal_error' }])
    for (const query of ['?order_by=user_id', '?is_desc=perhaps', '?page=0', '?size=101', '?size=0'])
      expect((await ask(query)).status).toBe(422)
  })

  test('the units of the active order are counted', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const count = (hubId = 1) => countItems(shop.context.db.kysely, userId, hubId)
    expect(await count()).toEqual({ count: 0, order_id: null })
    const { id } = await shop.cart(userId, {})
    expect(await count()).toEqual({ count: 0, order_id: id })
    await shop.cart(userId, { 1: 2, 2: 3 })
    expect(await count()).toEqual({ count: 5, order_id: id })
    await expect(count(9)).rejects.toMatchObject({ code: 'hub_not_found' })
  })
})
