import {
  createLocalJWKSet,
  generateKeyPair,
  exportJWK,
  SignJWT,
  type CryptoKey,
  type JWTVerifyGetKey,
} from 'jose'
import { afterEach, expect, test, vi } from 'vitest'
import { identityVerifier } from '../../../../cloud/platform/credentials/identity-token.ts'

const START = 1_767_225_600_000
const verifications = vi.spyOn(crypto.subtle, 'verify')
afterEach(() => void verifications.mockClear())

/** A service that caches `kept` tokens of an issuer with replaceable keys, on a clock that can be set. */
async function serviceWithCache(kept: number) {
  let now = START
  const clock = { now: () => now, monotonic: () => now, after: () => () => {} }
  const newKey = async (kid: string) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'ES256' }
    return { privateKey, keys: createLocalJWKSet({ keys: [jwk] }) }
  }
  const first = await newKey('first')
  let keys: JWTVerifyGetKey = first.keys
  const ask: JWTVerifyGetKey = (...asked) => keys(...asked)
  return {
    verify: identityVerifier({ issuer: 'issuer', audience: 'larder', keys: ask, clock, kept }),
    token: (sub: string, key: CryptoKey = first.privateKey) =>
      new SignJWT({ sub })
        .setProtectedHeader({ alg: 'ES256', kid: 'first' })
        .setIssuer('issuer')
        .setAudience('larder')
        .setNotBefore(START / 1000)
        .setExpirationTime(START / 1000 + 60)
        .sign(key),
    setTime: (at: number) => void (now = at),
    replaceKey: async (kid: string) => void ({ keys } = await newKey(kid)),
  }
}

test('a signature is verified once as long as the issuer has its key', async () => {
  const { verify, token } = await serviceWithCache(10)
  const ada = await token('ada')
  const [first, second] = [await verify(ada), await verify(ada)]
  expect(first.identity).toBe('ada')
  expect(second).toEqual(first)
  expect(verifications).toHaveBeenCalledTimes(1)
})

test('a token is refused at once if the issuer has withdrawn its key, or has replaced it under the same id', async () => {
  for (const kid of ['second', 'first']) {
    const { verify, token, replaceKey } = await serviceWithCache(10)
    const ada = await token('ada')
    await verify(ada)
    await replaceKey(kid)
    await expect(verify(ada)).rejects.toMatchObject({ code: 'invalid_token' })
    await expect(verify(ada)).rejects.toMatchObject({ code: 'invalid_token' })
  }
})

test('a cached token expires, and is refused before its nbf if the clock was set back', async () => {
  const { verify, token, setTime } = await serviceWithCache(10)
  const ada = await token('ada')
  await verify(ada)
  setTime(START + 120_000)
  await expect(verify(ada)).rejects.toMatchObject({ code: 'token_expired' })
  setTime(START)
  await verify(ada)
  setTime(START - 61_000)
  await expect(verify(ada)).rejects.toMatchObject({ code: 'invalid_token' })
})

test('the cache has a maximum number of tokens, the most recently used ones', async () => {
  const { verify, token } = await serviceWithCache(2)
  const [ada, bob, cleo] = [await token('ada'), await token('bob'), await token('cleo')]
  for (const one of [ada, bob, ada, cleo, ada]) await verify(one)
  expect(verifications).toHaveBeenCalledTimes(3)
  await verify(bob)
  expect(verifications).toHaveBeenCalledTimes(4)
})
