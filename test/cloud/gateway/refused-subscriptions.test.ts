import { createServer, type AddressInfo } from 'node:net'
import { Aedes } from 'aedes'
import { afterEach, describe, expect, test } from 'vitest'
import { externalBroker } from '../../../cloud/gateway/broker-external.ts'
import { contender, serverOf } from '../../../cloud/gateway/shares.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { hubFilter, upFilter } from '../../../protocol/mqtt/topics.ts'
import type { ChangingTransport } from '../../../protocol/mqtt/transport.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { createMemoryHub, type MemoryHub } from '../../world/memory-hub.ts'
import { World, type CloudProcess } from '../../world/gateway.ts'

const HUBS = 47
const GRANTED = 31

const isOfHub = (filter: string): boolean => filter.includes('/hub-')

/** One cloud process at a broker with limits, and 47 hubs. */
async function fleet(grants: World['network']['grants'], processes: readonly string[] = ['a']) {
  const hubIds = Array.from({ length: HUBS }, (_, index) => index + 1)
  const world = await World.create(hubIds)
  world.isShared = true
  const ofCloud: typeof grants = (filter, held, clientId) =>
    clientId.startsWith('hub-') || grants(filter, held, clientId)
  world.network.grants = ofCloud
  const lines: Record<string, unknown>[] = []
  const write = (fields: object, message: string): void => void lines.push({ ...fields, message })
  const log = { ...silentLog, warn: write, error: write }
  const connections = { count: 0 }
  const clouds: CloudProcess[] = processes.map((name) => {
    const open = world.network.transportFor.bind(world.network)
    world.network.transportFor = (...args) => {
      const opened = open(...args)
      return (options, handlers) => {
        if (args[0] === name) connections.count += 1
        return opened(options, handlers)
      }
    }
    return world.startCloud(name, { log })
  })
  await world.pass(3_000)
  const hubs: MemoryHub[] = hubIds.map((hubId) => {
    const life = world.scheduler.newLife(`hub-${hubId}`, () => {})
    const runtime = { clock: world.scheduler.clock(life, () => 0), random: world.chance.fork() }
    const hub = createMemoryHub({
      hubId,
      runtime,
      openTransport: world.network.transportFor(`hub-${hubId}`, life),
    })
    hub.sync.start()
    return hub
  })
  const welcomed = (): number[] =>
    hubs.filter(({ sync }) => sync.state().phase === 'welcomed').map(({ hubId }) => hubId)
  return { world, clouds, cloud: clouds[0]!, welcomed, lines, connections }
}

const upTo =
  (count: number, others: (filter: string) => boolean): World['network']['grants'] =>
  (filter, held) =>
    isOfHub(filter) ? held.filter(isOfHub).length < count : others(filter)

describe('a broker that refuses subscriptions of the cloud', () => {
  test('a process subscribes to all hubs by one filter if the broker grants only 31 of 47', async () => {
    const { world, cloud, welcomed, lines, connections } = await fleet(upTo(GRANTED, () => true))
    await world.pass(20_000)
    expect(welcomed()).toHaveLength(HUBS)
    expect([cloud.gateway.hearsItsHubs(), connections.count]).toEqual([true, 1])
    expect(lines).toEqual([
      expect.objectContaining({ granted: GRANTED, wanted: HUBS, refused: hubFilter(GRANTED + 1) }),
    ])
  })

  test('two processes that subscribe to all hubs each serve their own share', async () => {
    const { world, clouds, welcomed } = await fleet(
      upTo(3, () => true),
      ['a', 'b'],
    )
    await world.pass(20_000)
    expect(welcomed()).toHaveLength(HUBS)
    const rows = await world.db.kysely.selectFrom('hub_sessions').select(['hub_id', 'process_id']).execute()
    const contenders = ['a', 'b'].map(contender)
    expect(rows.filter((row) => serverOf(row.hub_id, contenders) !== row.process_id)).toEqual([])
    expect(clouds.flatMap(({ faults }) => faults)).toEqual([])
  })

  test('the granted hubs are served and the process is not ready if the filter for all hubs is refused too', async () => {
    const { world, cloud, welcomed, lines, connections } = await fleet(
      upTo(GRANTED, (filter) => filter !== upFilter),
    )
    await world.pass(30_000)
    expect(welcomed()).toHaveLength(GRANTED)
    expect([cloud.gateway.isConnected(), cloud.gateway.hearsItsHubs(), connections.count]).toEqual([
      true,
      false,
      1,
    ])
    const reason = `granted ${GRANTED} of ${HUBS}; refused ${hubFilter(GRANTED + 1)}, and ${upFilter} too`
    expect(lines).toEqual([expect.objectContaining({ reason, granted: GRANTED, wanted: HUBS })])
    world.network.grants = () => true
    await world.pass(60_000)
    expect([welcomed().length, cloud.gateway.hearsItsHubs()]).toEqual([HUBS, true])
  })

  test('the pauses between connections grow if the broker refuses a filter that every process needs', async () => {
    const { world, cloud, lines, connections } = await fleet((filter) => isOfHub(filter))
    await world.pass(15_000)
    expect(connections.count).toBeLessThan(12)
    await world.pass(60_000)
    expect(connections.count).toBeLessThan(22)
    expect(cloud.gateway.hearsItsHubs()).toBe(false)
    expect(lines).toHaveLength(1)
    expect(lines[0]!['reason']).toContain('larder/v1/cloud/here')
  })

  test('the pauses grow if the broker ends each connection when the share is subscribed', async () => {
    const kicked: string[] = []
    const { world, connections } = await fleet(() => true)
    world.network.grants = (filter, _held, clientId) => {
      if (!isOfHub(filter) || clientId.startsWith('hub-')) return true
      kicked.push(clientId)
      world.network.cut((life) => life.name === clientId, 'too many subscriptions')
      return false
    }
    world.network.cut((life) => life.name === 'a', 'restarted')
    await world.pass(20_000)
    expect(kicked.length).toBeGreaterThan(2)
    expect(connections.count).toBeLessThan(14)
  })
})

