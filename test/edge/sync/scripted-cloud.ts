import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import type { Command, CommandResult } from '../../../protocol/mqtt/command.ts'
import {
  Ack,
  Batch,
  Heartbeat,
  Hello,
  type ReceiverPosition,
  type SenderPosition,
  type Welcome,
} from '../../../protocol/mqtt/session.ts'
import { downTopic, parseUpTopic } from '../../../protocol/mqtt/topics.ts'
import { MQTT_PROTOCOL_VERSION } from '../../../protocol/mqtt/version.ts'
import type { DownChannel } from '../../../protocol/mqtt/topics.ts'
import { judgeBatch, judgeEpoch } from '../../../protocol/stream/receiver.ts'
import { initialSender, isOurs, stepSender } from '../../../protocol/stream/sender.ts'
import type { SenderEvent, SenderLimits } from '../../../protocol/stream/sender.ts'
import type { Cancel } from '../../../protocol/model/runtime.ts'
import type { VirtualClock } from '../../world/clock.ts'
import type { Line } from './line.ts'

type StreamName = 'ledger' | 'telemetry'
const LIMITS: SenderLimits = {
  batchEntries: 3,
  batchBytes: 400,
  windowBytes: 1200,
  maxWindowBytes: 4000,
  promptMs: 1000,
  askMs: 2000,
  maxAskMs: 30_000,
}

interface Receiver {
  position: ReceiverPosition
  left: Set<string>
  applied: unknown[]
}
const newReceiver = (): Receiver => ({
  position: { epoch: null, cursor: 0, tag: 0 },
  left: new Set(),
  applied: [],
})

/** A cloud of one hub, in memory, which follows SPEC §3–§6 or the test's instructions. */
export class ScriptedCloud {
  readonly #line: Line
  readonly #clock: VirtualClock
  readonly streams = { ledger: newReceiver(), telemetry: newReceiver() }
  hellos: Hello[] = []
  heartbeats: Heartbeat[] = []
  results: CommandResult[] = []
  presences: string[] = []
  batches: Batch[] = []
  acks: Ack[] = []
  answersHello = true
  answersBatches = true
  wallMs = 1_800_000_000_000
  #entries: { tag: number; body: CloudEntry }[] = []
  #outbox: SenderPosition = { epoch: 'c0'.repeat(16), base: 0, baseTag: 0, last: 0 }
  #sender = initialSender(this.#outbox)
  #cancel: Cancel | undefined
  #tags = 1
  epochs = 1

  constructor(line: Line, clock: VirtualClock) {
    this.#line = line
    this.#clock = clock
    line.onUp = (topic, payload) => this.#receive(topic, payload)
  }

  get unsent(): number {
    return this.#sender.last - this.#sender.base
  }
  get session(): string {
    return this.hellos.at(-1)!.session
  }

  send(channel: DownChannel, message: unknown): void {
    this.#line.toHub(downTopic(1, channel), typeof message === 'string' ? message : JSON.stringify(message))
  }

  command(fields: Partial<Command> = {}): string {
    const command_id = `00000000-0000-4000-8000-${String(this.#tags++).padStart(12, '0')}`
    const { session, clock } = this.hellos.at(-1)!
    this.send('command', {
      command_id,
      session,
      expires_monotonic: clock.monotonic + 5000,
      body: { name: 'open_bin', bin: 1 },
      ...fields,
    } satisfies Command)
    return command_id
  }

  enqueue(...bodies: CloudEntry[]): void {
    for (const body of bodies) this.#entries.push({ tag: this.#tags++, body })
    this.#outbox.last += bodies.length
    this.#step({ type: 'appended', last: this.#outbox.last })
  }

  /** Starts a new epoch of the cloud's outbox, as `cloud/gateway` does if the hub's position does not fit. */
  newEpoch(): void {
    this.#cancel?.()
    this.epochs++
    const epoch = `c${this.#tags++}`.padEnd(32, '0')
    this.#outbox = { epoch, base: 0, baseTag: 0, last: this.#entries.length }
    this.#sender = initialSender(this.#outbox)
  }

  /** Replaces the ledger's position by that of an older copy of the database. */
  loseLedger(cursor: number, tag: number): void {
    const { position } = this.streams.ledger
    this.streams.ledger.position = { ...position, cursor, tag }
  }

  welcome(fields: Partial<Welcome> = {}): Welcome {
    const hello = this.hellos.at(-1)!
    const ledger = { ...this.streams.ledger.position, restart: false, left: false }
    const { position: telemetry } = this.streams.telemetry
    return {
      protocol: MQTT_PROTOCOL_VERSION,
      session: hello.session,
      answers: hello.clock.monotonic,
      ledger,
      telemetry,
      outbox: this.#outbox,
      clock: { wall: this.wallMs },
      ...fields,
    }
  }

