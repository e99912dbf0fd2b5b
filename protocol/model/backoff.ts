import type { Random } from './runtime.ts'

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
