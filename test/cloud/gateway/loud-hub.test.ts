import { connect } from 'node:net'
import { MqttClient } from 'mqtt'
import { generate } from 'mqtt-packet'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import type { MessageLimits } from '../../../cloud/gateway/message-allowance.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { downFilter, upFilter, upTopic, type UpChannel } from '../../../protocol/mqtt/topics.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { uuid } from '../../support/uuid.ts'
import { emptySqlite } from '../../world/database.ts'
import { SETTLED, World } from '../../world/gateway.ts'
import { seedHub } from '../../world/seeds.ts'

const ample: MessageLimits = {
  messagesAtOnce: 1000,
  messagesPerMinute: 1000,
  messageBytesAtOnce: 10_000_000,
  messageBytesPerMinute: 10_000_000,
}

async function openBroker(limits: Partial<MessageLimits>) {
  const runtime = systemRuntime()
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  for (const id of [1, 2]) await seedHub(db, id, digestOf('secret'))
  const warned: Record<string, unknown>[] = []
  const log = { ...silentLog, warn: (fields: object) => void warned.push(fields as Record<string, unknown>) }
  const broker = await startEmbeddedBroker({
    db,
    databaseUrl: 'sqlite:x',
    log,
    refusals: cloudRefusals({ log, runtime }),
    clock: runtime.clock,
    port: 0,
    limits: { ...ample, ...limits },
  })
  onTestFinished(() => broker.close())
  const heard: string[] = []
  broker.openTransport(
    { subscribe: [upFilter] },
    {
      onConnect() {},
      onDisconnect() {},
      onMessage: (topic, payload) => void heard.push(`${topic} ${payload}`),
    },
  )
  const signIn = async (hubId: number): Promise<MqttClient> => {
    const login = { clientId: `hub-${hubId}`, username: `hub-${hubId}`, password: 'secret' }
    const open = () => connect({ port: broker.port, host: '127.0.0.1' })
    const client = new MqttClient(open, { protocolVersion: 4, reconnectPeriod: 0, ...login })
    onTestFinished(() => void client.end(true))
    await new Promise((resolve, reject) => client.once('connect', resolve).once('error', reject))
    return client
  }
  const of = (hubId: number, channel: UpChannel) =>
    heard.filter((one) => one.startsWith(upTopic(hubId, channel))).map((one) => one.split(' ')[1])
  return { broker, warned, signIn, of }
}

describe('the embedded broker and a hub that sends more than it may', () => {
  test('messages above the allowance wait in their order, none is lost, and another hub is read at once', async () => {
    const { signIn, of, warned } = await openBroker({ messagesAtOnce: 20, messagesPerMinute: 1200 })
    const [loud, other] = [await signIn(1), await signIn(2)]
    const all = Array.from({ length: 60 }, (_, index) => `${index}`)
    const sent = all.map((text) => loud.publishAsync(upTopic(1, 'erased'), text, { qos: 1 }))
    await other.publishAsync(upTopic(2, 'hello'), 'hi', { qos: 1 })
    expect(of(1, 'erased').length).toBeLessThan(40)
    expect(of(2, 'hello')).toEqual(['hi'])
    await Promise.all(sent)
    await expect.poll(() => of(1, 'erased')).toEqual(all)
    const lines = warned.filter(({ why }) => String(why).startsWith('sends more than it may'))
    expect(lines).toMatchObject([{ caller: 'hub-1', count: 1 }])
  })

  test('a hub above its allowance gets none by signing in again', async () => {
    const { signIn, of } = await openBroker({ messagesAtOnce: 20, messagesPerMinute: 60 })
    const payload = Buffer.from('{}')
    const packet = generate({
      cmd: 'publish',
      topic: upTopic(1, 'erased'),
      payload,
      qos: 0,
      dup: false,
      retain: false,
    })
    for (let turn = 0; turn < 4; turn += 1) {
      const loud = await signIn(1)
      loud.stream.write(Buffer.concat(Array.from({ length: 200 }, () => packet)))
      await new Promise((resolve) => setTimeout(resolve, 50))
      loud.end(true)
    }
    expect(of(1, 'erased').length).toBeGreaterThan(10)
    expect(of(1, 'erased').length).toBeLessThan(30)
  })

  test('a message above the allowance of bytes enters whole, and later ones wait for it', async () => {
    const { signIn, of } = await openBroker({
      messageBytesAtOnce: 100_000,
      messageBytesPerMinute: 60_000_000,
    })
    const hub = await signIn(1)
    const large = ['a', 'b', 'c'].map((letter) => letter.repeat(900_000))
    const start = performance.now()
    await Promise.all(large.map((text) => hub.publishAsync(upTopic(1, 'entries'), text, { qos: 1 })))
    await expect.poll(() => of(1, 'entries')).toEqual(large)
    expect(performance.now() - start).toBeGreaterThan(1500)
  })

  test('messages of the cloud to a hub that waits for its allowance arrive', async () => {
    const { broker, signIn } = await openBroker({ messagesAtOnce: 5, messagesPerMinute: 60 })
    const hub = await signIn(1)
    await hub.subscribeAsync(downFilter(1), { qos: 1 })
    for (let n = 0; n < 50; n += 1) hub.publish(upTopic(1, 'hello'), `${n}`, { qos: 1 }, () => {})
    const arrived = new Promise((resolve) => void hub.once('message', (topic) => resolve(topic)))
    const cloud = broker.openTransport(
      { subscribe: [] },
      { onConnect() {}, onDisconnect() {}, onMessage() {} },
    )
    await cloud.publish('larder/v1/hub-1/down/hail', '{}')
    expect(await arrived).toBe('larder/v1/hub-1/down/hail')
  })
})

