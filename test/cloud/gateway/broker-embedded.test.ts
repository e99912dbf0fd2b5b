import { mkdtempSync, rmSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MqttClient, type IClientOptions } from 'mqtt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { downFilter, downTopic, upFilter, upTopic } from '../../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../../protocol/mqtt/transport.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { startEmbeddedBroker, type EmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { externalBroker } from '../../../cloud/gateway/broker-external.ts'
import { cloudRefusals, type CloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const databaseUrl = 'sqlite:/srv/larder.sqlite'
const { clock } = systemRuntime()
let broker: EmbeddedBroker
let refusals: CloudRefusals
const warned: Record<string, unknown>[] = []
const log = { ...silentLog, warn: (fields: object) => void warned.push(fields as Record<string, unknown>) }
let cloud: MqttTransport
const heard: { topic: string; payload: string }[] = []
const clients: MqttClient[] = []

beforeAll(async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  await seedHub(db, 1, digestOf('secret-1'))
  await seedHub(db, 2, digestOf('secret-2'))
  // The minute of the log does not end here, even on a busy machine.
  refusals = cloudRefusals({ log, runtime: virtualRuntime(1) })
  broker = await startEmbeddedBroker({ db, databaseUrl, log, refusals, clock, port: 0 })
  await new Promise<void>((resolve) => {
    cloud = broker.openTransport(
      { subscribe: [upFilter] },
      {
        onConnect: resolve,
        onDisconnect: () => {},
        onMessage: (topic, payload) => void heard.push({ topic, payload }),
      },
    )
  })
})

afterAll(async () => {
  for (const client of clients) client.end(true)
  cloud.close()
  await broker.close()
})

/** A client of mqtt.js; resolves with the result of the connection. */
function connect(
  options: IClientOptions,
  port = broker.port,
): Promise<{ client: MqttClient; outcome: string }> {
  const socket = (): ReturnType<typeof connectTcp> => connectTcp({ host: '127.0.0.1', port, noDelay: true })
  const client = new MqttClient(socket, { protocolVersion: 4, reconnectPeriod: 0, clean: true, ...options })
  clients.push(client)
  return new Promise((resolve) => {
    client.on('connect', () => resolve({ client, outcome: 'connected' }))
    client.on('error', (error) => resolve({ client, outcome: error.message }))
  })
}

const hub = (number: number, more: IClientOptions = {}) =>
  connect({ clientId: `hub-${number}`, username: `hub-${number}`, password: `secret-${number}`, ...more })

const closed = (client: MqttClient): Promise<void> =>
  new Promise((resolve) => void client.once('close', resolve))

const granted = (client: MqttClient, filter: string): Promise<number> =>
  new Promise((resolve) => {
    // mqtt.js turns a refusal into an error.
    client.subscribe(filter, { qos: 1 }, (error, grants) => resolve(error ? 128 : (grants?.[0]?.qos ?? 128)))
  })

test('an unknown hub at a cloud without hubs is logged once: the database may be lost', async () => {
  const lost = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const empty = await startEmbeddedBroker({ db: lost, databaseUrl, log, refusals, clock, port: 0 })
  const told = () => warned.filter(({ database }) => database === '/srv/larder.sqlite')
  try {
    for (const number of [1, 2]) {
      const client = new MqttClient(() => connectTcp({ host: '127.0.0.1', port: empty.port }), {
        protocolVersion: 4,
        reconnectPeriod: 0,
        clientId: `hub-${number}`,
        username: `hub-${number}`,
        password: `secret-${number}`,
      })
      clients.push(client)
      client.on('error', () => {})
      await closed(client)
      await expect.poll(told).toHaveLength(1)
    }
  } finally {
    await empty.close()
  }
  expect((await connect({ clientId: 'hub-9', username: 'hub-9', password: 'x' })).outcome).toMatch(/Not/)
  expect(told()).toHaveLength(1)
})

test('a login that the cloud cannot check is not refused as wrong', async () => {
  const lost = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const blind = await startEmbeddedBroker({ db: lost, databaseUrl, log, refusals, clock, port: 0 })
  try {
    await lost.kysely.schema.dropTable('hubs').execute()
    const options = { clientId: 'hub-1', username: 'hub-1', password: 'secret-1' }
    expect((await connect(options, blind.port)).outcome).toMatch(/Server unavailable/)
  } finally {
    await blind.close()
  }
})

describe('logins at the embedded broker', () => {
  test('a hub with its password is accepted', async () => {
    expect((await hub(1)).outcome).toBe('connected')
  })

  test.each<{ who: string; options: IClientOptions }>([
    { who: 'a wrong password', options: { clientId: 'hub-1', username: 'hub-1', password: 'secret-2' } },
    { who: 'no password', options: { clientId: 'hub-1', username: 'hub-1' } },
    { who: 'no user name', options: { clientId: 'hub-1' } },
    { who: 'the name of an unknown hub', options: { clientId: 'hub-9', username: 'hub-9', password: 'x' } },
    { who: 'a user name of no hub', options: { clientId: 'cloud', username: 'cloud', password: 'secret-1' } },
    {
      who: 'another hub’s client id',
      options: { clientId: 'hub-2', username: 'hub-1', password: 'secret-1' },
    },
  ])('the embedded broker refuses a login with $who', async ({ options }) => {
    expect((await connect(options)).outcome).toMatch(/Not authorized/)
  })
})

test('refused logins give one short line a minute for each reason, and a long CONNECT is not read', async () => {
  const before = refusals.totals.mqtt_login
  const name = 'x'.repeat(2000)
  for (let attempt = 0; attempt < 5; attempt += 1) await connect({ clientId: name, username: name })
  expect(refusals.totals.mqtt_login - before).toBe(5)
  const lines = warned.filter(({ refused }) => refused === 'mqtt_login')
  expect(lines.map(({ why }) => String(why)).toSorted()).toEqual([
    'no such hub in this database',
    'the client id is not the user',
    'wrong password',
  ])
  expect(lines[0]).toMatchObject({ caller: '127.0.0.1' })
  const { outcome } = await Promise.race([
    connect({ clientId: 'x'.repeat(60_000) }),
    closed(clients.at(-1)!).then(() => ({ outcome: 'closed' })),
  ])
  expect(outcome).toBe('closed')
  expect(refusals.totals.mqtt_login - before).toBe(5)
})

test('hubs sign in during a transaction, and a hundred others wait for its end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-broker-'))
  const db = openDatabase({ url: `sqlite:${join(folder, 'cloud.sqlite')}` })
  await db.migrate()
  await seedHub(db, 1, digestOf('secret-1'))
  const busy = await startEmbeddedBroker({ db, databaseUrl, log, refusals, clock, port: 0 })
  let release = (): void => {}
  const work = [db.transact(() => new Promise<void>((resolve) => (release = resolve)))]
  for (let n = 0; n < 100; n += 1) work.push(db.transact(() => Promise.resolve()))
  try {
    const client = new MqttClient(() => connectTcp({ host: '127.0.0.1', port: busy.port }), {
      protocolVersion: 4,
      reconnectPeriod: 0,
      clientId: 'hub-1',
      username: 'hub-1',
      password: 'secret-1',
    })
    clients.push(client)
    const outcome = new Promise((resolve) => {
      client.on('connect', () => resolve('connected'))
      client.on('error', (error) => resolve(error.message))
      client.on('close', () => resolve('closed'))
    })
    const late = new Promise((resolve) => setTimeout(() => resolve('it waits'), 3000))
    expect(await Promise.race([outcome, late])).toBe('connected')
  } finally {
    release()
    await Promise.all(work)
    await busy.close()
    await db.close()
    rmSync(folder, { recursive: true })
  }
})

