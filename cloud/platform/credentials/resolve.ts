import type { Auth } from '../../../protocol/contract/route.ts'
import type { Scope } from '../../../protocol/model/scopes.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import { appendAudit } from '../audit/audit.ts'
import { RevokedKey, verifyApiKey, type ApiKey } from './api-keys.ts'
import type {
  AnonymousCredential,
  DiagCredential,
  IdentityCredential,
  OwnerCredential,
} from './credential.ts'
import type { VerifyIdentity } from './identity-token.ts'
import { hubsWithScope, listRoles } from './roles.ts'

/** The credentials that a request carries. */
export interface Presented {
  apiKey: string | undefined
  authorization: string | undefined
  /** Where the request comes from: the actor of a request without a credential. */
  address: string
}

/** A caller whose credential is genuine, whether or not it has the route's scope. */
export interface Authenticated {
  credential: OwnerCredential | IdentityCredential | DiagCredential | AnonymousCredential
  /** The route's scope, if the credential lacks it. */
  missingScope: Scope | null
}

export type ResolveCredential = (auth: Auth, presented: Presented) => Promise<Authenticated>

/** The use of a revoked key is put on record once in so long: the log of who did what is kept for ever. */
const REVOKED_USE_MS = 3_600_000

/** Who is calling. Throws the 401s. With both headers the API key decides, without fallback. */
export function credentialResolver(
  { db, runtime }: CloudContext,
  verifyIdentity: VerifyIdentity,
): ResolveCredential {
  const q = db.kysely
  /** When the use of a revoked key was recorded last, by its prefix. */
  const recorded = new Map<string, number>()

  return async (auth, presented) => {
    switch (auth.kind) {
      case 'api':
        return presented.apiKey === undefined
          ? byRole(presented, auth.scope)
          : byApiKey(presented.apiKey, presented.address, auth.scope)
      case 'diag':
        return byDiag(presented, auth.scope)
      case 'user':
      case 'identity':
        return { credential: await bearer(presented), missingScope: null }
      case 'optional-identity':
        return presented.authorization === undefined
          ? anonymous(presented)
          : { credential: await bearer(presented), missingScope: null }
      case 'none':
        return anonymous(presented)
    }
  }

  async function bearer({ authorization }: Presented): Promise<IdentityCredential> {
    if (authorization === undefined) throw new ApiError('authentication_required')
    const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
    if (token === undefined) throw new ApiError('invalid_token')
    const { identity, claims } = await verifyIdentity(token)
    return { kind: 'identity', actor: `identity:${identity}`, identity, claims }
  }

  async function verified(apiKey: string, address: string): Promise<ApiKey> {
    try {
      return await verifyApiKey(q, runtime, apiKey)
    } catch (error) {
      if (error instanceof RevokedKey) await recordRevoked(error.prefix, address)
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

  async function byApiKey(apiKey: string, address: string, scope: Scope): Promise<Authenticated> {
    const { prefix, ownerId, hubs, scopes } = await verified(apiKey, address)
    return {
      credential: { kind: 'api', actor: `key:${prefix}`, ownerId, hubs, keyPrefix: prefix },
      missingScope: scopes.includes(scope) ? null : scope,
    }
  }

  async function byRole(presented: Presented, scope: Scope): Promise<Authenticated> {
    const { actor, identity } = await bearer(presented)
    const hubs = hubsWithScope(await listRoles(q, identity), scope)
    return {
      credential: { kind: 'api', actor, ownerId: null, hubs: hubs ?? [], keyPrefix: null },
      missingScope: hubs === null ? scope : null,
    }
  }

  async function byDiag(presented: Presented, scope: Scope): Promise<Authenticated> {
    if (presented.apiKey !== undefined) {
      const { credential, missingScope } = await byApiKey(presented.apiKey, presented.address, scope)
      return { credential: { kind: 'diag', actor: credential.actor }, missingScope }
    }
    const { actor, claims } = await bearer(presented)
    return { credential: { kind: 'diag', actor }, missingScope: claims.role === 'admin' ? null : scope }
  }
}

const anonymous = ({ address }: Presented): Authenticated => ({
  credential: { kind: 'none', actor: `address:${address}` },
  missingScope: null,
})
