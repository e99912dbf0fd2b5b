import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SerialPort } from 'serialport'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeFrame, encodeFrame } from '../../../protocol/serial/codec.ts'
import type { Frame } from '../../../protocol/serial/frames.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { MAX_LINE_BYTES } from '../../../protocol/serial/frames.ts'
import { createLineSplitter } from '../../../protocol/serial/line-port.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { PseudoTerminal } from '../../../simulator/mounts/pseudo-terminal.ts'
import { mountPty, mountTcp, tcpAddress, type Mount } from '../../../simulator/mounts/serial-ports.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { smallHub } from '../support/hardware.ts'

let folder: string
let hub: SimulatedHub
let mount: Mount | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-pty-'))
  hub = new SimulatedHub({
    hardware: smallHub,
    runtime: systemRuntime(),
    storage: memoryStorage(),
    log: silentLog,
    timing: { doorMs: 20, liftMs: 20, turnMs: 20, fallMs: 2, stallMs: 5 },
  })
})
afterEach(async () => {
  hub.stop()
  await mount?.close()
  mount = undefined
  rmSync(folder, { recursive: true })
})

const wire = () => hub.wires[0]!

/** A connection of any kind, read frame by frame. */
class Connection {
  #frames: Frame[] = []
  #waiting: (() => void)[] = []
  readonly #split = createLineSplitter(MAX_LINE_BYTES, (line) => {
    const decoded = decodeFrame(line)
    if (!decoded.ok) return
    this.#frames.push(decoded.frame)
    for (const wake of this.#waiting.splice(0)) wake()
  })
  readonly take = (bytes: Buffer): void => this.#split(bytes.toString('latin1'))

  /** The first frame that fits; earlier frames are dropped. */
  async next(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame && fits(frame)) return frame
      if (!frame) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}

async function openSerial(path: string): Promise<{ port: SerialPort; line: Connection }> {
  const port = new SerialPort({ path, baudRate: 115_200, autoOpen: false })
  await new Promise<void>((resolve, reject) => port.open((error) => (error ? reject(error) : resolve())))
  const line = new Connection()
  port.on('data', line.take)
  return { port, line }
}

const close = (port: SerialPort): Promise<void> => new Promise((resolve) => port.close(() => resolve()))

describe('the pty mount, with the real serialport', () => {
  test('the pty mount carries a session: greeting, command, result', async () => {
    const link = join(folder, 'ports', 'front')
    mount = mountPty(wire(), link, silentLog)
    expect(realpathSync(link)).toMatch(/^\/dev\/pts\/\d+$/)
    const { port, line } = await openSerial(link)
    port.write(`${encodeFrame({ seq: 1, type: 'HELLO', proto: 2, host: 'abcd0001' })}\n`)
    const welcome = await line.next(({ type }) => type === 'WELCOME')
    port.write(`${encodeFrame({ seq: 2, type: 'ACK', s: welcome.seq })}\n`)
    const op = 'a'.repeat(32)
    const command = { type: 'CMD', host: 'abcd0001', op, dev: 'bin-1', act: 'open_door', max: 1000 } as const
    port.write(`${encodeFrame({ seq: 3, ...command })}\n`)
    expect(await line.next(({ type }) => type === 'RES')).toMatchObject({ op, state: 'done', moved: true })
    expect(hub.actuations()).toHaveLength(1)
    await close(port)
  })

  test('the pty mount survives repeated opening and closing by the hub', async () => {
    const link = join(folder, 'front')
    mount = mountPty(wire(), link, silentLog)
    for (let round = 1; round <= 25; round++) {
      const { port, line } = await openSerial(link)
      const host = (0xabcd0000 + round).toString(16)
      port.write(`${encodeFrame({ seq: round, type: 'HELLO', proto: 2, host })}\n`)
      expect(await line.next((frame) => frame.type === 'WELCOME' && frame.host === host)).toBeDefined()
      await close(port)
    }
  })

  test('the pty mount loses lines and nothing else when the hub does not read', async () => {
    const link = join(folder, 'front')
    mount = mountPty(wire(), link, silentLog)
    const { port } = await openSerial(link)
    await close(port)
    // This is much more than the kernel buffers for an absent reader.
    for (let count = 0; count < 500; count++) {
      hub.faults.raise({ type: 'brown_out', target: 'front', for_ms: 1 })
      hub.power('on', 'front')
    }
    const again = await openSerial(link)
    again.port.write(`${encodeFrame({ seq: 9, type: 'HELLO', proto: 2, host: 'abcd0002' })}\n`)
    const answer = await again.line.next((frame) => frame.type === 'WELCOME' && frame.host === 'abcd0002')
    expect(answer).toBeDefined()
    await close(again.port)
  })

  test('the pty mount removes its link when it closes, and leaves other files alone', async () => {
    const link = join(folder, 'front')
    const own = mountPty(wire(), link, silentLog)
    await own.close()
    expect(existsSync(link)).toBe(false)
    writeFileSync(link, 'precious')
    expect(() => mountPty(wire(), link, silentLog)).toThrow(/is not a link/)
  })

  test('the pty mount keeps no file open after it closed, or if it cannot be made', async () => {
    const link = join(folder, 'front')
    const before = openPseudoTerminals()
    await mountPty(wire(), link, silentLog).close()
    writeFileSync(link, 'precious')
    expect(() => mountPty(wire(), link, silentLog)).toThrow()
    await expect.poll(openPseudoTerminals).toEqual(before)
  })
})

