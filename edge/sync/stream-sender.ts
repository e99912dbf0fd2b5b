import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { Ack, ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import {
  bytesOfLargest,
  initialSender,
  isOurs,
  stepSender,
  type SenderEvent,
  type SenderLimits,
  type SenderState,
} from '../../protocol/stream/sender.ts'
import type { Outbox, OutboxSlice, OutboxStream } from '../journal/outbox.ts'

interface StreamSenderOptions {
  stream: OutboxStream
  outbox: Outbox
  clock: Clock
  checkpoint: Checkpoint
  /** The limits may change while the connection lasts (`Reach`). */
  limits: () => SenderLimits
  /** The cloud has acknowledged progress. `bytes`: the size of the largest acknowledged batch. */
  onProgress: (bytes: number) => void
  /** Milliseconds that new entries wait for others. */
  lingerMs: number
  publish: (payload: string) => void
  /**
   * The cloud's history differs from this store's: a new epoch is due. `isAhead`: the cloud has entries that
   * this store never wrote.
   */
  onFork: (isAhead: boolean) => void
  /** The outbox has started a new epoch: only a new hello announces it. */
  onNewEpoch: () => void
  /** Nothing has been acknowledged for long: a hello requests the cloud's position. */
  onAsk: () => void
}

/** The outbox's position in a hello. */
interface Announcement {
  /** Identifies the hello: its time on the monotonic clock. */
  helloAt: number
  epoch: string
  base: number
  /** Number of the last entry sent before it on this connection. */
  sent: number
}

/** Minimum size of an entry in a batch. */
const LEAST_BYTES = 48

/** Number of unanswered hellos that are stored. */
const REMEMBERED = 32

/** The hub's sender of one stream over one connection: `stepSender` with its store, timer and connection. */
export class StreamSender {
  readonly #options: StreamSenderOptions
  /** The hellos since the last answered one. */
  #announced: Announcement[] = []
  #state: SenderState
  #cancelTimer: Cancel | undefined
  #cancelLinger: Cancel | undefined
  #isCloudAhead = false

  constructor(options: StreamSenderOptions) {
    this.#options = options
    this.#state = initialSender(this.#position())
  }

  /** Whether the cloud's position is in this store's history. */
  knows(position: ReceiverPosition): boolean {
    const now = this.#position()
    return position.epoch === now.epoch && this.#isOurs(position, now)
  }

  /**
   * Whether the cloud has entries of this epoch that this store never wrote: the store is a copy, or a copy
   * of it was used.
   */
  isAhead(position: ReceiverPosition): boolean {
    const now = this.#position()
    return position.epoch === now.epoch && !this.#isOurs(position, now)
  }

  /** The outbox's position, for a hello. The welcome that answers the hello is compared with it. */
  announce(helloAt: number): SenderPosition {
    const position = this.#position()
    const { epoch, base } = position
    const hello = { helloAt, epoch, base, sent: this.#state.sent }
    this.#announced = [...this.#announced, hello].slice(-REMEMBERED)
    return position
  }

  /**
   * Whether a welcome to this hello is valid: the hello was sent after the last answered one, and the outbox
   * has not started another epoch since.
   */
  isAnswerable(helloAt: number): boolean {
    return this.#announcement(helloAt) !== undefined
  }

  /** Continues at the cloud's position from its welcome. A position outside this store's history is a fork. */
  welcomed(position: ReceiverPosition, helloAt: number): void {
    // The sender of a lossy stream has overwritten entries that the cloud still expects; it continues with
    // the entries that it has.
    const { base = 0, sent: sentBefore = 0 } = this.#announcement(helloAt) ?? {}
    const atLeast = this.#options.stream === 'telemetry' ? 0 : base
    this.#announced = this.#announced.filter((hello) => hello.helloAt > helloAt)
    this.#isCloudAhead = this.isAhead(position)
    const ours = this.knows(position)
    this.#dispatch({ type: 'connected', cursor: position.cursor, ours, atLeast, sentBefore })
  }

  acked(ack: Ack): void {
    this.#isCloudAhead = this.isAhead(ack)
    this.#dispatch({ ...ack, type: 'acked', ours: this.knows(ack), atMs: this.#options.clock.monotonic() })
  }

  /** Whether an entry was sent on this connection and not acknowledged. */
  isWaiting(): boolean {
    return this.#state.outstanding.length > 0
  }

  /** The outbox has changed. */
  refresh(): void {
    const now = this.#position()
    if (now.epoch !== this.#state.epoch) {
      this.#disarm()
      this.#state = initialSender(now)
      this.#options.onNewEpoch()
      return
    }
    if (now.base > this.#state.base) this.#dispatch({ type: 'overwritten', through: now.base })
    this.#cancelLinger ??= this.#options.clock.after(this.#options.lingerMs, () => {
      this.#cancelLinger = undefined
      this.#dispatch({ type: 'appended', last: this.#position().last })
    })
  }

  stop(): void {
    this.#disarm()
    this.#cancelLinger?.()
  }

  #position(): SenderPosition {
    return this.#options.outbox.position(this.#options.stream)
  }

  /** Whether a position of the same epoch is in this store's history. */
  #isOurs(position: ReceiverPosition, now: SenderPosition): boolean {
    const { outbox, stream } = this.#options
    return isOurs(position, now, (seq) => outbox.tagAt(stream, seq))
  }

  #announcement(helloAt: number): Announcement | undefined {
    const { epoch } = this.#position()
    return this.#announced.find((hello) => hello.helloAt === helloAt && hello.epoch === epoch)
  }

  #disarm(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #dispatch(event: SenderEvent): void {
    const { stream, outbox, clock, limits, onProgress, onAsk, onFork } = this.#options
    const before = this.#state
    const step = stepSender(before, event, limits())
    this.#state = step.state
    if (event.type === 'acked' && this.#state.base > before.base)
      onProgress(bytesOfLargest(before.outstanding, this.#state.base))
    for (const effect of step.effects)
      switch (effect.type) {
        case 'send':
          this.#send(effect.first, effect.entries, effect.bytes)
          break
        case 'forget':
          outbox.forget(stream, effect.through)
          break
        case 'arm':
          this.#disarm()
          this.#cancelTimer = clock.after(effect.afterMs, () => {
            this.#cancelTimer = undefined
            this.#dispatch({ type: 'timeout' })
          })
          break
        case 'disarm':
          this.#disarm()
          break
        case 'ask':
          onAsk()
          break
        case 'fork':
          onFork(this.#isCloudAhead)
          break
      }
  }

  #send(first: number, count: number, maxBytes: number): void {
    const { stream, outbox, checkpoint, publish, clock } = this.#options
    const slice = outbox.read(stream, first, Math.min(count, Math.ceil(maxBytes / LEAST_BYTES)))
    const batch = batchOf(slice, first, this.#state.epoch, maxBytes)
    if (!batch) return
    checkpoint('sync.before-send')
    publish(batch.payload)
    checkpoint('sync.after-send')
    this.#dispatch({ type: 'sent', last: batch.last, bytes: batch.bytes, atMs: clock.monotonic() })
  }
}

/** As many entries as fit into `maxBytes`, at least one. Stored bodies are spliced in unchanged. */
function batchOf(
  { entries, oldest, previousTag }: OutboxSlice,
  first: number,
  epoch: string,
  maxBytes: number,
): { payload: string; last: number; bytes: number } | undefined {
  const texts: string[] = []
  let bytes = 0
  for (const { tag, body } of entries) {
    const text = `{"tag":${tag},"body":${body}}`
    const size = Buffer.byteLength(text)
    if (texts.length > 0 && bytes + size > maxBytes) break
    texts.push(text)
    bytes += size
  }
  if (texts.length === 0) return undefined
  const head = JSON.stringify({ epoch, first, previousTag, oldest }).slice(0, -1)
  return { payload: `${head},"entries":[${texts.join(',')}]}`, last: first + texts.length - 1, bytes }
}
