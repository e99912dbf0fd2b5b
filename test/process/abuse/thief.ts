import { MqttClient } from 'mqtt'
import { connect as connectSocket } from 'node:net'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import type { HubEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { Batch } from '../../../protocol/mqtt/session.ts'
import { downTopic, hubUser, upChannels, upTopic } from '../../../protocol/mqtt/topics.ts'
import type { OpenTransport } from '../../../protocol/mqtt/transport.ts'
import { createMemoryHub, type MemoryHub } from '../../world/memory-hub.ts'
import type { AbuseWorld } from './abuser.ts'

/** The thief's ways to act, one after the other, with their shares of the time. */
const WAYS = [
  /** The hub's service runs too: two boards share one identity. */
  { way: 'beside', share: 1 },
  /** The hub is without power: its card is in the thief's board. */
  { way: 'instead', share: 2 },
  /** The thief is away; only the after-effects remain. */
  { way: 'away', share: 1 },
] as const

export interface Theft {
  /** Duration of one round through all ways, in milliseconds. */
  roundMs: number
}

/**
 * A thief with the hub's card and its MQTT password: sends false reports as the hub, floods, and tries
 * forbidden actions.
 */
export async function abuseAsThief(world: AbuseWorld, { roundMs }: Theft): Promise<void> {
  const { plant, runtime, isOpen, tally } = world
  const shares = WAYS.reduce((sum, { share }) => sum + share, 0)
  while (isOpen())
    for (const { way, share } of WAYS) {
      const end = runtime.clock.monotonic() + (roundMs * share) / shares
      const goesOn = (): boolean => isOpen() && runtime.clock.monotonic() < end
      tally.hit(`way ${way}`)
      if (way === 'instead') await plant.halt('hub')
      if (way === 'away') await until(world, goesOn)
      else await Promise.all([lie(world, goesOn), trespass(world, goesOn)])
      if (way === 'instead') plant.start('hub')
    }
}

async function until({ runtime }: AbuseWorld, goesOn: () => boolean): Promise<void> {
  while (goesOn()) await sleep(runtime.clock, 500)
}

/** Connects as the hub, and reports events that did not happen. */
async function lie(world: AbuseWorld, goesOn: () => boolean): Promise<void> {
  const { plant, runtime, chance, tally } = world
  const orders = new Map<string, { number: number; lines: { line_id: number; quantity: number }[] }>()
  const { openTransport } = tapped(world, (entry) => {
    if (entry.kind === 'order.queued') orders.set(entry.order.order_id, entry.order)
  })
  const hub: MemoryHub = createMemoryHub({ hubId: plant.hubId, runtime, openTransport })
  hub.sync.start()
  while (goesOn()) {
    await sleep(runtime.clock, chance.between(20, 100))
    tally.hit(`thief is ${hub.sync.state().phase}`)
    if (hub.pending() > 2000) continue
    for (let n = chance.between(1, 20); n > 0; n--) hub.report(aLie(world, orders))
  }
  hub.sync.stop()
  tally.hit('lies not taken', hub.pending())
}

function aLie(
  { chance, runtime, products }: AbuseWorld,
  orders: ReadonlyMap<string, { number: number; lines: { line_id: number; quantity: number }[] }>,
): HubEntry {
  const at = runtime.clock.now()
  const location = { cabinet: chance.between(1, 2), shelf: chance.between(1, 5), row: chance.between(1, 6) }
  const known = chance.pick([...orders.keys(), uuidv7(runtime)])
  const lines = (orders.get(known)?.lines ?? []).map(({ line_id, quantity }) => ({
    line_id,
    dropped: chance.pick([0, quantity, 1_000_000]),
    doubtful: chance.pick([0, 0, quantity]),
    bins: [1],
  }))
  const order = { order_id: known, number: orders.get(known)?.number ?? chance.between(1, 1000), at }
  const lies: readonly (() => HubEntry)[] = [
    () => ({
      kind: 'alarm',
      at,
      code: chance.pick(['bin_fault', 'row_blocked', 'health_shutoff', 'door_forced'] as const),
      subject: `thief ${chance.between(1, 100_000)}`,
      raised: chance.happens(0.7),
      detail: 'x'.repeat(chance.between(0, 500)),
    }),
    () => ({
      kind: 'stock.counted',
      at,
      product_id: chance.pick(products),
      location,
      delta: chance.between(-1000, 1_000_000),
      quantity: chance.between(0, 1_000_000),
      count_id: uuidv7(runtime),
    }),
    () => ({
      kind: 'stock.restocked',
      at,
      product_id: chance.pick(products),
      location,
      delta: 1_000_000,
      quantity: 1_000_000,
      restock_id: uuidv7(runtime),
    }),
    () => ({ kind: 'order.preparing', ...order, bins: [1] }),
    () => ({ kind: 'order.failed', ...order, reason: 'stolen', bins: [1], lines }),
    () => ({ kind: 'order.ready', ...order, bins: [1], lines }),
    () => ({ kind: 'order.completed', ...order }),
    () => ({ kind: 'order.cancelled', ...order }),
    () => ({
      kind: 'operation.unknown',
      at,
      operation_id: uuidv7(runtime),
      device: 'cabinet-1',
      action: 'dispense',
      reason: 'stolen',
      started_at: at,
      location,
      order_id: known,
      line_id: lines[0]?.line_id ?? null,
      product_id: chance.pick(products),
    }),
    () => ({
      kind: 'state',
      at,
      state: {
        of: 'bin',
        bin: chance.between(1, 9),
        capacity: chance.between(1, 9),
        state: chance.pick(['free', 'left_behind', 'faulty'] as const),
        order_id: null,
        fault: null,
        since: at,
      },
    }),
    () => ({
      kind: 'local',
      at,
      action: 'count_row',
      subject: `row ${chance.between(1, 100_000)}`,
      outcome: 'executed',
      person: `thief ${chance.between(1, 100_000)}`,
      shared_token: false,
    }),
  ]
  return chance.pick(lies)()
}

/** The hub's transport, with a tap for the cloud's entries. */
function tapped({ plant, runtime }: AbuseWorld, onEntry: (entry: CloudEntry) => void) {
  const open = mqttTransport({
    urls: [plant.brokerUrl],
    user: hubUser(plant.hubId),
    password: plant.seed.mqtt_password,
    runtime,
  })
  const openTransport: OpenTransport = (options, handlers) =>
    open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (topic === downTopic(plant.hubId, 'entries')) {
          const batch = Batch.safeParse(JSON.parse(payload))
          for (const { body } of batch.success ? batch.data.entries : []) {
            const entry = CloudEntry.safeParse(body)
            if (entry.success) onEntry(entry.data)
          }
        }
        handlers.onMessage(topic, payload)
      },
    })
  return { openTransport }
}

