import type { LoginOptions } from '../../../edge/local-api/login-routes.ts'

/** No people with own tokens, sessions in memory, and default limits. */
export const openAccess: Pick<LoginOptions, 'people' | 'sessionFile' | 'sessionMs' | 'sessions' | 'guesses'> =
  {
    people: () => [],
    sessionFile: { read: () => undefined, write: () => {} },
    sessionMs: 12 * 3_600_000,
    sessions: 200,
    guesses: { free: 20, firstMs: 1000, maxMs: 60_000, forgetMs: 60_000, networks: 1000 },
  }
