import { beforeEach, expect, test } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { Plant } from '../world/plant.ts'

/** `update_quantity` down to the hub's own stock, and back. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const count = async (product: number, quantity: number): Promise<void> => {
  const answer = await plant.call('PUT', `hubs/product/${product}/update_quantity`, { body: { quantity } })
  expect(answer).toMatchObject({ status: 200, json: { data: { id: product, quantity } } })
}
const shown = async (product: number): Promise<number> => {
  const { json } = await plant.call('GET', 'hub_inventory/?hub_id=1')
  return (json as { id: number; quantity: number }[]).find(({ id }) => id === product)!.quantity
}
const atHub = (product: number): number[] =>
  plant.hub
    .hub!.core.stock()
    .filter(({ product_id }) => product_id === product)
    .map(({ quantity }) => quantity)
const pending = async (): Promise<number> =>
  (
    await plant.db.kysely
      .selectFrom('stock_counts')
      .select('count_id')
      .where('settled_at', 'is', null)
      .execute()
  ).length

test('a count reaches the hub, and the hub’s ledger confirms it', async () => {
  await count(4, 11)
  expect(await shown(4)).toBe(11)
  await plant.run(2000)
  expect(atHub(4)).toEqual([11])
  expect([await shown(4), await pending()]).toEqual([11, 0])
})

test('the count of a product with two rows changes the primary row, and no row goes below 0', async () => {
  expect(atHub(1)).toEqual([3, 3])
  await count(1, 8)
  await plant.run(2000)
  expect(atHub(1)).toEqual([5, 3])
  await count(1, 2)
  await plant.run(2000)
  expect(atHub(1).reduce((sum, units) => sum + units)).toBe(2)
  expect(atHub(1).every((units) => units >= 0)).toBe(true)
  expect([await shown(1), await pending()]).toEqual([2, 0])
})

test('a count at an offline hub includes drops before it and not drops after it', async () => {
  // Six units and two orders: one is dispensed before the count, the other after it.
  const orders = [await plant.order({ 4: 2 }), await plant.order({ 4: 1 })]
  await plant.run(20)
  await plant.cutHub(true)
  const dropped = () => plant.room.hub.actuations().filter(({ action }) => action === 'dispense').length
  while (dropped() < 2) await plant.run(50)
  // The drop is reported when the spiral has completed its turn.
  await plant.run(1000)
  const before = dropped()
  expect(before).toBe(2)
  // A person has added units, and counts nine on the shelf.
  await count(4, 9)
  while (dropped() < 3) await plant.run(50)
  await plant.run(30_000)
  expect(await shown(4)).toBe(9)
  await plant.cutHub(false)
  for (const order of orders) await plant.until(order, OrderStatus.READY)
  expect(atHub(4)).toEqual([8])
  expect([await shown(4), await pending()]).toEqual([8, 0])
})

test('a count resolves a unit with unknown outcome, and the unit is sold again', async () => {
  plant.fault('empty_turn', 'cabinet-2')
  const order = await plant.order({ 5: 1 })
  await plant.until(order, OrderStatus.COMPLETED)
  expect(await plant.statusOf(order)).toBe(OrderStatus.FAILED)
  plant.room.hub.faults.clearAll()
  await plant.run(2000)
  const unknown = () =>
    plant.db.kysely
      .selectFrom('unknown_operations')
      .select(['settled_by', 'happened'])
      .where('product_id', '=', 5)
      .execute()
  expect(await unknown()).toEqual([{ settled_by: null, happened: null }])
  await count(5, 2)
  await plant.run(2000)
  expect(await unknown()).toEqual([{ settled_by: 'count', happened: 0 }])
  const again = await plant.order({ 5: 2 })
  await plant.until(again, OrderStatus.READY)
  expect(await plant.statusOf(again)).toBe(OrderStatus.READY)
  expect([await shown(5), atHub(5)]).toEqual([0, [0]])
})
