import { expect, test } from 'vitest'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { reorder } from '../../../../cloud/commerce/orders/cart.ts'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

/**
 * A completed order of two units of product 1 and three of product 2, and hub 2 with other products under the
 * same UPCs.
 */
async function regular(open: OpenDatabase) {
  const shop = await openShop(await open(), {
    products: [
      { price: 100, quantity: 9 },
      { price: 200, quantity: 9 },
    ],
  })
  const q = shop.context.db.kysely
  const source = await shop.paidOrder({ 1: 2, 2: 3 })
  const userId = source.user_id
  await q.updateTable('orders').set({ processing_status: S.COMPLETED }).where('id', '=', source.id).execute()
  return {
    shop,
    q,
    userId,
    source,
    again: (targetHubId = 1, sourceOrderId = source.id, by = userId) =>
      reorder(shop.context, { userId: by, sourceOrderId, targetHubId }),
    lines: async (id: number) => (await shop.items(id)).map(({ product_id, qty }) => [product_id, qty]),
    /** Sets the stock of the shelves, without the units reserved for the order above. */
    leave: async (...quantities: number[]) => {
      for (const [index, quantity] of quantities.entries())
        await q
          .updateTable('products')
          .set({ quantity, reserved: 0 })
          .where('id', '=', index + 1)
          .execute()
    },
  }
}

/** Under the name at the source hub. */
const named = (id: number) => ({
  product_id: id,
  upc: String(id).padStart(12, '0'),
  name: `Product ${id}`,
})

onEachDatabase('ordering again', (open) => {
  test('a reorder puts the items of an earlier order into a new cart', async () => {
    const { again, lines, source } = await regular(open)
    const { order, unavailable } = await again()
    expect(order).toMatchObject({ processing_status: S.NEW, hub_id: 1 })
    expect(order.id).not.toBe(source.id)
    expect([await lines(order.id), unavailable]).toEqual([
      [
        [1, 2],
        [2, 3],
      ],
      [],
    ])
  })

  test('a reorder at the same hub uses the same products, whatever their UPCs are now', async () => {
    const { again, lines, q } = await regular(open)
    for (const [id, upc] of [
      [2, '000000000009'],
      [1, '000000000002'],
    ] as const)
      await q.updateTable('products').set({ upc }).where('id', '=', id).execute()
    const { order, unavailable } = await again()
    expect([await lines(order.id), unavailable]).toEqual([
      [
        [1, 2],
        [2, 3],
      ],
      [],
    ])
  })

  test('a reorder takes the available units, and lists the shortages', async () => {
    const { again, lines, leave } = await regular(open)
    await leave(1, 0)
    const { order, unavailable } = await again()
    expect([await lines(order.id), unavailable]).toEqual([
      [[1, 1]],
      [
        { ...named(1), requested: 2, available: 1 },
        { ...named(2), requested: 3, available: 0 },
      ],
    ])
  })

  test('a reorder adds to an existing cart', async () => {
    const { again, lines, leave, shop, userId } = await regular(open)
    await leave(4, 9)
    await shop.cart(userId, { 1: 3 })
    const { order, unavailable } = await again()
    expect([await lines(order.id), unavailable]).toEqual([
      [
        [1, 4],
        [2, 3],
      ],
      [{ ...named(1), requested: 5, available: 4 }],
    ])
  })

  test('a reorder at another hub uses the products with the same UPCs, and lists shortages under the source hub’s names', async () => {
    const { again, lines, q } = await regular(open)
    const { id: _, ...hub } = await q.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    await q.insertInto('hubs').values(hub).execute()
    const { hub_id: __, ...session } = await q
      .selectFrom('hub_sessions')
      .selectAll()
      .executeTakeFirstOrThrow()
    await q
      .insertInto('hub_sessions')
      .values({ ...session, hub_id: 2 })
      .execute()
    const { id: ___, ...product } = await q
      .selectFrom('products')
      .selectAll()
      .where('id', '=', 2)
      .executeTakeFirstOrThrow()
    await q
      .insertInto('products')
      .values({ ...product, hub_id: 2, quantity: 2, reserved: 0 })
      .execute()
    const place = { hub_id: 2, cabinet: 1, shelf: 1, row: 1 }
    await q
      .insertInto('facings')
      .values({ ...place, product_id: 3, is_primary: 1, quantity: 2 })
      .execute()
    const { order, unavailable } = await again(2)
    expect(order.hub_id).toBe(2)
    expect([await lines(order.id), unavailable]).toEqual([
      [[3, 2]],
      [
        { ...named(1), requested: 2, available: 0 },
        { ...named(2), requested: 3, available: 2 },
      ],
    ])
  })

  test('a reorder requires the user’s own order, a hub that takes orders, and an editable cart', async () => {
    const { again, shop, source, userId, lines } = await regular(open)
    await expect(again(1, 99)).rejects.toMatchObject({ code: 'order_not_found' })
    await expect(again(1, source.id, await shop.customer())).rejects.toMatchObject({
      code: 'order_not_found',
    })
    await expect(again(9)).rejects.toMatchObject({ code: 'hub_not_found' })
    await shop.hear({ accepting_orders: false })
    await expect(again()).rejects.toMatchObject({ code: 'hub_not_accepting_orders' })
    await shop.hear()
    const { order } = await again()
    // A reorder of a cart returns the cart itself.
    expect((await again(1, order.id)).order.id).toBe(order.id)
    expect(await lines(order.id)).toHaveLength(2)
    await pay(shop.services, { userId, orderId: order.id, method: 'pm_card_visa' })
    await expect(again()).rejects.toMatchObject({ code: 'order_not_editable' })
  })

  test('two simultaneous reorders never take more than the stock', async () => {
    const { again, lines, leave } = await regular(open)
    await leave(5, 5)
    const answers = await Promise.all([again(), again(), again()])
    expect(new Set(answers.map(({ order }) => order.id)).size).toBe(1)
    expect(await lines(answers[0].order.id)).toEqual([
      [1, 5],
      [2, 5],
    ])
  })
})
