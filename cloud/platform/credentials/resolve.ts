import type { Auth } from '../../../protocol/contract/route.ts'
import { roleScopes, type Scope } from '../../../protocol/model/scopes.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import { appendAudit } from '../audit/audit.ts'
import { KeyUses, readApiKey, RevokedKey, verifyApiKey, type ApiKey } from './api-keys.ts'
import type {
  AnonymousCredential,
  DiagCredential,
  IdentityCredential,
  OwnerCredential,
} from './credential.ts'
import {
  identityLacks,
  keyAsToken,
  keyLacks,
  notAdmin,
  notBearer,
  nothingPresented,
  notKey,
} from './explain.ts'
import type { VerifiedIdentity, VerifyIdentity } from './identity-token.ts'
import { hubsWithScope, listRoles, type Role } from './roles.ts'
import { digestOf } from './secrets.ts'
import { readSession, touchSession } from './sessions.ts'
import { BoundedMap } from '../bounded-map.ts'

/** The credentials that a request carries. */
export interface Presented {
  readonly apiKey: string | undefined
  readonly authorization: string | undefined
  /** The secret of the session's cookie, if the call may use it. Throws `forbidden`. */
  readonly session: string | undefined
  /** Where else the request contains an API key, to advise its caller: `header api-key`. */
  misplacedKey(): string | undefined
  /** The client's address: the actor of a request without a credential. */
  readonly address: string
}

/** A caller whose credential is genuine, whether or not it has the route's scope. */
export interface Authenticated {
  credential: OwnerCredential | IdentityCredential | DiagCredential | AnonymousCredential
  /** The route's scope and a message for the caller, if the credential lacks the scope. */
  missing: { scope: Scope; message: string } | null
}

type ScopedAuth = Extract<Auth, { scope: Scope }>

const scopesOf = (auth: ScopedAuth) => ({
  scope: auth.scope,
  further: auth.kind === 'api' ? auth.further : undefined,
  isEnough: auth.kind === 'api' && auth.either === true,
})

/** Returns no promise if the request has no credential, or the route reads none. */
export type ResolveCredential = (auth: Auth, presented: Presented) => Authenticated | Promise<Authenticated>

/** The audit log is permanent, so it records the use of a revoked key at most once in this time. */
const REVOKED_USE_MS = 3_600_000

/** Finds the caller. Throws the 401s. If both headers are present the API key decides, without fallback. */
export function credentialResolver(context: CloudContext, verifyIdentity: VerifyIdentity): ResolveCredential {
  const { db, runtime } = context
  const q = db.kysely
  const readKey = cachedGrants(context, (prefix: string) => readApiKey(q, prefix))
  const readRoles = cachedGrants(context, async (identity: string) => {
    const roles = await listRoles(q, identity)
    return roles.length > 0 ? roles : undefined
  })
  const sessionOf = cachedGrants(context, (digest: string) => readSession(context, digest))
  const uses = new KeyUses({ ...context, db: db.for('background') })
  /** The last recorded use of a revoked key, by its prefix. */
  const recorded = new Map<string, number>()

  return (auth, presented) => {
    switch (auth.kind) {
      case 'api':
        return presented.apiKey === undefined
          ? byRole(auth, presented)
          : byApiKey(presented.apiKey, presented.address, auth)
      case 'diag':
        return byDiag(auth, presented)
      case 'user':
      case 'identity':
        return byToken(auth, presented)
      case 'optional-identity':
        return presented.authorization === undefined ? anonymous(presented) : byToken(auth, presented)
      case 'none':
        return anonymous(presented)
    }
  }

  async function byToken(auth: Auth, presented: Presented): Promise<Authenticated> {
    return { credential: await person(auth, presented), missing: null }
  }

  /** The identity of the bearer token or of the session. Throws the 401s. */
  async function person(auth: Auth, presented: Presented): Promise<IdentityCredential> {
    const secret = presented.authorization === undefined ? presented.session : undefined
    const { identity, claims } =
      secret === undefined ? await verifyIdentity(bearer(auth, presented)) : await bySession(secret)
    return { kind: 'identity', actor: `identity:${identity}`, identity, claims }
  }

  async function bySession(secret: string): Promise<VerifiedIdentity> {
    const session = await sessionOf(digestOf(secret))
    if (!session || session.expiresAt <= runtime.clock.now())
      throw new ApiError('authentication_required', 'The session has ended: sign in again.')
    touchSession({ ...context, db: db.for('background') }, session)
    return session
  }

  async function verified(apiKey: string, address: string): Promise<ApiKey> {
    try {
      const key = await verifyApiKey(readKey, runtime, apiKey)
      uses.note(key)
      return key
    } catch (error) {
      if (error instanceof RevokedKey) await recordRevoked(error.prefix, address)
      else if (error instanceof ApiError && error.code === 'invalid_api_key') throw notKey(apiKey)
      throw error
    }
  }

  async function recordRevoked(prefix: string, address: string): Promise<void> {
    const now = runtime.clock.monotonic()
    if (now - (recorded.get(prefix) ?? -Infinity) < REVOKED_USE_MS) return
    recorded.set(prefix, now)
    const about = { actor: `address:${address}`, action: 'keys.use_revoked', object: `key-${prefix}` }
    await appendAudit(q, runtime, { ...about, hubId: null, result: 'refused' })
  }

  async function byApiKey(apiKey: string, address: string, auth: ScopedAuth): Promise<Authenticated> {
    return credentialOfKey(await verified(apiKey, address), auth)
  }

  async function byRole(auth: ScopedAuth, presented: Presented): Promise<Authenticated> {
    const { actor, identity, claims } = await person(auth, presented)
    return credentialOfRoles((await readRoles(identity)) ?? [], { actor, claims }, auth)
  }

  async function byDiag(auth: ScopedAuth, presented: Presented): Promise<Authenticated> {
    const { scope } = auth
    if (presented.apiKey !== undefined) {
      const { credential, missing } = await byApiKey(presented.apiKey, presented.address, auth)
      return { credential: { kind: 'diag', actor: credential.actor }, missing }
    }
    const { actor, claims } = await person(auth, presented)
    const missing = claims.roles.includes('admin') ? null : { scope, message: notAdmin(scope) }
    return { credential: { kind: 'diag', actor }, missing }
  }
}

