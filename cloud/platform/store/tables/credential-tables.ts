import type { Generated } from 'kysely'
import type { Fixed, Instant } from './columns.ts'

/** Who may call, how often, and what was done by whom. */
export interface CredentialTables {
  api_keys: {
    prefix: Fixed<string>
    digest: Fixed<string>
    name: Fixed<string>
    owner_id: Fixed<number>
    /** JSON array of scopes; never changes after issue (contract §3). */
    scopes: Fixed<string>
    /** JSON array of hub ids, or "*". */
    hubs: Fixed<string>
    created_at: Fixed<Instant>
    /** Set earlier when the key is rotated, never later. */
    expires_at: Instant | null
    revoked_at: Instant | null
    last_used_at: Instant | null
  }
  roles: {
    id: Generated<number>
    identity: Fixed<string>
    role: Fixed<string>
    hubs: Fixed<string>
    created_at: Fixed<Instant>
  }
  idempotency_keys: {
    credential: Fixed<string>
    key: Fixed<string>
    fingerprint: Fixed<string>
    /** Null while the first request is under way. */
    status: number | null
    headers: string | null
    body: string | null
    locked_until: Instant
    created_at: Fixed<Instant>
  }
  /** Calls in the current minute, where several processes share a limit (contract §4). */
  rate_limits: { caller: string; route: string; minute: number; count: number }
  audit_log: {
    id: Generated<number>
    at: Fixed<Instant>
    actor: Fixed<string>
    action: Fixed<string>
    hub_id: Fixed<number | null>
    object: Fixed<string>
    result: Fixed<string>
    detail: Fixed<string>
  }
}
