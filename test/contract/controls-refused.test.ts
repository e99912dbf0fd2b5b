import { beforeEach, describe, expect, test } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { errorOf, type CallAnswer } from '../world/cloud.ts'
import { dataOf, short, UUID } from './control-answers.ts'
import { Plant } from '../world/plant.ts'

/**
 * Controls that the hardware must not or cannot execute: each answer is compared with the simulator's own
 * log.
 */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

describe('a jam', () => {
  test.each([
    { name: 'open_bin', acts: ['open_door bin-1'] },
    { name: 'close_bin', before: 'open_bin', acts: ['close_door bin-1'] },
    { name: 'raise_bin', acts: ['raise_lift bin-1'] },
    { name: 'lower_bin', before: 'raise_bin', acts: ['lower_lift bin-1'] },
  ])(
    'the command $name reports a fault, although its motor started',
    async ({ name, before, acts: expected }) => {
      if (before !== undefined) await plant.control(before, 'bin=1')
      plant.fault('jam', 'bin-1')
      const { value, acts } = await plant.observe(() => plant.control(name, 'bin=1'))
      expect(value.status).toBe(502)
      expect(errorOf(value).error.details).toMatchObject({
        reason: 'fault',
        outcome: 'failed',
        command_id: UUID,
      })
      expect(acts.map(short)).toEqual(expected)
      expect(acts[0]!.detail).toMatchObject({ jammed: true, completed: false })
      expect(await plant.lastAudit()).toMatchObject({ result: 'failed', detail: { reason: 'fault' } })
    },
  )

  test('a cycle_bin that jams reports its last completed step', async () => {
    const answer = plant.begin('POST', 'controls/cycle_bin?hub=1&bin=1&num_cycles=9')
    await plant.run(6000)
    plant.fault('jam', 'bin-1')
    const { value, acts } = await plant.observe(() => plant.wait(answer))
    expect(value.status).toBe(502)
    const before = plant.room.hub
      .actuations()
      .filter(({ device, action }) => device === 'bin-1' && action === 'close_door')
    const whole = before.filter(({ detail }) => detail['completed'] === true).length
    expect(whole).toBeGreaterThan(0)
    expect(errorOf(value).error.details).toMatchObject({ reason: 'fault', cycles_completed: whole })
    expect(acts.at(-1)!.detail).toMatchObject({ jammed: true })
    plant.room.hub.faults.clearAll()
    // Nothing moves without a command except a door that must not stay half open.
    await plant.run(60_000)
    expect(plant.room.hub.state().bins[0]).toMatchObject({ door: 'closed' })
  })

  test('an obstructed door is reported as a fault', async () => {
    await plant.control('open_bin', 'bin=1')
    plant.fault('obstructed_door', 'bin-1')
    const { value, acts } = await plant.observe(() => plant.control('close_bin', 'bin=1'))
    expect(errorOf(value).error.details).toMatchObject({ reason: 'fault' })
    expect(acts[0]!.detail).toMatchObject({ obstructed: true, to: 'open' })
  })
})

const interlock = async (call: () => Promise<CallAnswer>): Promise<void> => {
  const { value, acts } = await plant.observe(call)
  expect(value.status).toBe(502)
  expect(errorOf(value).error).toMatchObject({
    code: 'hardware_error',
    details: { reason: 'interlock', outcome: 'refused', command_id: UUID },
  })
  // The hub's own work goes on, but the log has no trace of the refused command.
  expect(acts.filter(({ action }) => action !== 'dispense')).toEqual([])
}

describe('an interlock', () => {
  test('a lift does not move with its door open', async () => {
    await plant.control('open_bin', 'bin=1')
    await interlock(() => plant.control('raise_bin', 'bin=1'))
    await interlock(() => plant.control('lower_bin', 'bin=1'))
    expect(await plant.lastAudit()).toMatchObject({
      action: 'controls.lower_bin',
      result: 'refused',
      detail: { reason: 'interlock' },
    })
  })

  test('a door does not move during a dispense behind it', async () => {
    const order = await plant.order({ 6: 4 })
    await plant.until(order, OrderStatus.PREPARING)
    for (const name of ['open_bin', 'close_bin', 'raise_bin', 'lower_bin'])
      await interlock(() => plant.control(name, 'bin=1'))
    await interlock(() => plant.control('cycle_bin', 'bin=1&num_cycles=1'))
    // Product 6 is in cabinet 2, behind the right door.
    await interlock(() => plant.control('open_fridge_right', 'fridge=1'))
  })

  test('a bin with a waiting order is not cycled', async () => {
    const order = await plant.order({ 4: 1 })
    await plant.until(order, OrderStatus.READY)
    await interlock(() => plant.control('cycle_bin', 'bin=1&num_cycles=1'))
  })

  test('a fridge is not locked while one of its doors is open', async () => {
    await plant.control('open_fridge_left', 'fridge=1')
    plant.room.hub.act({ action: 'open_door', target: 'fridge_1_left' })
    await plant.run(1000)
    await interlock(() => plant.control('close_fridge', 'fridge=1'))
    plant.room.hub.act({ action: 'close_door', target: 'fridge_1_left' })
    await plant.run(1000)
    expect(dataOf(await plant.control('close_fridge', 'fridge=1'))).toMatchObject({ door: 'locked' })
  })

  test('no unit is dispensed behind an open fridge door until it is closed', async () => {
    await plant.control('open_fridge_right', 'fridge=1')
    plant.room.hub.act({ action: 'open_door', target: 'fridge_1_right' })
    const order = await plant.order({ 4: 1 })
    const during = await plant.observe(() => plant.run(60_000))
    expect(during.acts.filter(({ action }) => action === 'dispense')).toEqual([])
    plant.room.hub.act({ action: 'close_door', target: 'fridge_1_right' })
    await plant.until(order, OrderStatus.READY)
    expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
  })

  test('the main door stays locked while an order is in progress, from paid to collected', async () => {
    const order = await plant.order({ 4: 1 })
    for (const status of [OrderStatus.QUEUED, OrderStatus.READY]) {
      await plant.until(order, status)
      const { value, acts } = await plant.observe(() => plant.call('POST', 'request_door_open/?hub_id=1'))
      expect([value.status, errorOf(value).error.code]).toEqual([409, 'order_in_progress'])
      expect(acts.filter(({ device }) => device === 'main')).toEqual([])
      expect(await plant.lastAudit()).toMatchObject({
        action: 'hubs.request_door_open',
        result: 'refused',
        detail: { reason: 'order_in_progress' },
      })
      expect((await plant.call('GET', 'get_door_status/?hub_id=1')).json).toMatchObject({
        order_status: { has_pending_orders: true },
      })
    }
  })
})
