import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLog } from '../../../../protocol/model/log.ts'
import { createLineSplitter } from '../../../../protocol/serial/line-port.ts'
import { BOARD_MAX_LINE } from '../../../../simulator/board/messages.ts'
import { serveBoard, type BoardServer } from '../../../../simulator/mounts/board/socket-server.ts'
import { SimulatedHub } from '../../../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../../world/memory-storage.ts'
import { smallHub } from '../../support/hardware.ts'
import { type VirtualClock, virtualClock, virtualRuntime } from '../../../world/clock.ts'

type Message = Record<string, unknown>
const OP = 'a'.repeat(32)

let folder: string
let clock: VirtualClock
let hub: SimulatedHub
let server: BoardServer
const ends: (() => void)[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-board-'))
  clock = virtualClock()
  hub = new SimulatedHub({
    hardware: smallHub,
    runtime: virtualRuntime(1, clock),
    storage: memoryStorage(),
    log: silentLog,
    openBoards: new Set(['front']),
  })
  const address = { path: join(folder, 'front.sock') }
  server = await serveBoard(hub.controllers.get('front')!, { address, log: silentLog })
})
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A firmware that is scripted by the test. */
function plugIn() {
  const socket = connect((server.address as { path: string }).path)
  const heard: Message[] = []
  const split = createLineSplitter(BOARD_MAX_LINE, (line) => void heard.push(JSON.parse(line) as Message))
  let isClosed = false
  socket.setEncoding('utf8').on('data', (chunk: string) => split(chunk))
  socket.on('close', () => (isClosed = true))
  ends.push(() => socket.destroy())
  const hears = (holds: (message: Message) => boolean) => expect.poll(() => heard.find(holds)).toBeDefined()
  let asked = 0
  return {
    heard,
    hears,
    write: (text: string) => socket.write(`${text}\n`),
    async ask(request: Message): Promise<Message> {
      const id = ++asked
      socket.write(`${JSON.stringify({ id, ...request })}\n`)
      await hears(({ re }) => re === id)
      return heard.find(({ re }) => re === id)!
    },
    die: () => socket.destroy(),
    closes: () => expect.poll(() => isClosed).toBe(true),
  }
}

const actsOf = (device: string) => hub.actuations().filter((act) => act.device === device)

describe('external firmware at the board’s socket (board/SPEC.md)', () => {
  test('power comes first with the devices and the flash, then a line, a motor, a sensor and the flash', async () => {
    const firmware = plugIn()
    await firmware.hears(({ on }) => on === 'power')
    expect(firmware.heard[0]).toMatchObject({ on: 'power', protocol: 1, controller: 'front', flash: [] })
    hub.wires.find(({ controllerId }) => controllerId === 'front')!.toController('~0001 PING t=5*465a')
    await firmware.hears(({ on, line }) => on === 'line' && line === '~0001 PING t=5*465a')
    expect(await firmware.ask({ do: 'read', device: 'bin-1', pin: 'door' })).toMatchObject({
      value: 'closed',
    })
    await firmware.ask({ do: 'run', device: 'bin-1', action: 'open_door', op: OP })
    expect(await firmware.ask({ do: 'read', device: 'bin-1', pin: 'door' })).toMatchObject({
      value: 'moving',
    })
    clock.advance(2000)
    await firmware.hears(({ on, end, moved }) => on === 'end' && end === 'arrived' && moved === true)
    expect(actsOf('bin-1')).toMatchObject([{ action: 'open_door', detail: { to: 'open', completed: true } }])
    await firmware.ask({ do: 'append', entry: { format: '00c0ffee' } })
    const next = plugIn()
    await next.hears(({ on, flash }) => on === 'power' && JSON.stringify(flash) === '[{"format":"00c0ffee"}]')
    await firmware.closes()
  })

  test('I7: a firmware program that dies leaves nothing moving', async () => {
    const firmware = plugIn()
    await firmware.ask({ do: 'run', device: 'bin-1', action: 'open_door', op: OP })
    clock.advance(500)
    firmware.die()
    await expect.poll(() => actsOf('bin-1').length).toBe(1)
    expect(actsOf('bin-1')).toMatchObject([{ detail: { to: 'between', completed: false } }])
  })

  test('the loss of power ends the connection, and a program that reconnects waits for the power', async () => {
    const firmware = plugIn()
    await firmware.ask({ do: 'run', device: 'bin-1', action: 'open_door', op: OP })
    hub.power('off', 'front')
    await firmware.closes()
    expect(actsOf('bin-1')).toMatchObject([{ detail: { to: 'between', completed: false } }])
    const next = plugIn()
    const early = { do: 'run', device: 'bin-2', action: 'open_door', op: OP }
    expect(await next.ask(early)).toMatchObject({ error: 'the board has no power' })
    expect(next.heard.some(({ on }) => on === 'power')).toBe(false)
    hub.power('on', 'front')
    await next.hears(({ on }) => on === 'power')
  })

  test('external firmware can lose its flash, fail to write it, and have a weak supply, like the built-in firmware', async () => {
    const firmware = plugIn()
    await firmware.ask({ do: 'append', entry: { format: '00c0ffee' } })
    hub.faults.raise({ type: 'flash_fault', target: 'front' })
    hub.faults.raise({ type: 'weak_supply', target: 'bin-1' })
    expect(await firmware.ask({ do: 'flash' })).toMatchObject({ ok: false })
    expect(await firmware.ask({ do: 'supply', device: 'bin-1' })).toMatchObject({ ok: false })
    expect(await firmware.ask({ do: 'supply', device: 'bin-2' })).toMatchObject({ ok: true })
    hub.faults.raise({ type: 'memory_loss', target: 'front' })
    await firmware.closes()
    clock.advance(2000)
    const next = plugIn()
    await next.hears(({ on, flash }) => on === 'power' && JSON.stringify(flash) === '[]')
  })

  test('an invalid message is answered with an error and has no effect', async () => {
    const firmware = plugIn()
    const wrong = [
      { do: 'fly' },
      { do: 'read', device: 'bin-9', pin: 'door' },
      { do: 'run', device: 'cabinet-2', action: 'dispense', shelf: 1, row: 1, bin: 1, op: OP },
      { do: 'run', device: 'fridge-1', action: 'open_door', op: OP },
      { do: 'run', device: 'bin-1', action: 'open_door', op: 'x' },
    ]
    for (const request of wrong)
      expect(await firmware.ask(request)).toMatchObject({ error: expect.any(String) as string })
    firmware.write('no JSON')
    firmware.write('[1]')
    await firmware.hears(({ error }) => error === 'not JSON')
    await firmware.hears(({ error }) => error === 'not a request')
    expect(hub.actuations()).toEqual([])
  })
})
