import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'

interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

/** Runs a program to its end. */
function run(program: string, args: readonly string[], environment: Record<string, string>): Promise<Ended> {
  const [node, ...main] = commandOf(program)
  const child = spawn(node, [...main, ...args], { env: { PATH: process.env['PATH'], ...environment } })
  const ended: Ended = { status: null, stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (ended.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (ended.stderr += chunk.toString()))
  return new Promise((resolve) => child.once('close', (status) => resolve({ ...ended, status })))
}

/** The hub's program, with no setting but the place of its journal. */
function startHub(STORE: string, PORT: number) {
  const [node, ...main] = commandOf('edge/main')
  const child = spawn(node, main, {
    env: { PATH: process.env['PATH'], STORE, PORT: String(PORT), GPIO: 'none' },
    stdio: 'ignore',
  })
  let hasEnded = false
  const ended = new Promise((resolve) => child.once('close', resolve)).then(() => (hasEnded = true))
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
  }
  onTestFinished(stop)
  const read = async (path: string): Promise<unknown> =>
    fetch(`http://127.0.0.1:${PORT}${path}`).then(
      (answer) => (path === '/' ? answer.text() : answer.json()),
      () => undefined,
    )
  return { stop, read, ended: () => hasEnded }
}

const hardware = {
  hubId: 1,
  controllers: [{ id: 'bins', port: 'no-port', devices: [{ kind: 'bin', number: 1 }] }],
  gpio: { chipLabel: 'none', lines: [] },
}

/** A cloud with one hub and an unused code. */
async function world() {
  const DATA_DIR = programFolder()
  const [port, mqttPort, tlsPort, localPort] = (await freePorts(4)) as [number, number, number, number]
  const environment = {
    DATA_DIR,
    PORT: String(port),
    MQTT_PORT: String(mqttPort),
    MQTT_TLS_PORT: String(tlsPort),
  }
  await startCloud(environment).ready()
  const description = join(DATA_DIR, 'hardware.json')
  writeFileSync(description, JSON.stringify(hardware))
  const hubs = async (...args: string[]): Promise<Record<string, string>> => {
    const { status, stdout, stderr } = await run('cloud/cli/main', ['hubs', ...args], environment)
    expect([status, stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as Record<string, string>
  }
  const place = '--street A --city B --state IL --postal-code 1 --latitude 0 --longitude 0 --timezone UTC'
  const owner = ['--new-owner', 'One', '--name', 'Lobby', '--hardware', description]
  const { claim_code: code = '' } = await hubs('create', ...owner, ...place.split(' '))
  const cloud = `http://127.0.0.1:${port}`
  const enrol = (store: string, given: string, at = cloud) =>
    run('edge/enrolment/enrol-main', ['--cloud', at, '--code', given], { STORE: store })
  return { cloud, code, hubs, enrol, tlsPort, localPort }
}

const WAIT = { timeout: 60_000, interval: 200 }

test('a board with an empty card enrols with a code, is welcomed with its certificate, and is shut out when it is revoked', async () => {
  const { code, hubs, enrol, tlsPort, localPort, cloud } = await world()
  const folder = programFolder()
  const store = join(folder, 'hub.sqlite')
  const { status, stdout, stderr } = await enrol(store, code)
  expect([status, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout)).toEqual({
    hub_id: 1,
    name: 'Lobby',
    mqtt_url: `mqtts://127.0.0.1:${tlsPort}`,
    expires_at: expect.stringMatching(/^\d{4}-/) as string,
    desired_version: 2,
  })
  expect(statSync(join(folder, 'hub.key')).mode & 0o777).toBe(0o600)
  expect(JSON.parse(readFileSync(join(folder, 'hardware.json'), 'utf8'))).toMatchObject({ hubId: 1 })
  const hub = startHub(store, localPort)
  await expect.poll(() => hub.read('/health'), WAIT).toMatchObject({ hub_id: 1, sync: { phase: 'welcomed' } })
  expect(await hubs('show', '1')).toMatchObject({
    online: true,
    certificate: { serial: expect.any(String) as string },
  })
  // A used code and a wrong cloud change nothing.
  const before = readFileSync(join(folder, 'hub.crt'), 'utf8')
  expect(await enrol(store, code)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('invalid_claim_code') as string,
  })
  expect(await enrol(store, code, 'http://127.0.0.1:9')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('is not reached') as string,
  })
  expect((await enrol(store, '')).status).toBe(2)
  expect(readFileSync(join(folder, 'hub.crt'), 'utf8')).toBe(before)
  await hubs('revoke', '1')
  await expect.poll(() => hub.ended(), WAIT).toBe(true)
  expect(await (await fetch(`${cloud}/pki/crl.pem`)).text()).toContain('X509 CRL')
  // The board erases its secrets before its session ends.
  await expect.poll(() => existsSync(join(folder, 'enrolment.json')), WAIT).toBe(false)
  for (const name of ['hub.key', 'hub.crt', 'hub.sqlite.token'])
    expect(existsSync(join(folder, name))).toBe(false)
  await expect.poll(() => hubs('retire', '1'), WAIT).toMatchObject({ hub_id: 1, secrets_erased: true })
}, 180_000)

test('a hub without an enrolment drives nothing, serves a form, and runs when a technician has entered the code', async () => {
  const { cloud, code, localPort } = await world()
  const folder = programFolder()
  const hub = startHub(join(folder, 'hub.sqlite'), localPort)
  await expect.poll(() => hub.read('/'), WAIT).toContain('Enrol this hub')
  expect(existsSync(join(folder, 'hub.sqlite'))).toBe(false)
  const submit = (given: string) =>
    fetch(`http://127.0.0.1:${localPort}/enroll`, {
      method: 'POST',
      body: new URLSearchParams({ cloud, code: given }),
    })
  const refused = await submit('AAAAAAAA')
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('invalid_claim_code')])
  const accepted = await submit(code.toLowerCase())
  expect([accepted.status, await accepted.text()]).toEqual([200, expect.stringContaining('hub 1, Lobby')])
  await expect.poll(() => hub.read('/health'), WAIT).toMatchObject({ hub_id: 1, sync: { phase: 'welcomed' } })
}, 180_000)
