import { beforeEach, describe, expect, test } from 'vitest'
import { availableOf } from '../../cloud/commerce/catalogue/reservations.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { codeOf, dataOf } from './control-answers.ts'
import { Plant } from './plant.ts'

/** Configuration by the owner's interface, down to what the hub then does. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

describe('desired state', () => {
  const health = async () =>
    (await plant.call('GET', 'hubs/get_hub_health/?hub_id=1')).json as {
      bins: { enabled: boolean; status: string }[]
      fridges: { enabled: boolean; status: string }[]
    }
  const hubConfig = () => plant.hub.hub!.core.health()

  test.each(['disable_bin', 'toggle_bin'])(
    '%s takes the bin out of service at the hub, and health shows it',
    async (name) => {
      const answer = await plant.control(name, 'bin=1')
      expect([dataOf(answer), codeOf(answer)]).toEqual([{ enabled: false }, 200])
      expect(hubConfig().bins[0]).toMatchObject({ enabled: false, status: 'maintenance' })
      expect((await health()).bins[0]).toEqual({ bin_number: 1, enabled: false, status: 'maintenance' })
      expect(await plant.lastAudit()).toMatchObject({
        action: `controls.${name}`,
        object: 'bin-1',
        result: 'executed',
        detail: { disabled_bins: [1] },
      })
      // New orders go to the other bin.
      const order = await plant.order({ 4: 1 })
      await plant.until(order, OrderStatus.READY)
      expect(plant.room.hub.state().bins.map(({ units }) => units)).toEqual([0, 1])
      const enabled = await plant.control(name === 'toggle_bin' ? name : 'enable_bin', 'bin=1')
      expect([dataOf(enabled), codeOf(enabled)]).toEqual([{ enabled: true }, 200])
      expect((await health()).bins[0]).toEqual({ bin_number: 1, enabled: true, status: 'healthy' })
    },
  )

  test('an order that is in a bin when that is disabled goes on', async () => {
    const order = await plant.order({ 4: 1 })
    await plant.until(order, OrderStatus.PREPARING)
    await plant.control('disable_bin', 'bin=1')
    await plant.until(order, OrderStatus.READY)
    expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
    expect(plant.room.hub.state().bins[0]!.units).toBe(1)
  })

  test('toggles at the same time toggle each', async () => {
    const answers = await Promise.all(
      Array.from({ length: 7 }, () => plant.begin('POST', 'controls/toggle_bin?hub=1&bin=2')).map((each) =>
        plant.wait(each),
      ),
    )
    const states = answers.map((answer) => (dataOf(answer) as { enabled: boolean }).enabled)
    expect(states.filter((enabled) => enabled)).toHaveLength(3)
    expect(states.filter((enabled) => !enabled)).toHaveLength(4)
    expect(hubConfig().bins[1]).toMatchObject({ enabled: false })
  })

  test('nothing in a disabled fridge is sold or dispensed; what was paid before comes back', async () => {
    // The order is paid while the hub is away, and reaches it together with the fridge's state.
    plant.hub.heldDown = true
    plant.hub.kill()
    const order = await plant.order({ 4: 2 })
    const answer = await plant.control('disable_fridge', 'fridge=1')
    expect([dataOf(answer), codeOf(answer)]).toEqual([{ enabled: false }, 202])
    expect(await availableOf(plant.db.kysely, 4)).toBe(0)
    plant.hub.heldDown = false
    plant.hub.start()
    const { acts } = await plant.witness(() => plant.until(order, OrderStatus.COMPLETED))
    expect(await plant.statusOf(order)).toBe(OrderStatus.FAILED)
    expect(acts.filter(({ action }) => action === 'dispense')).toEqual([])
    await plant.run(1000)
    expect((await health()).fridges[0]).toMatchObject({ enabled: false, status: 'maintenance' })
    const enabled = await plant.control('enable_fridge', 'fridge=1')
    expect([dataOf(enabled), codeOf(enabled)]).toEqual([{ enabled: true }, 200])
    expect(await availableOf(plant.db.kysely, 4)).toBe(6)
    expect((await health()).fridges[0]).toMatchObject({ enabled: true })
    const second = await plant.order({ 4: 2 })
    await plant.until(second, OrderStatus.READY)
    expect(await plant.statusOf(second)).toBe(OrderStatus.READY)
  })

  test('stop_orders and resume_orders', async () => {
    const stopped = await plant.control('stop_orders')
    expect([dataOf(stopped), codeOf(stopped)]).toEqual([{ accepting_orders: false }, 200])
    expect(hubConfig().accepting_orders).toBe(false)
    await expect(plant.order({ 4: 1 })).rejects.toMatchObject({ code: 'hub_not_accepting_orders' })
    expect(await plant.lastAudit()).toMatchObject({ action: 'controls.stop_orders', result: 'executed' })
    const resumed = await plant.control('resume_orders')
    expect([dataOf(resumed), codeOf(resumed)]).toEqual([{ accepting_orders: true }, 200])
    const order = await plant.order({ 4: 1 })
    await plant.until(order, OrderStatus.READY)
    expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
  })

  test.each([
    {
      name: 'disable_bin',
      query: 'bin=2',
      data: { enabled: false },
      shown: { bins: [{}, { enabled: false }] },
    },
    {
      name: 'toggle_bin',
      query: 'bin=2',
      data: { enabled: false },
      shown: { bins: [{}, { enabled: false }] },
    },
    { name: 'enable_bin', query: 'bin=2', data: { enabled: true }, shown: { bins: [{}, { enabled: true }] } },
    {
      name: 'disable_fridge',
      query: 'fridge=1',
      data: { enabled: false },
      shown: { fridges: [{ enabled: false }] },
    },
    {
      name: 'enable_fridge',
      query: 'fridge=1',
      data: { enabled: true },
      shown: { fridges: [{ enabled: true }] },
    },
    { name: 'stop_orders', query: '', data: { accepting_orders: false }, shown: { accepting_orders: false } },
    { name: 'resume_orders', query: '', data: { accepting_orders: true }, shown: { accepting_orders: true } },
  ])('$name reaches an offline hub when it returns: 202', async ({ name, query, data, shown }) => {
    await plant.cutHub(true)
    const answer = await plant.control(name, query)
    expect([dataOf(answer), codeOf(answer)]).toEqual([data, 202])
    expect(await plant.lastAudit()).toMatchObject({ action: `controls.${name}`, result: 'accepted' })
    await plant.cutHub(false)
    expect(hubConfig()).toMatchObject(shown)
  })
})
