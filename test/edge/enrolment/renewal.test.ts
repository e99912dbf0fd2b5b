import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { enrolmentHandlers, renewCertificate, revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { putBack } from '../../../cloud/clock-step.ts'
import { certificateOf } from '../../../cloud/gateway/hub-certificates.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { makeKey } from '../../../edge/enrolment/enrol.ts'
import {
  enrolmentFiles,
  isOfKey,
  nextKey,
  readEnrolment,
  readPrevious,
} from '../../../edge/enrolment/enrolment.ts'
import { Renewal } from '../../../edge/enrolment/renewal.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { CertificateRequest } from '../../../protocol/mqtt/session.ts'
import { downTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import type { TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { openCloud } from '../../world/cloud.ts'
import { emptySqlite } from '../../world/database.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

/** An enrolled hub and its cloud, with a connection that the test delivers. */
async function world() {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const { context, runtime, call } = await openCloud({
    db,
    handlersOf: (made) => enrolmentHandlers(made, { mqttUrl: 'mqtts://x', brokerCa: () => undefined }),
  })
  const { clock } = runtime
  const folder = mkdtempSync(join(tmpdir(), 'larder-renewal-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  const paths = enrolmentFiles(store)
  const { code } = await db.transact((tx) => renewClaimCode(tx, context, 1))
  const first = await makeKey()
  const { json } = await call('POST', '/api/v1/enroll', { body: { claim_code: code, csr: first.csr } })
  const { certificate, ca } = json as { certificate: string; ca: string }
  for (const [path, text] of [
    [paths.key, first.key],
    [paths.certificate, certificate],
    [paths.ca, ca],
    [paths.enrolment, '{"hub_id": 1, "mqtt_url": "mqtts://x"}'],
  ] as const)
    writeFileSync(path, text)

  const sent: string[] = []
  let arrive: TransportHandlers
  const passedOn: string[] = []
  const renewal = new Renewal({
    hubId: 1,
    store,
    client: { cert: certificate, key: first.key },
    ca,
    clock,
    log: silentLog,
    now: () => clock.now(),
    newKey: makeKey,
    againMs: HOUR,
  })
  const open = renewal.over((_options, handlers) => {
    arrive = handlers
    return {
      publish(topic, payload) {
        // The hub also compares its authorities with those of the cloud.
        if (topic === upTopic(1, 'certificate') && 'csr' in JSON.parse(payload)) sent.push(payload)
        return Promise.resolve(true)
      },
      close() {},
    }
  })
  open(
    { subscribe: [] },
    { onConnect() {}, onDisconnect() {}, onMessage: (topic) => void passedOn.push(topic) },
  )
  arrive!.onConnect()

  /** Lets time pass. The hub asks for nothing. */
  async function quiet(ms: number): Promise<void> {
    const before = sent.length
    await clock.pass(ms)
    expect(sent.length).toBe(before)
  }
  /** Lets an hour pass. The hub asks once; its key is made outside the clock. */
  async function asked(): Promise<string> {
    const before = sent.length
    await clock.pass(HOUR)
    await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(before + 1)
    return sent.at(-1)!
  }
  /** Lets time pass until the renewal is due, and the hub asks. */
  async function due(): Promise<string> {
    await quiet(59 * DAY + 15 * HOUR)
    return asked()
  }
  const answerTo = (payload: string) =>
    renewCertificate(context, { brokerCa: () => undefined }, 1, CertificateRequest.parse(JSON.parse(payload)))
  const deliver = (answer: object): void =>
    arrive.onMessage(downTopic(1, 'certificate'), JSON.stringify(answer))
  const cutOff = (): void => arrive.onDisconnect('no network')
  const now = () => clock.now()
  return {
    db,
    context,
    clock,
    store,
    paths,
    sent,
    passedOn,
    renewal,
    arrive: arrive!,
    quiet,
    asked,
    due,
    answerTo,
    deliver,
    cutOff,
    now,
  }
}

test('a certificate is renewed after two thirds of its time, with a new key, and the former one stays valid', async () => {
  const { due, quiet, asked, answerTo, deliver, renewal, store, passedOn, db, now, arrive } = await world()
  const before = renewal.client()
  deliver((await answerTo(await due()))!)
  const { cert, key } = renewal.client()
  expect([isOfKey(cert, key), key === before.key]).toEqual([true, false])
  expect(readEnrolment(store)).toMatchObject({ hubId: 1, cert, key })
  const left = Date.parse(new X509Certificate(cert).validTo) - now()
  expect(Math.abs(left - 90 * DAY)).toBeLessThan(HOUR)
  const rows = await db.kysely.selectFrom('hub_certificates').select('revoked_at').execute()
  expect(rows).toEqual([{ revoked_at: null }, { revoked_at: null }])
  arrive.onMessage(downTopic(1, 'hail'), '{}')
  expect(passedOn).toEqual([downTopic(1, 'hail')])
  await quiet(59 * DAY + 15 * HOUR)
  await asked()
})

test('a hub asks again for the same key after a lost answer, and gets at most ten certificates in the lifetime of one', async () => {
  const { due, asked, answerTo, deliver, db, clock, sent, renewal } = await world()
  const first = await due()
  expect(await answerTo(first)).not.toBeNull()
  expect(await asked()).toBe(first)
  expect(await answerTo(first)).toBeNull()
  await clock.pass(9 * DAY)
  const answer = await answerTo(sent.at(-1)!)
  expect(await db.kysely.selectFrom('hub_certificates').selectAll().execute()).toHaveLength(3)
  const before = renewal.client()
  deliver(answer!)
  expect(renewal.client()).not.toEqual(before)
})

test('a hub without a connection asks for nothing, and asks when it is connected again', async () => {
  const { quiet, cutOff, arrive, sent } = await world()
  cutOff()
  await quiet(80 * DAY)
  arrive.onConnect()
  await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(1)
})

test('the cloud renews no certificate that is revoked or expired, or for a request that is none', async () => {
  const { due, answerTo, db, context, now, clock } = await world()
  const request = await due()
  expect(await answerTo('{"csr": "no request"}')).toBeNull()
  clock.shiftWall(31 * DAY)
  expect(await answerTo(request)).toBeNull()
  clock.shiftWall(-31 * DAY)
  await db.transact((tx) => revokeHub(tx, context.runtime, 1))
  expect(await answerTo(request)).toBeNull()
  expect(await certificateOf(context.db.kysely, 1, now())).toBeUndefined()
})

test('a certificate of another key or hub, or a broken message, changes nothing', async () => {
  const { due, answerTo, deliver, renewal, store, arrive } = await world()
  const request = await due()
  const stranger = await world()
  const foreign = await stranger.answerTo(await stranger.due())
  const before = renewal.client()
  for (const answer of [foreign!, {}, { certificate: 'none' }]) deliver(answer)
  arrive.onMessage(downTopic(1, 'certificate'), '{')
  expect(renewal.client()).toEqual(before)
  expect(readEnrolment(store)).toMatchObject(before)
  deliver((await answerTo(request))!)
  expect(renewal.client().cert).not.toBe(before.cert)
})

test('a certificate of a clock that was ahead leaves the hub its former pair, with which it gets one that brokers accept', async () => {
  const { due, asked, answerTo, deliver, renewal, clock, store, arrive, cutOff, db, now } = await world()
  const former = renewal.client()
  const request = await due()
  clock.shiftWall(20 * DAY)
  deliver((await answerTo(request))!)
  const ahead = renewal.client()
  expect(readPrevious(store)).toEqual(former)
  // The clock was 40 days ahead. No broker accepts the certificate now.
  clock.shiftWall(-40 * DAY)
  await db.transact((tx) => putBack(tx, now(), 40 * DAY))
  expect(Date.parse(new X509Certificate(ahead.cert).validFrom)).toBeGreaterThan(now())
  cutOff()
  for (let attempt = 0; attempt < 6; attempt++) {
    expect(renewal.client()).toEqual(ahead)
    cutOff()
  }
  expect(renewal.client()).toEqual(former)
  arrive.onConnect()
  await clock.pass(20 * DAY - HOUR)
  deliver((await answerTo(await asked()))!)
  const { cert } = renewal.client()
  expect([ahead.cert, former.cert]).not.toContain(cert)
  expect(readPrevious(store)).toEqual(former)
  expect(readEnrolment(store)).toMatchObject({ cert })
})

test('the cloud signs at once for a hub with a certificate that begins in the future', async () => {
  const { due, answerTo, deliver, context, clock, db, now } = await world()
  const request = await due()
  deliver((await answerTo(request))!)
  expect(await answerTo(request)).toBeNull()
  clock.shiftWall(-40 * DAY)
  await db.transact((tx) => putBack(tx, now(), 40 * DAY))
  const answer = await renewCertificate(context, { brokerCa: () => undefined }, 1, {
    csr: (await makeKey()).csr,
  })
  expect(Date.parse(new X509Certificate(answer!.certificate!).validFrom)).toBeLessThan(now())
})

test('a power failure between the certificate and its key leaves a pair that fits', async () => {
  const { due, answerTo, deliver, renewal, store, paths } = await world()
  const former = readFileSync(paths.key, 'utf8')
  deliver((await answerTo(await due()))!)
  const { cert, key } = renewal.client()
  // The certificate is stored, and the new key has not replaced the former one.
  renameSync(paths.key, nextKey(paths.key))
  writeFileSync(paths.key, former)
  expect(readEnrolment(store)).toMatchObject({ cert, key })
  expect(readEnrolment(store)).toMatchObject({ cert, key })
  writeFileSync(paths.key, former)
  expect(() => readEnrolment(store)).toThrow(/is no certificate of/)
})
