import { beforeEach, describe, expect, test } from 'vitest'
import { codeOf, dataOf } from './control-answers.ts'
import { Plant } from '../world/plant.ts'

/**
 * The first reading after a command agrees with the command's answer. A fault stays until a motion succeeds.
 */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const doors = async (): Promise<Record<string, string>> => {
  const { json } = await plant.call('GET', 'get_door_status/?hub_id=1')
  const { door_status } = json as { door_status: { door: string; status: string }[] }
  return Object.fromEntries(door_status.map(({ door, status }) => [door, status]))
}
const bin = async (number: number) => {
  const answer = await plant.call('GET', `controls/get_bin_status?hub=1&bin=${number}`)
  return dataOf(answer) as { status: string; door: string; lift: string; fault_code: string | null }
}
const health = async () => {
  const { json } = await plant.call('GET', 'hubs/get_hub_health/?hub_id=1')
  return json as { bins: { bin_number: number; status: string }[]; fridges: { status: string }[] }
}

describe('the first reading after a command', () => {
  test('the first reading after a command has the state of the main door', async () => {
    expect((await doors())['main']).toBe('locked')
    expect(await plant.call('POST', 'request_door_open/?hub_id=1')).toMatchObject({ status: 200 })
    expect((await doors())['main']).toBe('unlocked')
  })

  test('the first reading after a command has the state of a fridge’s doors', async () => {
    expect(dataOf(await plant.control('open_fridge_left', 'fridge=1'))).toMatchObject({ door: 'unlocked' })
    expect((await doors())['fridge_1_left']).toBe('unlocked')
    expect(dataOf(await plant.control('close_fridge', 'fridge=1'))).toMatchObject({ door: 'locked' })
    expect((await doors())['fridge_1_left']).toBe('locked')
  })

  test('the first reading after a failed motion shows the fault of the bin, and so does health', async () => {
    plant.fault('jam', 'bin-2')
    expect(await plant.control('open_bin', 'bin=2')).toMatchObject({ status: 502 })
    expect((await health()).bins[1]).toMatchObject({ bin_number: 2, status: 'fault' })
    expect(await bin(2)).toMatchObject({ status: 'fault', fault_code: 'open_door:jam' })
  })

  test('a heartbeat in flight does not undo the state of a command', async () => {
    await plant.run(14_000)
    for (let round = 0; round < 12; round++) {
      await plant.run(170)
      await plant.control('open_fridge_left', 'fridge=1')
      expect((await doors())['fridge_1_left']).toBe('unlocked')
      await plant.control('close_fridge', 'fridge=1')
      expect((await doors())['fridge_1_left']).toBe('locked')
    }
  })
})

test('every reading shows a jammed bin as faulty until a motion succeeds', async () => {
  const { id } = plant.room.hub.faults.raise({ type: 'jam', target: 'bin-2', probability: 1 })
  await plant.control('open_bin', 'bin=2')
  for (let second = 0; second < 20; second++) {
    expect(await bin(2)).toMatchObject({ status: 'fault', fault_code: 'open_door:jam' })
    expect((await health()).bins[1]).toMatchObject({ status: 'fault' })
    await plant.run(1000)
  }
  plant.room.hub.faults.clear(id)
  await plant.run(70_000)
  expect(await bin(2)).toMatchObject({ status: 'healthy', fault_code: null, door: 'closed' })
})

test('a hub that takes no orders is paused, and is active when it takes orders again', async () => {
  const shown = async (): Promise<unknown> =>
    ((await plant.call('GET', 'hubs')).json as { hub_status: string }[])[0]?.hub_status
  expect(await shown()).toBe('active')
  await plant.control('stop_orders')
  expect(await shown()).toBe('paused')
  const { json } = await plant.call('GET', 'hubs/get_hub_info/?hub_id=1')
  expect(json).toMatchObject({ hub_status: 'paused' })
  await plant.control('resume_orders')
  expect(await shown()).toBe('active')
})

test('a hub that has never connected is shown as offline, with its hardware', async () => {
  await plant.cutHub(true)
  await plant.db.kysely.deleteFrom('hub_sessions').execute()
  expect(await health()).toMatchObject({
    online: false,
    last_heartbeat: null,
    bins: [
      { bin_number: 1, enabled: true, status: 'offline' },
      { bin_number: 2, enabled: true, status: 'offline' },
    ],
    fridges: [{ fridge_number: 1, enabled: true, temperature: null, status: 'offline' }],
  })
  expect(await bin(1)).toMatchObject({ status: 'offline', reported_at: null })
  expect(codeOf(await plant.control('disable_bin', 'bin=2'))).toBe(202)
  expect((await health()).bins[1]).toMatchObject({ enabled: false })
  expect(await plant.control('disable_bin', 'bin=3')).toMatchObject({ status: 404 })
  const { json } = await plant.call('GET', 'hubs')
  expect((json as { hub_status: string }[])[0]).toMatchObject({ hub_status: 'inactive' })
})
