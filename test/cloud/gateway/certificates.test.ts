import { connect as connectTls } from 'node:tls'
import { MqttClient, type IClientOptions } from 'mqtt'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { newSerial, openAuthorities } from '../../../cloud/enrolment/authority.ts'
import { revokeCertificates } from '../../../cloud/gateway/hub-certificates.ts'
import { revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { renewPassword } from '../../../cloud/operations/hubs/create-hub.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { upTopic } from '../../../protocol/mqtt/topics.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { loadX509, P256, privatePem } from '../../../protocol/x509.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { hubRow, seedHub } from '../../world/seeds.ts'

const DAY = 86_400_000
const runtime = systemRuntime()

const openHubs = async (): Promise<CloudDatabase> => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  for (const id of [1, 2]) await seedHub(db, id, digestOf(`secret-${id}`))
  return db
}

/** A broker with the port for certificates, and a maker of certificates of its hubs. */
async function world() {
  const db = await openHubs()
  const context = testContext(db, runtime)
  const [authority] = await openAuthorities(context)
  const now = runtime.clock.now()
  const own = { from: now - DAY, until: now + DAY }
  const warnings: object[] = []
  const broker = await startEmbeddedBroker({
    db,
    databaseUrl: 'sqlite::memory:',
    log: { ...silentLog, warn: (fields) => warnings.push(fields) },
    refusals: cloudRefusals({ log: silentLog, runtime }),
    clock: runtime.clock,
    port: 0,
    limits: { passwordCheckMs: 50 },
    certificates: { port: 0, ca: authority.certificate, ...(await authority.makeServer(['127.0.0.1'], own)) },
  })
  const clients: MqttClient[] = []
  onTestFinished(async () => {
    for (const client of clients) client.end(true)
    await broker.close()
  })

  /** A certificate of a hub, by this cloud's authority or another one. */
  async function certify(hubId: number, { validity = own, by = authority, isKnown = true } = {}) {
    const { X509Certificate } = await loadX509()
    const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
    const { PublicKey } = await loadX509()
    const serial = newSerial(runtime.random)
    const cert = await by.signHub(await PublicKey.create(keys.publicKey), { hubId, serial, ...validity })
    expect(new X509Certificate(cert).serialNumber).toBe(serial)
    if (isKnown)
      await db.kysely
        .insertInto('hub_certificates')
        .values({
          serial,
          hub_id: hubId,
          issued_at: validity.from,
          expires_at: validity.until,
          revoked_at: null,
        })
        .execute()
    return { cert, key: await privatePem(keys.privateKey) }
  }

  /** Connects by TLS. The server's certificate is checked with the cloud's authority. */
  function connect(
    options: IClientOptions,
    certificate: { cert?: string; key?: string } = {},
  ): Promise<{ client: MqttClient; outcome: string }> {
    const client = new MqttClient(
      () =>
        connectTls({
          host: '127.0.0.1',
          port: broker.certificatePort!,
          ca: authority.certificate,
          ...certificate,
        }),
      { protocolVersion: 4, reconnectPeriod: 0, ...options },
    )
    clients.push(client)
    return new Promise((resolve) => {
      client.on('connect', () => resolve({ client, outcome: 'connected' }))
      client.on('error', (error) => resolve({ client, outcome: error.message }))
      client.on('close', () => resolve({ client, outcome: 'closed' }))
    })
  }
  return { db, context, broker, certify, connect, warnings, own }
}

const closed = (client: MqttClient): Promise<void> =>
  new Promise((resolve) => void client.once('close', resolve))

test('a hub signs in with its certificate, with or without its user name, and publishes only for itself', async () => {
  const { certify, connect } = await world()
  const certificate = await certify(1)
  for (const more of [{}, { username: 'hub-1' }]) {
    const { client, outcome } = await connect({ clientId: 'hub-1', ...more }, certificate)
    expect(outcome).toBe('connected')
    await client.publishAsync(upTopic(1, 'entries'), '{}', { qos: 1 })
    const ended = closed(client)
    client.publish(upTopic(2, 'entries'), '{}', { qos: 1 })
    await ended
  }
})

test('a certificate of another hub, another client id, or another user name is refused', async () => {
  const { certify, connect } = await world()
  const certificate = await certify(1)
  for (const options of [{ clientId: 'hub-2' }, { clientId: 'hub-1', username: 'hub-2' }])
    expect((await connect(options, certificate)).outcome).not.toBe('connected')
})

test('certificates that expired, or that another authority signed, are refused', async () => {
  const { certify, connect, context } = await world()
  const [stranger] = await openAuthorities({ ...context, db: await openHubs() })
  const now = runtime.clock.now()
  for (const certificate of [
    await certify(1, { validity: { from: now - 2 * DAY, until: now - DAY } }),
    await certify(1, { by: stranger }),
  ])
    expect((await connect({ clientId: 'hub-1' }, certificate)).outcome).not.toBe('connected')
})

