import { serverBounds } from '../../../protocol/model/bound-server.ts'
import {
  DAY_MS as DAY,
  defaultsOf,
  duration,
  prefixed,
  wholeNumber,
  type SettingsOf,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ms = (standardMs: number, describe: string, maxMs = 30 * DAY) => duration(standardMs, describe, maxMs)

/** What strangers may bind of the HTTP server. A whole request: the largest upload at 1 Mbit/s. */
export const httpSettings = serverBounds('HTTP', {
  maxConnections: 5000,
  connectionsPerNetwork: 1000,
  requestTimeoutMs: 30 * MINUTE,
})
export const defaultHttpSettings = defaultsOf(httpSettings)

/** How many connections to PostgreSQL a use of them has, and how long it waits for what. Of SQLite there is one connection. */
const pool = (prefix: string, of: string, [connections, waitMs, lockMs, statementMs]: readonly number[]) =>
  prefixed(prefix, {
    connections: wholeNumber(
      [1, 1000],
      connections!,
      `Maximum number of connections to PostgreSQL for ${of}.`,
    ),
    waitMs: ms(
      waitMs!,
      'Maximum time to wait for a free connection of this kind, or for the server to accept one.',
      HOUR,
    ),
    lockMs: ms(lockMs!, 'Maximum time that a statement of this kind waits for a lock.', HOUR),
    statementMs: ms(
      statementMs!,
      'Maximum time of a statement of this kind, waiting for locks included.',
      HOUR,
    ),
  })

/**
 * Connections by their use, so that what is slow or locked in one does not stop the others: hubs are heard while requests
 * hang, and what only reads goes on while what writes waits for a lock.
 */
export const databaseSettings = {
  reads: pool('DATABASE_READ', 'reads of requests', [8, 2 * SECOND, 2 * SECOND, 10 * SECOND]),
  writes: pool('DATABASE_WRITE', 'transactions of requests', [8, 3 * SECOND, 3 * SECOND, 10 * SECOND]),
  gateway: pool('DATABASE_GATEWAY', 'messages from and to hubs', [6, 5 * SECOND, 5 * SECOND, 10 * SECOND]),
  background: pool('DATABASE_BACKGROUND', 'due work, live streams and this process itself', [
    6,
    10 * SECOND,
    10 * SECOND,
    MINUTE,
  ]),
} satisfies SettingsTable

export type DatabaseSettings = SettingsOf<typeof databaseSettings>
export type PoolSettings = DatabaseSettings['reads']
export const defaultDatabaseSettings: DatabaseSettings = defaultsOf(databaseSettings)
