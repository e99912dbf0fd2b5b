import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test, vi } from 'vitest'
import { testCards } from '../../protocol/model/test-cards.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import type { DemoFile } from '../../simulator/demo/demo.ts'
import { demoPorts } from '../../simulator/demo/settings.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { commandOf } from '../support/programs.ts'
import { portSettings } from '../support/ports.ts'
import { startDemoPrograms, type DemoPrograms } from '../world/demo.ts'
import { statusInHttp10 } from '../support/raw-http.ts'

const root = join(import.meta.dirname, '../..')
/** The ports of the demo, and the port of a program that is no setting of the demo itself. */
const allPorts = [...demoPorts, 'METRICS_PORT'] as const

/** Pages and health checks of each listener, requested as a minimal client does. */
const http10Paths = [
  ['PORT', '/readyz'],
  ['PORT', '/openapi.json'],
  ['PORT', '/api/v1/'],
  ['EDGE_PORT', '/health'],
  ['SIMULATOR_PORT', '/api/hubs/1/state'],
  // Only the cloud listens on the demo's port of the metrics.
  ['METRICS_PORT', '/metrics'],
] as const

let folder: string
/** Settings of the demo that was started last. */
let environment: Record<string, string>
const started: DemoPrograms[] = []

// One folder for all tests: filling it takes longer than all the rest of a start.
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-demo-'))
})

// A demo that upset one test serves no other one.
beforeEach(() => onTestFailed(stopAll))

afterAll(async () => {
  await stopAll()
  rmSync(folder, { recursive: true })
})

async function start(...args: string[]): Promise<DemoPrograms> {
  environment = { DATA_DIR: join(folder, 'data'), SIMULATOR_SPEED: '20', ...(await portSettings(allPorts)) }
  // The first start, which fills the folder, runs the programs as `npm start` does.
  const isBundled = existsSync(join(folder, 'data'))
  const programs = await startDemoPrograms({ folder, args, settings: environment, ports: {}, isBundled })
  started.push(programs)
  return programs
}

async function stopAll(): Promise<void> {
  await Promise.all(started.splice(0).map((programs) => programs.stop()))
}

const demo = () => JSON.parse(readFileSync(join(folder, 'data/demo.json'), 'utf8')) as DemoFile

/** The demo of an earlier test that still runs, otherwise a new one. It serves until a test ends it. */
async function running(...args: string[]): Promise<DemoPrograms> {
  const present = started.find(({ child }) => child.exitCode === null && child.signalCode === null)
  if (present) return present
  const programs = await start(...args)
  await programs.ready()
  return programs
}

/** Ends the demo; returns the owner of the data that it leaves in the folder. */
async function ownerOfData(): Promise<DemoFile['owner']> {
  if (!existsSync(join(folder, 'data/demo.json'))) await running()
  await stopAll()
  return demo().owner
}

