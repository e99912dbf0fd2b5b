import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { buildChecks, cloudChecks } from '../../../cloud/operations/doctor/checks.ts'
import { readCloudConfig } from '../../../cloud/platform/settings/config.ts'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { migrate } from '../../../cloud/platform/store/migrate.ts'
import { openSealer } from '../../../cloud/platform/store/sealer.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import { diskChecks, runDoctor, type CheckResult, type DoctorReport } from '../../../protocol/model/doctor.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { makeAuthority } from '../../support/certificate.ts'
import { administrate, databaseAt } from '../../support/postgres.ts'
import { freePorts } from '../../support/ports.ts'
import { releasedStatements } from '../platform/store/released.ts'
import { STRIPE_KEY, startStripeServer } from '../support/stripe/server.ts'

type Environment = Record<string, string>
/** The fault that a test plants. It returns the settings that differ. */
type Plant = (place: { folder: string; db: CloudDatabase }) => Environment | Promise<Environment>

const runtime = systemRuntime()
const SECRET = 'a secret of the store for this test'

/** Plants a fault in a whole installation and runs the doctor. */
async function examine(plant: Plant): Promise<DoctorReport> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-doctor-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const url = `sqlite:${join(folder, 'larder.sqlite')}`
  const db = openDatabase({ url })
  await db.migrate()
  await openSealer(db, [SECRET], runtime.random)
  const [port, mqttPort, nobody] = (await freePorts(3)).map(String) as [string, string, string]
  const given = await plant({ folder, db })
  await db.close()
  const environment = { DATA_DIR: folder, PORT: port, MQTT_PORT: mqttPort, STORE_SECRET: SECRET, ...given }
  const filled = Object.entries(environment).map(([name, value]) => [name, value.replace('NOBODY', nobody)])
  const { stdout, exitCode } = await runDoctor({
    part: 'cloud',
    version: '2026.5.4+0123456',
    clock: runtime.clock,
    args: ['--json'],
    isTerminal: true,
    open() {
      const result = readCloudConfig(Object.fromEntries(filled) as Environment)
      const first = buildChecks(result.ok ? [] : result.problems)
      if (!result.ok) return Promise.resolve({ checks: first, close: () => {} })
      const { checks, close } = cloudChecks(result.config, undefined, runtime)
      return Promise.resolve({ checks: { ...first, ...checks }, close })
    },
  })
  const report = JSON.parse(stdout) as DoctorReport
  expect(exitCode).toBe(report.result === 'FAIL' ? 1 : 0)
  return report
}

/** A server that answers with JSON. `aheadMs`: how far its `Date` is ahead. */
async function server(aheadMs = 0): Promise<number> {
  const http = createServer((_request, response) => {
    response.sendDate = false
    response.setHeader('Date', new Date(Date.now() + aheadMs).toUTCString())
    response.end(JSON.stringify({ keys: [] }))
  })
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done))
  onTestFinished(() => void http.close())
  return (http.address() as AddressInfo).port
}

const run =
  (statement: string): Plant =>
  async ({ db }) => {
    await sql.raw(statement).execute(db.kysely)
    return {}
  }
const certificate =
  (toDay: number): Plant =>
  ({ folder }) => {
    const authority = makeAuthority({ fromDay: -100, toDay: 100 })
    const { cert, key } = authority.issue('broker', 'IP:127.0.0.1', { fromDay: -50, toDay })
    authority.remove()
    writeFileSync(join(folder, 'cert.pem'), cert)
    writeFileSync(join(folder, 'key.pem'), key)
    return { MQTT_CERT: join(folder, 'cert.pem'), MQTT_KEY: join(folder, 'key.pem') }
  }
/** The authority of the hubs, with a certificate that ends on this day. */
const authority =
  (toDay: number): Plant =>
  async ({ db }) => {
    const made = makeAuthority({ fromDay: -100, toDay })
    const certificate = made.ca
    made.remove()
    const row = { id: 1, certificate, sealed_key: 'sealed', created_at: 0, ends_at: null }
    await db.kysely.insertInto('hub_authority').values(row).execute()
    return {}
  }
const issuer = async (aheadMs: number) => {
  const origin = `http://127.0.0.1:${await server(aheadMs)}`
  return { IDENTITY_ISSUER: origin, IDENTITY_JWKS_URL: `${origin}/keys` }
}
const stripe = async (key: string) => {
  const processor = await startStripeServer()
  onTestFinished(() => processor.close())
  return {
    PAYMENTS_URL: `stripe:${processor.url}`,
    PAYMENTS_API_KEY: key,
    PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
  }
}
const now = Date.now()