/** Forbidden actions of a hub: other names, other hubs' topics, flooding, oversized packets. */
async function trespass(world: AbuseWorld, goesOn: () => boolean): Promise<void> {
  const { plant, runtime, chance, tally } = world
  const { hostname: host, port } = new URL(plant.brokerUrl)
  const user = hubUser(plant.hubId)
  while (goesOn()) {
    const clientId = chance.pick([`${user}x`, 'larder-cloud', hubUser(plant.hubId + 1), user])
    const client = new MqttClient(() => connectSocket(Number(port), host), {
      clientId,
      username: chance.pick([user, user, hubUser(plant.hubId + 1)]),
      password: plant.seed.mqtt_password,
      reconnectPeriod: 0,
      connectTimeout: 3000,
    })
    client.on('error', () => {})
    const ended = new Promise<void>((resolve) => client.once('close', resolve))
    client.once('connect', () => {
      tally.hit(`thief connects as ${clientId}`)
      client.on('message', (topic) => tally.hit(`thief hears ${topic.replaceAll(/\d+/g, 'n')}`))
      client.subscribe(
        chance.pick(['#', '$SYS/#', 'larder/v1/+/down/#', 'larder/v1/cloud/#']),
        { qos: 1 },
        () => {},
      )
      const topics = [
        ...upChannels.map((channel) => upTopic(plant.hubId + 1, channel)),
        downTopic(plant.hubId, 'command'),
        'larder/v1/cloud/handed',
        upTopic(plant.hubId, 'hello'),
        upTopic(plant.hubId, 'telemetry'),
      ]
      for (let n = 0; n < 50; n++)
        client.publish(
          chance.pick(topics),
          'x'.repeat(chance.pick([1, 1000, 100_000, 2_000_000])),
          { qos: 1 },
          () => {},
        )
    })
    await Promise.race([ended, sleep(runtime.clock, 1500)])
    client.end(true)
    await sleep(runtime.clock, chance.between(100, 1000))
  }
}