describe('a broker that grants filters and delivers nothing by them', () => {
  test('a process that does not receive its own messages is not ready, and the log names the topic', async () => {
    const { world, cloud, lines } = await fleet(() => true)
    world.network.weather = { loss: 1, duplicate: 0, delay: 0, maxDelayMs: 0 }
    const deaf = world.startCloud('b', {
      log: { ...silentLog, error: (fields) => void lines.push({ ...fields }) },
    })
    await world.pass(20_000)
    expect([cloud.gateway.hearsItsHubs(), deaf.gateway.hearsItsHubs()]).toEqual([true, false])
    expect(lines.map(({ reason }) => reason)).toEqual([
      'nothing that is published at larder/v1/cloud/here comes back',
    ])
  })
})

const closers: (() => void)[] = []
afterEach(() => closers.splice(0).forEach((close) => close()))

/** A real broker that grants a client `limit` filters. */
async function refusingBroker(limit: number): Promise<number> {
  const held = new Map<string, number>()
  const broker = await Aedes.createBroker({
    authorizeSubscribe(client, subscription, done) {
      const count = held.get(client.id) ?? 0
      held.set(client.id, count + 1)
      done(null, count < limit ? subscription : null)
    },
  })
  const server = createServer((socket) => void broker.handle(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    broker.close()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

describe('a real broker that answers some filters with 0x80', () => {
  test('the cloud keeps its connection and knows which filters were granted', async () => {
    const port = await refusingBroker(GRANTED)
    const runtime = systemRuntime()
    const url = `mqtt://larder-cloud:x@127.0.0.1:${port}`
    const open = externalBroker({ urls: [url], clientId: 'larder-cloud-1', runtime })
    const ends: string[] = []
    const transport = await new Promise<ChangingTransport>((resolve) => {
      const opened = open(
        { subscribe: [] },
        { onConnect: () => resolve(opened), onDisconnect: (reason) => ends.push(reason), onMessage() {} },
      )
    })
    closers.push(() => transport.close())
    const filters = Array.from({ length: HUBS }, (_, index) => hubFilter(index + 1))
    expect(await transport.subscribe(filters)).toEqual({
      granted: filters.slice(0, GRANTED),
      refused: filters.slice(GRANTED),
    })
    expect(await transport.publish('larder/v1/cloud/here', '{}')).toBe(true)
    expect(ends).toEqual([])
  })

  test('a hub that has only one filter reports its refusal', async () => {
    const port = await refusingBroker(0)
    const runtime = systemRuntime()
    const open = mqttTransport({ urls: [`mqtt://127.0.0.1:${port}`], user: 'hub-1', password: 'x', runtime })
    const reason = await new Promise<string>((resolve) => {
      open(
        { subscribe: ['larder/v1/hub-1/down/#'] },
        { onConnect: () => resolve('connected'), onDisconnect: resolve, onMessage() {} },
      )
    })
    expect(reason).toBe('Subscribe error: the broker refuses larder/v1/hub-1/down/# (granted 0 of 1)')
  })
})
