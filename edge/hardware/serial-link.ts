import { backoffMs, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import type { ControllerDescription } from '../../protocol/model/hardware.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Log } from '../../protocol/model/log.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import { decodeFrame, encodeFrame, uuidOfOp } from '../../protocol/serial/codec.ts'
import type { FrameOf } from '../../protocol/serial/frames.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'
import { deviceEventOf, identityOf, outcomeOf, storedOf, type ControllerEvents } from './controller-events.ts'
import { stepLink } from './link-machine.ts'
import type { LinkSettings } from '../../protocol/settings/hub-limits.ts'
import {
  initialLink,
  type Delivered,
  type LinkEffect,
  type LinkEvent,
  type LinkState,
  type Request,
  type Timer,
} from './link-state.ts'

export interface SerialLinkOptions {
  description: ControllerDescription
  openPort: OpenLinePort
  runtime: Runtime
  log: Log
  settings: LinkSettings
}

/** A handler cannot process a frame now: the controller must repeat it. */
export class NotTakenError extends Error {
  override name = 'NotTakenError'
}

/** The shell around `link-machine.ts`: owns one controller's port, its timers, and the order of effects. */
export class SerialLink {
  readonly #options: SerialLinkOptions
  readonly #events: ControllerEvents
  readonly #timers: Record<Timer, Cancel | undefined> = { retry: undefined, pulse: undefined }
  readonly #inbox: LinkEvent[] = []
  #state: LinkState = initialLink
  #port: LinePort | undefined
  #running = false
  readonly #failures: RepeatedLine

  /** Number of lost connections since the start. */
  losses = 0
  /** Number of lines since the start that are no frames, or are damaged. */
  unreadable = 0

  constructor(options: SerialLinkOptions, events: ControllerEvents) {
    this.#options = options
    this.#events = events
    this.#failures = new RepeatedLine({ log: options.log, clock: options.runtime.clock })
  }

  get #id(): string {
    return this.#options.description.id
  }

  start(): void {
    this.#dispatch({ type: 'start' })
  }

  stop(): void {
    this.#dispatch({ type: 'stop' })
  }

  /** Drops the connection and opens a new one after the usual pause. */
  reopen(reason: string): void {
    this.#dispatch({ type: 'reopen', reason })
  }

  /** The controller's WELCOME of this connection; `undefined` while the controller is not up. */
  get welcome(): FrameOf<'WELCOME'> | undefined {
    return this.#state.phase === 'up' ? this.#state.welcome : undefined
  }

  /** Why the controller is not up; `undefined` while it is up, and before the first failure. */
  get problem(): string | undefined {
    return this.#failures.failing?.reason
  }

  /** Queues a request. Returns false if the line is not up: then nothing was queued. */
  submit(request: Request): boolean {
    if (this.#state.phase !== 'up') return false
    this.#dispatch({ type: 'submit', request })
    return true
  }

  /** Handles one event at a time. Events from handlers and ports during that time are queued. */
  #dispatch(event: LinkEvent): void {
    this.#inbox.push(event)
    if (this.#running) return
    this.#running = true
    try {
      for (let next = this.#inbox.shift(); next; next = this.#inbox.shift()) this.#step(next)
    } finally {
      this.#running = false
    }
  }

  #step(event: LinkEvent): void {
    const { runtime, settings } = this.#options
    const { state, effects } = stepLink(this.#state, event, runtime.clock.monotonic(), settings)
    this.#state = state
    for (const effect of effects) this.#perform(effect)
  }

  #perform(effect: LinkEffect): void {
    switch (effect.type) {
      case 'open':
        return this.#open()
      case 'renew':
        return this.#begin()
      case 'close':
        this.#port?.close()
        this.#port = undefined
        return
      case 'write':
        if (this.#port?.write(encodeFrame(effect.frame)) === false)
          this.#dispatch({ type: 'closed', reason: 'the port is not open' })
        return
      case 'arm':
        return this.#arm(effect.timer, effect.afterMs)
      case 'disarm':
        this.#timers[effect.timer]?.()
        return
      case 'back_off': {
        const { runtime, settings } = this.#options
        const pause = { firstMs: settings.reopenMs, maxMs: settings.maxReopenMs }
        return this.#arm('pulse', backoffMs(effect.attempt, pause, runtime.random))
      }
      case 'deliver':
        if (!this.#isTaken(effect.frame, effect.listed)) return
        // Runs before all queued events: the same frame may be queued a second time.
        return this.#step({ type: 'handled', frame: effect.frame })
      case 'refused':
        return this.#events.onRefused(this.#id, uuidOfOp(effect.command.op), effect.why)
      case 'answered':
        return this.#events.onAnswered?.(this.#id, effect.request, effect.why)
      case 'not_owned':
        return this.#note('warn', 'the controller does not take its owner', { why: effect.why })
      case 'down':
        this.#failures.failed(
          effect.reason,
          { controller: this.#id, port: this.#options.description.port },
          'controller is not connected',
        )
        if (!effect.wasUp) return
        this.losses += 1
        this.#events.onDown(this.#id, effect.reason, effect.boot)
    }
  }

  /**
   * Returns false if the handler could not process the frame. It is then not acknowledged, so that the
   * controller repeats it.
   */
  #isTaken(frame: Delivered, listed: readonly FrameOf<'OPS'>[]): boolean {
    try {
      this.#deliver(frame, listed)
      return true
    } catch (error) {
      if (!(error instanceof NotTakenError)) throw error
      // The controller repeats results and events until they are acknowledged. Frames that it sends once are
      // sent again on a new connection.
      if (frame.type === 'WELCOME' || frame.type === 'END')
        this.reopen(`a frame could not be handled: ${error.message}`)
      return false
    }
  }

  #deliver(frame: Delivered, listed: readonly FrameOf<'OPS'>[]): void {
    switch (frame.type) {
      case 'WELCOME':
        this.#failures.succeeded({ controller: this.#id }, 'the controller answers again')
        this.#note('info', 'controller is up', {
          firmware: frame.fw,
          protocol: frame.proto,
          boot: frame.boot,
          memory: frame.mem,
        })
        return this.#events.onUp(this.#id, identityOf(frame))
      case 'RES':
        return this.#events.onResult(this.#id, outcomeOf(frame))
      case 'EVT':
        return this.#events.onDevice(this.#id, deviceEventOf(frame, this.welcome?.boot ?? ''))
      case 'END':
        return this.#events.onListed(this.#id, listed.map(storedOf))
      case 'FW':
        return this.#events.onFirmware?.(this.#id, frame)
    }
  }

  #open(): void {
    const { description, openPort } = this.#options
    // Ignores events of a port that is no longer the current one.
    const port: LinePort = openPort(
      { path: description.port, baudRate: description.baudRate },
      {
        onOpen: () => {
          if (this.#port === port) this.#begin()
        },
        onLine: (line) => {
          if (this.#port === port) this.#receive(line)
        },
        onClose: (reason) => {
          if (this.#port === port) this.#dispatch({ type: 'closed', reason })
        },
      },
    )
    this.#port = port
  }

  /** Starts a session on the open port. */
  #begin(): void {
    const { random } = this.#options.runtime
    const [high, low] = random.bytes(2)
    this.#dispatch({ type: 'opened', host: randomHex(random, 4), seq: high! * 256 + low! })
  }

  #receive(line: string): void {
    const decoded = decodeFrame(line)
    if (decoded.ok) return this.#dispatch({ type: 'received', frame: decoded.frame })
    // Damaged lines happen, and the controller repeats them. A complete but unreadable frame is refused,
    // because the controller would repeat it without end.
    const { error, seq } = decoded
    this.unreadable += 1
    this.#note('debug', 'line not understood', { error })
    if (seq === undefined) return
    const why = error === 'unknown_type' ? 'unsupported' : 'bad_argument'
    this.#dispatch({ type: 'unreadable', seq, why })
  }

  #arm(timer: Timer, afterMs: number): void {
    this.#timers[timer]?.()
    this.#timers[timer] = this.#options.runtime.clock.after(afterMs, () =>
      this.#dispatch({ type: 'timer', timer }),
    )
  }

  #note(level: keyof Log, message: string, fields: object): void {
    this.#options.log[level]({ controller: this.#id, ...fields }, message)
  }
}
