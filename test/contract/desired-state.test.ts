import { beforeEach, describe, expect, test } from 'vitest'
import { availableOf } from '../../cloud/commerce/catalogue/reservations.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { codeOf, dataOf } from './control-answers.ts'
import { Plant } from '../world/plant.ts'

/** Configuration by the owner's interface, down to its effect at the hub. */

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
    'the command %s disables the bin at the hub, and health shows it',
    async (name) => {
      const answer = await plant.control(name, 'bin=1')
      expect([dataOf(answer), codeOf(answer)]).toEqual([{ enabled: false }, 200])
      expect(hubConfig().bins[0]).toMatchObject({ enabled: false, status: 'maintenance' })
      expect((await health()).bins[0]).toMatchObject({ bin_number: 1, enabled: false, status: 'maintenance' })
      expect(await plant.lastAudit()).toMatchObject({
        action: `controls.${name}`,
        object: 'bin-1',
        result: 'executed',
        detail: { disabled_bins: [1] },
      })
      // New orders use the other bin.
      const order = await plant.order({ 4: 1 })
      await plant.until(order, OrderStatus.READY)
      expect(plant.room.hub.state().bins.map(({ units }) => units)).toEqual([0, 1])
      const enabled = await plant.control(name === 'toggle_bin' ? name : 'enable_bin', 'bin=1')
      expect([dataOf(enabled), codeOf(enabled)]).toEqual([{ enabled: true }, 200])
      expect((await health()).bins[0]).toMatchObject({ bin_number: 1, enabled: true, status: 'healthy' })
    },
  )

  const published = async () => {
    const rows = await plant.db.kysely.selectFrom('events').select(['type', 'data']).orderBy('seq').execute()
    return rows.map(({ type, data }) => ({ type, data: JSON.parse(data) as object }))
  }
  const bin = (data: object) => ({ type: 'bin.status_changed', data })
  const fridge = (data: object) => ({ type: 'fridge.status_changed', data })
  const intake = (accepting_orders: boolean, hub_status: string) => ({
    type: 'intake.changed',
    data: { accepting_orders, hub_status },
  })

  test.each([
    {
      commands: ['disable_bin&bin=1', 'enable_bin&bin=1'],
      events: [bin({ enabled: false, status: 'maintenance' }), bin({ enabled: true, status: 'healthy' })],
    },
    {
      commands: ['toggle_bin&bin=2', 'toggle_bin&bin=2'],
      events: [bin({ enabled: false, status: 'maintenance' }), bin({ enabled: true, status: 'healthy' })],
    },
    {
      commands: ['disable_fridge&fridge=1', 'enable_fridge&fridge=1'],
      events: [
        fridge({ enabled: false, status: 'maintenance' }),
        fridge({ enabled: true, status: 'healthy' }),
      ],
    },
    {
      commands: ['stop_orders', 'resume_orders'],
      events: [intake(false, 'paused'), intake(true, 'active')],
    },
  ])(
    'the commands $commands publish one event for each change, equal to the health afterwards',
    async (row) => {
      await plant.run(20_000)
      const before = (await published()).length
      for (const [index, command] of row.commands.entries()) {
        const [name = '', query = ''] = command.split('&')
        await plant.control(name, query)
        await plant.run(20_000)
        const events = (await published())
          .slice(before)
          .filter(({ type }) => /^(bin|fridge|intake)/.test(type))
        expect(events).toMatchObject(row.events.slice(0, index + 1))
        expect(events).toHaveLength(index + 1)
        const { bins, fridges } = await health()
        const { type, data } = events.at(-1)!
        // The room's temperature changes all the time.
        const still = Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'temperature'))
        if (type !== 'intake.changed')
          expect([...bins, ...fridges]).toContainEqual(expect.objectContaining(still))
      }
    },
  )

  test('an order in a bin continues when the bin is disabled', async () => {
    const order = await plant.order({ 4: 1 })
    await plant.until(order, OrderStatus.PREPARING)
    await plant.control('disable_bin', 'bin=1')
    await plant.until(order, OrderStatus.READY)
    expect(await plant.statusOf(order)).toBe(OrderStatus.READY)
    expect(plant.room.hub.state().bins[0]!.units).toBe(1)
  })

  test('no product in a disabled fridge is sold or dispensed, and an order paid before is refunded', async () => {
    // The order is paid while the hub is offline, and reaches it together with the fridge's state.
    plant.hub.heldDown = true
    plant.hub.kill()
    const order = await plant.order({ 4: 2 })
    const answer = await plant.control('disable_fridge', 'fridge=1')
    expect([dataOf(answer), codeOf(answer)]).toEqual([{ enabled: false }, 202])
    expect(await availableOf(plant.db.kysely, 4)).toBe(0)
    plant.hub.heldDown = false
    plant.hub.start()
    const { acts } = await plant.observe(() => plant.until(order, OrderStatus.COMPLETED))
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

  test('stop_orders pauses sales, and resume_orders starts them again', async () => {
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
  ])(
    'the command $name for an offline hub is 202, and reaches the hub when it returns',
    async ({ name, query, data, shown }) => {
      await plant.cutHub(true)
      const answer = await plant.control(name, query)
      expect([dataOf(answer), codeOf(answer)]).toEqual([data, 202])
      expect(await plant.lastAudit()).toMatchObject({ action: `controls.${name}`, result: 'accepted' })
      await plant.cutHub(false)
      expect(hubConfig()).toMatchObject(shown)
    },
  )
})
