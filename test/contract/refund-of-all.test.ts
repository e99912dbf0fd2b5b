import { beforeEach, expect, test } from 'vitest'
import { refundOrder } from '../../cloud/commerce/refunds/refund-requests.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { Plant } from '../world/plant.ts'

/** An owner refunds a whole order while its hub has it, from the cloud down to the shelf. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const PRODUCT = 6
const UNITS = 3

const dropped = (): number => plant.room.hub.actuations().filter(({ action }) => action === 'dispense').length
const stock = async (): Promise<{ quantity: number; reserved: number }> =>
  plant.db.kysely
    .selectFrom('products')
    .select(['quantity', 'reserved'])
    .where('id', '=', PRODUCT)
    .executeTakeFirstOrThrow()

test('a full refund keeps undispensed units on the shelf and on sale, and is paid once', async () => {
  const { quantity } = await stock()
  const order = await plant.order({ [PRODUCT]: UNITS })
  await plant.until(order, OrderStatus.PREPARING)
  const owner = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
  expect(await plant.wait(refundOrder(plant.services, { orderId: order, ...owner }))).toBe('refunded')
  await plant.until(order, OrderStatus.READY)
  await plant.run(60_000)
  expect(dropped()).toBeLessThan(UNITS)
  expect(await stock()).toEqual({ quantity: quantity - dropped(), reserved: 0 })
  const refunds = await plant.db.kysely
    .selectFrom('refunds')
    .select('status')
    .where('order_id', '=', order)
    .execute()
  expect(refunds).toEqual([{ status: 'succeeded' }])
})