const ended = (child: ChildProcess): Promise<unknown> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', resolve))

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Runs the printed commands as a person would, one after the other; returns their output. */
async function runPrinted(text: string): Promise<string> {
  const commands = text.split('\n').filter((line) => line.trim().startsWith('npm run try'))
  expect(commands).toHaveLength(3)
  let said = ''
  for (const command of commands) {
    const line = command.replace('npm run try --', commandOf('simulator/demo/try-main').join(' '))
    const shell = spawn('sh', ['-c', line], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    shell.stdout.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
    await ended(shell)
    expect([command, shell.exitCode]).toEqual([command, 0])
  }
  return said
}

/** Runs the calls of the service in README against the demo. The stream runs until it is stopped. */
async function runReadme(orderId: string): Promise<void> {
  const [, block = ''] = /^```sh\n([^`]*)^```$/m.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  const commands = block.trim().split('\n')
  expect(commands.length).toBeGreaterThan(1)
  for (const command of commands) {
    const line = command
      .replace('npx larder', commandOf('cloud/cli/main').join(' '))
      .replace(/(?<=refund )ID/, orderId)
    const env = { ...process.env, DATA_DIR: join(environment['DATA_DIR']!, 'cloud') }
    const shell = spawn('sh', ['-c', `exec ${line}`], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let errors = ''
    shell.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
    const timer = command.endsWith(' stream') && setTimeout(() => shell.kill('SIGINT'), 8000)
    await ended(shell)
    if (timer) clearTimeout(timer)
    // On a busy machine the signal may come before its handler.
    const status = shell.signalCode === 'SIGINT' ? 0 : shell.exitCode
    expect([command, status, errors]).toEqual([command, 0, ''])
  }
}

interface Act {
  n: number
  device: string
  action: string
  operation_id?: string
}

async function acts(): Promise<Act[]> {
  const response = await fetch(`${demo().simulator_url}/api/hubs/1/actuations`)
  return (await response.json()) as Act[]
}

test('a second demo in the same folder reports where the first one runs, and does not disturb it', async () => {
  await running('--gpio', 'socket')
  const ports = environment
  const { base_url } = demo()
  const links = () => readdirSync(join(folder, 'data/hub-1/ports'))
  const before = links()
  const second = await start('--gpio', 'socket')
  environment = ports
  await ended(second.child)
  expect([second.child.exitCode, second.text()]).toEqual([
    1,
    expect.stringContaining(`already at ${base_url}`) as string,
  ])
  expect([links(), existsSync(join(folder, 'data/supervisor.sock'))]).toEqual([before, true])
  expect(demo().base_url).toBe(base_url)
  expect((await fetch(`${base_url}/`)).status).toBe(200)
}, 300_000)

test('the three printed commands take an order from cart to COMPLETED, and nothing else moves', async () => {
  const { text, child } = await running('--gpio', 'socket')
  for (const [name, path] of http10Paths)
    expect([path, await statusInHttp10(Number(environment[name]), path)]).toEqual([path, 200])
  const before = await acts()
  const said = await runPrinted(text())
  expect(said).toMatch(
    /payment: completed\n(.*\n)*order \d+: READY, bin \d\n(.*\n)*order \d+: COMPLETED.*\n$/,
  )
  await runReadme(/order (\d+): COMPLETED/.exec(said)![1]!)
  for (const card of Object.keys(testCards)) expect(text()).toContain(card)
  expect(text()).toContain(
    `  operators  DATA_DIR='${join(environment['DATA_DIR']!, 'cloud')}' npx larder hubs list\n`,
  )

  const moved = (await acts()).slice(before.length)
  const motions = ['dispense', 'dispense', 'raise_lift', 'open_door', 'take_items', 'close_door']
  // The lift goes down for the next order, possibly a moment after this order is COMPLETED.
  expect(moved.map(({ action }) => action).slice(0, 7)).toEqual(
    moved.length > 6 ? [...motions, 'lower_lift'] : motions,
  )
  const operations = moved.flatMap(({ operation_id }) => operation_id ?? [])
  expect(new Set(operations).size).toBe(operations.length)

  const { pids } = demo()
  child.kill('SIGINT')
  await ended(child)
  expect(child.exitCode).toBe(0)
  for (const pid of Object.values(pids)) expect(isAlive(pid!)).toBe(false)
}, 300_000)

test('a second start keeps the data', async () => {
  const owner = await ownerOfData()
  await running()
  expect(demo().owner).toEqual(owner)
}, 300_000)

test('programs that are killed return under new process ids, and orders work again', async () => {
  const { text } = await running()
  const before = demo().pids
  for (const name of ['cloud', 'edge', 'simulator', 'management'] as const) {
    process.kill(before[name]!, 'SIGKILL')
    await vi.waitUntil(() => ![null, before[name]].includes(demo().pids[name]), { timeout: 20_000 })
    expect(isAlive(demo().pids[name]!)).toBe(true)
  }
  const { clock } = systemRuntime()
  const baseUrl = demo().base_url
  await waitUntilReady({ clock, baseUrl, hubId: 1, timeoutMs: 30_000, isGivenUp: () => false })
  // The hub may notice the loss of its controllers a moment later, and takes no orders until they return.
  const said = await vi.waitFor(() => runPrinted(text()), { timeout: 60_000, interval: 1000 })
  expect(said).toContain('COMPLETED')
}, 300_000)

test('a start with --fresh deletes the data', async () => {
  const owner = await ownerOfData()
  await running('--fresh')
  expect(demo().owner).not.toEqual(owner)
}, 300_000)

test('the programs of a killed launcher end too', async () => {
  const { child } = await running()
  const { pids } = demo()
  child.kill('SIGKILL')
  await ended(child)
  await vi.waitUntil(() => Object.values(pids).every((pid) => !isAlive(pid!)), { timeout: 15_000 })
}, 300_000)

test('a port in use is reported with its setting, and no program starts', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const port = String((server.address() as AddressInfo).port)
  const never = mkdtempSync(join(tmpdir(), 'larder-demo-'))
  const settings = { ...(await portSettings(allPorts)), MQTT_PORT: port }
  const { child, text } = await startDemoPrograms({
    folder: never,
    args: [],
    settings,
    ports: {},
    isBundled: false,
  })
  await ended(child)
  server.close()
  expect(child.exitCode).toBe(1)
  expect(text()).toContain(`port ${port} is in use; set MQTT_PORT`)
  expect(existsSync(join(never, 'data'))).toBe(false)
})

test('the help is complete and starts nothing', async () => {
  const { child, text } = await start('--help')
  await ended(child)
  expect(child.exitCode).toBe(0)
  for (const word of [...demoPorts, 'DATA_DIR', 'GPIO', '--fresh']) expect(text()).toContain(word)
})