  #receive(topic: string, payload: string): void {
    const parsed: unknown = JSON.parse(payload)
    switch (parseUpTopic(topic)!.channel) {
      case 'hello': {
        const hello = Hello.parse(parsed)
        if (this.#isOvertaken(hello)) return
        const isRepeated = this.hellos.at(-1)?.session === hello.session
        this.hellos.push(hello)
        if (this.answersHello) this.#onHello(hello, isRepeated)
        return
      }
      case 'heartbeat':
        this.heartbeats.push(Heartbeat.parse(parsed))
        return
      case 'presence':
        this.presences.push(payload)
        return
      case 'result':
        this.results.push(parsed as CommandResult)
        return
      case 'entries':
        return this.#onBatch('ledger', Batch.parse(parsed))
      case 'telemetry':
        return this.#onBatch('telemetry', Batch.parse(parsed))
      case 'ack':
        return this.#onAck(Ack.parse(parsed))
      case 'storage':
      case 'certificate':
      case 'diagnosis':
      case 'moved':
      case 'erased':
        throw new Error(`no hub of these tests sends ${topic}`)
    }
  }

  /** Whether a later hello of its session has come before it. */
  #isOvertaken(hello: Hello): boolean {
    const latest = this.hellos.findLast(({ session }) => session === hello.session)
    return latest !== undefined && hello.clock.monotonic <= latest.clock.monotonic
  }

  #onHello(hello: Hello, isRepeated: boolean): void {
    const restart = !this.#adopt('ledger', hello.ledger)
    this.#adopt('telemetry', hello.telemetry)
    const { epoch, cursor } = hello.inbox
    const isBehind = cursor < this.#outbox.base && !isRepeated
    const fits = epoch === this.#outbox.epoch && !isBehind && this.#isOurs(hello.inbox)
    if (!fits && (epoch !== null || this.#outbox.base > 0)) this.newEpoch()
    const { position } = this.streams.ledger
    this.send('welcome', this.welcome({ ledger: { ...position, restart, left: false } }))
    const at = fits ? hello.inbox : { cursor: 0, tag: 0 }
    const { cursor: from } = at
    this.#sender = initialSender(this.#outbox)
    this.#step({ type: 'connected', cursor: from, ours: this.#isOurs(at), atLeast: 0, sentBefore: 0 })
  }

  /** Whether the hub's sender continues after the applied entries. */
  #adopt(stream: StreamName, { epoch, base, baseTag, last }: SenderPosition): boolean {
    const receiver = this.streams[stream]
    const judged = judgeEpoch(receiver.position.epoch, epoch, (other) => receiver.left.has(other))
    if (judged === 'new') {
      if (base > 0) return false
      if (receiver.position.epoch !== null) receiver.left.add(receiver.position.epoch)
      receiver.position = { epoch, cursor: 0, tag: 0 }
    }
    const { cursor, tag } = receiver.position
    return judged !== 'left' && cursor >= base && cursor <= last && (cursor > base || tag === baseTag)
  }

  #onBatch(stream: StreamName, batch: Batch): void {
    this.batches.push(batch)
    if (!this.answersBatches) return
    const receiver = this.streams[stream]
    const tags = batch.entries.map((entry) => entry.tag)
    const verdict = judgeBatch(receiver.position, { ...batch, tags }, { lossy: stream === 'telemetry' })
    if (verdict.kind === 'foreign') return
    if (verdict.kind === 'apply') {
      receiver.applied.push(...batch.entries.slice(verdict.skip).map((entry) => entry.body))
      receiver.position = verdict.next
    }
    const { cursor, tag } = receiver.position
    const flags = { resend: verdict.kind === 'gap', fork: verdict.kind === 'fork' }
    const clock = { wall: this.wallMs }
    this.send('ack', { stream, epoch: batch.epoch, cursor, tag, ...flags, clock } satisfies Ack)
  }

  #onAck(ack: Ack): void {
    this.acks.push(ack)
    this.#step({ ...ack, type: 'acked', ours: this.#isOurs(ack), atMs: this.#clock.monotonic() })
  }

  #tagAt(seq: number): number | undefined {
    return seq === this.#outbox.base ? this.#outbox.baseTag : this.#entries[seq - this.#outbox.base - 1]?.tag
  }

  #isOurs(position: { cursor: number; tag: number }): boolean {
    return isOurs(position, this.#outbox, (seq) => this.#tagAt(seq))
  }

  #step(event: SenderEvent): void {
    const { state, effects } = stepSender(this.#sender, event, LIMITS)
    this.#sender = state
    for (const effect of effects)
      switch (effect.type) {
        case 'send': {
          const { epoch, base } = this.#outbox
          const start = effect.first - base - 1
          const entries = this.#entries.slice(start, start + effect.entries)
          const previousTag = this.#tagAt(effect.first - 1)!
          const head = { epoch, first: effect.first, previousTag, oldest: base + 1 }
          this.send('entries', { ...head, entries, clock: { wall: this.wallMs } } satisfies Batch)
          const last = start + base + entries.length
          const bytes = JSON.stringify(entries).length
          this.#step({ type: 'sent', last, bytes, atMs: this.#clock.monotonic() })
          break
        }
        case 'forget': {
          const baseTag = this.#tagAt(effect.through)!
          this.#entries.splice(0, effect.through - this.#outbox.base)
          this.#outbox = { ...this.#outbox, base: effect.through, baseTag }
          break
        }
        case 'arm':
          this.#cancel?.()
          this.#cancel = this.#clock.after(effect.afterMs, () => this.#step({ type: 'timeout' }))
          break
        case 'disarm':
          this.#cancel?.()
          break
        case 'ask':
        case 'fork':
          this.send('hail', { session: null })
          break
      }
  }
}
