import { decodeFrame, encodeFrame, opOfUuid } from '../../protocol/serial/codec.ts'
import {
  acknowledged,
  SERIAL_PROTOCOL_VERSION,
  type Frame,
  type FrameOf,
  type FrameType,
} from '../../protocol/serial/frames.ts'
import { every, type Clock } from '../../protocol/model/runtime.ts'
import type { LinePort } from '../../protocol/serial/line-port.ts'
import type { SimulatedHub } from '../../simulator/simulated-hub.ts'

/**
 * A host that is driven by the test: it sends each frame once, and acknowledges and pings only if the test
 * asks for it.
 */
export class TestHost {
  readonly received: Frame[] = []
  acknowledges = true
  pings = true
  host: string
  #seq: number
  #port: LinePort

  constructor(hub: SimulatedHub, path: string, clock: Clock, options: { host?: string; seq?: number } = {}) {
    this.host = options.host ?? '11111111'
    this.#seq = options.seq ?? 0
    this.#port = hub.openPort(
      { path, baudRate: 115_200 },
      {
        onOpen: () => void every(clock, 1000, () => this.pings && this.send({ type: 'PING', t: 0 })),
        onClose: () => {},
        onLine: (line) => this.#take(line),
      },
    )
  }

  #take(line: string): void {
    const decoded = decodeFrame(line)
    if (!decoded.ok) return
    this.received.push(decoded.frame)
    if (this.acknowledges && acknowledged.has(decoded.frame.type))
      this.send({ type: 'ACK', s: decoded.frame.seq })
  }

  /** Sends a frame and returns its line. */
  send(body: Record<string, unknown> & { type: FrameType }): string {
    const line = encodeFrame({ seq: this.#seq, ...body } as Frame)
    this.#seq = (this.#seq + 1) % 0x10000
    this.#port.write(line)
    return line
  }

  sendLine(line: string): void {
    this.#port.write(line)
  }

  hello(host = this.host, proto = SERIAL_PROTOCOL_VERSION): void {
    this.host = host
    this.send({ type: 'HELLO', proto, host })
  }

  command(fields: Record<string, unknown> & { op: string; dev: string; act: string }): string {
    return this.send({ type: 'CMD', host: this.host, max: 20_000, ...fields })
  }

  query(op: string): void {
    this.send({ type: 'QRY', op })
  }

  of<T extends FrameType>(type: T): FrameOf<T>[] {
    return this.received.filter((frame) => frame.type === type) as FrameOf<T>[]
  }

  last<T extends FrameType>(type: T): FrameOf<T> | undefined {
    return this.of(type).at(-1)
  }

  close(): void {
    this.pings = false
    this.#port.close()
  }
}

/** The n-th operation id of a test. */
export const operation = (n: number): string =>
  opOfUuid(`01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`)
