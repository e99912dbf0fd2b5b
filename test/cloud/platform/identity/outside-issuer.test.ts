import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT, type CryptoKey } from 'jose'
import { expect, test } from 'vitest'
import { identityVerifier, verifierByIssuer } from '../../../../cloud/platform/credentials/identity-token.ts'
import { remoteKeys } from '../../../../cloud/platform/identity/remote-keys.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { oidcIssuer, type OidcIssuer, type OidcIssuerOptions } from '../../support/oidc-issuer.ts'

const MINUTE = 60_000

/** The service with tokens of a real issuer, on a clock that can be set. */
async function serviceWith(options: OidcIssuerOptions = {}, beginDown = false) {
  const oidc = await oidcIssuer(options)
  if (beginDown) oidc.stop()
  let ahead = 0
  const { clock: real } = systemRuntime()
  const clock = { ...real, now: () => real.now() + ahead, monotonic: () => real.monotonic() + ahead }
  const verifyIdentity = identityVerifier({
    issuer: oidc.issuer,
    audience: 'larder',
    keys: remoteKeys({ issuer: oidc.issuer, clock, log: silentLog }),
    clock,
  })
  const { call } = await openCloud({ verifyIdentity })
  return {
    oidc,
    advance: (ms: number) => void (ahead += ms),
    /** The status or error code for a token. */
    meet: async (token: string): Promise<number | string> => {
      const answer = await call('POST', '/users/user/bootstrap', {
        token,
        body: { email: 'ada@example.org' },
      })
      return answer.status < 400 ? answer.status : errorOf(answer).error.code
    },
    call,
  }
}

/** A token with the claims of a valid one, signed by the given key. */
async function resigned(token: string, key: CryptoKey | Uint8Array, header: { alg: string; kid?: string }) {
  return new SignJWT(decodeJwt(token))
    .setProtectedHeader({ ...decodeProtectedHeader(token), ...header })
    .sign(key)
}

test.each(['ES256', 'RS256'] as const)('a token of an outside issuer is accepted (%s)', async (algorithm) => {
  const claims = { phone_number: '+14155550100', email: 'Ada@Example.org', email_verified: true }
  const { oidc, call } = await serviceWith({ algorithm, claims })
  const { status, json } = await call('POST', '/users/user/bootstrap', { token: await oidc.token() })
  expect([status, json]).toEqual([
    201,
    expect.objectContaining({
      identity_id: 'shop-app',
      phone_number: '+14155550100',
      email: 'ada@example.org',
      is_anonymous: false,
    }),
  ])
})

test('a phone number that the issuer has not verified is unverified', async () => {
  const claims = { phone_number: '+14155550100', phone_number_verified: false }
  const { oidc, call } = await serviceWith({ claims })
  const body = { phone_number: '+14155550199' }
  const { json } = await call('POST', '/users/user/bootstrap', { token: await oidc.token(), body })
  expect(json).toMatchObject({ phone_number: '+14155550199' })
})

test('the issuer’s configuration and keys are fetched once for many tokens', async () => {
  const { oidc, meet } = await serviceWith()
  const tokens = await Promise.all([1, 2, 3, 4].map(() => oidc.token()))
  expect(await Promise.all(tokens.map(meet))).toEqual([201, 201, 201, 201])
  expect(oidc.asked).toEqual(['/.well-known/openid-configuration', '/jwks'])
})

/** Sends tokens with invented key ids, one after the other. */
async function invent(meet: (token: string) => Promise<unknown>, token: string, count: number) {
  const { privateKey } = await generateKeyPair('ES256')
  const answers: unknown[] = []
  for (let index = 0; index < count; index += 1)
    answers.push(await meet(await resigned(token, privateKey, { alg: 'ES256', kid: crypto.randomUUID() })))
  return answers
}

test('invented key ids cause at most three fetches in a row, then one every 5 s', async () => {
  const { oidc, meet, advance } = await serviceWith()
  const token = await oidc.token()
  await meet(token)
  const before = oidc.asked.length
  expect(await invent(meet, token, 6)).toEqual([
    ...Array<string>(3).fill('invalid_token'),
    ...Array<string>(3).fill('identity_unavailable'),
  ])
  expect((oidc.asked.length - before) / 2).toBe(3)
  advance(5000)
  expect(await invent(meet, token, 2)).toEqual(['invalid_token', 'identity_unavailable'])
  expect((oidc.asked.length - before) / 2).toBe(4)
})

test('concurrent tokens with invented key ids share one fetch, and a repeated id causes none', async () => {
  const { oidc, meet } = await serviceWith()
  const token = await oidc.token()
  await meet(token)
  const before = oidc.asked.length
  const { privateKey } = await generateKeyPair('ES256')
  const forged = await resigned(token, privateKey, { alg: 'ES256', kid: 'invented' })
  const all = await Promise.all(Array.from({ length: 10 }, () => meet(forged)))
  expect([...new Set(all), await meet(forged)]).toEqual(['invalid_token', 'invalid_token'])
  expect((oidc.asked.length - before) / 2).toBe(1)
})

test('a token of a new key is accepted at once, or after a 503, for any number of invented key ids', async () => {
  const { oidc, meet, advance, call } = await serviceWith()
  const old = await oidc.token()
  await meet(old)
  await oidc.rotate()
  expect(await meet(await oidc.token())).toBe(201)
  await invent(meet, old, 10)
  await oidc.rotate()
  const fresh = await oidc.token()
  const answer = await call('POST', '/users/user/bootstrap', { token: fresh })
  expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '5'])
  advance(5000)
  expect(await meet(fresh)).toBe(201)
})

