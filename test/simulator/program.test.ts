import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SerialPort } from 'serialport'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeFrame, encodeFrame } from '../../protocol/serial/codec.ts'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter } from '../../protocol/serial/line-port.ts'
import { commandOf } from '../support/programs.ts'

const root = new URL('../..', import.meta.url).pathname
let folder: string
const children = new Set<ChildProcess>()

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-sim-'))))
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
  rmSync(folder, { recursive: true, force: true })
})

interface Run {
  child: ChildProcess
  output: () => string
  exited: Promise<number | null>
}

function run(environment: Record<string, string>, args: string[] = []): Run {
  const [node, ...main] = commandOf('simulator/main')
  const child = spawn(node, [...main, ...args], {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: folder,
      SIMULATOR_PORT: '0',
      LOG_LEVEL: 'warn',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => void (text += chunk))
  return { child, output: () => text, exited: new Promise((resolve) => child.once('exit', resolve)) }
}

/** Starts the simulator and returns its address. */
async function start(environment: Record<string, string> = {}): Promise<Run & { url: string }> {
  const started = run(environment)
  const url = await new Promise<string>((resolve, reject) => {
    started.child.stdout!.on('data', () => {
      const match = /simulator ready: (\S+)/.exec(started.output())
      if (match) resolve(match[1]!)
    })
    void started.exited.then(() => reject(new Error(started.output())))
  })
  return { ...started, url }
}

async function read<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T
}

/** Opens the door of bin 1 over the real serial line, and does not wait for the result. */
async function openDoor(op: string): Promise<void> {
  const port = new SerialPort({ path: join(folder, 'ports', 'bins'), baudRate: 115_200, autoOpen: false })
  await new Promise<void>((resolve, reject) => port.open((error) => (error ? reject(error) : resolve())))
  const acknowledged = new Promise<void>((resolve) => {
    const split = createLineSplitter(MAX_LINE_BYTES, (line) => {
      const decoded = decodeFrame(line)
      if (decoded.ok && decoded.frame.type === 'ACK' && decoded.frame.s === 2) resolve()
    })
    port.on('data', (bytes: Buffer) => split(bytes.toString('latin1')))
  })
  const command = { type: 'CMD', host: 'abcd0001', op, dev: 'bin-1', act: 'open_door', max: 9000 } as const
  port.write(`${encodeFrame({ seq: 1, type: 'HELLO', proto: 2, host: 'abcd0001' })}\n`)
  port.write(`${encodeFrame({ seq: 2, ...command })}\n`)
  await acknowledged
  await new Promise<void>((resolve) => port.close(() => resolve()))
}

describe('the simulator as a program', () => {
  test('a simulator that is killed during a motion returns with its world unchanged', async () => {
    const first = await start({ SIMULATOR_SPEED: '0.1' })
    await openDoor('a'.repeat(32))
    const bins = async () => (await read<{ bins: object[] }>(`${first.url}/api/hubs/1/state`)).bins
    await expect.poll(async () => (await bins())[0]).toMatchObject({ door: 'moving' })
    first.child.kill('SIGKILL')
    await first.exited
    const second = await start()
    const acts = await read<object[]>(`${second.url}/api/hubs/1/actuations`)
    expect(acts).toMatchObject([
      { n: 1, device: 'bin-1', action: 'open_door', detail: { to: 'between', completed: false } },
    ])
    const state = await read<{ bins: object[] }>(`${second.url}/api/hubs/1/state`)
    expect(state.bins[0]).toMatchObject({ bin: 'bin-1', door: 'between' })
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
  })

  test('a port in use is reported with its setting', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { exited, output } = run({ SIMULATOR_PORT: String(port) })
    expect(await exited).toBe(1)
    expect(output()).toMatch(/SIMULATOR_PORT: the address is in use/)
    server.close()
  })

  test('--help lists every setting, and the environment takes precedence over the settings file', async () => {
    const help = run({}, ['--help'])
    expect(await help.exited).toBe(0)
    for (const name of [
      'SIMULATOR_PORT',
      'DATA_DIR',
      'HARDWARE_FILES',
      'SHELVES_FILE',
      'GPIO_SOCKET',
      'SIMULATOR_SEED',
    ])
      expect(help.output()).toContain(name)
    const config = join(folder, 'simulator.json')
    writeFileSync(config, JSON.stringify({ SIMULATOR_PORT: 'many', SIMULATOR_SPEED: 0, COLOUR: 'red' }))
    const { exited, output } = run({ SIMULATOR_PORT: '0' }, ['--config', config])
    expect(await exited).toBe(1)
    expect(output()).toContain('SIMULATOR_SPEED')
    expect(output()).toContain('COLOUR')
    expect(output()).not.toContain('SIMULATOR_PORT')
  })

  test.each([
    ['HARDWARE_FILES', { HARDWARE_FILES: '/nowhere/hub.json' }],
    ['SHELVES_FILE', { SHELVES_FILE: '/nowhere/shelves.json' }],
    ['GPIO_SOCKET', { GPIO_SOCKET: 'carrier pigeon' }],
    ['HARDWARE_FILES', { HARDWARE_FILES: 'package.json' }],
    ['BOARDS: nobody is no controller of hub 1', { BOARDS: 'nobody=unix:/tmp/nobody.sock' }],
    ['BOARDS', { BOARDS: 'bins=by carrier pigeon' }],
    [
      'hub 1 is described twice',
      { HARDWARE_FILES: 'simulator/hardware/demo-hub.json,simulator/hardware/demo-hub.json' },
    ],
  ] as const)('the simulator refuses the setting: %s', async (name, environment) => {
    const { exited, output } = run(environment)
    expect(await exited).toBe(1)
    expect(output()).toContain(name)
    expect(output()).not.toContain('    at ')
  })
})
