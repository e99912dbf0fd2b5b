import type { Log } from '../../../protocol/model/log.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import { identityVerifier } from '../credentials/identity-token.ts'
import type { CloudConfig } from '../settings/config.ts'
import { createEmbeddedIssuer } from './embedded-issuer.ts'
import { remoteKeys } from './remote-keys.ts'
import { keptSigningKey } from './signing-key.ts'

/** The configured identity issuer, or the embedded one with its routes. */
export async function openIssuer(config: CloudConfig, baseUrl: string, runtime: Runtime, log: Log) {
  const { clock } = runtime
  const say = (sentence: string): void => log.warn({}, sentence)
  const audience = config.IDENTITY_AUDIENCE
  const issuer =
    config.IDENTITY_ISSUER === undefined
      ? {
          ...createEmbeddedIssuer({
            issuer: baseUrl,
            audience: audience.split(',')[0]!.trim(),
            key: await keptSigningKey(config.DATA_DIR, say),
            runtime,
            apiKey: config.DOCS_API_KEY,
          }),
          check: undefined,
        }
      : outside(config, config.IDENTITY_ISSUER, clock, log)
  const verify = identityVerifier({
    issuer: issuer.issuer,
    audience,
    keys: issuer.keys,
    clock,
    kept: config.limits.rules.identityTokens,
    toleranceS: config.limits.rules.identityClockToleranceS,
    use: config.IDENTITY_TOKEN_USE,
    trustsRoles: config.IDENTITY_ROLES,
  })
  return { verify, check: issuer.check, handlers: issuer.handlers }
}

function outside(config: CloudConfig, issuer: string, clock: Clock, log: Log) {
  const keys = remoteKeys({
    issuer,
    jwksUrl: config.IDENTITY_JWKS_URL,
    refetchMs: config.limits.rules.identityRefetchMs,
    clock,
    log,
  })
  return { issuer, keys, check: () => keys.check(), handlers: undefined }
}