/** The pseudo-terminals among this process's descriptors. */
const openPseudoTerminals = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((number) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${number}`)
      return /^\/dev\/(ptmx|pts\/)/.test(target) ? [`${number} ${target}`] : []
    } catch {
      // The descriptor of the folder itself.
      return []
    }
  })

test.each<[string, (line: PseudoTerminal) => unknown]>([
  ['hung up', (line) => line.close()],
  ['failed', (line) => line.input.destroy(new Error('EIO'))],
])('a pseudo-terminal that %s writes to no other file that gets its number', async (_, end) => {
  const line = new PseudoTerminal()
  const failed = new Promise((resolve) => line.input.once('close', resolve))
  line.input.on('error', () => {})
  expect(line.write(Buffer.from('~0001'))).toBe(5)
  end(line)
  const path = join(folder, 'journal')
  const numbers = Array.from({ length: 8 }, () => openSync(path, 'w'))
  expect(line.write(Buffer.from('~0002'))).toBe(0)
  await failed
  numbers.push(...Array.from({ length: 8 }, () => openSync(path, 'w')))
  expect(line.write(Buffer.from('~0003'))).toBe(0)
  expect(readFileSync(path, 'utf8')).toBe('')
  for (const number of numbers) closeSync(number)
  await line.close()
})

describe('the TCP mount', () => {
  test('the TCP mount gives the line to the latest connection', async () => {
    const mounted = await mountTcp(wire(), { host: '127.0.0.1', port: 0 }, silentLog)
    mount = mounted
    const dial = async () => {
      const socket = connect(mounted.port, '127.0.0.1')
      const line = new Connection()
      socket.on('data', line.take)
      await new Promise<void>((resolve) => socket.once('connect', resolve))
      return { socket, line }
    }
    const first = await dial()
    const closed = new Promise<void>((resolve) => first.socket.once('close', () => resolve()))
    const second = await dial()
    await closed
    second.socket.write(`${encodeFrame({ seq: 1, type: 'HELLO', proto: 2, host: 'abcd0003' })}\r\n`)
    expect(await second.line.next(({ type }) => type === 'WELCOME')).toMatchObject({ host: 'abcd0003' })
    second.socket.destroy()
  })

  test.each([
    ['tcp:127.0.0.1:9001', { host: '127.0.0.1', port: 9001 }],
    ['tcp://localhost:9001', { host: 'localhost', port: 9001 }],
    ['/dev/ttyUSB0', undefined],
    ['ports/front', undefined],
  ])('the text %s is a TCP address, or is not', (text, address) => expect(tcpAddress(text)).toEqual(address))
})