const faults: readonly [fault: string, check: string, result: CheckResult, plant: Plant][] = [
  ['no fault', 'configuration', 'OK', () => ({})],
  ['an invalid setting', 'configuration', 'FAIL', () => ({ PORT: 'eighty' })],
  ['the development environment', 'environment', 'WARN', () => ({})],
  ['a folder of logs that is absent', 'log folder', 'WARN', () => ({ LOG_DIR: '/var/absent/logs' })],
  [
    'a secret that everybody can read',
    'permissions',
    'FAIL',
    ({ folder }) => {
      writeFileSync(join(folder, 'store-secret'), SECRET)
      chmodSync(join(folder, 'store-secret'), 0o644)
      return {}
    },
  ],
  ['Web Push without a contact', 'push notices', 'FAIL', () => ({ VAPID_PRIVATE_KEY: 'x' })],
  [
    'a database file with other bytes',
    'database',
    'FAIL',
    ({ folder }) => {
      writeFileSync(join(folder, 'other.sqlite'), 'not a database, '.repeat(100))
      return { DATABASE_URL: `sqlite:${join(folder, 'other.sqlite')}` }
    },
  ],
  ['a database of another build', 'database', 'FAIL', run("update larder_schema set declared = 'x'")],
  [
    'a PostgreSQL that does not answer',
    'database',
    'FAIL',
    () => ({ DATABASE_URL: 'postgres://a@127.0.0.1:NOBODY/b' }),
  ],
  [
    'a database that is absent',
    'database',
    'WARN',
    ({ folder }) => ({ DATABASE_URL: `sqlite:${folder}/none` }),
  ],
  [
    'another secret',
    'store secret',
    'FAIL',
    () => ({ STORE_SECRET: 'another secret of thirty-two characters' }),
  ],
  ['another program on the port', 'http port', 'FAIL', async () => ({ PORT: String(await server()) })],
  [
    'another program on the broker’s port',
    'broker port',
    'FAIL',
    async () => ({ MQTT_PORT: String(await server()) }),
  ],
  ['a certificate that has expired', 'certificates', 'FAIL', certificate(-1)],
  ['a certificate file that is absent', 'certificates', 'FAIL', () => ({ MQTT_CA: '/absent/ca.pem' })],
  ['a certificate that ends in 10 days', 'certificates', 'WARN', certificate(10)],
  ['a certificate that ends in 20 days', 'certificates', 'OK', certificate(20)],
  ['an address in clear', 'public address', 'WARN', () => ({ PUBLIC_URL: 'http://127.0.0.1:1' })],
  [
    'an address that does not answer',
    'public address',
    'FAIL',
    () => ({ PUBLIC_URL: 'https://127.0.0.1:NOBODY' }),
  ],
  ['a proxy that is not named', 'proxy', 'WARN', () => ({ PUBLIC_URL: 'https://127.0.0.1:NOBODY' })],
  ['a broker that does not answer', 'broker', 'FAIL', () => ({ MQTT_URL: 'mqtt://a:b@127.0.0.1:NOBODY' })],
  [
    'an issuer that does not answer',
    'issuer',
    'FAIL',
    () => ({ IDENTITY_ISSUER: 'http://127.0.0.1:NOBODY' }),
  ],
  ['an issuer with an equal clock', 'clock', 'OK', () => issuer(0)],
  ['a clock that differs by 20 s', 'clock', 'WARN', () => issuer(20_000)],
  ['a clock that differs by 2 minutes', 'clock', 'FAIL', () => issuer(120_000)],
  [
    'a processor that does not answer',
    'payments',
    'FAIL',
    () => ({
      PAYMENTS_URL: 'stripe:http://127.0.0.1:NOBODY',
      PAYMENTS_API_KEY: 'sk_test_x',
      PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
    }),
  ],
  ['a key that the processor knows', 'payments', 'OK', () => stripe(STRIPE_KEY)],
  ['a key that the processor does not know', 'payments', 'FAIL', () => stripe('sk_test_former')],
  ['a mail server that does not answer', 'mail', 'FAIL', () => ({ SMTP_URL: 'smtp://127.0.0.1:NOBODY' })],
  [
    'a bucket that does not answer',
    'media',
    'FAIL',
    () => ({
      MEDIA_URL: `s3://media?endpoint=${encodeURIComponent('http://127.0.0.1:')}NOBODY`,
      AWS_ACCESS_KEY_ID: 'a',
      AWS_SECRET_ACCESS_KEY: 'b',
    }),
  ],
  ['no backups', 'backups', 'WARN', () => ({})],
  [
    'a schedule without a backup',
    'backups',
    'FAIL',
    ({ folder }) => {
      mkdirSync(join(folder, 'to'))
      return { BACKUP_SCHEDULE: '02:00', BACKUP_TO: join(folder, 'to') }
    },
  ],
  ['no running process', 'processes', 'WARN', () => ({})],
  [
    'late work',
    'due work',
    'WARN',
    run(`insert into due_work (kind, subject, due_at, attempts) values ('a', 'b', ${now - 3_600_000}, 0)`),
  ],
  ['an authority that ends in 19 years', 'authority', 'OK', authority(19 * 365)],
  ['an authority that ends in 170 days', 'authority', 'WARN', authority(170)],
  ['an authority that has expired', 'authority', 'FAIL', authority(-1)],
  ['no hubs', 'hubs', 'WARN', () => ({})],
  ['no contacts', 'contacts', 'WARN', () => ({})],
]

