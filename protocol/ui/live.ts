import { type Signal, signal } from '@preact/signals'
import { type Json, type JsonChange, withChanges } from '../model/json-changes.ts'

/** What a page sees of its program, as it changes. */
export interface Live<State> {
  state: Signal<State | null>
  /** False while the stream is away; it is connected again by itself. */
  isConnected: Signal<boolean>
  close(): void
}

/** How long a program that refused the stream is left alone. */
const RETRY_MS = 1000
/** Interval at which a hidden page requests the state, in milliseconds. */
const HIDDEN_MS = 15_000

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    AbortSignal.timeout(ms).addEventListener('abort', () => resolve())
  })

/**
 * Follows a stream of server-sent events: `state` is the whole, `changes` what has become another (`json-changes.ts`).
 * `others` are called with what further events hold. `whileHidden`: address of the whole state. A hidden page requests it now
 * and then, so that its title is correct.
 */
export function follow<State>(
  url: string,
  others: Readonly<Record<string, (data: unknown) => void>> = {},
  { whileHidden }: { whileHidden?: string } = {},
): Live<State> {
  const state = signal<State | null>(null)
  const isConnected = signal(false)
  let source: EventSource | undefined
  let hasEnded = false

  function open(): void {
    const opened = new EventSource(url)
    source = opened
    const on = (event: string, take: (data: unknown) => void): void =>
      opened.addEventListener(event, ({ data }: MessageEvent<string>) => take(JSON.parse(data)))
    on('state', (data) => {
      state.value = data as State
      isConnected.value = true
    })
    on('changes', (data) => {
      if (state.value !== null) state.value = withChanges(state.value as Json, data as JsonChange[]) as State
    })
    for (const [event, take] of Object.entries(others)) on(event, take)
    opened.addEventListener('error', () => {
      isConnected.value = false
      // After an answer that is no stream (the program starts, a proxy stands alone) a browser does not connect again.
      if (source !== opened || opened.readyState !== EventSource.CLOSED) return
      shut()
      void pause(RETRY_MS).then(look)
    })
  }

  function shut(): void {
    source?.close()
    source = undefined
  }

  /** A page that nobody sees follows nothing: a browser has six connections for all that it has open of one program. */
  function look(): void {
    if (document.hidden || hasEnded) {
      shut()
      if (!hasEnded && whileHidden !== undefined && !isAsking) void askNowAndThen(whileHidden)
    } else if (!source) open()
  }

  let isAsking = false
  async function askNowAndThen(address: string): Promise<void> {
    isAsking = true
    for (;;) {
      await pause(HIDDEN_MS)
      if (!document.hidden || hasEnded) break
      try {
        state.value = await call<State>('GET', address)
        isConnected.value = true
      } catch {
        isConnected.value = false
      }
    }
    isAsking = false
  }

  look()
  document.addEventListener('visibilitychange', look)
  return {
    state,
    isConnected,
    close() {
      hasEnded = true
      document.removeEventListener('visibilitychange', look)
      shut()
    },
  }
}

/** An answer that is an error, with the sentence that stands in it. */
export class CallError extends Error {
  readonly status: number
  readonly details: unknown
  constructor(status: number, message: string, details: unknown) {
    super(message)
    this.status = status
    this.details = details
  }
}

/** Calls the page's own program. Throws `CallError`, or an `Error` in words where it is not reached. */
export async function call<T>(method: string, path: string, body?: object): Promise<T> {
  let answer: Response
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  } catch {
    throw new Error('It does not answer: is it running, and are you on its network?')
  }
  const json: unknown = await answer.json().catch(() => ({}))
  if (answer.ok) return json as T
  const { error } = json as { error?: { message?: string; details?: unknown } }
  throw new CallError(answer.status, error?.message ?? `It answers ${answer.status}.`, error?.details)
}
