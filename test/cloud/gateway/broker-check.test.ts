import { createServer, type AddressInfo } from 'node:net'
import { Aedes, type Client } from 'aedes'
import { describe, expect, test, type TestContext } from 'vitest'
import { brokerQuestions } from '../../../cloud/gateway/broker-check.ts'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { reportOf, type CheckResult, type DoctorReport } from '../../../protocol/model/doctor.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { limitPackets, MAX_PACKET_BYTES } from '../../../protocol/mqtt/packet-limit.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { MOSQUITTO_PASSWORD, startMosquitto } from '../../support/mosquitto.ts'
import { service } from '../../support/services.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const runtime = systemRuntime()
const PASSWORD = 'a secret'
const address = (user: string, port: number) =>
  `mqtt://${user}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`

type Addresses = Parameters<typeof brokerQuestions>[0]

type Finished = Pick<TestContext, 'onTestFinished'>

/** Asks a broker all questions, or only the named ones. */
async function check(
  { onTestFinished }: Finished,
  addresses: Addresses,
  only?: readonly string[],
): Promise<DoctorReport> {
  const { checks: all, close } = brokerQuestions({ hubCount: 50, ...addresses }, { runtime, quietMs: 300 })
  onTestFinished(close)
  const checks = Object.fromEntries(Object.entries(all).filter(([name]) => only?.includes(name) ?? true))
  return reportOf({ part: 'broker', version: '', clock: runtime.clock, checks, isInTurn: true })
}
const notOk = ({ checks }: DoctorReport) =>
  checks.filter(({ result }) => result !== 'OK').map(({ name, result }) => [name, result])

/** The faults of a broker. */
interface Faults {
  /** Accepts every password and every client. */
  open?: true
  /** Hubs may choose their client ids. */
  anyClientId?: true
  /** Hubs may read, or write, every topic. */
  reads?: true
  writes?: true
  /** The cloud's user lacks the right for its own topics. */
  deaf?: true
  maxBytes?: number
  maxSubscriptions?: number
  /** Loses wills, refuses retained messages. */
  noWills?: true
  noRetained?: true
}

/** A broker with the rights of SPEC §2, except for its faults. */
async function brokerWith({ onTestFinished }: Finished, faults: Faults): Promise<number> {
  const users = new Map<Client, string>()
  const held = new Map<Client, number>()
  const broker = await Aedes.createBroker({
    authenticate(client, user = '', password, done) {
      users.set(client, user)
      const mayTake = (faults.anyClientId ?? false) || !user.startsWith('hub-') || client.id === user
      done(null, mayTake && (faults.open ?? String(password) === PASSWORD))
    },
    preConnect(_client, packet, done) {
      if (faults.noWills) delete packet.will
      done(null, true)
    },
    authorizePublish(client, { topic, retain }, done) {
      const user = client && users.get(client)
      const mayWrite = faults.writes || user === 'larder-cloud' || topic.startsWith(`larder/v1/${user}/up/`)
      const isRefused = (retain && faults.noRetained) || !mayWrite
      done(client && isRefused ? new Error('refused') : null)
    },
    authorizeSubscribe(client, subscription, done) {
      const user = users.get(client)
      const count = (held.get(client) ?? 0) + 1
      held.set(client, count)
      const isOwn = subscription.topic.startsWith(`larder/v1/${user}/down/`)
      const mayRead = faults.reads || isOwn || (user === 'larder-cloud' && !faults.deaf)
      done(null, mayRead && count <= (faults.maxSubscriptions ?? Infinity) ? subscription : null)
    },
  })
  const server = createServer({ noDelay: true }, (socket) => {
    limitPackets(socket, faults.maxBytes ?? MAX_PACKET_BYTES)
    broker.handle(socket)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(async () => {
    server.close()
    await new Promise<void>((done) => broker.close(done))
  })
  return (server.address() as AddressInfo).port
}

const both = (port: number): Addresses => ({
  cloud: address('larder-cloud', port),
  hubs: [address('hub-1', port), address('hub-2', port)],
})

const RIGHTS = ['foreign subscriptions', 'foreign messages', 'foreign will']
const cases: readonly [fault: string, faults: Faults, questions: readonly string[], result: CheckResult][] = [
  ['accepts every password', { open: true }, ['wrong password'], 'FAIL'],
  ['lets hubs choose their client ids', { anyClientId: true }, ['foreign client id'], 'FAIL'],
  ['gives hubs every right', { reads: true, writes: true }, RIGHTS, 'FAIL'],
  ['carries only 64 KiB', { maxBytes: 65_536 }, ['packet size'], 'FAIL'],
  ['grants only 31 subscriptions', { maxSubscriptions: 31 }, ['subscriptions'], 'WARN'],
  ['loses wills', { noWills: true }, ['will'], 'FAIL'],
  ['refuses retained messages', { noRetained: true }, ['retained'], 'FAIL'],
]

// The questions mostly wait for messages that do not arrive.
describe.concurrent('the check of a broker', () => {
  test('a broker that has every right and ability passes all 20 questions', async (own) => {
    const report = await check(own, both(await brokerWith(own, {})))
    expect([notOk(report), report.checks.length]).toEqual([[], 20])
  })

  test.for(cases)('the check finds a broker that %s', async ([, faults, questions, result], own) => {
    const report = await check(own, both(await brokerWith(own, faults)), ['sign-in', ...questions])
    expect(notOk(report)).toEqual(questions.map((name) => [name, result]))
  })

  test('the check of a broker that delivers nothing to the cloud names the topic', async (own) => {
    const port = await brokerWith(own, { deaf: true })
    const addresses = { cloud: address('larder-cloud', port) }
    const { result, checks } = await check(own, addresses, ['sign-in', 'delivery'])
    expect(result).toBe('FAIL')
    expect(checks.find(({ name }) => name === 'delivery')).toMatchObject({
      message: expect.stringContaining('larder/v1/cloud/check-') as string,
    })
  })

  test('the embedded broker passes the questions about hubs', async (own) => {
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    for (const hubId of [1, 2]) await seedHub(db, hubId, digestOf(PASSWORD))
    const context = testContext(db, runtime)
    const options = { db, databaseUrl: '', port: 0, refusals: cloudRefusals(context), ...context.runtime }
    const broker = await startEmbeddedBroker({ ...options, log: silentLog })
    own.onTestFinished(() => broker.close())
    const report = await check(own, {
      hubs: [address('hub-1', broker.port), address('hub-2', broker.port)],
    })
    expect([notOk(report), report.checks.length]).toEqual([[], 6])
  })
})

service('mosquitto')(
  'Mosquitto with the files of the specification passes every question',
  async (own) => {
    const broker = await startMosquitto(['hub-1', 'hub-2'])
    own.onTestFinished(() => broker.remove())
    const hub = (user: string) =>
      `mqtt://${user}:${encodeURIComponent(MOSQUITTO_PASSWORD)}@127.0.0.1:${broker.hubPort}`
    const addresses = { cloud: broker.cloudUrl, hubs: [hub('hub-1'), hub('hub-2')], hubCount: 1000 } as const
    expect(notOk(await check(own, addresses))).toEqual([])
  },
  60_000,
)
