import { expect, test } from 'vitest'
import { sleep } from '../../../protocol/model/runtime.ts'
import { createMemoryHub, type MemoryHub } from '../../world/memory-hub.ts'
import { inertDomain, World } from '../../world/gateway.ts'

const HUBS = 200
/** Database time of one answered hello; the database serves one at a time. */
const GREETING_MS = 500

/** Hubs with the real sync, which start on request. */
async function fleet(count: number): Promise<{ world: World; hubs: MemoryHub[] }> {
  const hubIds = Array.from({ length: count }, (_, index) => index + 1)
  const world = await World.create(hubIds)
  const hubs = hubIds.map((hubId) => {
    const life = world.scheduler.newLife(`hub-${hubId}`, () => {})
    const hub = createMemoryHub({
      hubId,
      runtime: { clock: world.scheduler.clock(life, () => 0), random: world.chance.fork() },
      openTransport: world.network.transportFor(`hub-${hubId}`, life),
    })
    return hub
  })
  return { world, hubs }
}

const welcomed = (hubs: readonly MemoryHub[]): number =>
  hubs.filter(({ sync }) => sync.state().phase === 'welcomed').length

/** A cloud that can answer two hellos a second. */
const slowCloud = (world: World, name: string) =>
  world.startCloud(name, {
    domain: {
      hubsHeard: () => Promise.resolve(),
      hubSnapshot: async (tx, context, hubId) => {
        await sleep(context.runtime.clock, GREETING_MS)
        return inertDomain.hubSnapshot(tx, context, hubId)
      },
    },
  })

test('two hundred hubs that connect at once to a cloud that answers two hellos a second are all welcomed at that rate', async () => {
  const { world, hubs } = await fleet(HUBS)
  const cloud = slowCloud(world, 'cloud')
  await world.pass(100)
  for (const { sync } of hubs) sync.start()
  const bySeconds: number[] = []
  for (let seconds = 0; seconds < 180 && welcomed(hubs) < HUBS; seconds += 10) {
    await world.pass(10_000)
    bySeconds.push(welcomed(hubs))
  }
  expect(welcomed(hubs), bySeconds.join(' ')).toBe(HUBS)
  // The cloud is never idle while hubs wait, and answers no hub twice: the ideal is 100 s.
  expect(bySeconds.length, bySeconds.join(' ')).toBeLessThanOrEqual(13)
  expect(cloud.faults).toEqual([])
}, 120_000)

test('the hubs of a dead process are asked for a hello one after another, at the rate of answers', async () => {
  const COUNT = 40
  const { world, hubs } = await fleet(COUNT)
  world.isShared = true
  const first = world.startCloud('first')
  await world.pass(2_000)
  for (const { sync } of hubs) sync.start()
  await world.pass(10_000)
  expect(welcomed(hubs)).toBe(COUNT)
  world.startCloud('second')
  await world.pass(5_000)
  const { held } = await world.db.kysely
    .selectFrom('hub_sessions')
    .select((eb) => eb.fn.countAll<number>().as('held'))
    .where('process_id', '=', 'first')
    .executeTakeFirstOrThrow()
  const hails: number[] = []
  const ear = world.scheduler.newLife('ear', () => {})
  world.network.transportFor('ear', ear)(
    { subscribe: ['larder/v1/+/down/hail'] },
    { onConnect() {}, onDisconnect() {}, onMessage: () => void hails.push(world.scheduler.time) },
  )
  await world.pass(100)
  world.kill(first)
  await world.pass(2_000)
  const pauses = hails.slice(1).map((time, index) => time - hails[index]!)
  expect(held).toBeGreaterThan(COUNT / 4)
  // Hubs that have sent something since then need no request.
  expect(hails.length).toBeGreaterThan((held * 3) / 4)
  expect(hails.at(-1)! - hails[0]!).toBeGreaterThan(held - 10)
  expect(Math.max(...pauses)).toBeLessThan(200)
})
