import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { OnoffLines, findChipBase } from '../../../../edge/hardware/gpio/onoff-lines.ts'
import { createBench, type Bench, type Mounted } from '../../../simulator/mounts/gpio/mounted.ts'
import type { GpioLines } from '../../../../protocol/model/hardware.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { sysfsAvailability } from '../../../../simulator/mounts/gpio/mounted-command.ts'
import { fuse } from '../../../support/fuse.ts'
import { commandOf } from '../../../support/programs.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import type { Wrong } from './dying-hub.ts'
import type { LinesRequest } from './lines-agent.ts'

const AGENT = 'test/edge/hardware/gpio/lines-agent'

let bench: Bench
beforeEach(() => void (bench = createBench()))
afterEach(() => bench.end())

async function ask(agent: Mounted, request: LinesRequest): Promise<unknown> {
  agent.send(request)
  return (await agent.next())['value']
}

test('the GPIO chip is found by its label among others, at any base', () => {
  const root = mkdtempSync(join(tmpdir(), 'larder-chips-'))
  for (const [base, label] of [
    ['504', 'raspberrypi-exp-gpio'],
    ['571', 'pinctrl-rp1'],
  ] as const) {
    mkdirSync(join(root, `gpiochip${base}`))
    writeFileSync(join(root, `gpiochip${base}`, 'label'), `${label}\n`)
    writeFileSync(join(root, `gpiochip${base}`, 'base'), `${base}\n`)
  }
  expect(findChipBase('pinctrl-rp1', root)).toBe(571)
  expect(findChipBase('pinctrl-bcm2711', root)).toBeUndefined()
  rmSync(root, { recursive: true })
})

test('a missing GPIO chip is reported once by its label, and its lines are not', () => {
  const root = mkdtempSync(join(tmpdir(), 'larder-no-chip-'))
  const runtime = virtualRuntime()
  const told: string[] = []
  const error = (_: object, message: string): void => void told.push(message)
  const line = { offset: 1, direction: 'out', activeLow: false } as const
  const lines = new OnoffLines({
    hardware: {
      chipLabel: 'no-such-chip',
      lines: ['main_lock', 'fridge_1_left_lock'].map((name) => ({ ...line, name })),
    },
    runtime,
    log: { ...silentLog, error },
    root,
  })
  runtime.clock.advance(10 * 60_000)
  expect(told).toEqual([
    'no GPIO chip is labelled no-such-chip: no lock is driven and no door is seen until there is one',
  ])
  expect(lines.read('main_lock')).toBeUndefined()
  expect(lines.write('main_lock', 1)).toBe(false)
  expect(lines.problem?.()).toEqual({ reason: 'no GPIO chip is labelled no-such-chip', isFinal: false })
  lines.close()
  rmSync(root, { recursive: true })
})

test('a kernel without GPIO in sysfs is reported at once, with the requirement of the hub', () => {
  const told: string[] = []
  const error = (_: object, message: string): void => void told.push(message)
  const lines = new OnoffLines({
    hardware: {
      chipLabel: 'pinctrl-rp1',
      lines: [{ name: 'main_lock', offset: 1, direction: 'out', activeLow: false }],
    },
    runtime: virtualRuntime(),
    log: { ...silentLog, error },
    root: '/nonexistent/gpio',
  })
  expect(told).toEqual([expect.stringContaining('CONFIG_GPIO_SYSFS')])
  expect(lines.problem?.()).toMatchObject({ isFinal: true })
  lines.close()
})