describe('rights of a hub at the embedded broker', () => {
  test('a hub can publish below its own `up/`, and receives what the cloud publishes below its `down/`', async () => {
    const { client } = await hub(1)
    expect(await granted(client, downFilter(1))).toBe(1)
    const arrived = new Promise<string>((resolve) =>
      client.once('message', (_topic, payload) => resolve(payload.toString())),
    )
    await client.publishAsync(upTopic(1, 'hello'), 'hi', { qos: 1 })
    expect(heard.at(-1)).toEqual({ topic: upTopic(1, 'hello'), payload: 'hi' })
    expect(await cloud.publish(downTopic(1, 'welcome'), 'welcome')).toBe(true)
    expect(await arrived).toBe('welcome')
  })

  test.each([
    '#',
    'larder/#',
    'larder/v1/+/down/#',
    'larder/v1/hub-2/down/#',
    'larder/v1/hub-1/up/#',
    '$share/g/larder/v1/hub-1/down/#',
    '$SYS/#',
  ])('a hub cannot subscribe to %s', async (filter) => {
    const { client } = await hub(1)
    expect(await granted(client, filter)).toBe(128)
  })

  test.each([
    upTopic(2, 'hello'),
    downTopic(1, 'command'),
    downTopic(2, 'command'),
    'larder/v1/cloud/nudge',
    'larder/v1/hub-1/up/unheard',
    'elsewhere',
  ])('a publication to %s ends the hub’s connection', async (topic) => {
    const { client } = await hub(1)
    const count = heard.length
    const end = closed(client)
    client.publish(topic, 'x', { qos: 1 }, () => {})
    await end
    expect(heard).toHaveLength(count)
  })

  test('a hub cannot leave a will at another topic', async () => {
    const count = heard.length
    const { client } = await hub(1, {
      will: { topic: upTopic(2, 'presence'), payload: Buffer.from('gone'), qos: 1, retain: false },
    })
    client.stream.destroy()
    await hub(2)
    expect(heard).toHaveLength(count)
  })

  test('a will at the hub’s own topic is delivered', async () => {
    const { client } = await hub(1, {
      will: { topic: upTopic(1, 'presence'), payload: Buffer.from('gone'), qos: 1, retain: true },
    })
    client.stream.destroy()
    await expect.poll(() => heard.at(-1)).toEqual({ topic: upTopic(1, 'presence'), payload: 'gone' })
  })

  test('a packet of more than 1 MiB ends the hub’s connection', async () => {
    const { client } = await hub(1)
    await client.publishAsync(upTopic(1, 'entries'), Buffer.alloc(1_000_000, 'a'), { qos: 1 })
    expect(heard.at(-1)?.payload.length).toBe(1_000_000)
    const end = closed(client)
    client.publish(upTopic(1, 'entries'), Buffer.alloc(1_100_000, 'a'), { qos: 1 }, () => {})
    await end
    expect(heard.at(-1)?.payload.length).toBe(1_000_000)
  })
})

