import { decodeFrame, encodeFrame, crc16 } from '../../../protocol/serial/codec.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { Frame, FrameBody, FrameOf } from '../../../protocol/serial/frames.ts'

type Reply = Extract<Frame, { type: 'WELCOME' | 'RES' | 'OPS' | 'END' | 'EVT' }>
type Body<F extends Frame = Reply> = F extends Frame ? Omit<F, 'seq'> : never

/**
 * The smallest controller that follows the protocol: one motion per operation id, one answer per sequence
 * number, own frames repeated until acknowledged. It survives connections, as a board survives the hub's
 * service.
 */
export class ScriptedController {
  /** The operation id of each motion, independent of the hub's reports. */
  readonly motions: string[] = []
  readonly hosts: string[] = []
  readonly naks: FrameBody<'NAK'>[] = []
  boot = 'b0000001'
  memory = 'aaaaaaaa'
  motionMs = 100
  /** Neither sends nor receives. */
  mute = false
  /** Refuses commands for this reason. */
  refuse: FrameBody<'NAK'>['why'] | undefined
  /** The sequence number of the next frame. */
  seq = 0
  readonly #clock: Clock
  readonly #results = new Map<string, { result: FrameBody<'RES'>; command: FrameOf<'CMD'> }>()
  #answers = new Map<number, Body<FrameOf<'ACK'> | FrameOf<'NAK'>>>()
  #send: (line: string) => void = () => {}
  #host = ''
  #unacknowledged = new Map<number, string>()
  #events = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  connect(send: (line: string) => void): void {
    this.#send = send
  }

  receive(line: string): void {
    const decoded = decodeFrame(line)
    if (this.mute || !decoded.ok) return
    const { frame } = decoded
    if (frame.type === 'HELLO') return this.#greet(frame)
    if (frame.type === 'NAK') this.naks.push({ s: frame.s, why: frame.why })
    if (frame.type === 'ACK' || frame.type === 'NAK') return void this.#unacknowledged.delete(frame.s)
    if (frame.type === 'PING') return this.#write({ type: 'PONG', t: frame.t })
    if (frame.type === 'FWQ') return this.#write({ type: 'NAK', s: frame.seq, why: 'unsupported' })
    if (frame.type !== 'CMD' && frame.type !== 'QRY' && frame.type !== 'LST') return
    const known = this.#answers.get(frame.seq)
    if (known) return this.#write(known)
    const refusal = frame.type === 'CMD' ? this.#refusal(frame) : undefined
    const answer = refusal
      ? ({ type: 'NAK', s: frame.seq, why: refusal } as const)
      : ({ type: 'ACK', s: frame.seq } as const)
    this.#answers.set(frame.seq, answer)
    this.#write(answer)
    if (refusal) return
    if (frame.type === 'CMD') this.#perform(frame)
    if (frame.type === 'QRY') this.#reply({ type: 'RES', ...this.#outcome(frame.op) })
    if (frame.type === 'LST') this.#list(frame.n)
  }

  report(fields: Omit<FrameBody<'EVT'>, 'ev'>): void {
    this.#reply({ type: 'EVT', ev: ++this.#events, ...fields })
  }

  restart(boot: string): void {
    this.boot = boot
    this.#host = ''
    this.#unacknowledged = new Map()
  }

  /** Reports that it started, as in SPEC §5. */
  announce(): void {
    const fields = { proto: 2, fw: 'test-1', boot: this.boot, mem: this.memory, count: this.#results.size }
    this.#write({ type: 'WELCOME', host: '00000000', ...fields })
  }

  /** Sends a line with a valid checksum and any content. */
  say(text: string): void {
    this.#send(`${text}*${crc16(text).toString(16).padStart(4, '0')}`)
  }

  #greet({ host, proto }: FrameOf<'HELLO'>): void {
    if (this.#host !== host) {
      this.#answers = new Map()
      this.#unacknowledged = new Map()
      this.hosts.push(host)
    } else if ([...this.#unacknowledged.values()].some((line) => line.includes('WELCOME'))) return
    this.#host = host
    const last = [...this.#results.keys()].at(-1)
    const count = this.#results.size
    const fields = { fw: 'test-1', boot: this.boot, mem: this.memory, count }
    this.#reply({ type: 'WELCOME', proto, host, ...fields, ...(last && { last }) })
  }

  #refusal(frame: FrameOf<'CMD'>): FrameBody<'NAK'>['why'] | undefined {
    return frame.host === this.#host ? this.refuse : 'stale_host'
  }

  #perform(command: FrameOf<'CMD'>): void {
    const known = this.#results.get(command.op)
    if (known) return this.#reply({ type: 'RES', ...known.result })
    this.motions.push(command.op)
    const result = { op: command.op, state: 'done', moved: true, drops: 0, ms: this.motionMs } as const
    this.#results.set(command.op, { result: { ...result, state: 'running', ms: 0 }, command })
    this.#clock.after(this.motionMs, () => {
      this.#results.set(command.op, { result, command })
      this.#reply({ type: 'RES', ...result })
    })
  }

  #outcome(op: string): FrameBody<'RES'> {
    return this.#results.get(op)?.result ?? { op, state: 'none', moved: false, drops: 0, ms: 0 }
  }

  #list(count: number): void {
    const newest = [...this.#results.values()].slice(-count)
    for (const { result, command } of newest) {
      const { dev, act, ref } = command
      this.#reply({ type: 'OPS', ...result, dev, act, ...(ref && { ref }) })
    }
    this.#reply({ type: 'END', n: newest.length })
  }

  #reply(body: Body): void {
    const { line, seq } = this.#encode(body)
    this.#unacknowledged.set(seq, line)
    this.#repeat(seq, line, 25)
  }

  #repeat(seq: number, line: string, afterMs: number): void {
    if (this.#unacknowledged.get(seq) !== line) return
    if (!this.mute) this.#send(line)
    this.#clock.after(afterMs, () => this.#repeat(seq, line, Math.min(400, afterMs * 2)))
  }

  #write(body: Body<FrameOf<'ACK' | 'NAK' | 'PONG' | 'WELCOME'>>): void {
    this.#send(this.#encode(body).line)
  }

  #encode(body: Body<Frame>): { line: string; seq: number } {
    const seq = this.seq
    this.seq = (seq + 1) % 0x10000
    return { line: encodeFrame({ seq, ...body }), seq }
  }
}
