import { duration, limits, prefixed, wholeNumber } from '../../../protocol/model/program-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** PostgreSQL connections of one use, and their time limits. SQLite has one connection. */
const pool = (prefix: string, of: string, [connections, waitMs, lockMs, statementMs]: readonly number[]) =>
  prefixed(prefix, {
    connections: wholeNumber(
      [1, 1000],
      connections!,
      `Maximum number of connections to PostgreSQL for ${of}.`,
    ),
    waitMs: duration(waitMs!, `Maximum time for ${of} to wait for a free or a new connection.`, HOUR),
    lockMs: duration(lockMs!, `Maximum time that a statement for ${of} waits for a lock.`, HOUR),
    statementMs: duration(
      statementMs!,
      `Maximum time of a statement for ${of}, waiting for locks included.`,
      HOUR,
    ),
  })

/**
 * Connections by use, so that a slow or locked use does not stop the others. Hubs are served while requests hang, and
 * reads continue while writes wait for a lock.
 */
export const databaseLimits = limits('Database', {
  reads: pool('DATABASE_READ', 'reads of requests', [8, 2 * SECOND, 2 * SECOND, 10 * SECOND]),
  writes: pool('DATABASE_WRITE', 'transactions of requests', [8, 3 * SECOND, 3 * SECOND, 10 * SECOND]),
  gateway: pool('DATABASE_GATEWAY', 'messages from and to hubs', [6, 5 * SECOND, 5 * SECOND, 10 * SECOND]),
  background: pool('DATABASE_BACKGROUND', 'due work and live streams', [6, 10 * SECOND, 10 * SECOND, MINUTE]),
})
