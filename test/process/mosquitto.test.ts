import { connect as connectTls } from 'node:tls'
import { MqttClient, type IClientOptions } from 'mqtt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mosquittoLine, tryLogin } from '../../cloud/gateway/try-login.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { downFilter, downTopic, upFilter, upTopic } from '../../protocol/mqtt/topics.ts'
import { makeCertificate, type TestCertificate } from '../support/certificate.ts'
import { MOSQUITTO_PASSWORD, startMosquitto, type Mosquitto } from '../support/mosquitto.ts'
import { missing, service } from '../support/services.ts'

const needed = missing('openssl') === undefined ? ('mosquitto' as const) : ('openssl' as const)
/** Time without a message that proves a refusal. */
const QUIET_MS = 300

describe('Mosquitto as SPEC §2 configures it', () => {
  if (missing(needed) !== undefined) {
    service(needed)('a hub can use only its own topics on Mosquitto', () => {})
    return
  }
  let broker: Mosquitto
  let certificate: TestCertificate
  const clients: MqttClient[] = []

  beforeAll(async () => {
    certificate = makeCertificate()
    broker = await startMosquitto(['hub-1', 'hub-2'], certificate)
  })
  afterAll(async () => {
    for (const client of clients) client.end(true)
    await broker.remove()
    certificate.remove()
  })

  /** Connects a client and returns the result of the connection. */
  function open(port: number, options: IClientOptions): Promise<{ client: MqttClient; outcome: string }> {
    const socket = () => connectTls({ host: '127.0.0.1', port, ca: certificate.cert })
    const client = new MqttClient(socket, { protocolVersion: 4, reconnectPeriod: 0, clean: true, ...options })
    clients.push(client)
    return new Promise((resolve) => {
      client.on('connect', () => resolve({ client, outcome: 'connected' }))
      client.on('error', (error) => resolve({ client, outcome: error.message }))
      client.on('close', () => resolve({ client, outcome: 'closed' }))
    })
  }
  const password = MOSQUITTO_PASSWORD
  const hub = (number: number, more: IClientOptions = {}) =>
    open(broker.hubPort, { clientId: `hub-${number}`, username: `hub-${number}`, password, ...more })
  const cloud = (clientId: string) => open(broker.cloudPort, { clientId, username: 'larder-cloud', password })

  async function hearing(client: MqttClient, filter: string): Promise<string[]> {
    const heard: string[] = []
    client.on('message', (topic, payload) => void heard.push(`${topic} ${payload.toString()}`))
    await new Promise<void>((resolve) => client.subscribe(filter, { qos: 1 }, () => resolve()))
    return heard
  }
  const quiet = () => new Promise((resolve) => setTimeout(resolve, QUIET_MS))

  test('Mosquitto accepts the printed line of a new password, and the former password still works', async () => {
    const runtime = systemRuntime()
    const line = mosquittoLine('hub-7', 'the new one', runtime.random)
    const renewed = await startMosquitto(['hub-7'], undefined)
    const tried = (url: string, password: string) =>
      tryLogin({ url, ca: undefined, user: 'hub-7', password }, runtime.clock)
    try {
      const url = `mqtt://127.0.0.1:${renewed.hubPort}`
      expect([await tried(url, MOSQUITTO_PASSWORD), await tried(url, 'the new one')]).toEqual([
        'accepted',
        'refused',
      ])
      renewed.replacePasswords('hub-passwords', `${line}\n`)
      await expect.poll(() => tried(url, 'the new one')).toBe('accepted')
      expect(await tried(url, MOSQUITTO_PASSWORD)).toBe('refused')
    } finally {
      await renewed.remove()
    }
  })

  test('hub and cloud communicate over TLS, and several processes of the cloud stay connected together', async () => {
    const [one, two] = [await cloud('larder-cloud-1'), await cloud('larder-cloud-2')]
    const { client, outcome } = await hub(1)
    expect([outcome, one.outcome, two.outcome]).toEqual(['connected', 'connected', 'connected'])
    const atCloud = await hearing(two.client, upFilter)
    const atHub = await hearing(client, downFilter(1))
    await client.publishAsync(upTopic(1, 'hello'), 'hi', { qos: 1 })
    await one.client.publishAsync(downTopic(1, 'welcome'), 'welcome', { qos: 1 })
    await expect.poll(() => atCloud).toEqual([`${upTopic(1, 'hello')} hi`])
    await expect.poll(() => atHub).toEqual([`${downTopic(1, 'welcome')} welcome`])
    expect(one.client.connected).toBe(true)
  })

  test.each([
    { who: 'a wrong password', as: { clientId: 'hub-1', username: 'hub-1', password: 'wrong' } },
    { who: 'no password', as: { clientId: 'hub-1', username: 'hub-1' } },
    { who: 'no user name', as: { clientId: 'hub-1' } },
    {
      who: 'the cloud’s password at the hubs’ listener',
      as: { clientId: 'x', username: 'larder-cloud', password },
    },
  ])('Mosquitto refuses a login with $who', async ({ as }) => {
    expect((await open(broker.hubPort, as)).outcome).toMatch(/Not authorized/)
  })

  test('a hub is refused at the cloud’s listener', async () => {
    const as = { clientId: 'larder-cloud-1', username: 'hub-1', password }
    expect((await open(broker.cloudPort, as)).outcome).toMatch(/Not authorized/)
  })

  test('a connection with another hub’s client id ends only the impostor’s own connections', async () => {
    const mine = await hub(1)
    const impostor = await hub(2, { clientId: 'hub-1' })
    await quiet()
    expect([mine.client.connected, impostor.outcome]).toEqual([true, 'connected'])
    const heard = await hearing(impostor.client, downFilter(1))
    const { client } = await cloud('larder-cloud-1')
    await client.publishAsync(downTopic(1, 'command'), 'open', { qos: 1 })
    await quiet()
    expect(heard).toEqual([])
  })

  test.each(['#', 'larder/#', 'larder/v1/+/down/#', downFilter(2), upFilter, 'larder/v1/cloud/#', '$SYS/#'])(
    'a hub does not receive messages of another hub by %s',
    async (filter) => {
      const { client } = await hub(1)
      const heard = await hearing(client, filter)
      await hearing(client, `$share/g/${filter}`)
      const other = await hub(2)
      const { client: atCloud } = await cloud('larder-cloud-1')
      await other.client.publishAsync(upTopic(2, 'hello'), 'of hub 2', { qos: 1 })
      await atCloud.publishAsync(downTopic(2, 'command'), 'to hub 2', { qos: 1 })
      await atCloud.publishAsync('larder/v1/cloud/nudge', 'among clouds', { qos: 1 })
      await quiet()
      expect(heard).toEqual([])
    },
  )

  test('messages and wills of a hub under another name, to other hubs or to clouds, reach no client', async () => {
    const { client: atCloud } = await cloud('larder-cloud-1')
    const heard = await hearing(atCloud, 'larder/v1/#')
    const victim = await hub(1)
    const atVictim = await hearing(victim.client, downFilter(1))
    const topics = [
      upTopic(1, 'hello'),
      upTopic(1, 'presence'),
      downTopic(1, 'command'),
      downTopic(2, 'command'),
      'larder/v1/cloud/gone',
      'elsewhere',
    ]
    for (const topic of topics) {
      const { client } = await hub(2, { will: { topic, payload: Buffer.from('will'), qos: 1, retain: true } })
      client.publish(topic, 'said', { qos: 1, retain: true })
      await quiet()
      // Without a DISCONNECT the broker sends the will.
      client.stream.destroy()
    }
    await quiet()
    expect([heard, atVictim]).toEqual([[], []])
    const late = await cloud('larder-cloud-2')
    expect(await hearing(late.client, 'larder/v1/#')).toEqual([])
  })
})
