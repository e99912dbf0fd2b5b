import type { LoginOptions } from '../../../edge/local-api/login-routes.ts'

/** Nobody has access by name, sessions stay in memory, and limits are the defaults. */
export const openAccess: Pick<LoginOptions, 'people' | 'sessionFile' | 'sessionMs' | 'guesses'> = {
  people: () => [],
  sessionFile: { read: () => undefined, write: () => {} },
  sessionMs: 12 * 3_600_000,
  guesses: { free: 20, firstMs: 1000, maxMs: 60_000, forgetMs: 60_000 },
}
