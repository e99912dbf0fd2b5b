import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { createSocketLines } from '../../../../edge/hardware/gpio/socket-lines.ts'
import type { GpioAddress } from '../../../../protocol/gpio/socket.ts'
import type { GpioLine } from '../../../../protocol/model/hardware.ts'
import { silentLog as log } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { startGpioSocketServer } from '../../../../simulator/mounts/gpio/socket-server.ts'
import { createGpioBank } from '../../../../simulator/physics/gpio-bank.ts'

const lines: GpioLine[] = [
  { name: 'main_lock', offset: 17, direction: 'out', activeLow: false },
  { name: 'main_door', offset: 27, direction: 'in', activeLow: true },
]
const runtime = systemRuntime()
const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'larder-gpio-'))
  endings.push(() => rmSync(path, { recursive: true }))
  return path
}

async function serve(address: GpioAddress, bank = createGpioBank(lines)) {
  const server = await startGpioSocketServer({ bank, address, clock: runtime.clock, log })
  endings.push(() => server.close())
  return { bank, server }
}

function use(address: GpioAddress) {
  const gpio = createSocketLines({ address, runtime, log })
  endings.push(() => gpio.close())
  return gpio
}

test.each(['unix', 'tcp'])('a hub reads, watches and drives the lines over a %s socket', async (kind) => {
  const { bank, server } = await serve(
    kind === 'unix' ? { path: join(folder(), 'gpio.sock') } : { host: '127.0.0.1', port: 0 },
  )
  const gpio = use(server.address)
  await vi.waitUntil(() => gpio.read('main_door') === 0)
  const edge = new Promise<void>((resolve) => gpio.watch('main_door', resolve))
  bank.set('main_door', 1)
  await edge
  expect(gpio.read('main_door')).toBe(1)
  expect(gpio.write('main_lock', 1)).toBe(true)
  await vi.waitUntil(() => bank.get('main_lock') === 1)
})

test('a hub that dies changes no level, and its successor sees the last levels', async () => {
  const { bank, server } = await serve({ path: join(folder(), 'gpio.sock') })
  const first = use(server.address)
  await vi.waitUntil(() => first.read('main_lock') === 0)
  first.write('main_lock', 1)
  await vi.waitUntil(() => bank.get('main_lock') === 1)
  first.close()
  const second = use(server.address)
  await vi.waitUntil(() => second.read('main_lock') !== undefined)
  expect(second.read('main_lock')).toBe(1)
})

test('a hub reconnects to a restarted simulator, and reads the present levels', async () => {
  const address = { path: join(folder(), 'gpio.sock') }
  const { bank, server } = await serve(address)
  const gpio = use(address)
  await vi.waitUntil(() => gpio.read('main_door') === 0)
  await server.close()
  await vi.waitUntil(() => gpio.read('main_door') === undefined)
  bank.set('main_door', 1)
  await serve(address, bank)
  await vi.waitUntil(() => gpio.read('main_door') === 1, { timeout: 5000 })
})

test('the simulator does not take over a socket that another process serves', async () => {
  const address = { path: join(folder(), 'gpio.sock') }
  await serve(address)
  await expect(serve(address)).rejects.toThrow('in use')
})

test('an unknown message ends the connection, and an impossible drive is refused', async () => {
  const { server } = await serve({ path: join(folder(), 'gpio.sock') })
  const socket = connect(server.address as { path: string })
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  socket.write('{"type":"drive","name":"main_door","level":1}\n')
  socket.write('{"type":"drive","name":"nothing","level":1}\nnonsense\n')
  await new Promise((resolve) => socket.on('close', resolve))
  expect(
    text
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { type: 'refused', name: 'main_door', reason: 'not_an_output' },
    { type: 'refused', name: 'nothing', reason: 'unknown_line' },
  ])
})
