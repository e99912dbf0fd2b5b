/** The client's surroundings: a browser, Node or a worker. Tests replace it. */
export interface ClientSystem {
  fetch: (input: string, init: RequestInit) => Promise<Response>
  /** Milliseconds since the Unix epoch. */
  now: () => number
  /** From 0 to below 1. */
  random: () => number
  /** Rejects when the signal aborts. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  /** A unique name for a call. */
  newKey: () => string
}

const { setTimeout: after, clearTimeout: forget } = globalThis

export const surroundings: ClientSystem = {
  fetch: (input, init) => globalThis.fetch(input, init),
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        forget(timer)
        reject(signal!.reason as Error)
      }
      const timer = after(() => {
        signal?.removeEventListener('abort', stop)
        resolve()
      }, ms)
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
    }),
  newKey: () =>
    Array.from(globalThis.crypto.getRandomValues(new Uint8Array(16)), (byte) =>
      byte.toString(16).padStart(2, '0'),
    ).join(''),
}
