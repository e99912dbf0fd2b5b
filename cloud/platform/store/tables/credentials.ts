import { defineTable, id, instant, int, text } from '../table.ts'

/** Who may call, how often, and what was done by whom. */
export const credentialTables = {
  api_keys: defineTable({
    prefix: text.primaryKey.fixed,
    digest: text.unique.fixed,
    name: text.fixed,
    owner_id: int.references('owners').fixed,
    /** JSON array of scopes; never changes after issue. */
    scopes: text.fixed,
    /** JSON array of hub ids, or "*". */
    hubs: text.fixed,
    created_at: instant.fixed,
    /** Set earlier when the key is rotated, never later. */
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
  /** The secret that seals values, encrypted once with each secret of `STORE_SECRET` (`store/open-sealer.ts`). */
  store_seals: defineTable({
    number: int.primaryKey.fixed,
    /** Derived from the secret that encrypts. */
    key_id: text.unique.fixed,
    sealed: text.fixed,
  }),
  idempotency_keys: defineTable({
    credential: text.fixed,
    /** A digest: the key itself opens the body. */
    key: text.fixed,
    fingerprint: text.fixed,
    /** Null while the first request is under way. */
    status: int.nullable,
    headers: text.nullable,
    /** Sealed: what it says is the caller's alone. */
    body: text.nullable,
    locked_until: instant,
    created_at: instant.fixed,
  })
    .primaryKey('credential', 'key')
    .index('idempotency_keys_by_age', ['created_at']),
  /** Calls in a minute, where several processes share a limit. What a crash loses of it nobody misses. */
  rate_limits: defineTable({
    /** A digest: a caller may be a person. */
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
    .index('audit_log_by_hub', ['hub_id', 'id'])
    // Persons whose account is deleted are replaced by a number (`people/users/forget-actor.ts`).
    .index('audit_log_by_person', ['actor'], "substr(actor, 1, 9) = 'identity:'"),
}
