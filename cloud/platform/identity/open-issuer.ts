import type { Log } from '../../../protocol/model/log.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'
import {
  identityVerifier,
  verifierByIssuer,
  type IdentityTokenOptions,
  type VerifyIdentity,
} from '../credentials/identity-token.ts'
import type { CloudConfig } from '../settings/config.ts'
import type { CodeIssuer } from './code-flow.ts'
import { createEmbeddedIssuer, type EmbeddedIssuer } from './embedded-issuer.ts'
import { remoteCodeIssuer } from './remote-code-issuer.ts'
import { remoteKeys } from './remote-keys.ts'
import { ensureSigningKey } from './signing-key.ts'

/** The configured identity issuer, or the embedded one with its routes. */
export async function openIssuer(config: CloudConfig, baseUrl: string, runtime: Runtime, log: Log) {
  const { clock } = runtime
  const say = (sentence: string): void => log.warn({}, sentence)
  const audience = config.IDENTITY_AUDIENCE
  const parts = { refetchMs: config.limits.rules.identityRefetchMs, clock, log }
  const issuer =
    config.IDENTITY_ISSUER === undefined
      ? {
          ...createEmbeddedIssuer({
            issuer: baseUrl,
            audience: audience.split(',')[0]!.trim(),
            key: await ensureSigningKey(config.DATA_DIR, say),
            runtime,
            apiKey: config.DOCS_API_KEY,
          }),
          check: undefined,
        }
      : outside(config.IDENTITY_ISSUER[0], config.IDENTITY_JWKS_URL, parts)
  const rules = {
    clock,
    kept: config.limits.rules.identityTokens,
    toleranceS: config.limits.rules.identityClockToleranceS,
    trustsRoles: config.IDENTITY_ROLES,
  }
  const verifierOf = ({ issuer, keys }: Pick<IdentityTokenOptions, 'issuer' | 'keys'>) =>
    identityVerifier({ ...rules, issuer, keys, audience, use: config.IDENTITY_TOKEN_USE })
  const former = config.IDENTITY_ISSUER?.[1]
  const verify = verifierOf(issuer)
  return {
    verify:
      former === undefined
        ? verify
        : verifierByIssuer(verify, { issuer: former, verify: verifierOf(outside(former, undefined, parts)) }),
    check: issuer.check,
    handlers: issuer.handlers,
    /** Absent: nobody can sign in in a browser. */
    signIn: codeIssuer(
      config,
      issuer,
      (clientId) =>
        identityVerifier({ ...rules, issuer: issuer.issuer, keys: issuer.keys, audience: clientId }),
      {
        clock,
        log,
      },
    ),
    site: issuer.signIn?.site ?? [],
  }
}

function codeIssuer(
  { IDENTITY_CLIENT_ID: clientId, IDENTITY_CLIENT_SECRET: clientSecret }: CloudConfig,
  { issuer, signIn }: { issuer: string; signIn: EmbeddedIssuer['signIn'] | undefined },
  verifierFor: (clientId: string) => VerifyIdentity,
  parts: { clock: Clock; log: Log },
): CodeIssuer | undefined {
  if (signIn) return { ...signIn, verify: verifierFor(signIn.clientId) }
  if (clientId === undefined) return undefined
  return remoteCodeIssuer({ issuer, clientId, clientSecret, verify: verifierFor(clientId), ...parts })
}

function outside(
  issuer: string,
  jwksUrl: string | undefined,
  parts: { refetchMs: number; clock: Clock; log: Log },
) {
  const keys = remoteKeys({ issuer, jwksUrl, ...parts })
  return { issuer, keys, check: () => keys.check(), handlers: undefined, signIn: undefined }
}
