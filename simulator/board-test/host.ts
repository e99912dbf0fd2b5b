import { randomHex, uuidv7 } from '../../protocol/model/ids.ts'
import { every, sleep, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import { decodeFrame, encodeFrame, opOfUuid } from '../../protocol/serial/codec.ts'
import {
  acknowledged,
  SERIAL_PROTOCOL_VERSION,
  type Frame,
  type FrameBody,
  type FrameOf,
  type FrameType,
  type Refusal,
} from '../../protocol/serial/frames.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'

/** A rule does not hold: a sentence with the expectation and the observation. */
export class Broken extends Error {}

/** A rule cannot be tested here, with the reason. */
export class Unasked extends Error {}

/** Throws `Broken` if the condition does not hold. */
export function expect(holds: unknown, expected: string): asserts holds {
  if (!holds) throw new Broken(expected)
}

/** A frame without its sequence number. */
export type Body = { [T in FrameType]: { type: T } & FrameBody<T> }[FrameType]

/** A received line and its time. */
export interface Heard {
  at: number
  line: string
  frame: Frame | undefined
}

export type Result = FrameBody<'RES'>
/** The result of a command, or its refusal. */
export type Outcome = (Result & { refused?: undefined }) | { refused: Refusal }

const ANSWER_MS = 2000
const REPEAT_MS = 400
const REOPEN_MS = 30_000
const PING_MS = 1000
/** Longer than any motion of a hub lasts. */
export const MOTION_MS = 60_000

export interface HostOptions {
  openPort: OpenLinePort
  path: string
  baudRate: number
  runtime: Runtime
}

/**
 * The host's end of the line. It behaves as each rule needs: it repeats, falls silent, delays acknowledgements, or
 * sends noise.
 */
export class Host {
  /** Every line since the test began. */
  readonly heard: Heard[] = []
  /** Which frames the host acknowledges. */
  acknowledges: (frame: Frame) => boolean = () => true
  pings = true
  session = ''
  readonly #options: HostOptions
  #port: LinePort | undefined
  #isOpen = false
  #seq: number
  #closed = ''
  #stopPings: Cancel = () => {}

  constructor(options: HostOptions) {
    this.#options = options
    this.#seq = Math.floor(options.runtime.random.fraction() * 0x10000)
  }

  get now(): number {
    return this.#options.runtime.clock.monotonic()
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Opens the port. Retries for a while, because the port of a USB board disappears when the board loses power. */
  async open(): Promise<void> {
    this.close()
    const { openPort, path, baudRate } = this.#options
    const end = this.now + REOPEN_MS
    do {
      this.#closed = ''
      this.#port = openPort(
        { path, baudRate },
        {
          onOpen: () => void (this.#isOpen = true),
          onClose: (reason) => {
            this.#isOpen = false
            this.#closed = reason
          },
          onLine: (line) => this.#take(line),
        },
      )
      await this.until(() => this.#isOpen || this.#closed !== '', ANSWER_MS)
      if (this.#isOpen) {
        this.#stopPings = every(this.#options.runtime.clock, PING_MS, () => {
          if (this.pings) this.send({ type: 'PING', t: Math.floor(this.now) % 1e9 })
        })
        return
      }
      await this.pass(500)
    } while (this.now < end)
    throw new Unasked(`the port ${path} cannot be opened: ${this.#closed || 'no answer'}`)
  }

  close(): void {
    this.#stopPings()
    this.#port?.close()
    this.#isOpen = false
  }

  #take(line: string): void {
    const decoded = decodeFrame(line)
    const frame = decoded.ok ? decoded.frame : undefined
    this.heard.push({ at: this.now, line, frame })
    if (frame && acknowledged.has(frame.type) && this.acknowledges(frame))
      this.send({ type: 'ACK', s: frame.seq })
  }

  /** Sends a line without its line feed. */
  sendLine(line: string): void {
    this.#port?.write(line)
  }

  /** Encodes a frame with the next number and sends it. */
  send(body: Body): { seq: number; line: string } {
    const made = this.frame(body)
    this.sendLine(made.line)
    return made
  }

  /** Encodes a frame with the next number. */
  frame(body: Body): { seq: number; line: string } {
    const seq = this.#seq
    this.#seq = (seq + 1) % 0x10000
    return { seq, line: encodeFrame({ seq, ...body }) }
  }

  pass(ms: number): Promise<void> {
    return sleep(this.#options.runtime.clock, ms)
  }

  /** Whether the condition holds within `ms`; polls every few milliseconds. */
  async until(holds: () => boolean, ms: number): Promise<boolean> {
    const end = this.now + ms
    while (!holds()) {
      if (this.now >= end) return false
      await this.pass(5)
    }
    return true
  }

  /** Frames of a type after the first `from` lines. */
  of<T extends FrameType>(type: T, from = 0): FrameOf<T>[] {
    return this.heard.slice(from).flatMap(({ frame }) => (frame?.type === type ? [frame as FrameOf<T>] : []))
  }

  /** The answer to the frame with this number after the first `from` lines. */
  answerTo(seq: number, from = 0): FrameOf<'ACK'> | FrameOf<'NAK'> | undefined {
    return [...this.of('ACK', from), ...this.of('NAK', from)].find(({ s }) => s === seq)
  }

  /** Sends and repeats a frame as a host does, and returns `ok` or the refusal. */
  async ask(body: Body): Promise<'ok' | Refusal> {
    const from = this.heard.length
    const { seq, line } = this.send(body)
    for (const end = this.now + ANSWER_MS; this.now < end; this.sendLine(line)) {
      if (await this.until(() => this.answerTo(seq, from) !== undefined, REPEAT_MS)) {
        const answer = this.answerTo(seq, from)!
        return answer.type === 'ACK' ? 'ok' : answer.why
      }
    }
    throw new Broken(`${body.type} was answered with neither ACK nor NAK within ${ANSWER_MS} ms (SPEC §4)`)
  }

  /** As `ask`; the board must accept the frame. `what`: the frame, for the message. */
  async accepted(body: Body, what: string = body.type): Promise<void> {
    const answer = await this.ask(body)
    expect(answer === 'ok', `${what} must be acknowledged; it was refused: ${answer}`)
  }

  /** As `accepted`; then waits for the answer that `find` sees after the first `from` lines. */
  async answered<T>(
    body: Body,
    find: (from: number) => T | undefined,
    { with: expected, withinMs = ANSWER_MS }: { with: string; withinMs?: number },
  ): Promise<T> {
    const from = this.heard.length
    await this.accepted(body)
    await this.until(() => find(from) !== undefined, withinMs)
    const found = find(from)
    expect(found, `${body.type} must be answered with ${expected}; none came within ${withinMs} ms`)
    return found
  }

  newOperation(): string {
    return opOfUuid(uuidv7(this.#options.runtime))
  }

  newId(): string {
    return randomHex(this.#options.runtime.random, 4)
  }

  /** Begins a session; returns its acknowledged WELCOME. */
  async greet(session = this.newId()): Promise<FrameOf<'WELCOME'>> {
    this.acknowledges = () => true
    this.pings = true
    this.session = session
    return this.answered(
      { type: 'HELLO', proto: SERIAL_PROTOCOL_VERSION, host: session },
      (from) => this.of('WELCOME', from).find(({ host }) => host === session),
      { with: `WELCOME host=${session} (SPEC §5)` },
    )
  }

  /** A command of this session. */
  command(fields: Omit<FrameBody<'CMD'>, 'host' | 'max'> & { host?: string; max?: number }): Body {
    return { type: 'CMD', host: this.session, max: MOTION_MS, ...fields }
  }

  /** The last RES of an operation since `from`. */
  resultOf(op: string, from = 0): FrameOf<'RES'> | undefined {
    return this.of('RES', from).findLast((result) => result.op === op)
  }

  /** Waits for the operation's end. */
  async ended(op: string, from: number, ms = MOTION_MS + 5000): Promise<Result> {
    const found = () => this.of('RES', from).find((result) => result.op === op && result.state !== 'running')
    await this.until(() => found() !== undefined, ms)
    const result = found()
    expect(
      result,
      `an operation that was acknowledged must end with RES; none came within ${ms} ms (SPEC §6)`,
    )
    return result
  }

  /** Commands a motion and waits for its end. */
  async perform(fields: Parameters<Host['command']>[0]): Promise<Outcome> {
    const from = this.heard.length
    const answer = await this.ask(this.command(fields))
    return answer === 'ok' ? this.ended(fields.op, from) : { refused: answer }
  }

  /** Sends QRY for an operation. */
  query(op: string): Promise<Result> {
    return this.answered({ type: 'QRY', op }, (from) => this.resultOf(op, from), { with: 'RES' })
  }

  async list(n: number): Promise<{ operations: FrameOf<'OPS'>[]; end: number }> {
    const from = this.heard.length
    const end = await this.answered({ type: 'LST', n }, (since) => this.of('END', since)[0], {
      with: 'OPS and END',
      withinMs: 20_000,
    })
    const operations = new Map(this.of('OPS', from).map((one) => [one.op, one]))
    return { operations: [...operations.values()], end: end.n }
  }

  /** The state of a device by its events after the first `from` lines. */
  sensed(dev: string, from = 0): Partial<FrameOf<'EVT'>> {
    return Object.assign({}, ...this.of('EVT', from).filter((event) => event.dev === dev)) as Partial<
      FrameOf<'EVT'>
    >
  }
}
