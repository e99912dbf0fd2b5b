import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { Ack, ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import { bytesOfLargest } from '../../protocol/stream/reach.ts'
import { initialSender, isOurs, stepSender } from '../../protocol/stream/sender.ts'
import type { SenderEvent, SenderLimits } from '../../protocol/stream/sender.ts'
import type { Outbox, OutboxSlice, OutboxStream } from '../journal/outbox.ts'

export interface StreamSenderOptions {
  stream: OutboxStream
  outbox: Outbox
  clock: Clock
  checkpoint: Checkpoint
  /** They may shrink and grow while the connection lasts (`Reach`). */
  limits: () => SenderLimits
  /** The cloud has acknowledged progress; `bytes`: of the largest batch of it. */
  onProgress(bytes: number): void
  /** New entries wait so long for others. */
  lingerMs: number
  publish(payload: string): void
  /** The cloud's history is not this store's: a new epoch is due. `isAhead`: the cloud has what this store has never said. */
  onFork(isAhead: boolean): void
  /** The outbox has begun a new epoch: only a new hello announces it. */
  onNewEpoch(): void
  /** Nothing has been acknowledged for long: the cloud is asked where it stands, by a hello. */
  onAsk(): void
}

/** Where the outbox stood as a hello said it. */
interface Announcement {
  /** Which hello: its time on the monotonic clock. */
  helloAt: number
  epoch: string
  base: number
  /** What had been sent before it on this connection. */
  sent: number
}

/** The least that an entry takes in a batch: so many bytes hold no more entries than that. */
const LEAST_BYTES = 48

/** So many hellos that were not answered are remembered. */
const REMEMBERED = 32

export type StreamSender = ReturnType<typeof createStreamSender>

/** The hub's sender of one stream over one connection: `stepSender` with its store, its timer and its wire. */
export function createStreamSender(options: StreamSenderOptions) {
  const { stream, outbox, clock, checkpoint, limits, lingerMs } = options
  /** Of the hellos since the one that was answered last. */
  let announced: Announcement[] = []
  let state = initialSender(outbox.position(stream))
  let cancelTimer: Cancel | undefined
  let cancelLinger: Cancel | undefined
  let isCloudAhead = false
  const tagAt = (seq: number): number | undefined => outbox.tagAt(stream, seq)

  /** Whether the cloud's position lies in this store's history. */
  function knows(position: ReceiverPosition): boolean {
    const now = outbox.position(stream)
    return position.epoch === now.epoch && isOurs(position, now, tagAt)
  }

  /** Whether the cloud has entries of this epoch that this store has never written: the store is a copy, or has one. */
  function isAhead(position: ReceiverPosition): boolean {
    const now = outbox.position(stream)
    return position.epoch === now.epoch && !isOurs(position, now, tagAt)
  }

  function announcement(helloAt: number): Announcement | undefined {
    const { epoch } = outbox.position(stream)
    return announced.find((hello) => hello.helloAt === helloAt && hello.epoch === epoch)
  }

  function disarm(): void {
    cancelTimer?.()
    cancelTimer = undefined
  }

  function dispatch(event: SenderEvent): void {
    const before = state
    const step = stepSender(state, event, limits())
    state = step.state
    if (event.type === 'acked' && state.base > before.base)
      options.onProgress(bytesOfLargest(before.outstanding, state.base))
    for (const effect of step.effects)
      switch (effect.type) {
        case 'send':
          send(effect.first, effect.entries, effect.bytes)
          break
        case 'forget':
          outbox.forget(stream, effect.through)
          break
        case 'arm':
          disarm()
          cancelTimer = clock.after(effect.afterMs, () => {
            cancelTimer = undefined
            dispatch({ type: 'timeout' })
          })
          break
        case 'disarm':
          disarm()
          break
        case 'ask':
          options.onAsk()
          break
        case 'fork':
          options.onFork(isCloudAhead)
          break
      }
  }

  function send(first: number, count: number, maxBytes: number): void {
    const slice = outbox.read(stream, first, Math.min(count, Math.ceil(maxBytes / LEAST_BYTES)))
    const batch = batchOf(slice, first, state.epoch, maxBytes)
    if (!batch) return
    checkpoint('sync.before-send')
    options.publish(batch.payload)
    checkpoint('sync.after-send')
    dispatch({ type: 'sent', last: batch.last, bytes: batch.bytes, atMs: clock.monotonic() })
  }

  return {
    /** Where the outbox stands, for a hello; a welcome that answers it is judged by this. */
    announce(helloAt: number): SenderPosition {
      const position = outbox.position(stream)
      const { epoch, base } = position
      announced = [...announced, { helloAt, epoch, base, sent: state.sent }].slice(-REMEMBERED)
      return position
    },
    /**
     * Whether a welcome to that hello says anything: the hello was said since the one that was answered last, and the
     * outbox has begun no other epoch since.
     */
    isAnswerable: (helloAt: number): boolean => announcement(helloAt) !== undefined,
    knows,
    isAhead,
    /** Takes up where the cloud stands, by the answer to a hello; where that is not in this store's history it is a fork. */
    welcomed(position: ReceiverPosition, helloAt: number): void {
      // A lossy stream's sender has overwritten what the cloud still waits for, and goes on with what it has.
      const { base = 0, sent: sentBefore = 0 } = announcement(helloAt) ?? {}
      const atLeast = stream === 'telemetry' ? 0 : base
      announced = announced.filter((hello) => hello.helloAt > helloAt)
      isCloudAhead = isAhead(position)
      dispatch({ type: 'connected', cursor: position.cursor, ours: knows(position), atLeast, sentBefore })
    },
    acked(ack: Ack): void {
      isCloudAhead = isAhead(ack)
      dispatch({ ...ack, type: 'acked', ours: knows(ack), atMs: clock.monotonic() })
    },
    /** Whether something was sent on this connection and not acknowledged. */
    isWaiting: (): boolean => state.outstanding.length > 0,
    /** The outbox has changed. */
    refresh(): void {
      const now = outbox.position(stream)
      if (now.epoch !== state.epoch) {
        disarm()
        state = initialSender(now)
        options.onNewEpoch()
        return
      }
      if (now.base > state.base) dispatch({ type: 'overwritten', through: now.base })
      cancelLinger ??= clock.after(lingerMs, () => {
        cancelLinger = undefined
        dispatch({ type: 'appended', last: outbox.position(stream).last })
      })
    },
    stop(): void {
      disarm()
      cancelLinger?.()
    },
  }
}

/** As many of the entries as the bytes allow, one at least. Bodies are spliced in as they are stored. */
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
