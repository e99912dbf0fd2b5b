import { describe, expect, test } from 'vitest'
import type { CommandOutcome } from '../../../cloud/gateway/commands.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { contender, serverOf } from '../../../cloud/gateway/shares.ts'
import { alarm } from '../../world/scripted-hub.ts'
import { SETTLED, World, type CloudProcess } from '../../world/gateway.ts'
import { uuid } from '../../support/uuid.ts'

const holder = async (world: World): Promise<string | undefined> => {
  const row = await world.db.kysely.selectFrom('hub_sessions').select('process_id').executeTakeFirst()
  return row?.process_id
}
const alarms = async (world: World): Promise<string[]> => {
  const all = await world.db.kysely.selectFrom('alarms').select('subject').orderBy('seq').execute()
  return all.map((row) => row.subject ?? '')
}

/** By then a new process knows the others, and serves its share. */
const JOINED = 2_000

/** A death that the broker does not notice: no will is published. */
const killSilently = (world: World, { life }: CloudProcess): void => world.scheduler.kill(life, 'test')

/** Two cloud processes on one database, and a connected hub; `held` has its lease, `other` has not. */
async function pair() {
  const world = await World.create()
  world.isShared = true
  const [a, b] = [world.startCloud('a'), world.startCloud('b')]
  const hub = world.hub()
  await world.pass(JOINED)
  hub.connect()
  await world.pass(SETTLED)
  const isA = (await holder(world)) === 'a'
  return { world, hub, held: isA ? a : b, other: isA ? b : a }
}

