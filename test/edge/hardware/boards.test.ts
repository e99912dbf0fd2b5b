import { describe, expect, test } from 'vitest'
import type { ControllerEvents } from '../../../edge/hardware/controller-events.ts'
import { createControllers } from '../../../edge/hardware/controllers.ts'
import { defaultLinkSettings } from '../../../protocol/settings/hub-limits.ts'
import { portProblem } from '../../../edge/hardware/serialport-line-port.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { decodeFrame, encodeFrame } from '../../../protocol/serial/codec.ts'
import type { Frame } from '../../../protocol/serial/frames.ts'
import type { LinePortHandlers, OpenLinePort } from '../../../protocol/serial/line-port.ts'
import { virtualRuntime } from '../../world/clock.ts'

const hardware = HardwareDescription.parse({
  hubId: 1,
  controllers: [{ id: 'cold', port: '/dev/cold', devices: [{ kind: 'fridge', number: 1 }] }],
  gpio: { chipLabel: 'none', lines: [] },
})

interface Board {
  /** Protocol versions that it accepts; it answers other versions with the newest of them. */
  versions: readonly number[]
  /** It restarts when its port opens, and ignores input for this time. */
  bootMs: number
  /** Error at the opening of its port. */
  fails?: string | undefined
}

function bench(board: Board) {
  const runtime = virtualRuntime()
  const warnings: { message: string; reason: unknown }[] = []
  const hellos: number[] = []
  const said: string[] = []
  let opened = 0
  const log: Log = {
    debug() {},
    info() {},
    error() {},
    warn: (fields, message) =>
      void warnings.push({ message, reason: (fields as { reason?: unknown }).reason }),
  }

  function answer(line: string, handlers: LinePortHandlers): void {
    const decoded = decodeFrame(line)
    if (!decoded.ok) return
    const { frame } = decoded
    const say = (body: Frame): void => handlers.onLine(encodeFrame(body))
    if (frame.type === 'PING') return say({ seq: 3, type: 'PONG', t: frame.t })
    if (frame.type !== 'HELLO') return
    hellos.push(frame.proto)
    const isSpoken = board.versions.includes(frame.proto)
    const proto = isSpoken ? frame.proto : Math.max(...board.versions)
    const identity = { fw: 'test', boot: 'b0000001', mem: 'aaaaaaaa', count: 0 }
    say({ seq: 1, type: 'ACK', s: frame.seq })
    say({ seq: 2, type: 'WELCOME', proto, host: frame.host, ...identity })
    if (isSpoken) say({ seq: 4, type: 'EVT', ev: 1, dev: 'fridge-1', temp: 10_400 })
  }

  const openPort: OpenLinePort = (_, handlers) => {
    opened++
    const openedAt = runtime.clock.monotonic()
    let isOpen = true
    const { clock } = runtime
    clock.after(1, () => {
      if (!isOpen) return
      if (board.fails === undefined) handlers.onOpen()
      else handlers.onClose(board.fails)
    })
    return {
      write(line) {
        if (clock.monotonic() - openedAt >= board.bootMs)
          clock.after(1, () => isOpen && answer(line, handlers))
        return isOpen
      },
      close: () => void (isOpen = false),
    }
  }
  const events: ControllerEvents = {
    onUp: (_, { protocol }) => void said.push(`up ${protocol}`),
    onDown: (_, reason) => void said.push(`down: ${reason}`),
    onDevice: (_, event) => void said.push(`${event.device} ${event.celsius}`),
    onResult() {},
    onRefused() {},
    onListed() {},
  }
  const controllers = createControllers(
    { hardware, openPort, runtime, log, settings: defaultLinkSettings },
    events,
  )
  controllers.start()
  return { runtime, controllers, warnings, hellos, said, opened: () => opened }
}

describe('a board that restarts when its port opens', () => {
  test.each([4000, 8000, 20_000])(
    'a board that restarts and boots for %i ms when its port opens connects',
    (bootMs) => {
      const { runtime, controllers, said } = bench({ versions: [3], bootMs })
      runtime.clock.advance(3 * bootMs + 15_000)
      expect(controllers.links()[0]).toMatchObject({ up: true, protocol: 3, reason: null })
      runtime.clock.advance(600_000)
      expect(said.filter((line) => line.startsWith('up'))).toHaveLength(1)
    },
  )

  test('a booting board gets repeated HELLOs on one open port, without a reopening', () => {
    const { runtime, opened, hellos } = bench({ versions: [3], bootMs: Infinity })
    runtime.clock.advance(5 * 60_000)
    expect(opened()).toBeLessThan(16)
    expect(hellos).toEqual([])
  })
})

describe('a board of an older version of the protocol', () => {
  test('a board of an older protocol version gets a session of its version on the same port, and its reports are accepted', () => {
    const { runtime, controllers, hellos, said, opened } = bench({ versions: [2], bootMs: 0 })
    runtime.clock.advance(1000)
    expect(said).toEqual(['up 2', 'fridge-1 4'])
    expect([hellos[0], hellos.at(-1), opened()]).toEqual([3, 2, 1])
    expect(controllers.links()[0]).toMatchObject({ up: true, protocol: 2 })
    runtime.clock.advance(600_000)
    expect(said).toHaveLength(2)
  })

  test('a board with several protocol versions gets a session of the present one', () => {
    const { runtime, said } = bench({ versions: [2, 3], bootMs: 0 })
    runtime.clock.advance(1000)
    expect(said[0]).toBe('up 3')
  })

  test.each([[[1]], [[9]]])(
    'a board with an unknown protocol version is not used, and the version is its reason: %j',
    (versions) => {
      const { runtime, controllers, said, opened } = bench({ versions, bootMs: 0 })
      runtime.clock.advance(60_000)
      expect(said).toEqual([])
      expect(controllers.links()[0]).toMatchObject({
        up: false,
        reason: `the controller speaks version ${versions[0]} of the protocol`,
      })
      expect(opened()).toBeLessThan(40)
    },
  )
})

describe('reasons of a closed port', () => {
  test('each new reason why a port does not open is one warning, and is part of the line’s state', () => {
    const board: Board = { versions: [3], bootMs: 0, fails: 'there is no such port' }
    const { runtime, controllers, warnings } = bench(board)
    runtime.clock.advance(10 * 60_000)
    expect(warnings).toEqual([{ message: 'controller is not connected', reason: 'there is no such port' }])
    expect(controllers.links()[0]).toMatchObject({ up: false, reason: 'there is no such port' })
    board.fails = 'another process uses the port'
    runtime.clock.advance(10 * 60_000)
    expect(warnings.map(({ reason }) => reason)).toEqual(['there is no such port', board.fails])
    board.fails = undefined
    runtime.clock.advance(30_000)
    expect(controllers.links()[0]).toMatchObject({ up: true, reason: null })
  })

  test.each([
    ['Error: No such file or directory, cannot open /dev/x', /no such port/],
    ['Error: Permission denied, cannot open /dev/x', /no permission/],
    ['Error Resource temporarily unavailable Cannot lock port', /another process/],
    ['Error: Inappropriate ioctl for device setting custom baud rate of 115200', /not a serial port/],
    ['Error: Is a directory, cannot open /tmp', /not a serial port/],
    ['Error: Something else', /^Something else$/],
  ])('the port error %s is reported in words', (message, words) => {
    expect(portProblem('/dev/x', message)).toMatch(words)
  })
})