test('a lost certificate is accepted once more and replaces those before it, and one from before the latest or before its hub is refused', async () => {
  const { db, certify, connect, warnings } = await world()
  const now = runtime.clock.now()
  const lost = (age: number) =>
    certify(1, { isKnown: false, validity: { from: now - age * DAY, until: now + DAY } })
  const [former, latest, tooOld] = [await certify(1), await lost(0.5), await lost(0.9)]
  const signsIn = async (certificate: { cert: string; key: string }, hubId = 1) =>
    (await connect({ clientId: `hub-${hubId}` }, certificate)).outcome === 'connected'
  expect([await signsIn(former), await signsIn(latest), await signsIn(latest)]).toEqual([true, true, true])
  expect([await signsIn(former), await signsIn(tooOld)]).toEqual([false, false])
  // A restored database has given the number to another hub.
  await db.kysely
    .insertInto('hubs')
    .values(hubRow({ id: 3, created_at: now }))
    .execute()
  const validity = { from: now - 0.9 * DAY, until: now + DAY }
  expect(await signsIn(await certify(3, { isKnown: false, validity }), 3)).toBe(false)
  // A hub without a certificate may have lost its first one, unless it was shut out.
  expect(await signsIn(await certify(2, { isKnown: false }), 2)).toBe(true)
  await db.transact((tx) => revokeHub(tx, runtime, 2))
  expect(
    await signsIn(await certify(2, { isKnown: false, validity: { from: now, until: now + DAY } }), 2),
  ).toBe(false)
  const audit = await db.kysely.selectFrom('audit_log').select(['action', 'actor']).execute()
  expect(audit).toEqual([1, 2].map((id) => ({ action: 'hubs.adopt_certificate', actor: `hub-${id}` })))
  const remedies = warnings.filter((fields) => 'remedy' in fields)
  expect(remedies).toMatchObject(
    [1, 2].map((id) => ({
      hubId: id,
      remedy: expect.stringContaining(`larder hubs revoke ${id}`) as string,
    })),
  )
})

test('a revoked certificate ends the open session within the interval of the checks, and a new password admits the hub again', async () => {
  const { db, certify, connect } = await world()
  const certificate = await certify(1)
  const other = await connect({ clientId: 'hub-2' }, await certify(2))
  const { client } = await connect({ clientId: 'hub-1' }, certificate)
  const ended = closed(client)
  await db.transact((tx) => revokeHub(tx, runtime, 1))
  await ended
  expect(other.client.connected).toBe(true)
  const password = { clientId: 'hub-1', username: 'hub-1', password: 'secret-1' }
  for (const again of [connect({ clientId: 'hub-1' }, certificate), connect(password)])
    expect((await again).outcome).not.toBe('connected')
  const renewed = await db.transact((tx) => renewPassword(tx, runtime, 1, 0))
  expect((await connect(password)).outcome).not.toBe('connected')
  expect((await connect({ ...password, password: renewed.password })).outcome).toBe('connected')
  expect((await connect({ clientId: 'hub-1' }, certificate)).outcome).not.toBe('connected')
})

test('a session stays open after the end of its certificate while the hub has the next one, and ends when another board is enrolled', async () => {
  const { db, certify, connect, own } = await world()
  const now = runtime.clock.now()
  const sessionOf = async (hubId: number) =>
    (await connect({ clientId: `hub-${hubId}` }, await certify(hubId))).client
  const [renewed, late] = [await sessionOf(1), await sessionOf(2)]
  const isOver = closed(renewed)
  const isLate = closed(late)
  await certify(1, { validity: { ...own, from: own.from + 1 } })
  await sql`update hub_certificates set expires_at = ${now - 1} where issued_at = ${own.from}`.execute(
    db.kysely,
  )
  await isLate
  await renewed.publishAsync(upTopic(1, 'entries'), '{}', { qos: 1 })
  expect(renewed.connected).toBe(true)
  expect(await db.transact((tx) => revokeCertificates(tx, 1, now))).toHaveLength(1)
  await certify(1)
  await isOver
})

test('a hub with a password cannot ask for a certificate', async () => {
  const { connect, certify } = await world()
  const ask = async (client: MqttClient) => {
    const ended = closed(client).then(() => 'closed')
    const sent = client.publishAsync(upTopic(1, 'certificate'), '{"csr": "x"}', { qos: 1 }).then(() => 'sent')
    return Promise.race([ended, sent])
  }
  const byPassword = await connect({ clientId: 'hub-1', username: 'hub-1', password: 'secret-1' })
  expect([byPassword.outcome, await ask(byPassword.client)]).toEqual(['connected', 'closed'])
  const byCertificate = await connect({ clientId: 'hub-1' }, await certify(1))
  expect([byCertificate.outcome, await ask(byCertificate.client)]).toEqual(['connected', 'sent'])
})
