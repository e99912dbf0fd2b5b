import type { Failure, Retry } from './types.ts'

export const standardRetry: Retry = { tries: 5, firstMs: 250, mostMs: 8000, mostRetryAfterMs: 60_000 }

/** A try that failed. */
export interface Attempt {
  /** From 1. */
  number: number
  failure: Failure
  /** True if the same call can be sent again and is executed once. */
  isRepeatable: boolean
}

/** Codes after which nothing was done, or the outcome is unknown. */
const passing = ['network_error', 'timeout', 'unreadable_answer']

/** The pause before the next try; null if there is no further try. */
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
        // The service still executes the former try; its answer was lost.
        (failure.code === 'idempotency_key_in_use' && number > 1)))
  if (!isWorthIt || number >= tries) return null
  const asked = failure.retryAfterMs ?? 0
  if (asked > mostRetryAfterMs) return null
  const pause = Math.min(mostMs, firstMs * 2 ** (number - 1))
  // At least half of the pause, so that callers who failed together do not return together.
  return Math.max(asked, pause / 2 + (random() * pause) / 2)
}

/** POSTs that accept an `Idempotency-Key`: routes with `idempotent` in the table. */
const keyed =
  /order|\/deals\/|\/(controls|operations)\/|\/request_door_open|\/users\/(payments|wallet)\/|^\/enroll$|\/owners\/(webhooks|maintenance|owner\/banners)/

export const takesKey = (method: string, path: string): boolean => method === 'POST' && keyed.test(path)

/** True if a repeated call is executed once: because of its key, or because it only sets fields of a profile. */
export const isRepeatable = (method: string, path: string): boolean =>
  method !== 'POST' || takesKey(method, path) || path.startsWith('/users/')
