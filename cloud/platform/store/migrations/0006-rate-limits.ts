import type { CloudMigration } from './migration.ts'

/** Calls counted where several processes share the limit. What a crash loses of it nobody misses. */
export const rateLimits: CloudMigration = {
  name: '0006-rate-limits',
  statements: ({ createVolatileTable, int, text, end }) => [
    `${createVolatileTable} rate_limits (
      caller ${text} not null,
      route ${text} not null,
      minute ${int} not null,
      count ${int} not null,
      primary key (caller, route)
    ) ${end}`,
  ],
}
