import { createRemoteJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import type { Log } from '../../../protocol/model/log.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.url() })
const FETCH_TIMEOUT_MS = 5000
/** The least time between two fetches because of tokens that name an unknown key. */
const COOLDOWN_MS = 30_000
/** The least time before another try after the issuer could not be reached. */
const RETRY_MS = 5000
/** Keys this old are fetched again, so that a withdrawn key does not stay valid for ever. */
const MAX_AGE_MS = 600_000

export interface RemoteKeysOptions {
  issuer: string
  clock: Clock
  log: Log
}

/**
 * The keys of an OIDC issuer, found by discovery at the first token and kept. An unknown key id makes it fetch them again, so
 * that a rotation needs no restart. While the issuer is out of reach the known keys stay valid; for a token that needs another
 * key it throws `identity_unavailable`.
 */
export function remoteKeys({ issuer, clock, log }: RemoteKeysOptions): JWTVerifyGetKey {
  let known: { keys: JWTVerifyGetKey; at: number } | undefined
  let tried: { at: number; ok: boolean } | undefined
  let loading: Promise<JWTVerifyGetKey> | undefined

  /** Fetches the keys. Coalesces concurrent calls into one fetch. */
  function load(): Promise<JWTVerifyGetKey> {
    loading ??= fetchKeys(issuer)
      .then(
        (keys) => {
          known = { keys, at: clock.monotonic() }
          tried = { at: clock.monotonic(), ok: true }
          return keys
        },
        (error: unknown) => {
          tried = { at: clock.monotonic(), ok: false }
          log.warn({ err: error, issuer }, "the issuer's keys cannot be had")
          throw new ApiError('identity_unavailable')
        },
      )
      .finally(() => (loading = undefined))
    return loading
  }

  function isTooSoon(): boolean {
    return tried !== undefined && clock.monotonic() - tried.at < (tried.ok ? COOLDOWN_MS : RETRY_MS)
  }

  return async (header, token) => {
    if (!known) {
      if (isTooSoon()) throw new ApiError('identity_unavailable')
      return (await load())(header, token)
    }
    const { keys, at } = known
    // Nobody waits for this fetch; if it fails, the old keys stay valid.
    if (clock.monotonic() - at >= MAX_AGE_MS && !isTooSoon()) load().catch(() => {})
    try {
      return await keys(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      if (!isTooSoon() || loading) return (await load())(header, token)
      // While the issuer is away nobody can tell whether the key is a new one.
      if (tried?.ok === false) throw new ApiError('identity_unavailable')
      throw error
    }
  }
}

async function fetchKeys(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  const found = Discovery.parse(await answer.json())
  // OpenID Connect Discovery §4.3: otherwise we would trust somebody else's keys as the issuer's.
  if (found.issuer !== issuer) throw new Error(`${url} names the issuer ${found.issuer} instead`)
  // Only `load` fetches keys again: left to itself, the set would forget them while the issuer is away.
  const keys = createRemoteJWKSet(new URL(found.jwks_uri), {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cacheMaxAge: Infinity,
    cooldownDuration: Infinity,
  })
  await keys.reload()
  return keys
}
