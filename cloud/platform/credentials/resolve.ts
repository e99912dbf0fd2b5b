import type { Auth } from '../../../protocol/contract/route.ts'
import type { Scope } from '../../../protocol/model/scopes.ts'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import { verifyApiKey } from './api-keys.ts'
import type {
  AnonymousCredential,
  DiagCredential,
  IdentityCredential,
  OwnerCredential,
} from './credential.ts'
import type { VerifyIdentity } from './identity-token.ts'
import { hubsWithScope, listRoles } from './roles.ts'

/** What a request brings along. */
export interface Presented {
  apiKey: string | undefined
  authorization: string | undefined
  /** Where it comes from; it keys the limits of whoever shows no credential. */
  address: string
}

/** A caller whose credential is genuine; whether it has the scope is asked only after this. */
export interface Authenticated {
  credential: OwnerCredential | IdentityCredential | DiagCredential | AnonymousCredential
  /** The scope that it should have and has not. */
  missingScope: Scope | null
}

export type ResolveCredential = (auth: Auth, presented: Presented) => Promise<Authenticated>

/** Who is calling (contract §3). Throws the 401s; with both headers the API key decides, without fallback. */
export function credentialResolver(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  verifyIdentity: VerifyIdentity,
): ResolveCredential {
  const q = db.kysely

  async function bearer(presented: Presented): Promise<IdentityCredential> {
    const { authorization } = presented
    if (authorization === undefined) throw new ApiError('authentication_required')
    const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
    if (token === undefined) throw new ApiError('invalid_token')
    const { identity, claims } = await verifyIdentity(token)
    return { kind: 'identity', id: `identity:${identity}`, actor: `identity:${identity}`, identity, claims }
  }

  async function apiKey(
    presented: string,
    scope: Scope,
  ): Promise<Authenticated & { credential: OwnerCredential }> {
    const key = await verifyApiKey(q, runtime, presented)
    const actor = `key:${key.prefix}`
    return {
      credential: {
        kind: 'api',
        id: actor,
        actor,
        ownerId: key.ownerId,
        hubs: key.hubs,
        keyPrefix: key.prefix,
      },
      missingScope: key.scopes.includes(scope) ? null : scope,
    }
  }

  async function role(presented: Presented, scope: Scope): Promise<Authenticated> {
    const { id, actor, identity } = await bearer(presented)
    const hubs = hubsWithScope(await listRoles(q, identity), scope)
    return {
      credential: { kind: 'api', id, actor, ownerId: null, hubs: hubs ?? [], keyPrefix: null },
      missingScope: hubs === null ? scope : null,
    }
  }

  async function diag(presented: Presented, scope: Scope): Promise<Authenticated> {
    if (presented.apiKey !== undefined) {
      const { credential, missingScope } = await apiKey(presented.apiKey, scope)
      return { credential: { kind: 'diag', id: credential.id, actor: credential.actor }, missingScope }
    }
    const { id, actor, claims } = await bearer(presented)
    return { credential: { kind: 'diag', id, actor }, missingScope: claims.role === 'admin' ? null : scope }
  }

  return async (auth, presented) => {
    switch (auth.kind) {
      case 'api':
        return presented.apiKey === undefined
          ? role(presented, auth.scope)
          : apiKey(presented.apiKey, auth.scope)
      case 'diag':
        return diag(presented, auth.scope)
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
}

const anonymous = ({ address }: Presented): Authenticated => ({
  credential: { kind: 'none', id: `address:${address}`, actor: `address:${address}` },
  missingScope: null,
})