function credentialOfKey({ prefix, ownerId, hubs, scopes }: ApiKey, auth: ScopedAuth): Authenticated {
  const { scope, further, isEnough } = scopesOf(auth)
  const hasFurther = further !== undefined && scopes.includes(further)
  const furtherHubs = further && { furtherHubs: hasFurther ? hubs : [] }
  const isMissing = !scopes.includes(scope) && !(isEnough && hasFurther)
  return {
    credential: {
      kind: 'api',
      actor: `key:${prefix}`,
      ownerId,
      hubs,
      scopes,
      keyPrefix: prefix,
      ...furtherHubs,
    },
    missing: isMissing ? { scope, message: keyLacks(scope) } : null,
  }
}

function credentialOfRoles(
  roles: readonly Role[],
  { actor, claims }: Pick<IdentityCredential, 'actor' | 'claims'>,
  auth: ScopedAuth,
): Authenticated {
  const { scope, further } = scopesOf(auth)
  const hubs = hubsWithScope(roles, scope)
  const scopes = roles
    .map(({ role }) => roleScopes[role])
    .filter((granted) => granted.includes(scope))
    .flat()
  const furtherHubs = further && { furtherHubs: hubsWithScope(roles, further) ?? [] }
  return {
    credential: {
      kind: 'api',
      actor,
      ownerId: null,
      hubs: hubs ?? [],
      scopes,
      keyPrefix: null,
      ...furtherHubs,
    },
    missing: hubs === null ? { scope, message: identityLacks(scope, claims, roles.length > 0) } : null,
  }
}

/** The bearer token. Throws the 401s of a request without one. */
function bearer(auth: Auth, presented: Presented): string {
  const { authorization } = presented
  if (authorization === undefined) throw nothingPresented(auth, presented)
  const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
  if (token === undefined) throw notBearer(authorization)
  const misplaced = keyAsToken(token)
  if (misplaced) throw misplaced
  return token
}

const anonymous = ({ address }: Presented): Authenticated => ({
  credential: { kind: 'none', actor: actorAt(address) },
  missing: null,
})

/** The actor of a request without a credential. */
export const actorAt = (address: string): string => `address:${address}`

/** Maximum number of cached grants of a kind. */
const MOST = 20_000

/**
 * Caches the rights of callers for `grantsKeptMs`, because they hardly ever change and each request would read them. A
 * revoked right ends in all processes within that time; a changed or added right starts within it. Absent rights are
 * never cached, so that a caller's first right starts at once. Concurrent requests share one read.
 */
export function cachedGrants<K extends string | number, V>(
  { runtime, settings }: Pick<CloudContext, 'runtime' | 'settings'>,
  read: (key: K) => Promise<V | undefined>,
): (key: K) => Promise<V | undefined> {
  const known = new BoundedMap<{ readAt: number; grant: Promise<V | undefined> }>(MOST)
  return (name) => {
    const key = String(name)
    const readAt = runtime.clock.monotonic()
    const current = known.get(key)
    if (current && readAt - current.readAt < settings.grantsKeptMs) return current.grant
    const entry = { readAt, grant: read(name) }
    known.set(key, entry)
    const forget = (): void => {
      if (known.get(key) === entry) known.delete(key)
    }
    entry.grant.then((grant) => {
      if (grant === undefined) forget()
    }, forget)
    return entry.grant
  }
}
