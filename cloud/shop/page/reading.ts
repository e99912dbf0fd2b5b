import { LarderError, type Failure } from '../../../protocol/client/client.ts'

interface Reading {
  /** The view is closed. */
  closed: AbortSignal
  /** Shows the first failure. */
  report: (failure: Failure) => void
  /** Reads the session again, which may have ended. */
  readSession: () => Promise<unknown>
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Pause before the next try, in milliseconds. */
const RETRY_MS = 3000

/**
 * Repeats a reading until it succeeds, the service refuses it for good, or its view is closed. Returns the failure of a
 * reading that was refused for good.
 */
export async function readPatiently(
  read: () => Promise<void>,
  { closed, report, readSession, sleep }: Reading,
): Promise<Failure | undefined> {
  for (let number = 1; !closed.aborted; number++) {
    try {
      await read()
      return undefined
    } catch (error) {
      if (closed.aborted) return undefined
      if (!(error instanceof LarderError)) throw error
      const { failure } = error
      if (isFinal(failure)) return failure
      if (failure.status === 401) await readSession()
      else if (number === 1) report(failure)
      await sleep(failure.retryAfterMs ?? RETRY_MS, closed).catch(() => {})
    }
  }
  return undefined
}

/** 401: the session may have been renewed. 408 and 429: too slow, too often. */
const isFinal = ({ status }: Failure): boolean =>
  status >= 400 && status < 500 && ![401, 408, 429].includes(status)
