import { expect, test } from 'vitest'
import { GpioClient } from '../../../protocol/gpio/client.ts'
import type { GpioChipMessage, GpioLineState } from '../../../protocol/gpio/messages.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { LinePortHandlers } from '../../../protocol/serial/line-port.ts'
import { virtualRuntime } from '../../world/clock.ts'

const line = (name: string, direction: 'in' | 'out', level: 0 | 1 = 0): GpioLineState => ({
  name,
  direction,
  level,
  driven: false,
})

function setUp() {
  const runtime = virtualRuntime()
  const connections: { handlers: LinePortHandlers; sent: string[]; open: boolean }[] = []
  const client = new GpioClient({
    runtime,
    log: silentLog,
    open(handlers) {
      const connection = { handlers, sent: [] as string[], open: true }
      connections.push(connection)
      return {
        write: (text) => connection.open && connection.sent.push(text) > 0,
        close: () => void (connection.open = false),
      }
    },
  })
  const latest = () => connections.at(-1)!
  const say = (message: GpioChipMessage) => latest().handlers.onLine(JSON.stringify(message))
  const sayLines = (...lines: GpioLineState[]) => say({ type: 'lines', protocol: 1, lines })
  return { runtime, connections, client, latest, say, sayLines }
}

test('a level is unknown before the chip reports it, and is the last reported one afterwards', () => {
  const { client, say, sayLines } = setUp()
  expect(client.read('main_door')).toBeUndefined()
  sayLines(line('main_door', 'in', 1))
  expect(client.read('main_door')).toBe(1)
  say({ type: 'level', name: 'main_door', level: 0 })
  expect(client.read('main_door')).toBe(0)
  expect(client.read('other')).toBeUndefined()
})

test('only an output of a connected chip can be driven, and no write is queued', async () => {
  const { client, latest, sayLines, runtime, connections } = setUp()
  expect(client.write('main_lock', 1)).toBe(false)
  sayLines(line('main_lock', 'out'), line('main_door', 'in'))
  expect(client.write('main_door', 1)).toBe(false)
  expect(client.write('main_lock', 1)).toBe(true)
  expect(client.read('main_lock')).toBe(1)
  expect(latest().sent).toEqual(['{"type":"drive","name":"main_lock","level":1}'])
  latest().handlers.onClose('gone')
  expect(client.write('main_lock', 0)).toBe(false)
  expect(client.read('main_lock')).toBeUndefined()
  await runtime.clock.pass(5000)
  expect(connections.length).toBeGreaterThan(1)
  expect(latest().sent).toEqual([])
})

test('a watcher receives each change, the loss of the chip and its return', async () => {
  const { client, latest, say, sayLines, runtime } = setUp()
  const seen: unknown[] = []
  client.watch('main_door', () => seen.push(client.read('main_door')))
  sayLines(line('main_door', 'in'))
  say({ type: 'level', name: 'main_door', level: 1 })
  say({ type: 'level', name: 'main_door', level: 1 })
  latest().handlers.onClose('gone')
  await runtime.clock.pass(100)
  sayLines(line('main_door', 'in'))
  expect(seen).toEqual([0, 1, undefined, 0])
})

test('a watcher receives nothing after its end, and others of the same line still do', () => {
  const { client, say, sayLines } = setUp()
  const seen: string[] = []
  const end = client.watch('main_door', () => seen.push('ended'))
  client.watch('main_door', () => seen.push('other'))
  end()
  sayLines(line('main_door', 'in'))
  say({ type: 'level', name: 'main_door', level: 1 })
  expect(seen).toEqual(['other', 'other'])
})

test('the client reconnects to a silent chip, but not to a chip that reports that it is alive', async () => {
  const { say, sayLines, runtime, connections, client } = setUp()
  sayLines(line('main_door', 'in'))
  for (let second = 0; second < 10; second++) {
    await runtime.clock.pass(1000)
    say({ type: 'alive' })
  }
  expect(connections).toHaveLength(1)
  await runtime.clock.pass(3999)
  expect(client.read('main_door')).toBe(0)
  await runtime.clock.pass(1)
  expect(client.read('main_door')).toBeUndefined()
  expect(connections[0]!.open).toBe(false)
  await runtime.clock.pass(100)
  expect(connections).toHaveLength(2)
})

test('the client ignores messages on a connection that it has closed', async () => {
  const { sayLines, runtime, connections, client } = setUp()
  sayLines(line('main_door', 'in'))
  connections[0]!.handlers.onLine('nonsense')
  await runtime.clock.pass(100)
  sayLines(line('main_door', 'in'))
  connections[0]!.handlers.onLine('{"type":"level","name":"main_door","level":1}')
  connections[0]!.handlers.onClose('late')
  expect(client.read('main_door')).toBe(0)
})

test('the client reconnects with longer and longer pauses without an attempt limit, until it is closed', async () => {
  const { runtime, connections, client, latest } = setUp()
  const times: number[] = []
  for (let attempt = 0; attempt < 12; attempt++) {
    const count = connections.length
    latest().handlers.onClose('refused')
    const from = runtime.clock.monotonic()
    while (connections.length === count) await runtime.clock.pass(1)
    times.push(runtime.clock.monotonic() - from)
  }
  expect(times[0]).toBeLessThan(51)
  expect(times.at(-1)).toBeGreaterThan(999)
  expect(times.at(-1)).toBeLessThan(2001)
  client.close()
  const count = connections.length
  await runtime.clock.pass(60_000)
  expect(connections).toHaveLength(count)
})
