import { backoffMs, type Cancel, type Runtime } from '../model/runtime.ts'
import type { GpioLines, Level } from '../model/hardware.ts'
import type { Log } from '../model/log.ts'
import { RepeatedLine } from '../model/repeated-lines.ts'
import type { LinePort, LinePortHandlers } from '../serial/line-port.ts'
import {
  GpioChipMessage,
  GPIO_SILENT_MS,
  parseGpioMessage,
  type GpioLineState,
  type GpioUserMessage,
} from './messages.ts'

export interface GpioClientOptions {
  /** Opens one connection. Handlers are never called before it returns. */
  open: (handlers: LinePortHandlers) => LinePort
  runtime: Runtime
  log: Log
}

/** The user's end of a GPIO socket: lines whose levels the chip pushes. */
export interface GpioClient extends GpioLines {
  /** The lines as the chip last said; `undefined` while there is no connection. */
  lines(): readonly GpioLineState[] | undefined
  /** Calls `listener` after every message that may have changed a line, and when the connection comes or goes. */
  onUpdate(listener: () => void): void
}

const reconnect = { firstMs: 50, maxMs: 2000 }

/** Connects for ever. While there is no connection `read` is `undefined` and `write` false: nothing is queued (I2). */
export function createGpioClient({ open, runtime, log }: GpioClientOptions): GpioClient {
  const { clock, random } = runtime
  const updated: (() => void)[] = []
  const watchers = new Map<string, (() => void)[]>()
  let lines: Map<string, GpioLineState> | undefined
  let port: LinePort | undefined
  let attempt = 0
  let closed = false
  let cancelTimer: Cancel = () => {}
  const failures = new RepeatedLine({ log, clock })

  connect()

  function connect(): void {
    const current = open({
      onOpen() {},
      onLine(line) {
        if (current === port) receive(line)
      },
      onClose(reason) {
        if (current === port) lost(reason)
      },
    })
    port = current
    listen()
  }

  /** Gives the connection up unless the chip is heard again in time. */
  function listen(): void {
    cancelTimer()
    cancelTimer = clock.after(GPIO_SILENT_MS, () => {
      port?.close()
      lost('silent')
    })
  }

  function lost(reason: string): void {
    cancelTimer()
    port = undefined
    if (closed) return
    failures.failed(reason, {}, 'the GPIO socket is gone')
    const names = [...(lines?.keys() ?? [])]
    lines = undefined
    cancelTimer = clock.after(backoffMs(attempt, reconnect, random), connect)
    attempt += 1
    notify(names)
  }

  function receive(line: string): void {
    const message = parseGpioMessage(GpioChipMessage, line)
    if (message === undefined) {
      port?.close()
      lost('not a message of the GPIO socket')
      return
    }
    listen()
    switch (message.type) {
      case 'alive':
        return
      case 'refused':
        log.error({ line: message.name, reason: message.reason }, 'the chip refused to drive a line')
        return
      case 'lines':
        attempt = 0
        lines = new Map(message.lines.map((line) => [line.name, line]))
        failures.succeeded({}, 'the GPIO socket answers again')
        log.info({ lines: lines.size }, 'the GPIO socket is connected')
        notify([...lines.keys()])
        return
      case 'level': {
        const state = lines?.get(message.name)
        if (!state || state.level === message.level) return
        lines?.set(message.name, { ...state, level: message.level })
        notify([message.name])
        return
      }
    }
  }

  function notify(names: readonly string[]): void {
    for (const listener of updated) listener()
    for (const name of names) for (const listener of watchers.get(name) ?? []) listener()
  }

  return {
    read: (name) => lines?.get(name)?.level,
    write(name, level: Level) {
      const state = lines?.get(name)
      if (!state || state.direction !== 'out') return false
      const message: GpioUserMessage = { type: 'drive', name, level }
      if (!port?.write(JSON.stringify(message))) return false
      // Until the chip's own answer, which comes in any case.
      lines?.set(name, { ...state, level, driven: true })
      return true
    },
    watch(name, listener) {
      watchers.set(name, [...(watchers.get(name) ?? []), listener])
    },
    problem: () =>
      failures.failing && { reason: `the GPIO socket: ${failures.failing.reason}`, isFinal: false },
    lines: () => lines && [...lines.values()],
    onUpdate: (listener) => void updated.push(listener),
    close() {
      closed = true
      cancelTimer()
      port?.close()
      port = undefined
      lines = undefined
    },
  }
}
