import type { Scope } from '../../../protocol/model/scopes.ts'

/** The caller of a route's handler. */
interface Caller {
  /**
   * `key:PREFIX`, `identity:SUB`, `address:IP`. It appears in the audit log, and is the key of rate limits and
   * idempotency.
   */
  actor: string
}

/** On owner paths: an API key, or an identity token with roles that grant the route's scope on `hubs`. */
export interface OwnerCredential extends Caller {
  kind: 'api'
  /** The key's owner. Null for identity tokens, because roles may name hubs of several owners. */
  ownerId: number | null
  /** `*`: every hub of the owner, or every hub if there is no owner. */
  hubs: '*' | readonly number[]
  /** The same for the route's further scope; empty without that scope. */
  furtherHubs?: '*' | readonly number[]
  /** The caller's scopes at the hubs. */
  scopes: readonly Scope[]
  /** The API key's public prefix, recorded as `confirmed_by_key`; null for identity tokens. */
  keyPrefix: string | null
}

/** The claims of an identity token about its subject. */
export interface IdentityClaims {
  /** E.164; null unless the issuer has verified it. */
  phoneNumber: string | null
  /** In lower case. */
  email: string | null
  /** Whether the issuer has verified `email`. */
  emailVerified: boolean
  anonymous: boolean
  /** Empty if roles of tokens do not count (`IDENTITY_ROLES`). */
  roles: readonly string[]
}

export interface IdentityCredential extends Caller {
  kind: 'identity'
  /** The token's `sub`. */
  identity: string
  claims: IdentityClaims
}

/** An identity whose user exists. */
export interface UserCredential extends Omit<IdentityCredential, 'kind'> {
  kind: 'user'
  userId: number
}

export interface DiagCredential extends Caller {
  kind: 'diag'
}

export interface AnonymousCredential extends Caller {
  kind: 'none'
}

export type Credential =
  OwnerCredential | IdentityCredential | UserCredential | DiagCredential | AnonymousCredential
