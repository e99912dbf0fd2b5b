import { lostOf } from './answer.ts'
import { pauseAfter } from './retry.ts'
import type { ClientSystem } from './system.ts'
import type { Failure, Retry } from './types.ts'

/** The service sends a comment at least every 15 s. */
const SILENCE_MS = 45_000

interface Followed {
  open: (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>
  /** The error for an answer without a stream. */
  refusal: (answer: Response) => Promise<Error & { failure: Failure }>
  /** The id of the last message that the caller has. */
  after: string | undefined
  /** Called when the stream cannot be opened. */
  onFailure: ((failure: Failure) => void) | undefined
  signal: AbortSignal | undefined
  retry: Retry
  system: ClientSystem
  /** True for the last message. */
  isLast?: ((message: unknown) => boolean) | undefined
}

/** The messages of a stream, over several connections if necessary. */
export async function* follow(followed: Followed): AsyncGenerator<never, void, undefined> {
  const { signal, retry, system, isLast } = followed
  let lastId = followed.after
  let failures = 0
  const isOver = (): boolean => signal?.aborted === true
  while (!isOver()) {
    const connection = new AbortController()
    const own = signal ? AbortSignal.any([signal, connection.signal]) : connection.signal
    const watched = <T>(reading: Promise<T>): Promise<T> => inTime(reading, SILENCE_MS, connection, system)
    let failure: Failure = { code: 'network_error', message: 'The stream has ended.', status: 0 }
    let isOpen = false
    try {
      const headers = {
        Accept: 'text/event-stream',
        ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
      }
      const answer = await watched(followed.open(headers, own))
      if (!answer.ok || !answer.body) throw await watched(followed.refusal(answer))
      isOpen = true
      for await (const { id, data } of messagesOf(answer.body, watched)) {
        failures = 0
        lastId = id ?? lastId
        const message: unknown = JSON.parse(data)
        yield message as never
        if (isLast?.(message)) return
      }
    } catch (error) {
      if (signal?.aborted) return
      // The reader threw: the stream ends.
      failure = (error as { failure?: Failure }).failure ?? lostOf(error)
      const again = { number: Math.min(failures + 1, retry.tries - 1), failure, isRepeatable: true }
      if (failure.status !== 0 && pauseAfter(again, retry, system.random) === null) throw error
      if (!isOpen) followed.onFailure?.(failure)
    } finally {
      connection.abort()
    }
    failures += 1
    // The client reconnects until the reader stops.
    const number = Math.min(failures, retry.tries - 1)
    const pauseMs = pauseAfter({ number, failure, isRepeatable: true }, retry, system.random)
    try {
      await system.sleep(pauseMs ?? retry.mostMs, signal)
    } catch {
      return
    }
  }
}

/** Waits for a reading, and ends a silent connection: it may be dead without a notice. */
export async function inTime<T>(
  reading: Promise<T>,
  limitMs: number,
  connection: AbortController,
  system: ClientSystem,
): Promise<T> {
  const watch = new AbortController()
  const silence = system.sleep(limitMs, watch.signal).then(
    () => {
      const reason = new DOMException(`The service sent nothing for ${limitMs} ms.`, 'TimeoutError')
      connection.abort(reason)
      throw reason
    },
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([reading, silence])
  } finally {
    watch.abort()
  }
}

interface Message {
  id: string | undefined
  data: string
}

/** Server-sent events (WHATWG HTML §9.2): lines end in LF, CR or both; comments begin with a colon. */
export async function* messagesOf(
  body: ReadableStream<Uint8Array>,
  guard: <T>(reading: Promise<T>) => Promise<T> = (reading) => reading,
): AsyncGenerator<Message, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let id: string | undefined
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await guard(reader.read())
      if (done) return
      rest += decoder.decode(value, { stream: true })
      // A CR at the end may be half of an end of line.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()!
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { id, data: data.join('\n') }
          data = []
        }
        const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
        if (field === 'data') data.push(text)
        if (field === 'id') id = text
      }
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}
