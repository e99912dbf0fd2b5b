import { defineTable, id, instant, int, text } from '../table.ts'

/** Callers, their limits, and the audit log. */
export const credentialTables = {
  api_keys: defineTable({
    prefix: text.primaryKey.fixed,
    digest: text.unique.fixed,
    name: text.fixed,
    owner_id: int.references('owners').fixed,
    /** JSON array of scopes; constant after issue. */
    scopes: text.fixed,
    /** JSON array of hub ids, or "*". */
    hubs: text.fixed,
    created_at: instant.fixed,
    /** A rotation moves it earlier, never later. */
    expires_at: instant.nullable,
    revoked_at: instant.nullable,
    last_used_at: instant.nullable,
  }),
  roles: defineTable({
    id,
    identity: text.fixed,
    role: text.fixed,
    hubs: text.fixed,
    created_at: instant.fixed,
  }).index('roles_by_identity', ['identity']),
  /** Browsers of guests and of people who have signed in. */
  sessions: defineTable({
    id,
    /** SHA-256 of the cookie's secret. */
    digest: text.unique.fixed,
    identity: text.fixed,
    /** `IdentityClaims`, JSON. */
    claims: text.fixed,
    created_at: instant.fixed,
    /** Each use moves it, up to the longest time of a session. */
    expires_at: instant,
  })
    .index('sessions_by_identity', ['identity'])
    .index('sessions_by_end', ['expires_at']),
  /** The secret that seals values, encrypted once with each secret of `STORE_SECRET` (`store/sealer.ts`). */
  store_seals: defineTable({
    number: int.primaryKey.fixed,
    /** Derived from the encrypting secret. */
    key_id: text.unique.fixed,
    sealed: text.fixed,
  }),
  idempotency_keys: defineTable({
    credential: text.fixed,
    /** A digest, because the key itself opens the body. */
    key: text.fixed,
    fingerprint: text.fixed,
    /** Null while the first request is running. */
    status: int.nullable,
    headers: text.nullable,
    /** Sealed, because only the caller may read it. */
    body: text.nullable,
    locked_until: instant,
    created_at: instant.fixed,
  })
    .primaryKey('credential', 'key')
    .index('idempotency_keys_by_age', ['created_at']),
  /** Calls per minute, if several processes share a limit. Losing rows in a crash is harmless. */
  rate_limits: defineTable({
    /** A digest, because a caller may be a person. */
    caller: text,
    route: text,
    minute: int,
    count: int,
  })
    .primaryKey('caller', 'route', 'minute')
    .volatile(),
  audit_log: defineTable({
    id,
    at: instant.fixed,
    actor: text.fixed,
    action: text.fixed,
    hub_id: int.nullable.fixed,
    object: text.fixed,
    result: text.fixed,
    detail: text.fixed,
  })
    // Lists are in the order of time; each filter has an index.
    .index('audit_log_by_time', ['at', 'id'])
    .index('audit_log_by_hub_time', ['hub_id', 'at', 'id'])
    .index('audit_log_by_action', ['action', 'at', 'id'])
    .index('audit_log_by_actor', ['actor', 'at', 'id'])
    .index('audit_log_by_object', ['object', 'at', 'id']),
}