const result = (hub: { session: string }, n: number) => ({
  command_id: uuid(n),
  session: hub.session,
  outcome: 'executed',
  reason: null,
  data: { text: 'x'.repeat(1000) },
})

describe('the cloud and a hub that sends more than it may', () => {
  test('through an external broker its messages above the allowance are dropped, with one line a minute, until time has passed', async () => {
    const world = await World.create([1, 2])
    world.isShared = true
    const cloud = world.startCloud('cloud', { settings: { messagesAtOnce: 30, messagesPerMinute: 60 } })
    const [loud, other] = [world.hub(1), world.hub(2)]
    await world.pass(10_000)
    for (const hub of [loud, other]) hub.connect()
    await world.pass(SETTLED)
    for (let n = 0; n < 300; n += 1) loud.publish('erased', {})
    await world.pass(100)
    const before = cloud.refusals.totals.hub_message
    expect(before).toBeGreaterThan(200)
    const welcomes = other.welcomes.length
    loud.hello()
    other.hello()
    await world.pass(SETTLED)
    expect(other.welcomes.length).toBeGreaterThan(welcomes)
    const late = loud.welcomes.length
    await world.pass(60_000)
    loud.hello()
    await world.pass(SETTLED)
    expect(loud.welcomes.length).toBeGreaterThan(late)
  })

  test('a hub that begins another epoch with each hello adds a limited number of rows, and is answered again later', async () => {
    const { world, hub } = await World.connected({ settings: { epochsAtOnce: 20, epochsPerHour: 60 } })
    const rows = async (): Promise<number> =>
      (await world.db.kysely.selectFrom('hub_streams').select('epoch').execute()).length
    for (let n = 0; n < 200; n += 1) {
      hub.newEpoch()
      hub.hello()
      await world.pass(50)
    }
    expect(await rows()).toBeLessThan(30)
    const welcomes = hub.welcomes.length
    await world.pass(120_000)
    hub.hello()
    await world.pass(SETTLED)
    expect(hub.welcomes.length).toBeGreaterThan(welcomes)
  })

  test('thousands of results that no caller waits for make only a few transactions', async () => {
    let transactions = 0
    const { world, hub } = await World.connected({
      checkpoint: (point) => void (transactions += Number(point === 'db.after-commit')),
    })
    transactions = 0
    for (let n = 0; n < 3000; n += 1) hub.publish('result', result(hub, n))
    await world.pass(3000)
    expect(transactions).toBeGreaterThan(0)
    expect(transactions).toBeLessThan(300)
  })

  test.each(['erased', 'moved'] as const)(
    'thousands of messages %s that arrive while one is handled are handled together, once',
    async (channel) => {
      let calls = 0
      let release = (): void => {}
      const handle = (): Promise<void> => {
        calls += 1
        return calls === 1 ? new Promise((resolve) => (release = resolve)) : Promise.resolve()
      }
      const { world, hub } = await World.connected({ domain: { secretsErased: handle, hubMoved: handle } })
      for (let n = 0; n < 3000; n += 1) hub.publish(channel, { order: 1, hub_id: 2 })
      await world.pass(3000)
      release()
      await world.pass(100)
      expect(calls).toBe(2)
    },
  )
})
