import { expect, test } from 'vitest'
import { World } from '../../world/gateway.ts'

const hubIds = Array.from({ length: 8 }, (_, index) => index + 1)

/** The numbers of hubs that two processes at one broker receive messages from. */
async function heardIn(cells: readonly [number, number]): Promise<number[]> {
  const world = await World.create(hubIds)
  world.isShared = true
  const clouds = cells.map((cell, index) => world.startCloud(`cloud-${index}`, { cell }))
  await world.pass(10_000)
  for (const hubId of hubIds) world.hub(hubId).connect()
  await world.pass(5_000)
  return clouds.map(({ heard }) => heard.size)
}

test('cloud processes of one cell share its hubs, and processes of two cells at one broker do not know of one another', async () => {
  const [one, other] = await heardIn([0, 0])
  expect([one! + other!, one === 0 || other === 0]).toEqual([hubIds.length, false])
  expect(await heardIn([0, 1])).toEqual([hubIds.length, hubIds.length])
})
