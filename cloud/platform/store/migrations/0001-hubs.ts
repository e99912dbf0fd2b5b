import type { CloudMigration } from './migration.ts'

/** Owners, their hubs, credentials and the audit log. */
export const hubs: CloudMigration = {
  name: '0001-hubs',
  statements: ({ id, int, real, text, end }) => [
    `create table owners (id ${id}, name ${text} not null) ${end}`,
    `create table hubs (
      id ${id},
      owner_id ${int} not null references owners (id),
      name ${text} not null,
      street_address_1 ${text} not null,
      street_address_2 ${text},
      city ${text} not null,
      state ${text} not null,
      postal_code ${text} not null,
      longitude ${real} not null,
      latitude ${real} not null,
      timezone ${text} not null,
      hub_status ${text} not null check (hub_status in ('active', 'paused', 'maintenance', 'inactive')),
      mqtt_password_digest ${text} not null,
      accepting_orders ${int} not null check (accepting_orders in (0, 1)),
      disabled_bins ${text} not null,
      disabled_fridges ${text} not null,
      tax_basis_points ${int} not null check (tax_basis_points >= 0),
      created_at ${int} not null
    ) ${end}`,
    `create index hubs_by_owner on hubs (owner_id)`,
    `create table api_keys (
      prefix ${text} primary key,
      digest ${text} not null unique,
      name ${text} not null,
      owner_id ${int} not null references owners (id),
      scopes ${text} not null,
      hubs ${text} not null,
      created_at ${int} not null,
      expires_at ${int},
      revoked_at ${int},
      last_used_at ${int}
    ) ${end}`,
    `create table roles (
      id ${id},
      identity ${text} not null,
      role ${text} not null,
      hubs ${text} not null,
      created_at ${int} not null
    ) ${end}`,
    `create index roles_by_identity on roles (identity)`,
    `create table idempotency_keys (
      credential ${text} not null,
      key ${text} not null,
      fingerprint ${text} not null,
      status ${int},
      headers ${text},
      body ${text},
      locked_until ${int} not null,
      created_at ${int} not null,
      primary key (credential, key)
    ) ${end}`,
    `create index idempotency_keys_by_age on idempotency_keys (created_at)`,
    `create table audit_log (
      id ${id},
      at ${int} not null,
      actor ${text} not null,
      action ${text} not null,
      hub_id ${int},
      object ${text} not null,
      result ${text} not null,
      detail ${text} not null
    ) ${end}`,
    `create index audit_log_by_hub on audit_log (hub_id, id)`,
  ],
}
