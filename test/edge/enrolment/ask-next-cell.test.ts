import { createServer, type AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Aedes } from 'aedes'
import { expect, onTestFinished, test } from 'vitest'
import { newSerial, openAuthorities } from '../../../cloud/enrolment/authority.ts'
import { renewCertificate, revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { askNextCell } from '../../../edge/enrolment/visit-broker.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { parseMessage } from '../../../protocol/mqtt/parse-message.ts'
import { CertificateRequest } from '../../../protocol/mqtt/session.ts'
import { downTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { loadX509, P256, privatePem } from '../../../protocol/x509.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'
import { next } from './support/moving-board.ts'

const runtime = systemRuntime()
/** Its timers are early, for answers that never come. */
const hurried = {
  ...runtime,
  clock: { ...runtime.clock, after: (ms: number, task: () => void) => runtime.clock.after(ms / 20, task) },
}

/** A cell where a board is enrolled as hub 1. `isOther`: its broker is of another make, and accepts every certificate. */
async function cell({ isOther = false, isAnswering = true } = {}) {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  await seedHub(db, 1)
  const context = testContext(db, runtime)
  const [authority] = await openAuthorities(context)
  const now = runtime.clock.now()
  const validity = { from: now - DAY_MS, until: now + DAY_MS }
  const { PublicKey } = await loadX509()
  const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
  const serial = newSerial(runtime.random)
  const certificate = await authority.signHub(await PublicKey.create(keys.publicKey), {
    hubId: 1,
    serial,
    ...validity,
  })
  await db.kysely
    .insertInto('hub_certificates')
    .values({ serial, hub_id: 1, issued_at: now, expires_at: validity.until, revoked_at: null })
    .execute()
  const own = { ca: authority.certificate, ...(await authority.makeServer(['127.0.0.1'], validity)) }

  /** The cloud's answer to a message of hub 1. */
  async function serve(payload: string, publish: (topic: string, payload: string) => void): Promise<void> {
    const request = CertificateRequest.parse(parseMessage(payload))
    const answer = isAnswering
      ? await renewCertificate(context, { brokerCa: () => undefined }, 1, request)
      : null
    if (answer) publish(downTopic(1, 'certificate'), JSON.stringify(answer))
  }

  async function embedded(): Promise<number> {
    const broker = await startEmbeddedBroker({
      db,
      databaseUrl: 'sqlite::memory:',
      log: silentLog,
      refusals: cloudRefusals({ log: silentLog, runtime }),
      clock: runtime.clock,
      port: 0,
      certificates: { port: 0, ...own },
    })
    const cloud = broker.openTransport(
      { subscribe: [upTopic(1, 'certificate')] },
      {
        onConnect() {},
        onDisconnect() {},
        onMessage: (_, payload) => void serve(payload, (to, answer) => void cloud.publish(to, answer)),
      },
    )
    onTestFinished(() => broker.close())
    return broker.certificatePort!
  }

  async function otherMake(): Promise<number> {
    const broker = await Aedes.createBroker()
    const message = { cmd: 'publish', qos: 1, dup: false, retain: false } as const
    broker.on('publish', ({ topic, payload }) => {
      if (topic === upTopic(1, 'certificate'))
        void serve(payload.toString(), (to, answer) =>
          broker.publish({ ...message, topic: to, payload: answer }, () => {}),
        )
    })
    const server = createTlsServer({ ...own, requestCert: true }, (socket) => void broker.handle(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.close()
      broker.close()
    })
    return (server.address() as AddressInfo).port
  }

  const port = await (isOther ? otherMake() : embedded())
  const answer = {
    ...next.answer,
    hub_id: 1,
    certificate,
    ca: authority.certificate,
    mqtt_url: `mqtts://127.0.0.1:${port}`,
  }
  const enrolment = { key: await privatePem(keys.privateKey), answer }
  return {
    enrolment,
    ask: (by = runtime) => askNextCell(enrolment, by),
    revoke: () => db.transact((tx) => revokeHub(tx, runtime, 1)),
    retire: () => db.kysely.updateTable('hubs').set({ retired_at: now, hub_status: 'retired' }).execute(),
    known: async () => ({
      sessions: await db.kysely.selectFrom('hub_sessions').selectAll().execute(),
      certificates: await db.kysely.selectFrom('hub_certificates').selectAll().execute(),
    }),
  }
}

const takesNot = /^the other cell does not take this hub \(mqtts:\/\/127\.0\.0\.1:\d+\): /

test.each([false, true])(
  'the next cell takes an enrolled hub, and refuses a revoked or retired hub; the question changes nothing there (broker of another make: %s)',
  async (isOther) => {
    for (const end of ['revoke', 'retire'] as const) {
      const at = await cell({ isOther })
      const before = await at.known()
      expect([await at.ask(), await at.ask()]).toEqual([undefined, undefined])
      expect(await at.known()).toEqual(before)
      await at[end]()
      const why = isOther
        ? 'its broker accepts it, and its cloud does not answer'
        : 'the broker refuses this user name'
      const reason = await at.ask(isOther ? hurried : runtime)
      expect(reason).toMatch(takesNot)
      expect(reason).toContain(why)
    }
  },
)

test('a cell does not take the hub if its cloud, broker or machine does not answer, or if the enrolment is damaged', async () => {
  const silent = await cell({ isAnswering: false })
  expect(await silent.ask(hurried)).toContain('its broker accepts it, and its cloud does not answer')
  const { enrolment } = silent
  const server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const at = (changes: Partial<typeof enrolment.answer>) =>
    askNextCell({ ...enrolment, answer: { ...enrolment.answer, ...changes } }, hurried)
  expect(await at({ mqtt_url: `mqtts://127.0.0.1:${port}` })).toContain('the broker does not answer')
  expect(await at({ mqtt_url: 'mqtts://127.0.0.1:1' })).toContain('refuses connections')
  expect(await at({ certificate: 'damaged' })).toMatch(takesNot)
  expect(await at({ mqtt_url: 'nonsense' })).toMatch(/^the other cell does not take this hub \(nonsense\): /)
})
