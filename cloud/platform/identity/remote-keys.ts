import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import type { Log } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { BoundedMap } from '../bounded-map.ts'
import { defaultLimits } from '../settings/limits.ts'

/** OpenID Connect Discovery §3. All other fields are ignored, whatever their type. */
const Discovery = z.object({
  issuer: z.string(),
  jwks_uri: z.url(),
  authorization_endpoint: z.url().optional().catch(undefined),
  token_endpoint: z.url().optional().catch(undefined),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional().catch(undefined),
  scopes_supported: z.array(z.string()).optional().catch(undefined),
})
export type Discovery = z.infer<typeof Discovery>
const FETCH_TIMEOUT_MS = 5000
/** Maximum number of consecutive fetches because of unknown key ids. */
const BURST = 3
/** After this time an unknown key id may cause another fetch. */
const ABSENT_MS = 30_000
/** Maximum number of remembered unknown key ids. */
const ABSENT_IDS = 1000
/** Minimum time between fetches if the issuer is unreachable. */
const RETRY_MS = 5000
/** Maximum age of the keys. A withdrawn key stays valid no longer. */
const MAX_AGE_MS = 600_000

interface RemoteKeysOptions {
  issuer: string
  /** Address of the keys, for issuers without discovery. */
  jwksUrl?: string | undefined
  /** Minimum time between two fetches because of unknown keys, after the first three. */
  refetchMs?: number
  clock: Clock
  log: Log
}

interface RemoteKeys extends JWTVerifyGetKey {
  /**
   * Rejects until the keys were fetched once, because no user can log in before. It does not reject during later
   * outages.
   */
  check(): Promise<void>
}

/**
 * The keys of an OIDC issuer, fetched at the first token and cached. An unknown key id causes another fetch, so that a
 * rotation needs no restart. The number of these fetches is limited, because callers can invent key ids. While no fetch
 * is allowed, a token with an unchecked key id gets `identity_unavailable`: the key may be new. Only a fetch without
 * the key refuses the token. While the issuer is unreachable the known keys stay valid.
 */
export function remoteKeys(options: RemoteKeysOptions): RemoteKeys {
  const { issuer, refetchMs = defaultLimits.rules.identityRefetchMs, clock, log } = options
  let known: { keys: JWTVerifyGetKey; at: number } | undefined
  let failedAt = -Infinity
  let loading: Promise<JWTVerifyGetKey> | undefined
  /** Fetches that unknown key ids may still cause. */
  let fetches = { left: BURST, at: clock.monotonic() }
  /** Key ids that the issuer did not have, with the time of the fetch. */
  const absent = new BoundedMap<number>(ABSENT_IDS)

  /** Fetches the keys. Coalesces concurrent calls into one fetch. */
  function load(): Promise<JWTVerifyGetKey> {
    loading ??= fetchKeys(options)
      .then(
        (keys) => {
          known = { keys, at: clock.monotonic() }
          failedAt = -Infinity
          return keys
        },
        (error: unknown) => {
          failedAt = clock.monotonic()
          log.warn({ err: error, issuer }, "the issuer's keys cannot be fetched")
          throw new ApiError('identity_unavailable')
        },
      )
      .finally(() => (loading = undefined))
    return loading
  }

  const hasJustFailed = (): boolean => clock.monotonic() - failedAt < RETRY_MS

  /** Uses one of the fetches for unknown key ids. */
  function takeFetch(): boolean {
    const now = clock.monotonic()
    const left = Math.min(BURST, fetches.left + (now - fetches.at) / refetchMs)
    fetches = { left: left < 1 ? left : left - 1, at: now }
    return left >= 1
  }

  /** Looks an unknown key up at the issuer. */
  async function lookUp(
    ...asked: Parameters<JWTVerifyGetKey>
  ): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const [{ alg, kid }] = asked
    const id = `${alg} ${kid}`.slice(0, 300)
    const lookedUpAt = absent.get(id) ?? -Infinity
    if (clock.monotonic() - lookedUpAt < ABSENT_MS) throw new errors.JWKSNoMatchingKey()
    if (hasJustFailed() || (!loading && !takeFetch())) throw new ApiError('identity_unavailable')
    const keys = await load()
    try {
      return await keys(...asked)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) absent.set(id, clock.monotonic())
      throw error
    }
  }

  const keyFor: JWTVerifyGetKey = async (...asked) => {
    if (!known) {
      if (hasJustFailed()) throw new ApiError('identity_unavailable')
      return (await load())(...asked)
    }
    const { keys, at } = known
    // No request waits for this fetch; if it fails, the old keys stay valid.
    if (clock.monotonic() - at >= MAX_AGE_MS && !hasJustFailed()) load().catch(() => {})
    try {
      return await keys(...asked)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      return lookUp(...asked)
    }
  }

  async function check(): Promise<void> {
    if (known) return
    if (hasJustFailed()) throw new ApiError('identity_unavailable')
    await load()
  }
  return Object.assign(keyFor, { check })
}

async function fetchKeys({ issuer, jwksUrl }: RemoteKeysOptions): Promise<JWTVerifyGetKey> {
  return keySet(await fetchJson(jwksUrl ?? (await discover(issuer)).jwks_uri))
}

const KeySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) })

/** A set of keys (RFC 7517 §5). Null members count as absent. Throws if the document is no set of keys. */
export function keySet(document: unknown): JWTVerifyGetKey {
  const { keys } = KeySet.parse(document)
  const withoutNull = keys.map((key) =>
    Object.fromEntries(Object.entries(key).filter(([, value]) => value !== null)),
  )
  return createLocalJWKSet({ keys: withoutNull })
}

/** The description of an issuer (OpenID Connect Discovery §4). */
export async function discover(issuer: string): Promise<Discovery> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const found = Discovery.parse(await fetchJson(url))
  // OpenID Connect Discovery §4.3: the keys of another issuer prove nothing.
  if (found.issuer !== issuer) throw new Error(`${url} names the issuer ${found.issuer} instead`)
  return found
}

/** Calls the issuer. */
export const identityFetch = (
  url: string,
  init: { method?: string; body?: URLSearchParams; headers?: Record<string, string> } = {},
): Promise<Response> =>
  fetch(url, {
    ...init,
    headers: { 'User-Agent': `Larder/${PRODUCT_VERSION}`, ...init.headers },
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  })

async function fetchJson(url: string): Promise<unknown> {
  const answer = await identityFetch(url)
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  return answer.json()
}