describe('a GPIO line that fails after it worked', () => {
  const root = mkdtempSync(join(tmpdir(), 'larder-chip-'))
  mkdirSync(join(root, 'gpiochip0'))
  writeFileSync(join(root, 'gpiochip0', 'label'), 'chip\n')
  writeFileSync(join(root, 'gpiochip0', 'base'), '0\n')

  function setUp() {
    const runtime = virtualRuntime()
    const told: string[] = []
    const pins = {
      opened: 0,
      closed: 0,
      isBroken: false,
      onEdge: undefined as ((error: Error | null) => void) | undefined,
    }
    const broken = (): void => {
      if (pins.isBroken) throw new Error('EIO: i/o error')
    }
    const lines = new OnoffLines({
      hardware: {
        chipLabel: 'chip',
        lines: [
          { name: 'main_lock', offset: 1, direction: 'out', activeLow: false },
          { name: 'main_door', offset: 2, direction: 'in', activeLow: false },
        ],
      },
      runtime,
      log: { ...silentLog, error: (_, message) => void told.push(message) },
      root,
      openPin() {
        broken()
        pins.opened++
        return {
          read: () => (broken(), 1),
          write: broken,
          watch: (onEdge) => void (pins.onEdge = onEdge as typeof pins.onEdge),
          close: () => void pins.closed++,
        }
      },
    })
    return { runtime, lines, pins, told }
  }

  test.each<[string, (lines: GpioLines) => unknown]>([
    ['read', (lines) => lines.read('main_lock')],
    ['driven', (lines) => lines.write('main_lock', 0)],
    ['read as an input', (lines) => lines.read('main_door')],
  ])(
    'a GPIO line that fails when it is %s is closed, reopened with growing pauses, and reported once',
    (_, use) => {
      const { runtime, lines, pins, told } = setUp()
      expect([lines.read('main_lock'), lines.read('main_door')]).toEqual([1, 1])
      pins.isBroken = true
      for (let times = 0; times < 100; times++) {
        use(lines)
        runtime.clock.advance(1000)
      }
      expect(pins.closed).toBe(1)
      expect(told.length).toBeLessThanOrEqual(2)
      let edges = 0
      lines.watch('main_door', () => edges++)
      pins.isBroken = false
      runtime.clock.advance(31_000)
      expect(pins.opened).toBe(3)
      expect([lines.read('main_lock'), lines.read('main_door')]).toEqual([1, 1])
      expect(lines.write('main_lock', 0)).toBe(true)
      pins.onEdge?.(null)
      expect(edges).toBeGreaterThan(0)
      lines.close()
      expect(pins.closed).toBe(3)
    },
  )

  test('a GPIO line that fails when it is watched is reopened and watched again', () => {
    const { runtime, lines, pins } = setUp()
    let edges = 0
    const end = lines.watch('main_door', () => edges++)
    pins.onEdge?.(new Error('EBADF'))
    expect(lines.read('main_door')).toBeUndefined()
    runtime.clock.advance(1000)
    expect(lines.read('main_door')).toBe(1)
    const before = edges
    pins.onEdge?.(null)
    expect(edges).toBe(before + 1)
    end()
    pins.onEdge?.(null)
    expect(edges).toBe(before + 1)
    lines.close()
  })
})

describe.each([0, 512])('onoff with the chip at base %i', (base) => {
  fuse('levels are logical for any wiring, and opening the lines drives none', async () => {
    const agent = await bench.mount(AGENT, [], base)
    const moved: string[] = []
    agent.bank.onChange((name) => moved.push(name))
    for (const name of ['main_lock', 'main_door', 'fridge_1_left_lock', 'fridge_1_left_door'])
      expect(await ask(agent, { do: 'read', name })).toBe(0)
    expect(moved).toEqual([])
    for (const name of ['main_lock', 'fridge_1_left_lock']) {
      expect(await ask(agent, { do: 'write', name, level: 1 })).toBe(true)
      await vi.waitUntil(() => agent.bank.get(name) === 1)
      expect(await ask(agent, { do: 'read', name })).toBe(1)
    }
    expect(await ask(agent, { do: 'write', name: 'main_door', level: 1 })).toBe(false)
  })

  fuse('a hub that is killed and restarted drives no output', async () => {
    const first = await bench.mount(AGENT, [], base)
    await ask(first, { do: 'write', name: 'main_lock', level: 1 })
    await ask(first, { do: 'write', name: 'fridge_1_left_lock', level: 1 })
    await vi.waitUntil(() => first.bank.get('fridge_1_left_lock') === 1)
    const ended = new Promise((resolve) => first.process.once('exit', resolve))
    process.kill(await first.pid(), 'SIGKILL')
    await ended
    const moved: string[] = []
    first.bank.onChange((name) => moved.push(name))
    const second = await first.again()
    expect(await ask(second, { do: 'read', name: 'main_lock' })).toBe(1)
    expect(await ask(second, { do: 'read', name: 'fridge_1_left_lock' })).toBe(1)
    expect(moved).toEqual([])
  })

  fuse('after any number of edges a watcher reads the present level', async () => {
    const agent = await bench.mount(AGENT, [], base)
    agent.send({ do: 'stall', ms: 200 })
    expect(await agent.next()).toEqual({ stalling: true })
    for (const level of [1, 0, 1] as const) agent.bank.set('fridge_1_left_door', level)
    expect(await agent.next()).toEqual({ edge: 'fridge_1_left_door', level: 1 })
    agent.bank.set('fridge_1_left_door', 0)
    expect(await agent.next()).toEqual({ edge: 'fridge_1_left_door', level: 0 })
  })
})

