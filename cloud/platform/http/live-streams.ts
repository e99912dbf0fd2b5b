import { every, type Cancel } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import { reply, type Reply } from './handler.ts'

/** The source of a reader's stream. */
export interface Source {
  /** The news since the last call, as server-sent events; empty if there is none. */
  poll(): Promise<string>
  /** True if no more news will follow. */
  isOver?(): boolean
}

/** Interval of a comment that keeps proxies from closing the connection and shows readers that it is open. */
const KEEP_ALIVE_MS = 15_000

interface Reader<Topic> {
  topic: Topic
  openedAt: number
  /** Since when the reader has not taken the sent data; null while it waits for news. */
  busySince: number | null
  hasNews: boolean
  isLate: boolean
  wake: () => void
  cutOff: () => void
}

/**
 * Server-sent events for many readers. A source is polled only after its reader has taken the previous data, so that a
 * slow reader needs no buffer. A reader that takes nothing for long is disconnected; it can resume with the id of its
 * last event. Each stream ends after a while, so that its credential is checked again.
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

  /** Ends all streams, including those that are opened later. */
  end(): void {
    this.#hasEnded = true
    this.#cancel()
    for (const reader of this.#readers) reader.wake()
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0
  }

  /** Followed topics, each once per reader. */
  topics(): Topic[] {
    return [...this.#readers].map(({ topic }) => topic)
  }

  /** Polls the sources of some topics, because there may be news. */
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
            // The stream closes next, and a closed stream is never cancelled.
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
      // Pulls only when its reader pulls.
      { highWaterMark: 0 },
    )
    return reply(body, { headers: { 'X-Accel-Buffering': 'no' } })
  }

  /** Waits for the next data of a reader. Undefined if no more follows. */
  async #next(reader: Reader<Topic>, source: Source): Promise<string | undefined> {
    while (!this.#hasEnded && this.#readers.has(reader)) {
      if (reader.hasNews) {
        reader.hasNews = false
        const text = await source.poll()
        // There may be further news.
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
      // All streams, or this one, may have ended during the poll.
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
