import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../edge/config.ts'
import { buildChecks, hubChecks } from '../../../edge/doctor/checks.ts'
import { migrate, migrations } from '../../../edge/journal/migrations.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { runDoctor, type CheckResult, type DoctorReport } from '../../../protocol/model/doctor.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { makeAuthority, makeCertificate } from '../../support/certificate.ts'
import { freePorts } from '../../support/ports.ts'

interface Description {
  controllers: { port: string }[]
  gpio: { chipLabel: string }
}
interface Place {
  folder: string
  hardware: Description
}
/** The fault that a test plants. It returns the settings that differ, and the doctor's clock. */
type Plant = (place: Place) => (Record<string, string> & { now?: string }) | Promise<Record<string, string>>

const { clock } = systemRuntime()
const description = readFileSync(
  resolve(import.meta.dirname, '../../../simulator/hardware/demo-hub.json'),
  'utf8',
)

function journal(folder: string, hubId: number): void {
  const db = new Sqlite(join(folder, 'hub.sqlite'))
  migrate(db, migrations, hubId)
  db.close()
}

/** A server that answers 404 to everything. */
const otherProgram = (): Promise<string> => server(404, '')

/** A server with one answer. Returns its port. */
async function server(status: number, body: string): Promise<string> {
  const http = createServer((_request, response) => response.writeHead(status).end(body))
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done))
  onTestFinished(() => void http.close())
  return String((http.address() as AddressInfo).port)
}

/** The settings of a hub with a self-signed certificate, at whose port a server has one answer. */
async function secureServer(status: number, body: string): Promise<Record<string, string>> {
  const certificate = makeCertificate()
  onTestFinished(() => certificate.remove())
  const { cert, key, certPath, keyPath } = certificate
  const https = createHttpsServer({ cert, key }, (_request, response) => response.writeHead(status).end(body))
  await new Promise<void>((done) => https.listen(0, '127.0.0.1', done))
  onTestFinished(() => void https.close())
  const { port } = https.address() as AddressInfo
  return { PORT: String(port), LOCAL_CERT: certPath, LOCAL_KEY: keyPath }
}

const REFUSED = '{"sync":{"phase":"waiting","reason":"the broker refuses this password"}}'

async function examine(plant: Plant): Promise<DoctorReport> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-doctor-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const hardware = JSON.parse(description) as Description
  mkdirSync(join(folder, 'ports'))
  for (const { port } of hardware.controllers) writeFileSync(join(folder, port), '')
  writeFileSync(join(folder, 'authorized_keys'), '')
  journal(folder, 1)
  const [port, nobody] = (await freePorts(2)).map(String) as [string, string]
  const { now, ...given } = await plant({ folder, hardware })
  const hardwarePath = join(folder, 'hardware.json')
  writeFileSync(hardwarePath, JSON.stringify(hardware))
  const config = join(folder, 'hub.json')
  const settings = {
    HARDWARE: hardwarePath,
    STORE: join(folder, 'hub.sqlite'),
    GPIO: 'none',
    PORT: port,
    MQTT_URL: `mqtt://127.0.0.1:${nobody}`,
    MQTT_PASSWORD: 'password',
    ...given,
  }
  writeFileSync(config, JSON.stringify(settings), { mode: 0o600 })
  if (given['LOG_LEVEL'] === 'debug') chmodSync(config, 0o644)
  const { stdout, exitCode } = await runDoctor({
    part: 'hub',
    version: 'v',
    clock,
    args: [],
    isTerminal: false,
    open() {
      const result = readConfig(['--config', config], {})
      const first = buildChecks(result.kind === 'problems' ? result.problems : [])
      const at = now === undefined ? clock.now() : Date.parse(now)
      const others = result.kind === 'config' ? hubChecks(result.config, config, at) : {}
      return Promise.resolve({ checks: { ...first, ...others }, close: () => {} })
    },
  })
  const report = JSON.parse(stdout) as DoctorReport
  expect(exitCode).toBe(report.result === 'FAIL' ? 1 : 0)
  return report
}

const enrolled =
  (toDay: number): Plant =>
  ({ folder }) => {
    const authority = makeAuthority({ fromDay: -100, toDay: 100 })
    writeFileSync(
      join(folder, 'hub.crt'),
      authority.issue('hub-1', 'DNS:hub-1', { fromDay: -50, toDay }).cert,
    )
    authority.remove()
    return {}
  }