describe('several cloud processes', () => {
  test('one of several processes answers a hello, acknowledges and sends', async () => {
    const { world, hub } = await pair()
    expect(hub.welcomes).toHaveLength(1)
    hub.append(alarm('one'))
    hub.sendEntries()
    await world.pass(50)
    expect(hub.acks).toHaveLength(1)
    expect(await alarms(world)).toEqual(['one'])
  })

  test('any process can send a command, and receives its result', async () => {
    const { world, hub, held, other } = await pair()
    hub.onCommand = () => ({ data: { door: 'open' } })
    for (const cloud of [held, other]) {
      let outcome: CommandOutcome | undefined
      const request = { hubId: 1, body: { name: 'open_bin', bin: 1 }, actor: 'x' } as const
      void cloud.gateway.commands.send(request).then((result) => (outcome = result))
      await world.pass(50)
      expect(outcome).toMatchObject({ kind: 'executed' })
    }
  })

  test('a process without the lease asks the holder for the hub’s clock, and the hub gets no request', async () => {
    const { world, hub, held } = await pair()
    const late = world.startCloud('late')
    await world.pass(100)
    hub.onCommand = () => ({})
    let outcome: CommandOutcome | undefined
    const request = { hubId: 1, body: { name: 'close_bin', bin: 1 }, actor: 'x' } as const
    void late.gateway.commands.send(request).then((result) => (outcome = result))
    await world.pass(100)
    expect(outcome).toMatchObject({ kind: 'executed' })
    expect(hub.hails).toEqual([])
    expect(held.faults).toEqual([])
  })

  test('a hub that was silent for a while is asked for its clock', async () => {
    const { world, hub, other } = await pair()
    await world.pass(65_000)
    hub.onCommand = () => ({})
    let outcome: CommandOutcome | undefined
    const request = { hubId: 1, body: { name: 'close_bin', bin: 1 }, actor: 'x' } as const
    void other.gateway.commands.send(request).then((result) => (outcome = result))
    await world.pass(200)
    expect(hub.hails).toHaveLength(1)
    expect(outcome).toMatchObject({ kind: 'executed' })
  })

  test('the holder sends an entry of the other process at once', async () => {
    const { world, hub, other } = await pair()
    await other.context.db.transact((tx) => enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(5) }))
    await world.pass(50)
    expect(hub.applied.at(-1)).toEqual({ kind: 'order.cancel', order_id: uuid(5) })
  })

  test('a lost nudge costs only seconds', async () => {
    const { world, hub, other } = await pair()
    world.network.severe(other.life.name, true)
    await world.pass(100)
    await other.context.db.transact((tx) => enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(5) }))
    await world.pass(6_000)
    expect(hub.applied.at(-1)).toEqual({ kind: 'order.cancel', order_id: uuid(5) })
  })

  test('when the holder dies, the other process continues the session, and asks the hub for lost results', async () => {
    const { world, hub, held, other } = await pair()
    hub.heartbeat()
    await world.pass(100)
    killSilently(world, held)
    hub.append(alarm('one'))
    hub.sendEntries()
    await world.pass(5_000)
    expect(await holder(world)).toBe(other.life.name)
    expect(hub.hails.length).toBeGreaterThan(0)
    hub.sendEntries()
    await world.pass(100)
    expect(await alarms(world)).toEqual(['one'])
    await other.context.db.transact((tx) => enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(6) }))
    await world.pass(100)
    expect(hub.applied.at(-1)).toEqual({ kind: 'order.cancel', order_id: uuid(6) })
  })

  test('the will of a dead holder ends its leases at once', async () => {
    const { world, hub, held, other } = await pair()
    hub.heartbeat()
    await world.pass(100)
    world.kill(held)
    await world.pass(100)
    hub.heartbeat()
    await world.pass(100)
    expect(await holder(world)).toBe(other.life.name)
  })

  test('after the death of all processes the next one serves their hubs within 3 s', async () => {
    const { world, hub, held, other } = await pair()
    killSilently(world, held)
    killSilently(world, other)
    world.startCloud('next')
    await world.pass(3_000)
    expect(await holder(world)).toBe('next')
    hub.append(alarm('one'))
    hub.sendEntries()
    await world.pass(100)
    expect(await alarms(world)).toEqual(['one'])
  })

  test('a live holder keeps its hubs until a new process serves', async () => {
    const { world, hub, held } = await pair()
    world.startCloud('next')
    await world.pass(500)
    expect(await holder(world)).toBe(held.life.name)
    await world.pass(10_000)
    const names = ['a', 'b', 'next'].map(contender)
    expect(await holder(world)).toBe(serverOf(1, names))
    expect(hub.hails).toEqual([])
  })

  test('a holder that lost its connection leaves the hub to the process that took it', async () => {
    const { world, hub, held, other } = await pair()
    world.network.severe(held.life.name, true)
    await world.pass(100)
    hub.heartbeat()
    await world.pass(100)
    expect(await holder(world)).toBe(other.life.name)
    world.network.severe(held.life.name, false)
    await world.pass(10_000)
    hub.acks = []
    hub.append(alarm('one'))
    hub.sendEntries()
    await world.pass(100)
    expect(hub.acks).toHaveLength(1)
  })

  test('a process that stops gracefully leaves its hubs to the others at once', async () => {
    const { world, hub, held, other } = await pair()
    hub.heartbeat()
    await world.pass(100)
    await held.gateway.stop()
    await world.pass(100)
    hub.heartbeat()
    await world.pass(1_100)
    expect(await holder(world)).toBe(other.life.name)
  })

  test('a process that restarts under its name has its hubs at once', async () => {
    const { world, hub, held, other } = await pair()
    world.kill(other)
    world.kill(held)
    world.startCloud(held.life.name)
    await world.pass(JOINED)
    hub.heartbeat()
    await world.pass(100)
    hub.append(alarm('one'))
    hub.sendEntries()
    await world.pass(100)
    expect(await alarms(world)).toEqual(['one'])
  })

  test('two processes that both assume the lease of a hub do everything twice, and nothing wrong', async () => {
    const { world, hub, held, other } = await pair()
    const steal = { process_id: other.life.name, lease_until: Number.MAX_SAFE_INTEGER }
    await world.db.kysely.updateTable('hub_sessions').set(steal).execute()
    hub.heartbeat()
    await world.pass(20)
    await world.db.kysely.updateTable('hub_sessions').set({ process_id: held.life.name }).execute()
    hub.append(alarm('one'), alarm('two'))
    await held.context.db.transact((tx) => enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(7) }))
    hub.sendEntries()
    await world.pass(SETTLED)
    hub.sendEntries()
    await world.pass(SETTLED)
    expect(await alarms(world)).toEqual(['one', 'two'])
    expect(hub.applied.filter((entry) => entry.kind === 'order.cancel')).toHaveLength(1)
    const failed = [held, other].flatMap((cloud: CloudProcess) => cloud.faults)
    expect(failed).toEqual([])
  })
})
