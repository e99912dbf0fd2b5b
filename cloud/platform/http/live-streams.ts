import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { reply, type Reply } from './handler.ts'

/** What a reader follows. */
export interface Source {
  /** What there is to tell since the last call, as server-sent events; empty where nothing is. */
  poll(): Promise<string>
  /** Nothing more will come. */
  isOver?(): boolean
}

/** A comment, so that proxies keep the connection and readers see that it lives. */
const KEEP_ALIVE_MS = 15_000

interface Reader<Topic> {
  topic: Topic
  openedAt: number
  /** When it was given something to read that it has not come back from; null while it waits. */
  busySince: number | null
  hasNews: boolean
  isLate: boolean
  wake: () => void
  cutOff: () => void
}

/**
 * Server-sent events for many readers at once. A reader is asked what there is to tell only when it has taken what came
 * before, so that nothing is kept for it however slow it is; one that takes nothing for long is cut off and can come back with
 * the id of the last event that it has. After a while each is ended, so that its credential is looked at again.
 */
export class LiveStreams<Topic> {
  readonly #context: CloudContext
  readonly #readers = new Set<Reader<Topic>>()
  #hasEnded = false
  #cancel: Cancel = () => {}

  constructor(context: CloudContext) {
    this.#context = context
  }

  start(): void {
    this.#cancel = every(this.#context.runtime.clock, KEEP_ALIVE_MS, () => this.#tick())
  }

  /** Ends every stream, and those that are opened after. */
  end(): void {
    this.#hasEnded = true
    this.#cancel()
    for (const reader of this.#readers) reader.wake()
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0
  }

  /** What readers follow; each once for each reader. */
  topics(): Topic[] {
    return [...this.#readers].map(({ topic }) => topic)
  }

  /** There may be something to tell the readers of some topics. */
  wake(concerns: (topic: Topic) => boolean): void {
    for (const reader of this.#readers)
      if (concerns(reader.topic)) {
        reader.hasNews = true
        reader.wake()
      }
  }

  /** The answer to a reader. */
  open(topic: Topic, source: Source): Reply<ReadableStream<Uint8Array>> {
    const { clock } = this.#context.runtime
    const encoder = new TextEncoder()
    const reader: Reader<Topic> = {
      topic,
      openedAt: clock.monotonic(),
      busySince: clock.monotonic(),
      hasNews: true,
      isLate: false,
      wake: () => {},
      cutOff: () => {},
    }
    const leave = (): void => void this.#readers.delete(reader)
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#readers.add(reader)
          reader.cutOff = () => {
            leave()
            controller.error(new Error('a reader of a stream took nothing for too long'))
          }
        },
        pull: async (controller) => {
          reader.busySince = null
          const text = await this.#next(reader, source).catch((error: unknown) => {
            // Its stream ends with this, and nobody cancels a stream that has ended.
            leave()
            throw error
          })
          reader.busySince = clock.monotonic()
          if (!this.#readers.has(reader)) return
          if (text !== undefined) return controller.enqueue(encoder.encode(text))
          leave()
          controller.close()
        },
        cancel: () => {
          leave()
          reader.wake()
        },
      },
      // Asked for the next only when its reader asks.
      { highWaterMark: 0 },
    )
    return reply(body, { headers: { 'X-Accel-Buffering': 'no' } })
  }

  /** What a reader is told next; waits for it. Undefined where nothing more comes. */
  async #next(reader: Reader<Topic>, source: Source): Promise<string | undefined> {
    while (!this.#hasEnded && this.#readers.has(reader)) {
      if (reader.hasNews) {
        reader.hasNews = false
        const text = await source.poll()
        // There may be more than was told at once.
        if (text !== '') {
          reader.hasNews = true
          return text
        }
      }
      if (source.isOver?.() === true || this.#isOld(reader)) return undefined
      if (reader.isLate) {
        reader.isLate = false
        return ': still here\n\n'
      }
      // All may have ended, or this one, while its source was asked.
      const isFollowed = !this.#hasEnded && this.#readers.has(reader)
      if (isFollowed && !reader.hasNews) await new Promise<void>((resolve) => (reader.wake = resolve))
    }
    return undefined
  }

  #isOld({ openedAt }: Reader<Topic>): boolean {
    const { runtime, settings } = this.#context
    return runtime.clock.monotonic() - openedAt >= settings.streamMs
  }

  #tick(): void {
    const { runtime, settings, log } = this.#context
    const now = runtime.clock.monotonic()
    for (const reader of this.#readers) {
      if (reader.busySince !== null && now - reader.busySince >= settings.streamStallMs) {
        log.warn({ forMs: now - reader.busySince }, 'a reader of a stream took nothing for too long')
        reader.cutOff()
        continue
      }
      reader.isLate = true
      reader.wake()
    }
  }
}
