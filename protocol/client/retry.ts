import type { Failure, Retry } from './types.ts'

export const standardRetry: Retry = { tries: 5, firstMs: 250, mostMs: 8000, mostRetryAfterMs: 60_000 }

/** A try that failed. */
export interface Attempt {
  /** From 1. */
  number: number
  failure: Failure
  /** Whether the same call, sent again, happens once. */
  isRepeatable: boolean
}

/** Nothing was done, or it is not known what was. */
const passing = ['network_error', 'timeout', 'unreadable_answer']

/** How long to wait before the next try; null where there is none. */
export function pauseAfter(
  { number, failure, isRepeatable }: Attempt,
  { tries, firstMs, mostMs, mostRetryAfterMs }: Retry,
  random: () => number,
): number | null {
  const isWorthIt =
    // Refused before anything was done.
    failure.status === 429 ||
    (isRepeatable &&
      (failure.status === 503 ||
        passing.includes(failure.code) ||
        // The try before, whose answer was lost, is still at work.
        (failure.code === 'idempotency_key_in_use' && number > 1)))
  if (!isWorthIt || number >= tries) return null
  const asked = failure.retryAfterMs ?? 0
  if (asked > mostRetryAfterMs) return null
  const pause = Math.min(mostMs, firstMs * 2 ** (number - 1))
  // At least half of it, so that many callers who failed at once do not return at once.
  return Math.max(asked, pause / 2 + (random() * pause) / 2)
}

/** POSTs that take an `Idempotency-Key`: those of the table of routes that are `idempotent`. */
const keyed =
  /order|\/deals\/|\/(controls|operations)\/|\/request_door_open|\/users\/(payments|wallet)\/|\/owners\/(webhooks|maintenance|owner\/banners)/

export const takesKey = (method: string, path: string): boolean => method === 'POST' && keyed.test(path)

/** Whether a call that is sent twice happens once: by its key, or as what customers say of themselves only sets something. */
export const isRepeatable = (method: string, path: string): boolean =>
  method !== 'POST' || takesKey(method, path) || path.startsWith('/users/')
