import { beforeEach, describe, expect, test } from 'vitest'
import { availableOf } from '../../cloud/commerce/catalogue/reservations.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { Plant } from '../world/plant.ts'

/** From the moment when the hub knows that it will not dispense a product, no customer is charged for it. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

/** Product 3 is in one row of cabinet 1, product 1 in a row of each cabinet. */
const ONE_ROW = 3
const TWO_ROWS = 1

const ended = (status: number): boolean => status >= OrderStatus.READY

async function buy(productId: number): Promise<string> {
  try {
    const order = await plant.order({ [productId]: 1 })
    await plant.until(order, OrderStatus.READY)
    const status = await plant.statusOf(order)
    if (status === OrderStatus.READY) await collect(order)
    expect(ended(status)).toBe(true)
    return status === OrderStatus.READY ? 'had it' : 'was refunded'
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

async function collect(orderId: number): Promise<void> {
  const { bins } = await plant.db.kysely
    .selectFrom('orders')
    .select('bins')
    .where('id', '=', orderId)
    .executeTakeFirstOrThrow()
  for (const bin of JSON.parse(bins) as number[]) {
    await plant.control('open_bin', `bin=${bin}`)
    plant.room.hub.act({ action: 'take_items', target: `bin-${bin}` })
  }
  await plant.until(orderId, OrderStatus.COMPLETED)
}

/** A product in the owner's inventory. */
async function shown(productId: number): Promise<{ quantity: number; sellable_quantity: number }> {
  const { json } = await plant.call('GET', 'hub_inventory/?hub_id=1')
  const { quantity, sellable_quantity } = (
    json as { id: number; quantity: number; sellable_quantity: number }[]
  ).find(({ id }) => id === productId)!
  return { quantity, sellable_quantity }
}

describe.each(['jam', 'empty_turn', 'missed_drop', 'jam_without_motion'] as const)('after a %s', (type) => {
  const strike = async (productId: number): Promise<string> => {
    const { id } = plant.room.hub.faults.raise({ type, target: 'cabinet-1', probability: 1 })
    const first = await buy(productId)
    plant.room.hub.faults.clear(id)
    await plant.run(1000)
    return first
  }

  test('the only row of a product is blocked after its first failure, until it is counted', async () => {
    expect(await strike(ONE_ROW)).toBe('was refunded')
    expect(await shown(ONE_ROW)).toEqual({ quantity: 6, sellable_quantity: 0 })
    expect(await availableOf(plant.db.kysely, ONE_ROW)).toBe(0)
    const others = [await buy(ONE_ROW), await buy(ONE_ROW), await buy(ONE_ROW)]
    expect(others).toEqual(Array.from({ length: 3 }, () => 'insufficient_stock'))
    const left = plant.room.hub
      .state()
      .rows.find(({ cabinet, shelf, row }) => cabinet === 1 && shelf === 1 && row === 3)!
    plant.hub.hub!.core.count({ cabinet: 1, shelf: 1, row: 3 }, left.units)
    await plant.run(1000)
    expect(await shown(ONE_ROW)).toEqual({ quantity: left.units, sellable_quantity: left.units })
    // Units that the first order left in a bin stay there.
    expect(await buy(ONE_ROW)).toBe('had it')
  })

  test('a product with a second row is sold from that row', async () => {
    await strike(TWO_ROWS)
    const { sellable_quantity: left } = await shown(TWO_ROWS)
    const others: string[] = []
    for (let customer = 0; customer <= left; customer++) others.push(await buy(TWO_ROWS))
    expect(others).toEqual([...Array.from({ length: left }, () => 'had it'), 'insufficient_stock'])
    expect([2, 3]).toContain(left)
  })
})

test('a bin with forgotten units takes no order, and is free again after it is emptied', async () => {
  for (const cabinet of ['cabinet-1', 'cabinet-2']) plant.fault('missed_drop', cabinet)
  const orders = [await plant.order({ 3: 1 }), await plant.order({ 4: 1 })]
  for (const order of orders) await plant.until(order, OrderStatus.COMPLETED)
  await plant.run(5000)
  expect(plant.room.hub.state().bins.map(({ units }) => units)).toEqual([1, 1])
  await expect(plant.order({ 6: 1 })).rejects.toMatchObject({ code: 'no_bin_available' })
  await plant.control('open_bin', 'bin=1')
  plant.room.hub.act({ action: 'take_items', target: 'bin-1' })
  await plant.run(20_000)
  const order = await plant.order({ 6: 1 })
  expect(await plant.statusOf(order)).toBe(OrderStatus.QUEUED)
})

test('products behind a silent controller are not sold until it answers again', async () => {
  plant.room.hub.faults.raise({ type: 'brown_out', target: 'vending', for_ms: 30_000 })
  await plant.run(15_000)
  expect(await availableOf(plant.db.kysely, ONE_ROW)).toBe(0)
  await expect(plant.order({ [ONE_ROW]: 1 })).rejects.toMatchObject({ code: 'insufficient_stock' })
  await plant.run(30_000)
  expect(await buy(ONE_ROW)).toBe('had it')
})
