import { backoffMs, type Cancel, type Runtime } from '../model/runtime.ts'
import type { GpioLines, Level, LinesProblem } from '../model/hardware.ts'
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
import { Watchers } from './watchers.ts'

export interface GpioClientOptions {
  /** Opens one connection. Calls no handler before it returns. */
  open: (handlers: LinePortHandlers) => LinePort
  runtime: Runtime
  log: Log
}

const reconnect = { firstMs: 50, maxMs: 2000 }

/**
 * The user's end of a GPIO socket: lines with levels that the chip pushes. It reconnects without end. While there is no connection
 * `read` is `undefined` and `write` false: nothing is queued (I2).
 */
export class GpioClient implements GpioLines {
  readonly #options: GpioClientOptions
  readonly #updated: (() => void)[] = []
  readonly #watchers = new Watchers()
  #lines: Map<string, GpioLineState> | undefined
  #port: LinePort | undefined
  #attempt = 0
  #closed = false
  #cancelTimer: Cancel = () => {}
  readonly #failures: RepeatedLine

  constructor(options: GpioClientOptions) {
    this.#options = options
    this.#failures = new RepeatedLine({ log: options.log, clock: options.runtime.clock })
    this.#connect()
  }

  /** The lines as the chip reported them last; `undefined` while there is no connection. */
  lines(): readonly GpioLineState[] | undefined {
    return this.#lines && [...this.#lines.values()]
  }

  /** Calls `listener` after every message that may have changed a line, and when the connection starts or ends. */
  onUpdate(listener: () => void): void {
    this.#updated.push(listener)
  }

  read(name: string): Level | undefined {
    return this.#lines?.get(name)?.level
  }

  write(name: string, level: Level): boolean {
    const state = this.#lines?.get(name)
    if (!state || state.direction !== 'out') return false
    const message: GpioUserMessage = { type: 'drive', name, level }
    if (!this.#port?.write(JSON.stringify(message))) return false
    // Holds until the chip answers, which it always does.
    this.#lines?.set(name, { ...state, level, driven: true })
    return true
  }

  watch(name: string, listener: () => void): Cancel {
    return this.#watchers.add(name, listener)
  }

  problem(): LinesProblem | undefined {
    const { failing } = this.#failures
    return failing && { reason: `the GPIO socket: ${failing.reason}`, isFinal: false }
  }

  close(): void {
    this.#closed = true
    this.#cancelTimer()
    this.#port?.close()
    this.#port = undefined
    this.#lines = undefined
  }

  #connect(): void {
    const current = this.#options.open({
      onOpen() {},
      onLine: (line) => {
        if (current === this.#port) this.#receive(line)
      },
      onClose: (reason) => {
        if (current === this.#port) this.#lost(reason)
      },
    })
    this.#port = current
    this.#listen()
  }

  /** Closes the connection if the chip sends nothing in time. */
  #listen(): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.runtime.clock.after(GPIO_SILENT_MS, () => {
      this.#port?.close()
      this.#lost('silent')
    })
  }

  #lost(reason: string): void {
    this.#cancelTimer()
    this.#port = undefined
    if (this.#closed) return
    this.#failures.failed(reason, {}, 'the GPIO socket is lost')
    const names = [...(this.#lines?.keys() ?? [])]
    this.#lines = undefined
    const { clock, random } = this.#options.runtime
    this.#cancelTimer = clock.after(backoffMs(this.#attempt, reconnect, random), () => this.#connect())
    this.#attempt += 1
    this.#notify(names)
  }

  #receive(line: string): void {
    const { log } = this.#options
    const message = parseGpioMessage(GpioChipMessage, line)
    if (message === undefined) {
      this.#port?.close()
      this.#lost('not a message of the GPIO socket')
      return
    }
    this.#listen()
    switch (message.type) {
      case 'alive':
        return
      case 'refused':
        log.error({ line: message.name, reason: message.reason }, 'the chip refused to drive a line')
        return
      case 'lines':
        this.#attempt = 0
        this.#lines = new Map(message.lines.map((line) => [line.name, line]))
        this.#failures.succeeded({}, 'the GPIO socket answers again')
        log.info({ lines: this.#lines.size }, 'the GPIO socket is connected')
        this.#notify([...this.#lines.keys()])
        return
      case 'level': {
        const state = this.#lines?.get(message.name)
        if (!state || state.level === message.level) return
        this.#lines?.set(message.name, { ...state, level: message.level })
        this.#notify([message.name])
        return
      }
    }
  }

  #notify(names: readonly string[]): void {
    for (const listener of this.#updated) listener()
    for (const name of names) this.#watchers.notify(name)
  }
}
