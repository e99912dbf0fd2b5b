import { beforeEach, expect, test } from 'vitest'
import type { Operation } from '../../protocol/contract/owner-operations.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { errorOf } from '../world/cloud.ts'
import { Plant } from '../world/plant.ts'

/** A unit with unknown outcome, from the owner's interface down to the hub's journal and back. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const PRODUCT = 5

/** An order with one unit that no sensor saw drop, and its operation as the owner sees it. */
async function doubtful(): Promise<{ order: number; operation: Operation }> {
  plant.fault('missed_drop', 'cabinet-2')
  const order = await plant.order({ [PRODUCT]: 1 })
  await plant.until(order, OrderStatus.COMPLETED)
  plant.room.hub.faults.clearAll()
  await plant.run(2000)
  const [operation] = await unknown()
  return { order, operation: operation! }
}
const unknown = async (): Promise<Operation[]> => {
  const { json } = await plant.call('GET', 'operations?hub_id=1&state=unknown')
  return (json as { data: Operation[] }).data
}
const settle = (id: string, happened: boolean) =>
  plant.call('POST', `operations/${id}/settle`, { body: { happened } })

/** The books of the cloud and of the hub. */
async function books(order: number) {
  const q = plant.db.kysely
  const drops = await q
    .selectFrom('stock_ledger')
    .select('delta')
    .where('product_id', '=', PRODUCT)
    .where('kind', '=', 'dropped')
    .execute()
  const refunds = await q.selectFrom('refunds').select('status').where('order_id', '=', order).execute()
  const { quantity, reserved } = await q
    .selectFrom('products')
    .select(['quantity', 'reserved'])
    .where('id', '=', PRODUCT)
    .executeTakeFirstOrThrow()
  const atHub = plant.hub
    .hub!.core.stock()
    .filter(({ product_id }) => product_id === PRODUCT)
    .reduce((sum, facing) => sum + facing.quantity, 0)
  return { drops: drops.map(({ delta }) => delta), refunds: refunds.length, quantity, reserved, atHub }
}

test('a unit resolved as dropped leaves the stock once, is refunded once, and its row sells again', async () => {
  const { order, operation } = await doubtful()
  expect(operation).toMatchObject({
    device: 'cabinet-2',
    action: 'dispense',
    order_id: order,
    ended_at: null,
  })
  const before = await books(order)
  expect(before).toMatchObject({ drops: [], refunds: 1, reserved: 0 })
  const answer = await settle(operation.id, true)
  expect(answer).toMatchObject({ status: 200, json: { state: 'happened', settled_by: 'person' } })
  expect(await unknown()).toEqual([])
  await settle(operation.id, true)
  expect(errorOf(await settle(operation.id, false)).error.code).toBe('operation_settled')
  await plant.run(5000)
  const after = await books(order)
  expect(after).toEqual({
    ...before,
    drops: [-1],
    quantity: before.quantity - 1,
    atHub: before.atHub - 1,
  })
  const { action, detail } = (await plant.db.kysely
    .selectFrom('audit_log')
    .selectAll()
    .where('action', '=', 'controls.settle_operation')
    .executeTakeFirst())!
  expect([action, JSON.parse(detail)]).toMatchObject([
    'controls.settle_operation',
    { happened: true, command_id: expect.any(String) as string },
  ])
  const next = await plant.order({ [PRODUCT]: 1 })
  await plant.until(next, OrderStatus.READY)
  expect(await plant.statusOf(next)).toBe(OrderStatus.READY)
})

test('a unit resolved as not dropped stays in the stock and is sold again', async () => {
  plant.fault('empty_turn', 'cabinet-2')
  const order = await plant.order({ [PRODUCT]: 1 })
  await plant.until(order, OrderStatus.COMPLETED)
  plant.room.hub.faults.clearAll()
  await plant.run(2000)
  const before = await books(order)
  const [operation] = await unknown()
  expect(await settle(operation!.id, false)).toMatchObject({ json: { state: 'not_happened' } })
  await plant.run(5000)
  expect(await books(order)).toEqual(before)
  const next = await plant.order({ [PRODUCT]: before.quantity })
  await plant.until(next, OrderStatus.READY)
  expect(await plant.statusOf(next)).toBe(OrderStatus.READY)
})

test('a repeated resolution after a crash of the hub books the unit once', async () => {
  for (const diesAfterMs of [0, 5, 20, 60, 150, 400]) {
    plant = await Plant.open()
    const { order, operation } = await doubtful()
    const before = await books(order)
    const first = plant.begin('POST', `operations/${operation.id}/settle`, { body: { happened: true } })
    await plant.run(diesAfterMs)
    plant.hub.kill()
    const { status } = await plant.wait(first)
    expect([200, 502, 504], `after ${diesAfterMs} ms`).toContain(status)
    await plant.run(60_000)
    expect(await settle(operation.id, true), `after ${diesAfterMs} ms`).toMatchObject({
      status: 200,
      json: { state: 'happened', settled_by: 'person' },
    })
    await plant.run(10_000)
    expect(await books(order), `after ${diesAfterMs} ms`).toEqual({
      ...before,
      drops: [-1],
      quantity: before.quantity - 1,
      atHub: before.atHub - 1,
    })
  }
}, 60_000)
