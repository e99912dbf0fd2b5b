import type { CloudMigration } from './migration.ts'

/** Hubs over MQTT: sessions, both streams, commands, telemetry. */
export const gateway: CloudMigration = {
  name: '0005-gateway',
  statements: ({ id, int, real, text, end }) => [
    `create table hub_sessions (
      hub_id ${int} primary key references hubs (id),
      session ${text} not null,
      process_id ${text} not null,
      lease_until ${int} not null,
      is_connected ${int} not null check (is_connected in (0, 1)),
      last_heard_at ${int} not null,
      health ${text},
      health_at ${int},
      software ${text} not null
    ) ${end}`,
    `create table hub_streams (
      hub_id ${int} not null references hubs (id),
      stream ${text} not null check (stream in ('ledger', 'telemetry')),
      epoch ${text} not null,
      cursor ${int} not null,
      tag ${int} not null,
      is_current ${int} not null check (is_current in (0, 1)),
      created_at ${int} not null,
      primary key (hub_id, stream, epoch)
    ) ${end}`,
    `create unique index hub_streams_one_current on hub_streams (hub_id, stream) where is_current = 1`,
    `create table hub_outboxes (
      hub_id ${int} primary key references hubs (id),
      epoch ${text} not null,
      base ${int} not null,
      base_tag ${int} not null,
      last ${int} not null,
      check (base <= last)
    ) ${end}`,
    `create table hub_outbox_entries (
      hub_id ${int} not null references hubs (id),
      epoch ${text} not null,
      seq ${int} not null,
      tag ${int} not null,
      body ${text} not null,
      primary key (hub_id, epoch, seq)
    ) ${end}`,
    `create table dead_letters (
      id ${id},
      hub_id ${int} not null,
      stream ${text} not null,
      epoch ${text} not null,
      seq ${int} not null,
      body ${text} not null,
      error ${text} not null,
      at ${int} not null,
      unique (hub_id, stream, epoch, seq)
    ) ${end}`,
    `create table commands (
      id ${text} primary key,
      hub_id ${int} not null references hubs (id),
      session ${text} not null,
      body ${text} not null,
      state ${text} not null check (state in ('sent', 'executed', 'refused', 'failed', 'unknown')),
      reason ${text},
      data ${text},
      actor ${text} not null,
      created_at ${int} not null,
      finished_at ${int}
    ) ${end}`,
    `create index commands_open on commands (created_at) where state = 'sent'`,
    `create table telemetry (
      hub_id ${int} not null,
      epoch ${text} not null,
      seq ${int} not null,
      fridge_number ${int} not null,
      celsius ${real} not null,
      at ${int} not null,
      primary key (hub_id, epoch, seq)
    ) ${end}`,
    `create index telemetry_by_age on telemetry (at)`,
    `create table alarms (
      id ${id},
      hub_id ${int} not null,
      code ${text} not null,
      device ${text} not null,
      raised ${int} not null check (raised in (0, 1)),
      detail ${text} not null,
      at ${int} not null
    ) ${end}`,
    `create index alarms_by_hub on alarms (hub_id, id)`,
  ],
}