test('a hub that takes nothing does not delay others, and thousands of messages at its end cause no failure', async () => {
  const [{ client: stuck }, { client: other }] = [await hub(1), await hub(2)]
  expect([await granted(stuck, downFilter(1)), await granted(other, downFilter(2))]).toEqual([1, 1])
  const socket = stuck.stream as Socket
  socket.pause()
  const large = 'x'.repeat(200_000)
  const untaken = Array.from({ length: 200 }, () => cloud.publish(downTopic(1, 'entries'), large))
  const toNobody = Array.from({ length: 10_000 }, () => cloud.publish(downTopic(3, 'hail'), '{}'))
  const arrived = new Promise<string>((resolve) =>
    other.once('message', (_topic, payload) =>
      resolve(`taken while stuck: ${!socket.destroyed} ${payload.toString()}`),
    ),
  )
  expect(await cloud.publish(downTopic(2, 'welcome'), 'welcome')).toBe(true)
  expect(await arrived).toBe('taken while stuck: true welcome')
  socket.destroy()
  await Promise.all(untaken)
  expect(await Promise.all(toNobody)).not.toContain(false)
})

describe('connections of the cloud to an external broker', () => {
  const open = (url: string, subscribe: readonly string[] = [downFilter(1)]) => {
    const events: string[] = []
    const transport = externalBroker({ urls: [url], clientId: 'hub-1', runtime: systemRuntime() })(
      { subscribe },
      {
        onConnect: () => void events.push('connected'),
        onDisconnect: (reason) => void events.push(`disconnected: ${reason}`),
        onMessage: (topic, payload) => void events.push(`${topic} ${payload}`),
      },
    )
    return { events, transport }
  }

  test('messages go both ways over an external broker; a publication is accepted or not, and never rejects', async () => {
    const { events, transport } = open(`mqtt://hub-1:secret-1@127.0.0.1:${broker.port}`, [downFilter(1)])
    expect(await transport.publish(upTopic(1, 'hello'), 'too early')).toBe(false)
    await expect.poll(() => events).toEqual(['connected'])
    expect(await transport.publish(upTopic(1, 'hello'), 'from the cloud')).toBe(true)
    await cloud.publish(downTopic(1, 'ack'), 'ä')
    await expect.poll(() => events.at(-1)).toBe(`${downTopic(1, 'ack')} ä`)
    transport.close()
    expect(await transport.publish(upTopic(1, 'hello'), 'too late')).toBe(false)
  })

  test.each([
    { why: 'refuses the password', url: () => `mqtt://hub-1:wrong@127.0.0.1:${broker.port}`, subscribe: [] },
    {
      why: 'refuses a subscription',
      url: () => `mqtt://hub-1:secret-1@127.0.0.1:${broker.port}`,
      subscribe: ['#'],
    },
    { why: 'is down', url: () => 'mqtt://127.0.0.1:1', subscribe: [] },
  ])('a broker that $why ends the connection once', async ({ url, subscribe }) => {
    const { events } = open(url(), subscribe)
    await expect.poll(() => events.length).toBe(1)
    expect(events[0]).toMatch(/^disconnected/)
    await new Promise((resolve) => void setImmediate(resolve))
    expect(events).toHaveLength(1)
  })

  test('a publication without an acknowledgement at the end of the connection was not accepted', async () => {
    const { events, transport } = open(`mqtt://hub-1:secret-1@127.0.0.1:${broker.port}`)
    await expect.poll(() => events).toEqual(['connected'])
    const accepted = transport.publish('elsewhere', 'x')
    expect(await accepted).toBe(false)
    await expect.poll(() => events.length).toBe(2)
  })
})