test.each(faults)('with %s the check “%s” of the cloud is %s', async (_fault, name, result, plant) => {
  const report = await examine(plant)
  const check = report.checks.find((each) => each.name === name)
  expect([check?.message, check?.result]).toEqual([check?.message, result])
  expect(check?.advice === undefined).toBe(result === 'OK')
  // The general sentence names no remedy.
  expect(check?.advice ?? '').not.toContain('the named file')
})

test('a database that cannot be opened passes no check of its secret', async () => {
  const { checks } = await examine(({ folder }) => {
    writeFileSync(join(folder, 'other.sqlite'), 'not a database, '.repeat(100))
    return { DATABASE_URL: `sqlite:${join(folder, 'other.sqlite')}` }
  })
  expect(checks.find(({ name }) => name === 'store secret')).toBeUndefined()
})

test('the advice for another secret names the file of the secret that the service has made', async () => {
  let file = ''
  const { checks } = await examine(({ folder }) => {
    file = join(folder, 'store-secret')
    writeFileSync(file, SECRET, { mode: 0o600 })
    return { STORE_SECRET: 'another secret of thirty-two characters' }
  })
  expect(checks.find(({ name }) => name === 'store secret')?.advice).toContain(`remove the setting: ${file}`)
})

const postgres = process.env['TEST_POSTGRES_URL']
const kinds = ['sqlite', ...(postgres === undefined ? [] : ['postgres'])] as const

/** A database as the first release made it, and its address. */
async function oldDatabase(kind: (typeof kinds)[number], folder: string): Promise<string> {
  let url = `sqlite:${join(folder, 'old.sqlite')}`
  if (kind === 'postgres') {
    const name = `larder_test_${randomHex(runtime.random, 8)}`
    await administrate(postgres!, `create database ${name}`)
    onTestFinished(() => administrate(postgres!, `drop database ${name} with (force)`))
    url = databaseAt(postgres!, name)
  }
  const db = openDatabase({ url })
  await migrate(db.kysely, db.kind, { first: releasedStatements(db.kind), numbered: [] })
  await db.close()
  return url
}

test.each(kinds)('a database of schema 1 [%s] fails no check, and a migration is reported', async (kind) => {
  const { checks } = await examine(async ({ folder }) => {
    chmodSync(join(folder, 'larder.sqlite'), 0o600)
    return { DATABASE_URL: await oldDatabase(kind, folder) }
  })
  expect(checks.filter(({ result }) => result === 'FAIL')).toEqual([])
  const waiting = checks.filter(({ message }) => message.includes('a migration is waiting'))
  expect(waiting.map(({ name, result }) => [name, result])).toEqual([
    ['schema', 'WARN'],
    ['contacts', 'WARN'],
  ])
})

test.each([
  [0.01, 'FAIL'],
  [0.05, 'WARN'],
  [0.5, 'OK'],
])('a disk with a free part of %d is %s, in space and in inodes', async (part, result) => {
  const files = {
    statfsSync: () => ({ bavail: part * 1000, blocks: 1000, ffree: part * 1000, files: 1000 }),
    statSync: () => undefined,
    accessSync() {},
  }
  for (const check of Object.values(diskChecks(files, 'DATA_DIR', '/data')))
    expect(await check()).toMatchObject({ result })
})

test('the doctor prints a line and its advice on a terminal, and refuses unknown words with status 2', async () => {
  const program = {
    part: 'hub',
    version: 'v',
    clock: runtime.clock,
    isTerminal: true,
    open: () =>
      Promise.resolve({ checks: { a: () => Promise.reject(new Error('broken')) }, close: () => {} }),
  } as const
  const { stdout, exitCode } = await runDoctor({ ...program, args: [] })
  expect([exitCode, stdout.split('\n')[0]]).toEqual([1, 'FAIL  a: broken'])
  expect(await runDoctor({ ...program, args: ['--fast'] })).toMatchObject({ exitCode: 2, stdout: '' })
})
