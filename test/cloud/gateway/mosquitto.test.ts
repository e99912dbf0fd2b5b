import { expect } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { upFilter, upTopic, downTopic } from '../../../protocol/mqtt/topics.ts'
import type { MqttTransport } from '../../../protocol/mqtt/transport.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import { Gateway } from '../../../cloud/gateway/gateway.ts'
import { externalBroker } from '../../../cloud/gateway/broker-external.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { seededChance } from '../../simulation/chance.ts'
import { MOSQUITTO_PASSWORD, startMosquitto, type Mosquitto } from '../../support/mosquitto.ts'
import { service } from '../../support/services.ts'
import { emptySqlite } from '../../world/database.ts'
import { ScriptedHub } from '../../world/scripted-hub.ts'
import { seedHub } from '../../world/seeds.ts'
import { inertDomain } from '../../world/gateway.ts'
import { uuid } from '../../support/uuid.ts'
import { testContext } from '../../world/context.ts'

const runtime = systemRuntime()
const { clock } = runtime

async function cloudAt(broker: Mosquitto): Promise<{ gateway: Gateway; context: CloudContext }> {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  await seedHub(db, 1)
  const context = testContext(db, runtime)
  const gateway = new Gateway({
    context,
    broker: {
      kind: 'shared',
      open: externalBroker({ urls: [broker.cloudUrl], clientId: 'cloud-1', runtime }),
    },
    processId: 'one',
    domain: inertDomain,
    settings: { backoff: { firstMs: 20, maxMs: 50 }, beatMs: 50 },
  })
  gateway.start()
  await expect.poll(() => gateway.isConnected()).toBe(true)
  return { gateway, context }
}

const hubTransport = (broker: Mosquitto) =>
  mqttTransport({
    urls: [`mqtt://127.0.0.1:${broker.hubPort}`],
    user: 'hub-1',
    password: MOSQUITTO_PASSWORD,
    runtime,
  })

const onMosquitto = service('mosquitto')

onMosquitto('a hub and the cloud communicate over Mosquitto, also after a kill of Mosquitto', async () => {
  const broker = await startMosquitto(['hub-1'])
  const { gateway, context } = await cloudAt(broker)
  const hub = new ScriptedHub({
    hubId: 1,
    clock,
    chance: seededChance(1),
    openTransport: hubTransport(broker),
  })
  const cancel = (order: number) => ({ kind: 'order.cancel', order_id: uuid(order) }) as const
  const alarm = { kind: 'alarm', at: 1, code: 'door_forced', subject: 'd', raised: true, detail: '' }
  try {
    hub.connect()
    // The process knows after two beats that it is alone; a hub repeats its hello until it is answered.
    await expect.poll(() => hub.welcomes.length > 0 || !hub.hello(), { interval: 100 }).toBe(true)
    await expect.poll(() => hub.applied.at(-1)?.kind).toBe('snapshot')
    hub.onCommand = () => ({ data: { door: 'open' } })
    const request = { hubId: 1, body: { name: 'open_bin', bin: 1 }, actor: 'x' } as const
    expect(await gateway.commands.send(request)).toMatchObject({ kind: 'executed' })
    hub.append(alarm)
    hub.sendEntries()
    await expect.poll(() => hub.acks.at(-1)).toMatchObject({ cursor: 1 })

    await broker.kill()
    await expect.poll(() => gateway.isConnected()).toBe(false)
    expect(await gateway.commands.send(request)).toEqual({ kind: 'offline' })
    await context.db.transact((tx) => enqueue(tx, 1, cancel(1)))
    await broker.start()
    await expect.poll(() => gateway.isConnected()).toBe(true)
    hub.connect()
    await expect.poll(() => hub.applied.at(-1)).toEqual(cancel(1))
    hub.sendEntries()
    await expect.poll(() => hub.acks.at(-1)).toMatchObject({ cursor: 1 })
    expect(await context.db.kysely.selectFrom('alarms').selectAll().execute()).toHaveLength(1)
  } finally {
    await gateway.stop()
    await broker.remove()
  }
})

onMosquitto('the access rules of the specification restrict a hub to its own topics', async () => {
  const broker = await startMosquitto(['hub-1'])
  const heard: string[] = []
  const open = (how: ReturnType<typeof hubTransport>, subscribe: string[]): Promise<MqttTransport | string> =>
    new Promise((resolve) => {
      const transport = how(
        { subscribe },
        {
          onConnect: () => resolve(transport),
          onDisconnect: resolve,
          onMessage: (topic, payload) => void heard.push(`${topic} ${payload}`),
        },
      )
    })
  try {
    const asCloud = externalBroker({ urls: [broker.cloudUrl], clientId: 'cloud-1', runtime })
    const cloud = (await open(asCloud, [upFilter, 'larder/v1/cloud/#'])) as MqttTransport
    // Mosquitto grants a foreign filter, and delivers nothing by it.
    const hub = (await open(hubTransport(broker), ['larder/v1/hub-1/down/#', 'larder/#'])) as MqttTransport
    await hub.publish(upTopic(2, 'hello'), 'foreign')
    await hub.publish('larder/v1/cloud/nudge', 'foreign')
    await hub.publish(upTopic(1, 'hello'), 'own')
    await cloud.publish(downTopic(2, 'command'), 'foreign')
    await cloud.publish(downTopic(1, 'command'), 'own')
    await expect.poll(() => heard.length).toBe(2)
    expect(new Set(heard)).toEqual(new Set([`${upTopic(1, 'hello')} own`, `${downTopic(1, 'command')} own`]))
    hub.close()
    cloud.close()
  } finally {
    await broker.remove()
  }
})
