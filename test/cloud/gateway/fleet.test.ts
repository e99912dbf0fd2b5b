import { expect, test } from 'vitest'
import { sleep } from '../../../protocol/model/runtime.ts'
import { createMemoryHub, type MemoryHub } from '../../support/memory-hub.ts'
import { inertDomain, World } from './support/world.ts'

const HUBS = 200
/** What a greeting takes of the database, which does one after another. */
const GREETING_MS = 500

/** Hubs that speak the real sync, and wait to be told to start. */
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

/** A cloud that greets two hubs a second, whatever it is asked. */
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

test('two hundred hubs that come at once to a cloud that greets two a second are all welcomed, at that pace', async () => {
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
  // It is never idle while hubs wait, and greets nobody twice: the ideal is 100 s.
  expect(bySeconds.length, bySeconds.join(' ')).toBeLessThanOrEqual(13)
  expect(cloud.faults).toEqual([])
}, 120_000)

test('the hubs of a process that has died are hailed one after another, at the pace at which hubs are greeted', async () => {
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
  // Those that have said something meanwhile need none.
  expect(hails.length).toBeGreaterThan((held * 3) / 4)
  expect(hails.at(-1)! - hails[0]!).toBeGreaterThan(held - 10)
  expect(Math.max(...pauses)).toBeLessThan(200)
})
