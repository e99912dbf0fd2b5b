import { connect as connectTcp } from 'node:net'
import { MqttClient } from 'mqtt'
import { expect, onTestFinished, test } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { upFilter, upTopic } from '../../../protocol/mqtt/topics.ts'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { tryLogin } from '../../../cloud/gateway/try-login.ts'
import { renewPassword } from '../../../cloud/operations/hubs/create-hub.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const databaseUrl = 'sqlite:/srv/larder.sqlite'
const runtime = systemRuntime()
const { clock } = runtime
const warned: Record<string, unknown>[] = []
const log = { ...silentLog, warn: (fields: object) => void warned.push(fields as Record<string, unknown>) }
const refusals = cloudRefusals({ log, runtime })

/** A broker with hub 3 and renewable passwords; it checks them every 100 ms. */
async function renewable(passwordCheckMs = 100) {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  await seedHub(db, 3, digestOf('first'))
  let aheadMs = 0
  const ahead = { ...clock, now: () => clock.now() + aheadMs }
  const options = { db, databaseUrl, log, refusals, clock: ahead, port: 0, limits: { passwordCheckMs } }
  const own = await startEmbeddedBroker(options)
  onTestFinished(() => own.close())
  const arrived: string[] = []
  own.openTransport(
    { subscribe: [upFilter] },
    {
      onConnect: () => {},
      onDisconnect: () => {},
      onMessage: (_topic, payload) => void arrived.push(payload),
    },
  )
  return {
    arrived,
    advance: (ms: number) => void (aheadMs += ms),
    renew: async (overlapMs: number): Promise<string> =>
      (await db.transact((tx) => renewPassword(tx, { ...runtime, clock: ahead }, 3, overlapMs))).password,
    url: `mqtt://127.0.0.1:${own.port}`,
    open: async (
      password: string,
    ): Promise<{ client: MqttClient; isClosed: () => boolean; outcome: string }> => {
      const socket = () => connectTcp({ host: '127.0.0.1', port: own.port, noDelay: true })
      const login = { clientId: 'hub-3', username: 'hub-3', password }
      const client = new MqttClient(socket, { protocolVersion: 4, reconnectPeriod: 0, ...login })
      onTestFinished(() => void client.end(true))
      let hasClosed = false
      client.on('close', () => void (hasClosed = true))
      const outcome = await new Promise<string>((resolve) => {
        client.on('connect', () => resolve('connected'))
        client.on('error', () => resolve('refused'))
      })
      return { client, isClosed: () => hasClosed, outcome }
    },
  }
}

test('a renewed password ends the open session of the former one, and only the new one opens another', async () => {
  const { renew, open } = await renewable()
  const before = await open('first')
  const second = await renew(0)
  await expect.poll(before.isClosed).toBe(true)
  expect((await open('first')).outcome).toBe('refused')
  expect((await open(second)).outcome).toBe('connected')
  expect(warned.some(({ why }) => why === 'the password was renewed, or the certificate revoked')).toBe(true)
})

test.each(['hello', 'entries', 'telemetry', 'heartbeat'] as const)(
  'a renewed password lets no message (%s) of the former session through, also before the next check',
  async (channel) => {
    const { renew, open, arrived } = await renewable(60_000)
    const { client, isClosed } = await open('first')
    await new Promise((resolve) => client.publish(upTopic(3, channel), 'before', { qos: 1 }, resolve))
    await renew(0)
    client.publish(upTopic(3, channel), 'after', { qos: 1 }, () => {})
    await expect.poll(isClosed).toBe(true)
    expect(arrived).toEqual(['before'])
  },
)

test('a password renewed with an overlap keeps the former session until the promised time, also after a further renewal', async () => {
  const { renew, open, advance } = await renewable()
  const first = await open('first')
  const second = await renew(60_000)
  expect(first.isClosed()).toBe(false)
  const third = await renew(3_600_000)
  advance(59_000)
  await new Promise((resolve) => setTimeout(resolve, 250))
  expect(first.isClosed()).toBe(false)
  advance(2000)
  await expect.poll(first.isClosed).toBe(true)
  expect((await open('first')).outcome).toBe('refused')
  expect((await open(second)).outcome).toBe('connected')
  expect((await open(third)).outcome).toBe('connected')
  const last = await renew(0)
  expect((await open(second)).outcome).toBe('refused')
  expect((await open(last)).outcome).toBe('connected')
})

test('a password can be tried at a broker', async () => {
  const { url } = await renewable()
  const login = { ca: undefined, user: 'hub-3' }
  expect(await tryLogin({ url, ...login, password: 'first' }, clock)).toBe('accepted')
  expect(await tryLogin({ url, ...login, password: 'other' }, clock)).toBe('refused')
  expect(await tryLogin({ url: 'mqtt://127.0.0.1:1', ...login, password: 'x' }, clock)).toBe('unreachable')
})
