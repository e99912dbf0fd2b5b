import { beforeEach, expect, test, vi } from 'vitest'
import { availableOf } from '../../cloud/commerce/catalogue/reservations.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { codeOf, dataOf } from './control-answers.ts'
import { People } from './people.ts'
import { Plant } from '../world/plant.ts'

/** From 6 °C until sales resume, as the owner and the customers see it. */

const MINUTE = 60_000
vi.setConfig({ testTimeout: 60_000 })

let plant: Plant
let people: People
beforeEach(async () => {
  plant = await Plant.open()
  people = await People.of(plant)
})

const fridge = async () => {
  const { json } = await plant.call('GET', 'hubs/get_hub_health/?hub_id=1')
  return (json as { fridges: { status: string; temperature: number | null }[] }).fridges[0]!
}

const refusal = (): Promise<string | number> =>
  plant.order({ 4: 1 }).catch((error: unknown) => (error as { code: string }).code)

/** An order that waits, because its controllers are silent. */
async function waitingOrder(): Promise<number> {
  plant.room.hub.faults.raise({ type: 'silent_port', target: 'vending', for_ms: 8 * MINUTE })
  return plant.order({ 6: 2 })
}

/** Checks that the order has ended and its money is refunded. */
async function isRefunded(order: number): Promise<void> {
  await plant.until(order, OrderStatus.COMPLETED, 10 * MINUTE)
  expect(await plant.statusOf(order)).toBe(OrderStatus.FAILED)
  await plant.run(MINUTE)
  const { payment_status, failure_reason } = await plant.db.kysely
    .selectFrom('orders')
    .select(['payment_status', 'failure_reason'])
    .where('id', '=', order)
    .executeTakeFirstOrThrow()
  expect([payment_status, failure_reason]).toEqual(['refunded', 'nothing_dropped'])
}

const BEGUN = { events: ['alarm.raised fridge 1'], mails: ['raised'] }
const OVER = {
  events: ['alarm.raised fridge 1', 'alarm.cleared fridge 1'],
  mails: ['raised', 'over'],
}

/** Confirms the fridge remotely: its products are sold again at once. */
async function confirm(): Promise<void> {
  const answer = await plant.control('enable_fridge', 'fridge=1')
  expect([codeOf(answer), dataOf(answer)]).toEqual([200, { enabled: true }])
  expect(await availableOf(plant.db.kysely, 4)).toBe(6)
  const order = await plant.order({ 4: 1 })
  await plant.until(order, OrderStatus.READY)
  expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
}

test('a warm fridge of an online hub raises alarms in time, refunds waiting orders and stops sales until a confirmation', async () => {
  const { id } = plant.room.hub.faults.raise({ type: 'warm_fridge', target: 'fridge-1' })
  await plant.run(3 * MINUTE)
  const { temperature, status } = await fridge()
  expect([temperature! > 5 && temperature! < 7, status]).toEqual([true, 'healthy'])
  const warm = await people.raised('fridge_warm', 15 * MINUTE)
  const since = Date.parse(warm.raised_at)
  await plant.run(14 * MINUTE)
  expect(await availableOf(plant.db.kysely, 4)).toBe(6)
  const collected = await plant.order({ 4: 1 })
  await plant.until(collected, OrderStatus.READY)
  expect(await plant.statusOf(collected)).toBe(OrderStatus.READY)
  const waiting = await waitingOrder()
  const shutoff = await people.raised('health_shutoff', 15 * MINUTE)
  // The fridge was warm for 10 minutes at the first alarm, and for 30 minutes now.
  expect(Math.round((Date.parse(shutoff.raised_at) - since) / MINUTE)).toBe(20)
  await isRefunded(waiting)
  expect(await availableOf(plant.db.kysely, 4)).toBe(0)
  expect(await refusal()).toBe('insufficient_stock')
  expect((await fridge()).status).toBe('fault')
  plant.room.hub.faults.clear(id)
  await plant.run(30 * MINUTE)
  expect(await refusal()).toBe('insufficient_stock')
  expect(await people.told('fridge_warm')).toEqual(OVER)
  expect(await people.told('health_shutoff')).toEqual(BEGUN)
  const answer = await plant.control('enable_fridge', 'fridge=1')
  expect(codeOf(answer)).toBe(200)
  expect((await fridge()).status).toBe('healthy')
  expect(await availableOf(plant.db.kysely, 4)).toBe(5)
  const order = await plant.order({ 4: 1 })
  await plant.until(order, OrderStatus.READY)
  expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
  expect(await people.told('health_shutoff')).toEqual(OVER)
})

test('an offline hub shuts off a warm fridge and its waiting orders, and reports it first when it is back', async () => {
  const { id } = plant.room.hub.faults.raise({ type: 'warm_fridge', target: 'fridge-1' })
  await plant.run(28 * MINUTE)
  const waiting = await waitingOrder()
  await plant.run(1000)
  await plant.cutHub(true)
  await plant.run(12 * MINUTE)
  plant.room.hub.faults.clear(id)
  await plant.run(30 * MINUTE)
  expect(plant.hub.hub!.core.health().fridges[0]).toMatchObject({ shutoff: true })
  await plant.cutHub(false)
  expect(await availableOf(plant.db.kysely, 4)).toBe(0)
  await isRefunded(waiting)
  expect(await people.told('health_shutoff')).toEqual(BEGUN)
  await confirm()
  expect(await people.told('health_shutoff')).toEqual(OVER)
})

test('after a power cut a warm fridge sells nothing, and waiting orders are refunded', async () => {
  const { id } = plant.room.hub.faults.raise({ type: 'warm_fridge', target: 'fridge-1' })
  await plant.run(27 * MINUTE)
  const waiting = await waitingOrder()
  await plant.run(1000)
  plant.hub.heldDown = true
  plant.hub.kill('power cut')
  plant.room.hub.power('off')
  await plant.run(6 * MINUTE)
  plant.room.hub.power('on')
  plant.hub.heldDown = false
  plant.hub.start()
  await plant.run(30_000)
  expect(await availableOf(plant.db.kysely, 4)).toBe(0)
  expect(await refusal()).toBe('insufficient_stock')
  await isRefunded(waiting)
  expect(await people.told('health_shutoff')).toEqual(BEGUN)
  plant.room.hub.faults.clear(id)
  await plant.run(30 * MINUTE)
  await confirm()
  expect(await people.told('health_shutoff')).toEqual(OVER)
})
