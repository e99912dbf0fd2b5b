import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished } from 'vitest'
import { mqttTransport } from '../../edge/sync/mqtt-transport.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { answers } from '../../simulator/demo/programs.ts'
import { makeCertificate } from '../support/certificate.ts'
import { revocationScript, setUpMosquitto } from '../support/mosquitto-spec.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { service } from '../support/services.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { balanced, type BalancedHub } from './chaos/balanced.ts'
import { install, WAIT_MS, type Installation } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'
import type { ProgramName } from './chaos/plant-settings.ts'

/** A certificate of 90 days, scaled down. Its hub has a third of this time to renew it. */
const LIFETIME_MS = 30_000
/** `RENEWALS=24` repeats the longer proof. */
const PROOF = process.env['RENEWALS']
const wanted = Number(PROOF ?? 2)
/** A session ends within 5 s after a revocation. A loaded machine may need more time. */
const ENDS_WITHIN_S = PROOF ? 5 : 15
const run = promisify(execFile)
const runtime = systemRuntime()
const { clock } = runtime

/** The hubs' broker. */
interface Broker {
  /** Settings of the cloud. */
  settings: Record<string, string>
  /** Starts the broker, when the cloud serves its authority. */
  start(cloudUrl: string): Promise<void>
  /** Restarts the broker with the present authorities of the cloud, as an operator does it. */
  follow?: (cloudUrl: string) => Promise<void>
}

async function embedded(): Promise<Broker> {
  const [port] = (await freePorts(1)) as [number]
  return {
    settings: { MQTT_TLS_PORT: String(port) },
    start: () => Promise.resolve(),
    follow: () => Promise.resolve(),
  }
}

/** Mosquitto with the files of SPEC §2, and the script of the page “Message brokers”. */
async function mosquitto(): Promise<Broker> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-mosquitto-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const certificate = makeCertificate()
  onTestFinished(() => certificate.remove())
  const [hubPort, cloudPort, certificatePort] = (await freePorts(3)) as [number, number, number]
  // `mosquitto_passwd` refuses an empty file of the hubs' passwords.
  const passwords = { 'larder-cloud': 'a-secret', 'hub-9': 'unused' }
  const ports = { hubPort, cloudPort, certificatePort }
  const command = setUpMosquitto({ folder, ...ports, passwords, certificate })
  const storeAuthorities = async (cloudUrl: string): Promise<void> =>
    writeFileSync(join(folder, 'hubs-ca.pem'), await (await fetch(`${cloudUrl}/pki/ca.pem`)).text())
  return {
    settings: {
      MQTT_URL: `mqtts://larder-cloud:a-secret@127.0.0.1:${cloudPort}`,
      MQTT_PUBLIC_URL: `mqtts://127.0.0.1:${certificatePort}`,
      MQTT_CA: certificate.certPath,
    },
    async start(cloudUrl) {
      await storeAuthorities(cloudUrl)
      followRevocations(folder, revocationScript({ folder, url: `${cloudUrl}/pki/crl.pem` }), command)
    },
    async follow(cloudUrl) {
      await storeAuthorities(cloudUrl)
      await run(join(folder, 'bin/systemctl'), ['restart', 'mosquitto'])
    },
  }
}

/** Runs the script. In place of systemd, `systemctl` starts Mosquitto, which failed without a list, or sends SIGHUP. */
function followRevocations(folder: string, script: string, command: readonly string[]): void {
  const pidFile = join(folder, 'pid')
  const start = `${command.join(' ')} > /dev/null 2>&1 & echo $! > ${pidFile}`
  const end = `kill "$(cat ${pidFile})"; while kill -0 "$(cat ${pidFile})" 2> /dev/null; do sleep 0.1; done`
  const systemctl = [
    '#!/bin/sh',
    'case "$*" in',
    `"is-failed --quiet mosquitto") [ ! -f ${pidFile} ] ;;`,
    `"start mosquitto") ${start} ;;`,
    `"restart mosquitto") ${end}; ${start} ;;`,
    `"try-reload-or-restart mosquitto") kill -HUP "$(cat ${pidFile})" ;;`,
    '*) exit 1 ;;',
    'esac',
    '',
  ]
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin/systemctl'), systemctl.join('\n'), { mode: 0o755 })
  const PATH = `${folder}/bin:${process.env['PATH']}`
  const child = spawn('/bin/sh', ['-c', script], { env: { ...process.env, PATH }, stdio: 'ignore' })
  onTestFinished(() => {
    child.kill('SIGKILL')
    if (existsSync(pidFile)) process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL')
  })
}

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

