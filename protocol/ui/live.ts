import { type Signal, signal } from '@preact/signals'
import { type Json, type JsonChange, withChanges } from '../model/json-changes.ts'
import { call } from './call-program.ts'
import { isSilent } from './silence.ts'

/** The state of the page's program, as it changes. */
export interface Live<State> {
  state: Signal<State | null>
  /** False while there is no stream; the stream reconnects automatically. */
  isConnected: Signal<boolean>
  close(): void
}

/** Pause after the program refused the stream, in milliseconds. */
const RETRY_MS = 1000
/** Interval at which a hidden page requests the state, in milliseconds. */
const HIDDEN_MS = 15_000

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    AbortSignal.timeout(ms).addEventListener('abort', () => resolve())
  })

/**
 * Follows a stream of server-sent events: `state` contains the whole state, `changes` the changed parts
 * (`json-changes.ts`). `others` handle further events. `whileHidden`: address of the whole state. A hidden page
 * requests it at intervals, so that its title is correct. `onRefused`: called when the program refuses the stream.
 */
export function follow<State>(
  url: string,
  others: Readonly<Record<string, (data: unknown) => void>> = {},
  { whileHidden, onRefused }: { whileHidden?: string; onRefused?: () => void } = {},
): Live<State> {
  const state = signal<State | null>(null)
  const isConnected = signal(false)
  let source: EventSource | undefined
  let hasEnded = false

  function open(): void {
    const opened = new EventSource(url)
    source = opened
    let events = 0
    const on = (event: string, take: (data: unknown) => void): void =>
      opened.addEventListener(event, ({ data }: MessageEvent<string>) => {
        events += 1
        take(JSON.parse(data))
      })
    on('beat', () => {})
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
      // A browser does not reconnect after an answer that is not a stream: the program is starting, or only a proxy
      // answers.
      if (source !== opened || opened.readyState !== EventSource.CLOSED) return
      shut()
      onRefused?.()
      void pause(RETRY_MS).then(update)
    })
    void isSilent({ events: () => events, isClosed: () => source !== opened, pause }).then((isLost) => {
      if (!isLost) return
      isConnected.value = false
      shut()
      update()
    })
  }

  function shut(): void {
    source?.close()
    source = undefined
  }

  /** A hidden page closes its stream, because a browser has only six connections to one program. */
  function update(): void {
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
        onRefused?.()
      }
    }
    isAsking = false
  }

  update()
  document.addEventListener('visibilitychange', update)
  return {
    state,
    isConnected,
    close() {
      hasEnded = true
      document.removeEventListener('visibilitychange', update)
      shut()
    },
  }
}
