import { spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, promises, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { ControllerEvents } from '../../../edge/hardware/controller-events.ts'
import { createControllers } from '../../../edge/hardware/controllers.ts'
import { defaultLinkSettings } from '../../../protocol/settings/hub-limits.ts'
import { openSerialPort } from '../../../edge/hardware/serialport-line-port.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { MAX_LINE_BYTES } from '../../../protocol/serial/frames.ts'
import type { LinePort } from '../../../protocol/serial/line-port.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { isLongRun } from '../../support/long-tests.ts'
import { openPseudoTerminal, type PseudoTerminal } from './pseudo-terminal.ts'
import { ScriptedController } from './scripted-controller.ts'

/** A pseudo-terminal carries 0.3 MiB a second. */
const LONG_MIB = isLongRun ? 8 : 1

const closers: (() => void)[] = []
afterEach(() => closers.splice(0).forEach((close) => close()))

/** Collects events, and lets a test wait for them. */
function observer<T>() {
  const seen: T[] = []
  let wake = (): void => {}
  return {
    seen,
    note(item: T) {
      seen.push(item)
      wake()
    },
    async until(done: (items: T[]) => boolean) {
      while (!done(seen)) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

function terminal(): PseudoTerminal {
  const pty = openPseudoTerminal()
  closers.push(pty.vanish)
  return pty
}

/** Lets all threads of Node's pool wait until the test ends, without processor time. */
function occupyThreadPool(): void {
  const folder = mkdtempSync(join(tmpdir(), 'larder-pool-'))
  const pipe = join(folder, 'pipe')
  spawnSync('mkfifo', [pipe])
  const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4)
  // The opening of a pipe waits for a writer.
  const waiting = Array.from({ length: threads }, () => promises.open(pipe, 'r'))
  closers.push(() => {
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    void Promise.all(waiting).then((files) => {
      for (const file of files) void file.close()
      closeSync(writer)
      rmSync(folder, { recursive: true })
    })
  })
}

type Said = { kind: 'open' } | { kind: 'line'; line: string } | { kind: 'close'; reason: string }

function open(path: string): { port: LinePort; said: ReturnType<typeof observer<Said>> } {
  const said = observer<Said>()
  const port = openSerialPort(
    { path, baudRate: 115_200 },
    {
      onOpen: () => said.note({ kind: 'open' }),
      onLine: (line) => said.note({ kind: 'line', line }),
      onClose: (reason) => said.note({ kind: 'close', reason }),
    },
  )
  closers.push(() => port.close())
  return { port, said }
}

const lines = (said: Said[]): string[] => said.flatMap((item) => (item.kind === 'line' ? [item.line] : []))

describe('a serialport line', () => {
  it('a serialport line carries whole lines both ways on a real pseudo-terminal', async () => {
    const pty = terminal()
    const arrived = observer<string>()
    pty.listen((text) => arrived.note(text))
    const { port, said } = open(pty.path)
    await said.until((items) => items.length > 0)
    expect(port.write('~0001 PING t=1*0000')).toBe(true)
    await arrived.until((texts) => texts.join('').includes('\n'))
    expect(arrived.seen.join('')).toBe('~0001 PING t=1*0000\n')
    await pty.write('one\ntw')
    await pty.write('o\n\nthree\n')
    await said.until((items) => lines(items).length >= 3)
    expect(lines(said.seen)).toEqual(['one', 'two', 'three'])
  })

  it('a serialport line sends the rest of a write when the line has room again', async () => {
    const pty = terminal()
    const { port, said } = open(pty.path)
    await said.until((items) => items.length > 0)
    const sent = Array.from({ length: 400 }, (_, n) => `${n}`.padEnd(200, '.'))
    for (const line of sent) expect(port.write(line)).toBe(true)
    const arrived = observer<string>()
    pty.listen((text) => arrived.note(text))
    await arrived.until((texts) => texts.join('').length >= sent.join('\n').length + 1)
    expect(arrived.seen.join('')).toBe(`${sent.join('\n')}\n`)
  })

  it('a serialport line sends the rest of a write without another thread, in which its descriptor may be closed', async () => {
    const pty = terminal()
    const { port, said } = open(pty.path)
    await said.until((items) => items.length > 0)
    const sent = Array.from({ length: 400 }, (_, n) => `${n}`.padEnd(200, '.'))
    for (const line of sent) port.write(line)
    occupyThreadPool()
    const arrived = observer<string>()
    pty.listen((text) => arrived.note(text))
    await arrived.until((texts) => texts.join('').length >= sent.join('\n').length + 1)
    expect(arrived.seen.join('')).toBe(`${sent.join('\n')}\n`)
  }, 10_000)

  it('a serialport line reads while its write waits for room', async () => {
    const pty = terminal()
    const { port, said } = open(pty.path)
    await said.until((items) => items.length > 0)
    const sent = Array.from({ length: 400 }, (_, n) => `${n}`.padEnd(200, '.'))
    for (const line of sent) port.write(line)
    for (const line of ['one', 'two', 'three']) {
      await pty.write(`${line}\n`)
      await said.until((items) => lines(items).includes(line))
    }
    const arrived = observer<string>()
    pty.listen((text) => arrived.note(text))
    await arrived.until((texts) => texts.join('').length >= sent.join('\n').length + 1)
    expect(arrived.seen.join('')).toBe(`${sent.join('\n')}\n`)
  }, 10_000)

  it('a serialport line writes nothing before its port is open, and after it closed', async () => {
    const pty = terminal()
    const { port, said } = open(pty.path)
    expect(port.write('too early')).toBe(false)
    await said.until((items) => items.length > 0)
    port.close()
    expect(port.write('too late')).toBe(false)
  })

  it('a serialport line reports why a port cannot be opened', async () => {
    const { said } = open('/dev/no-such-port')
    await said.until((items) => items.length > 0)
    expect(said.seen[0]).toMatchObject({
      kind: 'close',
      reason: expect.stringContaining('No such file') as string,
    })
  })

  it('a serialport line notices a port that vanishes before a write', async () => {
    const pty = terminal()
    const { port, said } = open(pty.path)
    await said.until((items) => items.length > 0)
    pty.vanish()
    await said.until((items) => items.some((item) => item.kind === 'close'))
    expect(port.write('into the void')).toBe(false)
    expect(said.seen.filter((item) => item.kind === 'close')).toHaveLength(1)
  })

  it('a serialport line closes a port that was closed during its opening', async () => {
    const pty = terminal()
    const first = open(pty.path)
    first.port.close()
    // The first port holds the lock until it is closed.
    const reopened = async (): Promise<void> => {
      const { said } = open(pty.path)
      await said.until((items) => items.length > 0)
      if (said.seen[0]?.kind !== 'open') return reopened()
    }
    await reopened()
    expect(first.said.seen).toEqual([])
  })

  it(`a serialport line drops ${LONG_MIB} MiB without a line feed in linear time, and reads the next line`, async () => {
    const pty = terminal()
    const { said } = open(pty.path)
    await said.until((items) => items.length > 0)
    const before = process.memoryUsage().heapUsed
    for (let sent = 0; sent < LONG_MIB * 1024; sent++) await pty.write('x'.repeat(1024))
    await pty.write('\nwhole\n')
    await said.until((items) => lines(items).includes('whole'))
    const [long] = lines(said.seen)
    expect(long!.length).toBe(MAX_LINE_BYTES + 2)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 2 ** 20)
  })
})

describe('controllers over real ports', () => {
  it('controllers reconnect on a new port after the loss of theirs, and report the result of an operation', async () => {
    const runtime = systemRuntime()
    const controller = new ScriptedController(runtime.clock)
    controller.motionMs = 20
    let pty = terminal()
    const said = observer<string>()
    const attach = (): void => {
      let rest = ''
      pty.listen((text) => {
        const parts = (rest + text).split('\n')
        rest = parts.pop()!
        parts.forEach((line) => controller.receive(line))
      })
      const { write } = pty
      controller.connect((line) => void write(`${line}\n`).catch(() => {}))
    }
    const events: ControllerEvents = {
      onUp: () => said.note('up'),
      onDown: () => said.note('down'),
      onResult: (_id, { state }) => said.note(state),
      onRefused: (_id, _operation, why) => said.note(why),
      onListed: () => said.note('listed'),
      onDevice: () => said.note('event'),
    }
    const hardware = HardwareDescription.parse({
      hubId: 1,
      controllers: [{ id: 'bins', port: 'by-id', devices: [{ kind: 'bin', number: 1 }] }],
      gpio: { chipLabel: 'none', lines: [] },
    })
    const controllers = createControllers(
      {
        hardware,
        // The same name for another device, like a link of udev.
        openPort: (options, handlers) => openSerialPort({ ...options, path: pty.path }, handlers),
        runtime,
        log: silentLog,
        settings: { ...defaultLinkSettings, reopenMs: 20, maxReopenMs: 50 },
      },
      events,
    )
    closers.push(() => controllers.stop())
    attach()
    controllers.start()
    await said.until((items) => items.includes('up'))
    const operationId = uuidv7(runtime)
    controllers.perform({ operationId, device: 'bin-1', action: 'open_door', maxMs: 1000 })
    await said.until((items) => items.includes('done'))
    pty.vanish()
    await said.until((items) => items.includes('down'))
    pty = terminal()
    attach()
    await said.until((items) => items.filter((item) => item === 'up').length === 2)
    controllers.query('bin-1', operationId)
    await said.until((items) => items.filter((item) => item === 'done').length === 2)
    expect(said.seen).toEqual(['up', 'done', 'down', 'up', 'done'])
    expect(controller.motions).toHaveLength(1)
  })
})