fuse(
  'an edge on a pin that another program has unexported does not end the hub, which reopens the pin',
  async () => {
    const agent = await bench.mount(AGENT, [], 0)
    agent.send({ do: 'stall', ms: 300, thenUnexport: 27 })
    expect(await agent.next()).toEqual({ stalling: true })
    agent.bank.set('main_door', 1)
    // The level is unknown, and then read from the reopened pin.
    expect(await agent.next()).toEqual({ edge: 'main_door' })
    expect(await agent.next()).toEqual({ edge: 'main_door', level: 1 })
    agent.bank.set('main_door', 0)
    expect(await agent.next()).toEqual({ edge: 'main_door', level: 0 })
  },
)

fuse(
  'a pin that cannot be read, watched or set fails, and keeps no file open however often the hub tries again',
  async () => {
    const found = sysfsAvailability()
    const prefix = found.available ? found.prefix : []
    const script = 'mount -t tmpfs tmpfs /sys/class && mkdir /sys/class/gpio && exec "$@"'
    const command = [
      ...prefix,
      'unshare',
      '--mount',
      'sh',
      '-c',
      script,
      'sh',
      ...commandOf('test/edge/hardware/gpio/unreadable-agent'),
    ]
    const { stdout } = await promisify(execFile)(command[0]!, command.slice(1))
    const failing = ['main_door', 'fridge_1_left_door', 'main_lock']
    expect(JSON.parse(stdout)).toEqual({ failing, openFiles: [] })
  },
)

/** The hub's start fails in each of these ways. The page's port is that of a server that listens. */
const failures: [string, (port: number) => Wrong][] = [
  ['cannot open its journal', () => ({})],
  ['finds the port of its page in use', (port) => ({ environment: { PORT: String(port) } })],
  [
    'has no network with the address of its page',
    () => ({ environment: { HOST: '192.0.2.77', ALLOW_INSECURE: 'plain-http' } }),
  ],
  ['misses the file of an authority', () => ({ environment: { MQTT_CA: '/nowhere/ca.pem' } })],
  ['has a wrong setting', () => ({ environment: { LOCAL_LIVE_MS: 'soon' } })],
  [
    'has a damaged enrolment',
    () => ({ environment: { MQTT_PASSWORD: '' }, files: { 'enrolment.json': '{' } }),
  ],
  ['cannot complete its move to another cell', () => ({ files: { 'enrolment.moving.json': '{' } })],
]

describe('a start that fails', () => {
  let server: Server
  beforeEach(async () => {
    server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(() => void server.close())

  for (const [what, wrong] of failures)
    fuse(`a hub that ${what} locks the locks that its earlier life left unlocked`, async () => {
      const { port } = server.address() as AddressInfo
      const args = [JSON.stringify(wrong(port))]
      const unlocked = await bench.mount('test/edge/hardware/gpio/dying-hub', args, 512)
      expect(await ask(unlocked, { do: 'write', name: 'main_lock', level: 1 })).toBe(true)
      await vi.waitUntil(() => unlocked.bank.get('main_lock') === 1)
      process.kill(await unlocked.pid(), 'SIGKILL')
      await vi.waitUntil(() => unlocked.process.signalCode ?? unlocked.process.exitCode !== null, 10_000)
      expect(unlocked.bank.get('main_lock')).toBe(1)
      const dying = await unlocked.again()
      await vi.waitUntil(() => dying.process.exitCode !== null, 10_000)
      expect(dying.process.exitCode).toBe(1)
      expect(unlocked.bank.get('main_lock')).toBe(0)
    })
})
