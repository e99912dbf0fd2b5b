import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { Ack, ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import { initialSender, isOurs, stepSender } from '../../protocol/stream/sender.ts'
import type { SenderEvent, SenderLimits } from '../../protocol/stream/sender.ts'
import type { Outbox, OutboxSlice, OutboxStream } from '../journal/outbox.ts'

export interface StreamSenderOptions {
  stream: OutboxStream
  outbox: Outbox
  clock: Clock
  checkpoint: Checkpoint
  limits: SenderLimits
  /** New entries wait so long for others. */
  lingerMs: number
  batchBytes: number
  publish(payload: string): void
  /** The cloud's history is not this store's: a new epoch is due. */
  onFork(): void
  /** The outbox has begun a new epoch: only a new hello announces it. */
  onNewEpoch(): void
  /** Nothing was acknowledged although everything was sent `retries` times again. */
  onTimeout(retries: number): void
}

export type StreamSender = ReturnType<typeof createStreamSender>

/** The hub's sender of one stream over one connection: `stepSender` with its store, its timer and its wire. */
export function createStreamSender(options: StreamSenderOptions) {
  const { stream, outbox, clock, checkpoint, limits, lingerMs } = options
  let announced = outbox.position(stream)
  let state = initialSender(announced)
  let cancelTimer: Cancel | undefined
  let cancelLinger: Cancel | undefined
  const tagAt = (seq: number): number | undefined => outbox.tagAt(stream, seq)

  /** Whether the cloud's position lies in this store's history. */
  function knows(position: ReceiverPosition): boolean {
    const now = outbox.position(stream)
    return position.epoch === now.epoch && isOurs(position, now, tagAt)
  }

  function disarm(): void {
    cancelTimer?.()
    cancelTimer = undefined
  }

  function dispatch(event: SenderEvent): void {
    const step = stepSender(state, event, limits)
    state = step.state
    for (const effect of step.effects)
      switch (effect.type) {
        case 'send':
          send(effect.first, effect.count)
          break
        case 'forget':
          outbox.forget(stream, effect.through)
          break
        case 'arm':
          disarm()
          cancelTimer = clock.after(effect.afterMs, () => {
            cancelTimer = undefined
            dispatch({ type: 'timeout' })
            options.onTimeout(state.retries)
          })
          break
        case 'disarm':
          disarm()
          break
        case 'fork':
          options.onFork()
          break
      }
  }

  function send(first: number, count: number): void {
    for (const batch of batchesOf(
      outbox.read(stream, first, count),
      first,
      state.epoch,
      options.batchBytes,
    )) {
      checkpoint('sync.before-send')
      options.publish(batch.payload)
      checkpoint('sync.after-send')
    }
  }

  return {
    /** Where the outbox stands, for a hello; a welcome that answers it is judged by this. */
    announce(): SenderPosition {
      announced = outbox.position(stream)
      return announced
    },
    /** Whether the outbox has begun another epoch since: no welcome says anything about that. */
    isOutdated: (): boolean => outbox.position(stream).epoch !== announced.epoch,
    knows,
    /** Takes up where the cloud stands; where that is not in this store's history it is a fork. */
    welcomed(position: ReceiverPosition): void {
      // A lossy stream's sender has overwritten what the cloud still waits for, and goes on with what it has.
      const atLeast = stream === 'telemetry' ? 0 : announced.base
      dispatch({ type: 'connected', cursor: position.cursor, ours: knows(position), atLeast })
    },
    acked(ack: Ack): void {
      dispatch({ ...ack, type: 'acked', ours: knows(ack) })
    },
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

/** The entries in as many batches as their bytes need. Bodies are spliced in as they are stored. */
function* batchesOf(
  { entries, oldest, previousTag }: OutboxSlice,
  first: number,
  epoch: string,
  maxBytes: number,
): Generator<{ payload: string; last: number }> {
  for (let index = 0; index < entries.length;) {
    const head = { epoch, first: first + index, previousTag: entries[index - 1]?.tag ?? previousTag, oldest }
    const texts: string[] = []
    for (let bytes = 0; index < entries.length; index++) {
      const { tag, body } = entries[index]!
      const text = `{"tag":${tag},"body":${body}}`
      bytes += Buffer.byteLength(text)
      if (bytes > maxBytes && texts.length > 0) break
      texts.push(text)
    }
    const payload = `${JSON.stringify(head).slice(0, -1)},"entries":[${texts.join(',')}]}`
    yield { payload, last: first + index - 1 }
  }
}
