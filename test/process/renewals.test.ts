import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { mqttTransport } from '../../edge/sync/mqtt-transport.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { answers } from '../../simulator/demo/programs.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { balanced } from './chaos/balanced.ts'
import { install, WAIT_MS, type Installation } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'
import type { ProgramName } from './chaos/plant-settings.ts'

/** A certificate of 90 days, scaled down. Its hub has a third of this time to renew it. */
const LIFETIME_MS = 30_000
/** `RENEWALS=24` repeats the longer proof. */
const RENEWALS = Number(process.env['RENEWALS'] ?? 3)
const run = promisify(execFile)
const runtime = systemRuntime()
const { clock } = runtime

const claimCode = async ({ plant }: Installation): Promise<string> =>
  String((await operate(plant, 'hubs', 'claim-code', '1'))['claim_code'])

/** Exchanges a new claim code for a certificate, with the files beside this journal. */
async function enrol(installation: Installation, store: string): Promise<{ mqtt_url: string }> {
  const request = ['--cloud', installation.plant.cloudUrls[0]!, '--code', await claimCode(installation)]
  const [node, ...program] = commandOf('edge/enrolment/enrol-main')
  const env = { PATH: process.env['PATH'], STORE: store }
  const { stdout } = await run(node, [...program, ...request], { env })
  return JSON.parse(stdout) as { mqtt_url: string }
}

/** Opens a session of a board that obeys no order of the cloud. */
function openAsThief(
  folder: string,
  mqttUrl: string,
): { admitted: Promise<boolean>; ended: Promise<number> } {
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  let [admit, end] = [(_isOpen: boolean): void => {}, (_at: number): void => {}]
  const admitted = new Promise<boolean>((resolve) => (admit = resolve))
  const ended = new Promise<number>((resolve) => (end = resolve))
  const open = mqttTransport({
    urls: [mqttUrl],
    user: 'hub-1',
    password: undefined,
    client: () => ({ cert: read('hub.crt'), key: read('hub.key') }),
    ca: read('ca.crt'),
    runtime,
  })
  const transport = open(
    { subscribe: [] },
    {
      onConnect: () => void transport.publish('larder/v1/hub-1/up/entries', '{}').then(admit),
      onDisconnect() {
        admit(false)
        end(clock.monotonic())
      },
      onMessage: () => {},
    },
  )
  onTestFinished(() => transport.close())
  return { admitted, ended }
}

test('a hub renews its certificate again and again while customers buy, no sale fails, and a revocation ends the session', async () => {
  const [port] = (await freePorts(1)) as [number]
  const commands = new Map<ProgramName, readonly string[]>()
  const installation = await install({
    kind: { type: 'bare' },
    commands,
    cloud: {
      MQTT_TLS_PORT: String(port),
      HUB_CERTIFICATE_MS: String(LIFETIME_MS),
      // Only a lost session leaves a command without an answer, not a loaded machine.
      COMMAND_TIMEOUT_MS: '20000',
    },
  })
  const { plant, room, serves, sells, becomes, failures } = installation
  for (const program of ['cloud-1', 'simulator'] as const) plant.start(program)
  await serves()
  // The board has neither an address of the broker nor a password: it uses its enrolment.
  const own = ['env', '-u', 'MQTT_URL', '-u', 'MQTT_PASSWORD', 'CERTIFICATE_AGAIN_MS=500']
  commands.set('hub', [...own, ...commandOf('edge/main')])
  plant.start('hub')
  await becomes('the hub serves its form', () => answers(plant.hubUrl))
  // The running hub uses its certificate at once: it must not expire before the first connection.
  const form = { cloud: plant.cloudUrls[0]!, code: await claimCode(installation) }
  const enrolled = await fetch(`${plant.hubUrl}/enroll`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  expect(enrolled.status).toBe(200)
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())
  const renewals = (): number =>
    readFileSync(plant.places.log('hub'), 'utf8').split('the certificate is renewed').length - 1

  const startedAt = clock.monotonic()
  const calls = await balanced(installation, () =>
    expect
      .poll(renewals, { timeout: RENEWALS * LIFETIME_MS * 4, interval: 500 })
      .toBeGreaterThanOrEqual(RENEWALS),
  )
  const seconds = Math.round((clock.monotonic() - startedAt) / 1000)
  expect([calls.failed, failures, await untilQuiet(auditor, clock, WAIT_MS)]).toEqual([[], [], undefined])
  const { orders, refunds } = (await auditor.evidence()).cloud
  expect(refunds).toEqual([])
  expect(calls.sales).toBeGreaterThan(3)
  console.log(`${renewals()} renewals and ${orders.length} orders in ${seconds} s, no failed sale`)

  await plant.stop('hub')
  await plant.stop('cloud-1')
  commands.set('cloud-1', ['env', 'HUB_CERTIFICATE_MS=86400000', ...commandOf('cloud/main')])
  plant.start('cloud-1')
  await serves()
  const folder = mkdtempSync(join(tmpdir(), 'larder-thief-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { mqtt_url } = await enrol(installation, join(folder, 'hub.sqlite'))
  let session: ReturnType<typeof openAsThief> | undefined
  await becomes('the board is admitted', () => (session = openAsThief(folder, mqtt_url)).admitted)
  const revoked = operate(plant, 'hubs', 'revoke', '1').then(() => clock.monotonic())
  const [at, ended] = await Promise.all([revoked, session!.ended])
  const took = Math.max(0, ended - at) / 1000
  console.log(`the session ends ${took.toFixed(1)} s after the revocation`)
  expect(took).toBeLessThan(15)
}, 1_200_000)