interface Authorities {
  authorities: unknown[]
  hubs_without_newest: number[]
}

/** Rotates the authority during sales, as the page “Rotate secrets” describes it. */
async function rotateAuthority(
  { plant, becomes, sells }: Installation,
  {
    broker,
    shop,
    sellsAgain,
  }: { broker: Broker; shop: BalancedHub; sellsAgain: (hubId: number) => Promise<void> },
): Promise<void> {
  const authorities = async () => (await operate(plant, 'ca', 'show')) as unknown as Authorities
  /** During a restart of the broker or the hub, the hub takes no order. */
  const restarting = async (restart: () => Promise<void>): Promise<void> => {
    const begun = (shop.restarts?.begun ?? 0) + 1
    shop.restarts = { isNow: true, begun }
    await restart()
    await sellsAgain(1)
    shop.restarts = { isNow: false, begun }
  }
  const follow = async (): Promise<void> => {
    if (broker.follow) await restarting(() => broker.follow!(plant.cloudUrls[0]!))
  }
  await operate(plant, 'ca', 'rotate')
  await becomes('the cloud has two authorities', async () => (await authorities()).authorities.length === 2)
  await follow()
  await becomes(
    'each hub has a certificate of the new authority',
    async () => (await authorities()).hubs_without_newest.length === 0,
  )
  await sellsAgain(1)
  await operate(plant, 'ca', 'retire')
  await follow()
  // The broker has another certificate, and accepts the hub's new one only.
  await restarting(async () => {
    await plant.stop('hub')
    plant.start('hub')
    await sells()
  })
  await sellsAgain(1)
}

/** Measures how fast the session of a revoked board ends, and waits until the broker refuses the board. */
async function revoke(
  installation: Installation,
  { commands, broker }: { commands: Map<ProgramName, readonly string[]>; broker: string },
): Promise<void> {
  const { plant, serves, becomes } = installation
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
  console.log(`${broker}: the session ends ${took.toFixed(1)} s after the revocation`)
  expect(took).toBeLessThan(ENDS_WITHIN_S)
  await becomes('the broker refuses the board', async () => !(await openAsThief(folder, mqtt_url).admitted))
}

describe.each([
  { name: 'the embedded broker', needs: 'openssl', make: embedded },
  { name: 'Mosquitto', needs: 'mosquittoCertificates', make: mosquitto },
] as const)('client certificates at $name', ({ name, needs, make }) => {
  service(needs)(
    'a hub renews its certificate again and again and the authority is rotated while customers buy, no sale fails, and a revocation ends the session for good',
    async () => {
      const broker = await make()
      const commands = new Map<ProgramName, readonly string[]>()
      const installation = await install({
        kind: { type: 'bare' },
        commands,
        cloud: {
          ...broker.settings,
          HUB_CERTIFICATE_MS: String(LIFETIME_MS),
          HUB_AUTHORITY_DELAY_MS: '5000',
          // Only a lost session leaves a command without an answer, not a loaded machine.
          COMMAND_TIMEOUT_MS: '20000',
        },
      })
      const { plant, room, serves, sells, becomes, failures } = installation
      for (const program of ['cloud-1', 'simulator'] as const) plant.start(program)
      await becomes('the cloud serves its authority', () => answers(`${plant.cloudUrls[0]}/pki/ca.pem`))
      await broker.start(plant.cloudUrls[0]!)
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
      const shop: BalancedHub = { plant, room }
      const calls = await balanced(
        installation,
        async (sellsAgain) => {
          await expect
            .poll(renewals, { timeout: wanted * LIFETIME_MS * 4, interval: 500 })
            .toBeGreaterThanOrEqual(wanted)
          await rotateAuthority(installation, { broker, shop, sellsAgain })
        },
        { hubs: [shop] },
      )
      const seconds = Math.round((clock.monotonic() - startedAt) / 1000)
      expect([calls.failed, failures, await untilQuiet(auditor, clock, WAIT_MS)]).toEqual([[], [], undefined])
      const { orders, refunds } = (await auditor.evidence()).cloud
      expect(refunds).toEqual([])
      expect(calls.sales).toBeGreaterThan(3)
      console.log(
        `${name}: ${renewals()} renewals and ${orders.length} orders in ${seconds} s, no failed sale`,
      )
      await revoke(installation, { commands, broker: name })
    },
    1_200_000,
  )
})
