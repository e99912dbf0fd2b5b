import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { certificatePort } from '../../../cloud/broker.ts'
import { newSerial, openAuthorities } from '../../../cloud/enrolment/authority.ts'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { enrolmentHandlers, renewCertificate } from '../../../cloud/enrolment/enrol.ts'
import { authorityWork, retireFormer, rotateAuthority } from '../../../cloud/enrolment/rotation.ts'
import { certificateOf } from '../../../cloud/gateway/hub-certificates.ts'
import { adoptCertificate, CLOCK_TOLERANCE_MS } from '../../../cloud/gateway/lost-certificates.ts'
import { makeKey } from '../../../edge/enrolment/enrol.ts'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { Renewal } from '../../../edge/enrolment/renewal.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { parseMessage } from '../../../protocol/mqtt/parse-message.ts'
import { CertificateRequest } from '../../../protocol/mqtt/session.ts'
import { downTopic } from '../../../protocol/mqtt/topics.ts'
import type { TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { openCloud } from '../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../world/database.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const SOON = { timeout: 20_000 }

/** A cloud whose hubs sign in with certificates, without a broker. */
async function world(open: OpenDatabase) {
  const brokerCa = () => undefined
  const db = await open()
  const app = await openCloud({
    db,
    handlersOf: (made) => enrolmentHandlers(made, { mqttUrl: 'mqtts://x', brokerCa }),
  })
  const { context, runtime } = app
  const { clock } = runtime
  context.settings.hubAuthorityDelayMs = 0
  async function enrol(hubId: number) {
    const { code } = await db.transact((tx) => renewClaimCode(tx, context, hubId))
    const { key, csr } = await makeKey()
    const enrolled = () => app.call('POST', '/api/v1/enroll', { body: { claim_code: code, csr } })
    return { key, enrolled }
  }
  async function rotate(overlapMs: number): Promise<() => Promise<unknown>> {
    const [only] = await openAuthorities(context)
    await db.transact((tx) => rotateAuthority(tx, clock.now(), overlapMs))
    const work = { kind: 'authority', subject: `${only.id} ${overlapMs}`, attempts: 1 }
    const run = async () => authorityWork(context)['authority']!.run(work)
    await run()
    return run
  }
  /** An enrolled board that is connected. `exchanges` counts its requests. */
  async function board(hubId: number) {
    const folder = mkdtempSync(join(tmpdir(), 'larder-risks-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = join(folder, 'hub.sqlite')
    const { key, enrolled } = await enrol(hubId)
    const { certificate, ca } = (await enrolled()).json as { certificate: string; ca: string }
    writeFileSync(enrolmentFiles(store).ca, ca)
    const client = { cert: certificate, key }
    const now = () => clock.now()
    const renewal = new Renewal({
      hubId,
      store,
      client,
      ca,
      clock,
      log: silentLog,
      now,
      newKey: makeKey,
      againMs: HOUR,
    })
    let arrive: TransportHandlers
    let exchanges = 0
    let answered = 0
    /** A process of the cloud with other authorities of its broker. */
    let others: string[] = []
    const answer = (payload: string) =>
      renewCertificate(
        context,
        { brokerCa: () => others[exchanges % others.length] },
        hubId,
        CertificateRequest.parse(parseMessage(payload)),
      )
    renewal.over((_options, handlers) => {
      arrive = handlers
      return {
        async publish(_topic, payload) {
          exchanges += 1
          const found = await answer(payload)
          answered += 1
          if (found) arrive.onMessage(downTopic(hubId, 'certificate'), JSON.stringify(found))
          return true
        },
        close() {},
      }
    })({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
    return {
      connect: () => arrive.onConnect(),
      client: () => renewal.client(),
      exchanges: () => exchanges,
      answered: () => answered,
      disagree: (authorities: string[]) => (others = authorities),
    }
  }
  const authorityOf = async (hubId: number) => (await certificateOf(db.kysely, hubId, clock.now()))?.authority
  /** The certificate that the embedded broker shows. */
  async function shown(): Promise<X509Certificate> {
    const config = { HOST: '127.0.0.1', MQTT_TLS_PORT: 1, MQTT_HOST: '127.0.0.1' }
    const { port } = await certificatePort(config as Parameters<typeof certificatePort>[0], context, {})
    return new X509Certificate(port!.certificates.cert)
  }
  return { db, context, clock, enrol, rotate, board, authorityOf, shown }
}

onEachDatabase('a rotation of the authority', (open) => {
  test('the broker of a hub with a password shows a certificate of the former authority until the end of the overlap', async () => {
    const { db, clock, rotate, board, authorityOf, shown } = await world(open)
    const hub = await board(1)
    const run = await rotate(90 * DAY)
    hub.connect()
    await expect.poll(() => authorityOf(1), SOON).toBe(2)
    expect((await shown()).issuer).toBe('CN=Larder hubs')
    clock.advance(90 * DAY)
    // The work may be late.
    expect((await shown()).issuer).not.toBe('CN=Larder hubs')
    await run()
    expect((await shown()).issuer).not.toBe('CN=Larder hubs')
    expect(await db.kysely.selectFrom('hub_authority').select('id').execute()).toEqual([{ id: 2 }])
  })

  test('the broker shows a certificate that began with its authority: the board of a hub may have lost the days since', async () => {
    const { context, clock, rotate, shown } = await world(open)
    await rotate(DAY)
    const [newest] = await openAuthorities(context)
    clock.advance(9 * DAY)
    expect(Date.parse((await shown()).validFrom)).toBeLessThanOrEqual(newest.createdAt - CLOCK_TOLERANCE_MS)
  })

  test('a hub takes a certificate of the new authority that ends before its present one', async () => {
    const { context, rotate, board, authorityOf } = await world(open)
    const [former] = await openAuthorities(context)
    context.settings.hubCertificateMs = 400 * DAY
    const hub = await board(1)
    context.settings.hubCertificateMs = 90 * DAY
    await rotate(90 * DAY)
    hub.connect()
    await expect.poll(() => new X509Certificate(hub.client().cert).issuer, SOON).not.toBe(`CN=${former.name}`)
    expect(await authorityOf(1)).toBe(2)
  })

  test('a hub gets no further certificate of the former authority while the new one does not sign yet', async () => {
    const { db, context, clock, rotate, board, authorityOf } = await world(open)
    context.settings.hubAuthorityDelayMs = HOUR / 2
    const hub = await board(1)
    clock.advance(20 * DAY)
    await rotate(90 * DAY)
    const signed = async () =>
      (await db.kysely.selectFrom('hub_certificates').select('serial').execute()).length
    hub.connect()
    await expect.poll(() => hub.answered(), SOON).toBe(2)
    expect([await authorityOf(1), await signed()]).toEqual([1, 1])
    clock.advance(HOUR)
    await expect.poll(() => authorityOf(1), SOON).toBe(2)
    expect(await signed()).toBe(2)
  })

  test('processes of the cloud that disagree about authorities cause two requests of a connection, not an endless exchange', async () => {
    const { context, board } = await world(open)
    const [own] = await openAuthorities(context)
    const hub = await board(1)
    hub.disagree([own.certificate, `${own.certificate}${own.certificate}`])
    hub.connect()
    await expect.poll(() => hub.exchanges(), SOON).toBe(2)
    await new Promise((resolve) => setImmediate(resolve))
    expect(hub.exchanges()).toBe(2)
  })

  test('no certificate made with the key of the former authority is adopted after the hub has a certificate of the new authority', async () => {
    const { db, context, clock, rotate, board, authorityOf } = await world(open)
    const hub = await board(1)
    await rotate(10 * DAY)
    hub.connect()
    await expect.poll(() => authorityOf(1), SOON).toBe(2)
    clock.advance(2 * DAY)
    const from = clock.now()
    const times = { from, until: from + 90 * DAY }
    const forged = { hubId: 1, serial: newSerial(context.runtime.random), issuer: 'Larder hubs', ...times }
    expect(await adoptCertificate(db, { clock, log: silentLog }, forged)).toBe(false)
    expect(await authorityOf(1)).toBe(2)
  })

  test('an enrolment during the retirement of its authority is refused, and its code stays valid', async () => {
    const { db, context, clock, rotate, enrol, authorityOf } = await world(open)
    context.settings.hubAuthorityDelayMs = HOUR
    await rotate(90 * DAY)
    const { enrolled } = await enrol(1)
    const transact = db.transact.bind(db)
    db.transact = async (work) => {
      db.transact = transact
      await transact((tx) => retireFormer(tx, clock.now()))
      return transact(work)
    }
    expect(await enrolled()).toMatchObject({ status: 503, json: { error: { code: 'service_unavailable' } } })
    expect(await authorityOf(1)).toBeUndefined()
    expect((await enrolled()).status).toBe(200)
    expect(await authorityOf(1)).toBe(2)
  })
})