service('openssl')(
  'a broker with a certificate accepts only mqtts, from hubs and from a cloud that trust the certificate',
  async () => {
    const certificate = makeCertificate()
    const { cert, key } = certificate
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    await seedHub(db, 1, digestOf('secret-1'))
    const secure = await startEmbeddedBroker({
      db,
      databaseUrl,
      log,
      refusals,
      clock,
      port: 0,
      tls: { cert, key },
    })
    const runtime = systemRuntime()
    const heardOf = (open: OpenTransport): Promise<string> =>
      new Promise((resolve) => {
        const transport = open(
          { subscribe: [downFilter(1)] },
          {
            onConnect: () => {
              transport.close()
              resolve('connected')
            },
            onDisconnect: resolve,
            onMessage: () => {},
          },
        )
      })
    const hubAt = (url: string, ca?: string) =>
      heardOf(mqttTransport({ urls: [url], user: 'hub-1', password: 'secret-1', runtime, ...(ca && { ca }) }))
    const cloudAt = (url: string, ca?: string) =>
      heardOf(externalBroker({ urls: [url], clientId: 'hub-1', runtime, ...(ca && { ca }) }))
    try {
      for (const host of ['localhost', '127.0.0.1']) {
        expect(await hubAt(`mqtts://${host}:${secure.port}`, cert)).toBe('connected')
        expect(await cloudAt(`mqtts://hub-1:secret-1@${host}:${secure.port}`, cert)).toBe('connected')
      }
      expect(await hubAt(`mqtts://localhost:${secure.port}`)).toMatch(/self-signed certificate/)
      expect(await cloudAt(`mqtts://hub-1:secret-1@localhost:${secure.port}`)).toMatch(
        /self-signed certificate/,
      )
      expect(await hubAt(`mqtt://localhost:${secure.port}`)).not.toBe('connected')
    } finally {
      await secure.close()
      certificate.remove()
    }
  },
)
