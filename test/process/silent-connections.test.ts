import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { startCloud } from '../cloud/support/program.ts'
import { commandOf } from '../support/programs.ts'

const { clock } = systemRuntime()
const root = resolve(import.meta.dirname, '../..')
const MIB = 1024 * 1024
const AT_ONCE = 100

/** Connections that each send a text and then nothing; `open` counts the open ones. */
async function strangers(port: number, count: number, text: string): Promise<{ open: () => number }> {
  const sockets = new Set<Socket>()
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  const come = () =>
    new Promise<void>((done) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(text, () => done()))
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('data', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        done()
      })
    })
  // At most the backlog of a server at once: a further connection is open only at this end.
  for (let came = 0; came < count; came += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - came) }, come))
  return { open: () => sockets.size }
}

const residentBytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

const head = (request: string, headers = '') =>
  `${request} HTTP/1.1\r\nHost: larder\r\nContent-Type: application/json\r\n${headers}`
const slowBody = (request: string, headers = '') =>
  `${head(request, headers)}Content-Length: 1000000\r\n\r\n${'x'.repeat(900_000)}`

/** Checks that the server serves honest callers while idle connections are open, and closes those. */
async function bears(url: string, path: string, kinds: readonly string[]): Promise<void> {
  const port = Number(new URL(url).port)
  const floods: Awaited<ReturnType<typeof strangers>>[] = []
  for (const text of kinds) floods.push(await strangers(port, 200, text))
  const idle = await strangers(port, 1000, '')
  for (let call = 0; call < 20; call += 1) {
    const answer = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(5000) })
    expect(answer.status).toBe(200)
    await answer.text()
  }
  const open = () => floods.reduce((sum, flood) => sum + flood.open(), idle.open())
  await holdsWithin(clock, 45_000, () => Promise.resolve(open() === 0))
  expect(open()).toBe(0)
}

/** Starts a program of this package; returns its address. */
async function start(program: string, environment: Record<string, string>, address: RegExp): Promise<string> {
  const [node, ...args] = commandOf(program)
  const child = spawn(node, args, {
    cwd: root,
    env: { PATH: process.env['PATH'], ...environment },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await expect.poll(() => output, { timeout: 45_000 }).toMatch(address)
  return address.exec(output)![1]!
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'larder-strangers-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test(
  '400 slow bodies occupy no memory of the cloud, and other callers are served',
  { timeout: 120_000 },
  async () => {
    const cloud = startCloud({})
    const url = `http://127.0.0.1:${await cloud.ready()}`
    const warm = async () => (await fetch(`${url}/`)).text()
    for (let call = 0; call < 50; call += 1) await warm()
    const before = residentBytes(cloud.child.pid!)
    const port = Number(new URL(url).port)
    const signed = 'Payment-Signature: t=1,v1=00\r\n'
    const floods = [
      await strangers(port, 200, slowBody('POST /webhooks/payments')),
      await strangers(port, 200, slowBody('POST /webhooks/payments', signed)),
    ]
    let most = 0
    const tookMs: number[] = []
    for (let second = 0; second < 15; second += 1) {
      const startedAt = clock.monotonic()
      await warm()
      tookMs.push(clock.monotonic() - startedAt)
      most = Math.max(most, residentBytes(cloud.child.pid!))
      await sleep(clock, 1000)
    }
    expect(floods.map(({ open }) => open())).toEqual([0, 0])
    // The bodies have 343 MiB. The memory that a runtime needs to read them varies by tens of MiB between
    // runs.
    expect((most - before) / MIB).toBeLessThan(128)
    // The machine may be busy with sending the bodies.
    expect(tookMs.toSorted((a, b) => a - b)[Math.floor(tookMs.length / 2)]).toBeLessThan(500)
  },
)

test(
  'the cloud serves honest callers during 1,000 idle connections, slow headers and slow bodies',
  { timeout: 120_000 },
  async () => {
    const cloud = startCloud({})
    const url = `http://127.0.0.1:${await cloud.ready()}`
    await bears(url, '/', [
      head('GET /', 'X-Slow: '),
      slowBody('POST /users/user/bootstrap'),
      slowBody('GET /'),
    ])
  },
)

test(
  'the hub serves honest callers during 1,000 idle connections, slow headers and slow bodies',
  { timeout: 120_000 },
  async () => {
    const at = folder()
    const hardware = join(at, 'hardware.json')
    const controllers = [{ id: 'bins', port: join(at, 'no-port'), devices: [{ kind: 'bin', number: 1 }] }]
    writeFileSync(hardware, JSON.stringify({ hubId: 1, controllers, gpio: { chipLabel: 'none', lines: [] } }))
    const environment = {
      HARDWARE: hardware,
      MQTT_PASSWORD: 'secret',
      MQTT_URL: 'mqtt://127.0.0.1:9',
      STORE: join(at, 'hub.sqlite'),
      PORT: '0',
      GPIO: 'none',
    }
    const url = await start('edge/main', environment, /"url":"([^"]+)"/)
    await bears(url, '/health', [head('GET /', 'X-Slow: '), slowBody('POST /api/stock/count')])
  },
)

test(
  'the simulator serves honest callers during 1,000 idle connections, slow headers and slow bodies',
  { timeout: 120_000 },
  async () => {
    const environment = { DATA_DIR: folder(), SIMULATOR_PORT: '0', LOG_LEVEL: 'warn' }
    const url = await start('simulator/main', environment, /simulator ready: (\S+)/)
    await bears(url, '/api/hubs', [head('GET /', 'X-Slow: '), slowBody('POST /api/hubs/1/power')])
  },
)
