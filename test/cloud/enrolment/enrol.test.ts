import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { enrolmentHandlers, revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { certificateOf } from '../../../cloud/gateway/hub-certificates.ts'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { loadX509 } from '../../../protocol/x509.ts'
import { certificateRequest } from '../../support/certificate-request.ts'
import { openCloud } from '../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../world/database.ts'

const algorithms = {
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  'P-521': { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
} as const
const rsa = (modulusLength: number) => ({
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength,
  publicExponent: new Uint8Array([1, 0, 1]),
})

let csr: string
beforeAll(async () => {
  csr = await certificateRequest()
})

async function world(open: OpenDatabase) {
  const db = await open()
  const app = await openCloud({
    db,
    handlersOf: (context) =>
      enrolmentHandlers(context, { mqttUrl: 'mqtts://hubs.example:8883', brokerCa: () => undefined }),
  })
  const { context, runtime } = app
  const newCode = async (hubId = 1, { claimCodeMs }: { claimCodeMs: number } = context.settings) => {
    const made = { runtime, settings: { ...context.settings, claimCodeMs } }
    return (await db.transact((tx) => renewClaimCode(tx, made, hubId))).code
  }
  const enrol = (claim_code: string, request = csr) =>
    app.call('POST', '/api/v1/enroll', { body: { claim_code, csr: request } })
  const valid = (hubId = 1) => certificateOf(db.kysely, hubId, runtime.clock.now())
  const answer = async (path: string) => String((await app.call('GET', path)).json)
  return { ...app, db, newCode, enrol, valid, answer }
}

const refused = { status: 403, json: { error: { code: 'invalid_claim_code' } } }

onEachDatabase('enrolment', (open) => {
  test('a board with a claim code receives a certificate of the hub, signed by the cloud’s authority', async () => {
    const { newCode, enrol, answer, valid, runtime, db } = await world(open)
    const { status, json } = await enrol(await newCode())
    const enrolled = json as Record<string, string>
    expect(status).toBe(200)
    expect(enrolled).toMatchObject({
      hub_id: 1,
      name: 'Hub 1',
      mqtt_url: 'mqtts://hubs.example:8883',
      hardware: null,
      settings: {},
      desired_version: 1,
      update_root: null,
    })
    const certificate = new X509Certificate(enrolled['certificate']!)
    const authority = new X509Certificate(enrolled['ca']!)
    expect(certificate.subject).toBe('CN=hub-1')
    expect([certificate.verify(authority.publicKey), certificate.checkIssued(authority)]).toEqual([
      true,
      true,
    ])
    expect(authority.ca).toBe(true)
    expect(await answer('/pki/ca.pem')).toBe(enrolled['ca'])
    const ninetyDays = runtime.clock.now() + 90 * 86_400_000
    expect(Date.parse(enrolled['expires_at']!)).toBe(ninetyDays)
    expect(Math.abs(Date.parse(certificate.validTo) - ninetyDays)).toBeLessThan(1000)
    expect((await valid())?.serial).toBe(certificate.serialNumber.toLowerCase())
    const [record] = await db.kysely.selectFrom('audit_log').selectAll().execute()
    expect(record).toMatchObject({ actor: 'hub-1', action: 'hubs.enroll', hub_id: 1, result: 'executed' })
  })

  test('a code is accepted in any case and with spaces around it, and only once', async () => {
    const { newCode, enrol } = await world(open)
    const code = await newCode()
    expect(code).toMatch(/^[A-HJ-NP-Z2-9]{8}$/)
    expect((await enrol(` ${code.toLowerCase()} `)).status).toBe(200)
    expect(await enrol(code)).toMatchObject(refused)
  })

  test('after a lost answer a board gets the same answer again by its Idempotency-Key, and another board does not', async () => {
    const { newCode, call } = await world(open)
    const body = { claim_code: await newCode(), csr }
    const attempt = (key: string) =>
      call('POST', '/api/v1/enroll', { body, headers: { 'Idempotency-Key': key } })
    const first = await attempt('a')
    expect(first.status).toBe(200)
    expect((await attempt('a')).json).toEqual(first.json)
    expect(await attempt('b')).toMatchObject(refused)
  })

  test('one of two boards that use the same code at the same time is enrolled', async () => {
    const { newCode, enrol, db } = await world(open)
    const code = await newCode()
    const answers = await Promise.all([enrol(code), enrol(code), enrol(code)])
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 403, 403])
    expect(await db.kysely.selectFrom('hub_certificates').selectAll().execute()).toHaveLength(1)
  })

  test('unknown, replaced and expired codes and codes of retired hubs are refused, and change nothing', async () => {
    const { newCode, enrol, valid, db } = await world(open)
    expect((await enrol(await newCode())).status).toBe(200)
    const before = await valid()
    const replaced = await newCode()
    const code = await newCode()
    for (const wrong of ['', 'AAAAAAAA', replaced, `${code}A`])
      expect(await enrol(wrong)).toMatchObject(refused)
    const other = await newCode(2)
    await db.kysely.updateTable('hubs').set({ retired_at: 1 }).where('id', '=', 2).execute()
    expect(await enrol(other)).toMatchObject(refused)
    expect(await enrol(await newCode(1, { claimCodeMs: 0 }))).toMatchObject(refused)
    expect(await valid()).toEqual(before)
  })

  test('a second enrolment revokes the former certificate, and the list of revoked certificates names it', async () => {
    const { newCode, enrol, valid, answer } = await world(open)
    await enrol(await newCode())
    const first = (await valid())!
    await enrol(await newCode())
    const second = (await valid())!
    const { X509Crl, X509Certificate: Certificate } = await loadX509()
    const list = new X509Crl(await answer('/pki/crl.pem'))
    expect(list.entries.map(({ serialNumber }) => serialNumber)).toEqual([first.serial])
    expect(second.serial).not.toBe(first.serial)
    expect(await list.verify({ publicKey: new Certificate(await answer('/pki/ca.pem')) })).toBe(true)
  })

  test('all processes of the cloud have one authority', async () => {
    const db = await open()
    const apps = []
    for (const cloud of [1, 2]) {
      const app = await openCloud({
        // Only the first process creates the hubs.
        ...(cloud === 1 ? { db } : {}),
        handlersOf: (context) =>
          enrolmentHandlers({ ...context, db }, { mqttUrl: 'mqtts://x', brokerCa: () => undefined }),
      })
      apps.push(app)
    }
    const read = await Promise.all(apps.map((app) => app.call('GET', '/pki/ca.pem')))
    expect(new Set(read.map(({ json }) => json)).size).toBe(1)
    const [row] = await db.kysely.selectFrom('hub_authority').selectAll().execute()
    expect(JSON.stringify(row)).not.toContain('PRIVATE KEY')
  })

  test('a hub that is revoked has no valid certificate, and a further revocation fails', async () => {
    const { newCode, enrol, valid, runtime, db } = await world(open)
    await enrol(await newCode())
    const { serial } = (await valid())!
    const code = await newCode()
    const revoke = (hubId = 1) => db.transact((tx) => revokeHub(tx, runtime, hubId))
    expect(await revoke()).toEqual([serial])
    expect(await valid()).toBeUndefined()
    expect(await enrol(code)).toMatchObject(refused)
    await expect(revoke()).rejects.toThrow('hub 1 has no valid certificate')
    await expect(revoke(99)).rejects.toThrow('no such hub: 99')
  })

  test('requests that are no certificate request, have a weak key or a foreign signature are refused at `csr`', async () => {
    const { newCode, enrol, runtime } = await world(open)
    const code = await newCode()
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    // One letter of the signature differs.
    const foreign = csr.replace(/.(?=.{4,8}\n-----END)/, (letter) => (letter === 'A' ? 'B' : 'A'))
    expect(foreign).not.toBe(csr)
    const repeated = '-----BEGIN CERTIFICATE REQUEST-----'.repeat(200)
    for (const wrong of [
      '',
      'no request',
      repeated,
      csr + csr,
      csr.replaceAll(/[A-Z]/g, 'A'),
      String(publicKey.export({ type: 'spki', format: 'pem' })),
      foreign,
      await certificateRequest(algorithms['P-521']),
      await certificateRequest(rsa(1024)),
    ])
      expect(await enrol(code, wrong)).toMatchObject({
        status: 422,
        json: { detail: [{ loc: ['body', 'csr'], type: 'value_error' }] },
      })
    // An address may try 10 codes a minute.
    runtime.clock.advance(60_000)
    for (const algorithm of [algorithms['P-384'], rsa(2048)])
      expect((await enrol(await newCode(), await certificateRequest(algorithm))).status).toBe(200)
  })

  test('an address may try 10 codes a minute', async () => {
    const { enrol } = await world(open)
    const answers = []
    for (let n = 0; n < 11; n += 1) answers.push((await enrol('AAAAAAAA')).status)
    expect(answers).toEqual([...Array<number>(10).fill(403), 429])
  })
})
