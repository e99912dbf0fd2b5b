import type { Failure, Retry } from './types.ts'

export const standardRetry: Retry = {
  tries: 5,
  firstMs: 250,
  mostMs: 8000,
  mostRetryAfterMs: 60_000,
  mostInUseMs: 75_000,
}

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
    failure.status === 429 || (isRepeatable && (failure.status === 503 || passing.includes(failure.code)))
  if (!isWorthIt || number >= tries) return null
  const asked = failure.retryAfterMs ?? 0
  if (asked > mostRetryAfterMs) return null
  return Math.max(asked, spread(Math.min(mostMs, firstMs * 2 ** (number - 1)), random))
}

/**
 * The pause while the service still executes an earlier try. Null if the client has waited long enough. `waitedMs` is the
 * sum of these pauses.
 */
export function pauseInUse(
  waitedMs: number,
  { firstMs, mostMs, mostInUseMs }: Retry,
  random: () => number,
): number | null {
  if (waitedMs >= mostInUseMs) return null
  return spread(Math.min(mostMs, Math.max(firstMs, waitedMs)), random)
}

/** At least half of the pause, so that callers who failed together do not return together. */
const spread = (pauseMs: number, random: () => number): number => pauseMs / 2 + (random() * pauseMs) / 2

/** POSTs that accept an `Idempotency-Key`: routes with `idempotent` in the table. */
const keyed =
  /order|\/deals\/|\/(controls|operations)\/|\/request_door_open|\/users\/(payments|wallet)\/|^\/enroll$|\/owners\/(webhooks|maintenance|owner\/banners)/

export const takesKey = (method: string, path: string): boolean => method === 'POST' && keyed.test(path)

/** True if a repeated call is executed once: because of its key, or because it only sets fields of a profile. */
export const isRepeatable = (method: string, path: string): boolean =>
  method !== 'POST' || takesKey(method, path) || path.startsWith('/users/')

/** Controls that the service may execute for a minute: changes over SSH, and a door that opens and closes repeatedly. */
const slow = /\/controls\/(\w+_bin_ssh|cycle_bin)$/
const SLOW_MS = 75_000

/** Timeout of one try in milliseconds. It is longer than the service may need, so that its answer arrives. */
export const timeoutOf = (path: string, timeoutMs: number): number =>
  slow.test(path) ? Math.max(timeoutMs, SLOW_MS) : timeoutMs
