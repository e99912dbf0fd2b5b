import {
  base64url,
  exportSPKI,
  generateKeyPair,
  importJWK,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JWTPayload,
} from 'jose'
import { expect, test } from 'vitest'
import { errorOf, openCloud, type TestCloud } from '../../../world/cloud.ts'
import { AUDIENCE, ISSUER } from '../../support/tokens.ts'

const path = '/users/user/bootstrap'
const call = ({ call }: TestCloud, token: string) =>
  call('POST', path, { token, body: { email: 'ada@example.org' } })
const HOUR_SECONDS = 3600

async function refusal(app: TestCloud, token: string): Promise<string> {
  const answer = await call(app, token)
  expect(answer.status).toBe(401)
  return errorOf(answer).error.code
}

const claims = (app: TestCloud) => {
  const now = Math.floor(app.runtime.clock.now() / 1000)
  return { iss: ISSUER, aud: AUDIENCE, sub: 'ada', iat: now, exp: now + HOUR_SECONDS }
}

test('a token without a signature is refused', async () => {
  const app = await openCloud()
  expect(await refusal(app, new UnsecuredJWT(claims(app)).encode())).toBe('invalid_token')
  const [, payload] = (await app.issuer.token()).split('.')
  for (const alg of ['none', 'None', 'NONE'])
    expect(await refusal(app, `${base64url.encode(JSON.stringify({ alg }))}.${payload}.`)).toBe(
      'invalid_token',
    )
})

test("a token signed with the public key as an HMAC's secret is refused", async () => {
  const app = await openCloud()
  const publicKey = (await importJWK(app.issuer.publicJwk, 'ES256', { extractable: true })) as CryptoKey
  const secret = new TextEncoder().encode(await exportSPKI(publicKey))
  expect(await refusal(app, await app.issuer.token({}, { alg: 'HS256', key: secret }))).toBe('invalid_token')
})

test('a token signed by another key is refused, even under the right key id', async () => {
  const app = await openCloud()
  const { privateKey } = await generateKeyPair('ES256')
  expect(await refusal(app, await app.issuer.token({}, { key: privateKey }))).toBe('invalid_token')
  const stranger = new SignJWT(claims(app)).setProtectedHeader({ alg: 'ES256', kid: 'x' })
  expect(await refusal(app, await stranger.sign(privateKey))).toBe('invalid_token')
})

test('a token with another algorithm is refused, even with a valid signature', async () => {
  const app = await openCloud()
  const { privateKey } = await generateKeyPair('ES384')
  expect(await refusal(app, await app.issuer.token({}, { alg: 'ES384', key: privateKey }))).toBe(
    'invalid_token',
  )
})

test('the issuer, audience, subject and times of a token are checked', async () => {
  const app = await openCloud()
  const { iat } = claims(app)
  const wrong: Record<string, JWTPayload> = {
    iss: { iss: 'http://elsewhere.test' },
    aud: { aud: 'somebody-else' },
    'no sub': { sub: undefined as never },
    'empty sub': { sub: '' },
    'no exp': { exp: undefined as never },
    'a long sub': { sub: 'x'.repeat(256) },
    'NUL in sub': { sub: 'a\0b' },
    'sub of another type': { sub: 7 as never },
    'text as exp': { exp: String(iat + HOUR_SECONDS) as never },
    'null as aud': { aud: null as never },
    'aud of other services': { aud: ['account', 'somebody-else'] },
    'nbf to come': { nbf: iat + 61 },
    'text as nbf': { nbf: 'soon' as never },
  }
  for (const [name, change] of Object.entries(wrong))
    expect([name, await refusal(app, await app.issuer.token(change))]).toEqual([name, 'invalid_token'])
  const token = await app.issuer.token()
  expect((await call(app, token)).status).toBe(201)
  app.runtime.clock.advance((HOUR_SECONDS + 59) * 1000)
  expect((await call(app, token)).status).toBe(201)
  app.runtime.clock.advance(1000)
  expect(await refusal(app, token)).toBe('token_expired')
})

test('a token that was tampered with is refused', async () => {
  const app = await openCloud()
  const [header, payload, signature] = (await app.issuer.token()).split('.')
  const forged = base64url.encode(JSON.stringify({ ...claims(app), sub: 'eve' }))
  expect(await refusal(app, `${header}.${forged}.${signature}`)).toBe('invalid_token')
  for (const junk of ['x', 'a.b', 'a.b.c', `${header}.${payload}`, '....'])
    expect(await refusal(app, junk)).toBe('invalid_token')
  const scheme = await app.call('POST', path, { headers: { Authorization: 'Basic YTpi' }, body: {} })
  expect(errorOf(scheme).error.code).toBe('invalid_token')
  const nothing = await app.call('POST', path, { body: {} })
  expect(errorOf(nothing).error.code).toBe('authentication_required')
})
