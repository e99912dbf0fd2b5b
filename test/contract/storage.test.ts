import { beforeEach, describe, expect, test } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { StorageReason } from '../../protocol/model/storage.ts'
import { Plant } from '../world/plant.ts'

/** A hub with a failing card, as seen by the owner, the customer and the room; it recovers without help. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const health = async () =>
  (await plant.call('GET', 'hubs/get_hub_health?hub_id=1')).json as {
    online: boolean
    network_status: string
  }
const kinds = async (): Promise<string[]> =>
  ((await plant.call('GET', 'alarms?hub_id=1')).json as { data: { kind: string }[] }).data.map(
    ({ kind }) => kind,
  )
const refusal = (): Promise<unknown> =>
  plant.order({ 6: 1 }).then(
    () => 'sold',
    (error: unknown) => (error as { code?: string }).code,
  )

const failures: StorageReason[] = ['read_only', 'io_error', 'locked']

describe.each(failures)('while the card of a hub fails (%s)', (reason) => {
  test('a hub with a failing card stays online, sells and moves nothing, and sells again after the failure', async () => {
    const mend = plant.hub.failStorage(reason)
    // The hub notices the failure when it records an event in the room.
    await plant.control('open_bin', 'bin=1')
    await plant.run(5000)
    expect(await refusal()).toBe('hub_not_accepting_orders')
    expect(await kinds()).toContain('storage_failed')
    const { value, acts } = await plant.observe(async () => {
      const answers = []
      for (const name of ['open_bin', 'raise_bin']) answers.push(await plant.control(name, 'bin=1'))
      await plant.run(200_000)
      return answers
    })
    expect(value.map(({ status }) => status)).toEqual([502, 502])
    expect(acts).toEqual([])
    expect(await health()).toMatchObject({ online: true })
    expect(await refusal()).toBe('hub_not_accepting_orders')
    mend()
    await plant.run(40_000)
    expect(await refusal()).toBe('sold')
    // The alarm ends when the failure has been over for a while.
    const alarm = await plant.db.kysely
      .selectFrom('alarms')
      .select('quiet_since')
      .where('kind', '=', 'storage_failed')
      .executeTakeFirstOrThrow()
    expect(alarm.quiet_since).not.toBeNull()
  })

  test('an order that is in motion when the card fails ends once the card works', async () => {
    for (const afterMs of [50, 1700, 4100, 9000]) {
      const order = await plant.order({ 6: 1 })
      await plant.run(afterMs)
      const mend = plant.hub.failStorage(reason)
      await plant.run(45_000)
      mend()
      const begun = plant.time
      await plant.until(order, OrderStatus.READY, 120_000)
      expect(await plant.statusOf(order), `${afterMs} ms`).toBeGreaterThanOrEqual(OrderStatus.READY)
      expect(plant.time - begun, `${afterMs} ms`).toBeLessThan(100_000)
      await collect(order)
    }
  })
})

/** The customer takes the units, if there are any. */
async function collect(orderId: number): Promise<void> {
  const { bins } = await plant.db.kysely
    .selectFrom('orders')
    .select('bins')
    .where('id', '=', orderId)
    .executeTakeFirstOrThrow()
  for (const bin of JSON.parse(bins ?? '[]') as number[]) {
    await plant.control('open_bin', `bin=${bin}`)
    plant.room.hub.act({ action: 'take_items', target: `bin-${bin}` })
  }
  await plant.until(orderId, OrderStatus.COMPLETED, 60_000)
}
