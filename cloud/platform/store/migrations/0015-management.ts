import type { CloudMigration } from './migration.ts'

/** The hubs' management services, reached by SSH. */
export const management: CloudMigration = {
  name: '0015-management',
  statements: ({ int, text, end }) => [
    `create table hub_management (
      hub_id ${int} primary key references hubs (id),
      host ${text} not null,
      port ${int} not null check (port between 1 and 65535),
      host_key ${text} not null
    ) ${end}`,
    `create table management_changes (
      id ${text} primary key,
      hub_id ${int} not null references hubs (id),
      bin_number ${int} not null,
      enabled ${int} not null check (enabled in (0, 1)),
      actor ${text} not null,
      state ${text} not null check (state in ('pending', 'done', 'failed', 'superseded', 'unknown')),
      created_at ${int} not null,
      check_at ${int} not null
    ) ${end}`,
    `create index management_changes_pending on management_changes (check_at) where state = 'pending'`,
    `create index management_changes_by_bin on management_changes (hub_id, bin_number, created_at)`,
  ],
}
