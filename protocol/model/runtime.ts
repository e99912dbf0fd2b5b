/**
 * Time, randomness and ids as parameters. Only `main.ts` files use the system's clock and randomness, so that the whole
 * system runs under a simulated scheduler.
 */

/** Cancels a timer; calling it twice, or after the timer fired, does nothing. */
export type Cancel = () => void

export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. May jump: order by sequence, never by this. */
  now(): number
  /** Monotonic time in milliseconds from an arbitrary start. Deadlines and ages are measured with it. */
  monotonic(): number
  /**
   * Runs `task` once, no earlier than `wholeMs(delayMs)` from now: never within the present call, nor at the same
   * instant.
   */
  after(delayMs: number, task: () => void): Cancel
}

export interface Random {
  /** `count` random bytes. */
  bytes(count: number): Uint8Array
  /** A number in [0, 1). */
  fraction(): number
}

export interface Runtime {
  clock: Clock
  random: Random
}

/**
 * A delay for timers: whole milliseconds, rounded up, at least one. A delay rounded down to zero would fire at the same
 * instant, find its deadline still ahead, and repeat without end.
 */
export const wholeMs = (delayMs: number): number => Math.max(1, Math.ceil(delayMs))

/** Runs `task` every `periodMs`, the first time after one period, until cancelled. */
export function every(clock: Clock, periodMs: number, task: () => void): Cancel {
  let cancel = clock.after(periodMs, tick)
  let cancelled = false
  function tick(): void {
    // Armed again first: a task that throws must not end the series.
    if (!cancelled) cancel = clock.after(periodMs, tick)
    task()
  }
  return () => {
    cancelled = true
    cancel()
  }
}

/** Resolves after `delayMs` of the clock's time. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.after(delayMs, resolve))
}

const FIRST_POLL_MS = 10
const POLL_MS = 250
/** A poll comes late by no more than this share of the time that has passed. */
const LATE = 1 / 16

/**
 * Polls at growing intervals until a condition holds; false if it does not hold within `timeoutMs`. Each pause is at least as
 * long as the last question took, so that a slow condition uses at most half of the time.
 */
export async function holdsWithin(
  clock: Clock,
  timeoutMs: number,
  holds: () => Promise<boolean>,
): Promise<boolean> {
  const begun = clock.monotonic()
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(POLL_MS, pauseMs * 2)) {
    const asked = clock.monotonic()
    if (await holds()) return true
    const now = clock.monotonic()
    const leftMs = begun + timeoutMs - now
    if (leftMs <= 0) return false
    await sleep(clock, Math.min(leftMs, Math.max(pauseMs, now - asked, (now - begun) * LATE)))
  }
}

export interface BackoffOptions {
  firstMs: number
  maxMs: number
}

/**
 * The delay before attempt `attempt` (0 = the first retry): doubling from `firstMs` up to `maxMs`, with the upper
 * half random, so that hubs that lost the same broker do not return in step.
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const ceiling = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(attempt, 30))
  return Math.round(ceiling / 2 + (random.fraction() * ceiling) / 2)
}