const faults: readonly [fault: string, check: string, result: CheckResult, plant: Plant][] = [
  ['no fault', 'configuration', 'OK', () => ({})],
  ['an invalid setting', 'configuration', 'FAIL', () => ({ PORT: 'eighty' })],
  [
    'a hardware description without controllers',
    'configuration',
    'FAIL',
    ({ hardware }) => ((hardware.controllers = []), {}),
  ],
  ['a configuration that everybody can read', 'permissions', 'FAIL', () => ({ LOG_LEVEL: 'debug' })],
  ['its own journal', 'journal', 'OK', () => ({})],
  [
    'a journal with other bytes',
    'journal',
    'FAIL',
    ({ folder }) => (writeFileSync(join(folder, 'hub.sqlite'), 'not a journal, '.repeat(100)), {}),
  ],
  [
    'the journal of another hub',
    'journal',
    'FAIL',
    ({ folder }) => {
      rmSync(join(folder, 'hub.sqlite'))
      journal(folder, 2)
      return {}
    },
  ],
  [
    'a journal of newer software',
    'journal',
    'FAIL',
    ({ folder }) => {
      const db = new Sqlite(join(folder, 'hub.sqlite'))
      db.pragma('user_version = 99')
      db.close()
      return {}
    },
  ],
  ['no journal', 'journal', 'WARN', ({ folder }) => ({ STORE: join(folder, 'none.sqlite') })],
  [
    'a journal of 90 % of its size',
    'journal size',
    'WARN',
    ({ folder }) => (
      writeFileSync(join(folder, 'big'), Buffer.alloc(7_200_000)),
      { STORE: join(folder, 'big'), STORE_MAX_MB: '8' }
    ),
  ],
  ['a clock at 2020', 'clock', 'FAIL', () => ({ now: '2020-01-01T00:00:00Z' })],
  ['ports that are there', 'serial ports', 'OK', () => ({})],
  [
    'an absent serial port',
    'serial ports',
    'FAIL',
    ({ hardware }) => ((hardware.controllers[0]!.port = 'ports/none'), {}),
  ],
  [
    'a serial path that may change',
    'serial paths',
    'WARN',
    ({ hardware }) => ((hardware.controllers[0]!.port = '/dev/ttyUSB0'), {}),
  ],
  [
    'an unknown GPIO label',
    'gpio',
    'FAIL',
    ({ hardware }) => ((hardware.gpio.chipLabel = 'no-such-chip'), { GPIO: 'onoff' }),
  ],
  ['another program on the port', 'local port', 'FAIL', async () => ({ PORT: await otherProgram() })],
  [
    'another program with https on the port',
    'local port',
    'FAIL',
    async () => ({ ...(await secureServer(404, '')) }),
  ],
  ['a service with https', 'local port', 'OK', async () => ({ ...(await secureServer(200, '{}')) })],
  ['a service that does not run', 'local port', 'WARN', () => ({})],
  ['a broker that does not answer', 'broker', 'FAIL', () => ({})],
  [
    'a broker that answers',
    'broker',
    'OK',
    async () => ({ MQTT_URL: `mqtt://127.0.0.1:${await otherProgram()}` }),
  ],
  [
    'a service that the broker refuses',
    'broker',
    'FAIL',
    async () => ({
      MQTT_URL: `mqtt://127.0.0.1:${await otherProgram()}`,
      PORT: await server(200, REFUSED),
    }),
  ],
  [
    'a service with https that the broker refuses',
    'broker',
    'FAIL',
    async () => ({
      MQTT_URL: `mqtt://127.0.0.1:${await otherProgram()}`,
      ...(await secureServer(200, REFUSED)),
    }),
  ],
  ['a broker without TLS', 'broker certificate', 'WARN', () => ({})],
  ['a certificate that has expired', 'certificates', 'FAIL', enrolled(-1)],
  ['a certificate that ends in 10 days', 'certificates', 'WARN', enrolled(10)],
  ['a certificate that ends in 20 days', 'certificates', 'OK', enrolled(20)],
  [
    'an error of the last run',
    'last error',
    'WARN',
    ({ folder }) => (writeFileSync(join(folder, 'hub.sqlite.last-error'), 'a stack'), {}),
  ],
  ['no key for the management service', 'authorized keys', 'WARN', () => ({})],
]

test.each(faults)('with %s the check “%s” of the hub is %s', async (_fault, name, result, plant) => {
  const report = await examine(plant)
  const check = report.checks.find((each) => each.name === name)
  expect([check?.message, check?.result]).toEqual([check?.message, result])
  expect(check?.advice === undefined).toBe(result === 'OK')
  // The general sentence names no remedy.
  expect(check?.advice ?? '').not.toContain('the named file')
})

test('the advice for the journal of another hub names the number in the hardware description first', async () => {
  const { checks } = await examine(({ folder }) => {
    rmSync(join(folder, 'hub.sqlite'))
    journal(folder, 2)
    return {}
  })
  expect(checks.find(({ name }) => name === 'journal')?.advice).toMatch(/^Correct hubId in the hardware/)
})

test('the doctor quotes the report of a service that has a session', async () => {
  const reason = 'the cloud is silent though the broker is connected'
  const { checks } = await examine(async () => ({
    MQTT_URL: `mqtt://127.0.0.1:${await otherProgram()}`,
    PORT: await server(200, JSON.stringify({ sync: { phase: 'welcomed', reason } })),
  }))
  expect(checks.find(({ name }) => name === 'broker')?.message).toBe(`the service reports: ${reason}`)
})

test('the check of a broker at an IP address causes no warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const certificate = makeCertificate()
  onTestFinished(() => certificate.remove())
  const broker = createTlsServer({ cert: certificate.cert, key: certificate.key }, (socket) =>
    socket.on('error', () => {}),
  )
  await new Promise<void>((done) => broker.listen(0, '127.0.0.1', done))
  onTestFinished(() => void broker.close())
  const { port } = broker.address() as AddressInfo
  const report = await examine(() => ({
    MQTT_URL: `mqtts://127.0.0.1:${port}`,
    MQTT_CA: certificate.certPath,
  }))
  expect(report.checks).toContainEqual(
    expect.objectContaining({ name: 'broker certificate', result: 'WARN' }),
  )
  expect(warnings.map(({ message }) => message)).toEqual([])
})