test('an issuer without discovery is used through IDENTITY_JWKS_URL', async () => {
  const oidc = await oidcIssuer()
  const { clock } = systemRuntime()
  const keys = remoteKeys({ issuer: 'no-address', jwksUrl: `${oidc.issuer}/jwks`, clock, log: silentLog })
  const verify = identityVerifier({ issuer: oidc.issuer, audience: 'larder', keys, clock })
  expect(await verify(await oidc.token())).toMatchObject({ identity: 'shop-app' })
  expect(oidc.asked).toEqual(['/jwks'])
})

test('keys rotate without a restart: the new key is accepted, and the old key is refused in time', async () => {
  const { oidc, meet, advance } = await serviceWith({ lifetimeSeconds: 3600 })
  const old = await oidc.token()
  expect(await meet(old)).toBe(201)
  advance(MINUTE)
  await oidc.rotate({ keepOld: true })
  expect(await meet(await oidc.token())).toBe(201)
  expect(await meet(old)).toBe(201)
  await oidc.rotate()
  advance(MINUTE)
  expect(await meet(await oidc.token())).toBe(201)
  expect(await meet(old)).toBe('invalid_token')
})

test('a withdrawn key is accepted at most as long as the cache lives', async () => {
  const { oidc, meet, advance } = await serviceWith({ lifetimeSeconds: 7200 })
  const old = await oidc.token()
  expect(await meet(old)).toBe(201)
  await oidc.rotate()
  advance(10 * MINUTE)
  // The first token starts the fetch and does not wait for it.
  await meet(old)
  await expect.poll(() => meet(old)).toBe('invalid_token')
})

test('an issuer that is down at the start is used when it returns', async () => {
  const { oidc, meet, advance } = await serviceWith({}, true)
  oidc.resume()
  const token = await oidc.token()
  oidc.stop()
  expect(await meet(token)).toBe('identity_unavailable')
  oidc.resume()
  // The issuer is not asked again at once, because many customers would flood it.
  expect(await meet(token)).toBe('identity_unavailable')
  advance(6000)
  expect(await meet(token)).toBe(201)
})

test('known keys stay valid while the issuer is down, at any age', async () => {
  const { oidc, meet, advance } = await serviceWith({ lifetimeSeconds: 86_400 })
  const token = await oidc.token()
  expect(await meet(token)).toBe(201)
  oidc.stop()
  for (let hours = 0; hours < 5; hours += 1) {
    advance(60 * MINUTE)
    expect(await meet(token)).toBe(201)
  }
  const { privateKey } = await generateKeyPair('ES256')
  const unknown = await resigned(token, privateKey, { alg: 'ES256', kid: 'perhaps-a-new-one' })
  expect(await meet(unknown)).toBe('identity_unavailable')
  oidc.resume()
  advance(MINUTE)
  expect(await meet(unknown)).toBe('invalid_token')
})

test('during a change of the issuer tokens of both are accepted, and tokens of a third one are refused', async () => {
  const [next, former, third] = [await oidcIssuer(), await oidcIssuer(), await oidcIssuer()]
  const { clock } = systemRuntime()
  const verifierOf = ({ issuer }: OidcIssuer) =>
    identityVerifier({
      issuer,
      audience: 'larder',
      keys: remoteKeys({ issuer, clock, log: silentLog }),
      clock,
    })
  const verifyIdentity = verifierByIssuer(verifierOf(next), {
    issuer: `${former.issuer}/`,
    verify: verifierOf(former),
  })
  const { call } = await openCloud({ verifyIdentity })
  const meet = async (token: string) =>
    (await call('POST', '/users/user/bootstrap', { token, body: { email: 'ada@example.org' } })).status
  const tokens = await Promise.all([next, former, third].map((each) => each.token()))
  const answers = []
  for (const token of [...tokens, 'no token']) answers.push(await meet(token))
  expect(answers.map((status) => status < 400)).toEqual([true, true, false, false])
})

test('a configuration that names another issuer is refused', async () => {
  const honest: OidcIssuer = await oidcIssuer()
  const keys = remoteKeys({ issuer: `${honest.issuer}/`, clock: systemRuntime().clock, log: silentLog })
  await expect(keys({ alg: 'ES256' }, { payload: '', signature: '' })).rejects.toMatchObject({
    code: 'identity_unavailable',
  })
})

test('readiness waits for the first fetch of the issuer’s keys, and later outages of the issuer do not affect it', async () => {
  const oidc: OidcIssuer = await oidcIssuer()
  let aheadMs = 0
  const { clock } = systemRuntime()
  const ahead = { ...clock, monotonic: () => clock.monotonic() + aheadMs }
  const dead = remoteKeys({ issuer: 'http://127.0.0.1:1/', clock: ahead, log: silentLog })
  for (let times = 0; times < 2; times += 1)
    await expect(dead.check()).rejects.toMatchObject({ code: 'identity_unavailable' })
  const keys = remoteKeys({ issuer: oidc.issuer, clock: ahead, log: silentLog })
  oidc.stop()
  await expect(keys.check()).rejects.toMatchObject({ code: 'identity_unavailable' })
  oidc.resume()
  aheadMs += 10_000
  await keys.check()
  oidc.stop()
  aheadMs += 3_600_000
  await keys.check()
})
