import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { identityVerifier } from '../../../../cloud/platform/credentials/identity-token.ts'
import { keySet } from '../../../../cloud/platform/identity/remote-keys.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'

const PHONE = '+14155550100'
const guest = { anonymous: true }
const nobody = { phoneNumber: null, email: null, emailVerified: false, anonymous: false, roles: [] }

/** Tokens in the form of these issuers with invented values, and the claims that are read from them. */
const shapes: Record<string, { iss: string; aud?: string; typ?: string; claims: JWTPayload; read: object }> =
  {
    'a Cognito ID token': {
      iss: 'https://cognito-idp.us-east-1.amazonaws.com/us-east-1_Example',
      claims: {
        aud: 'larder',
        token_use: 'id',
        auth_time: 1767225000,
        'cognito:username': 'ada',
        'cognito:groups': ['shoppers'],
        email: 'Ada@Example.org',
        email_verified: 'true',
        phone_number: PHONE,
        phone_number_verified: 'true',
      },
      read: { phoneNumber: PHONE, email: 'ada@example.org', emailVerified: true },
    },
    'a Cognito access token': {
      iss: 'https://cognito-idp.us-east-1.amazonaws.com/us-east-1_Example',
      claims: {
        client_id: 'larder',
        token_use: 'access',
        scope: 'aws.cognito.signin.user.admin',
        username: 'ada',
        version: 2,
      },
      read: {},
    },
    'an Apple ID token': {
      iss: 'https://appleid.apple.com',
      claims: {
        aud: 'larder',
        email: 'x7@privaterelay.appleid.com',
        email_verified: 'true',
        is_private_email: 'true',
        real_user_status: 2,
        nonce_supported: true,
      },
      read: { email: 'x7@privaterelay.appleid.com', emailVerified: true },
    },
    'a Keycloak access token': {
      iss: 'https://login.example/realms/shop',
      claims: {
        aud: ['larder', 'account'],
        typ: 'Bearer',
        azp: 'shop-app',
        acr: '1',
        realm_access: { roles: ['offline_access'] },
        email_verified: false,
        role: ['customer', 'admin'],
        phone_number: ['+14155550100'],
        email: 'ada@example.org',
      },
      read: { email: 'ada@example.org', roles: ['customer', 'admin'] },
    },
    'a Firebase token of a user': {
      iss: 'https://securetoken.google.com/larder',
      claims: {
        aud: 'larder',
        user_id: 'ada',
        phone_number: PHONE,
        firebase: { identities: { phone: [PHONE] }, sign_in_provider: 'phone' },
      },
      read: { phoneNumber: PHONE },
    },
    'a Firebase token of a guest': {
      iss: 'https://securetoken.google.com/larder',
      claims: {
        aud: 'larder',
        provider_id: 'anonymous',
        firebase: { identities: {}, sign_in_provider: 'anonymous' },
      },
      read: guest,
    },
    'a Supabase token of a user': {
      iss: 'https://example.supabase.co/auth/v1',
      claims: {
        aud: 'authenticated',
        email: 'ada@example.org',
        phone: '',
        role: 'authenticated',
        user_metadata: { email_verified: true },
        is_anonymous: false,
      },
      aud: 'authenticated',
      read: { email: 'ada@example.org', roles: ['authenticated'] },
    },
    'a Supabase token of a guest': {
      iss: 'https://example.supabase.co/auth/v1',
      claims: { aud: 'authenticated', email: '', phone: '', role: 'authenticated', is_anonymous: true },
      aud: 'authenticated',
      read: { ...guest, roles: ['authenticated'] },
    },
    'an Auth0 access token': {
      iss: 'https://shop.eu.auth0.com/',
      typ: 'at+jwt',
      claims: {
        aud: ['larder', 'https://shop.eu.auth0.com/userinfo'],
        azp: 'client',
        scope: 'openid profile',
        gty: 'password',
      },
      read: {},
    },
    'a JumpCloud ID token': {
      iss: 'https://oauth.id.jumpcloud.com/',
      claims: {
        aud: ['larder'],
        at_hash: 'x',
        amr: null,
        email: 'ada@example.org',
        email_verified: true,
        phone_number: null,
        phone_number_verified: null,
        role: null,
      },
      read: { email: 'ada@example.org', emailVerified: true },
    },
    'an Entra access token': {
      iss: 'https://login.microsoftonline.com/8a0b/v2.0',
      claims: {
        aud: 'larder',
        ver: '2.0',
        tid: '8a0b',
        oid: '77',
        preferred_username: 'ada@example.org',
        email: 'ada@example.org',
        roles: ['admin'],
      },
      read: { email: 'ada@example.org' },
    },
  }

const pair = generateKeyPair('RS256')

/** A verifier of tokens with a fixed clock. */
async function verifier(iss: string, options: Partial<Parameters<typeof identityVerifier>[0]> = {}) {
  const { clock } = virtualRuntime()
  const { privateKey, publicKey } = await pair
  const keys = keySet({ keys: [{ ...(await exportJWK(publicKey)), alg: 'RS256', kid: 'one', use: null }] })
  const verify = identityVerifier({ issuer: iss, audience: 'larder', keys, clock, ...options })
  const nowS = clock.now() / 1000
  return (claims: JWTPayload, typ?: string) =>
    new SignJWT({ iss, aud: 'larder', sub: 'ada', exp: nowS + 3600, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'one', ...(typ !== undefined && { typ }) })
      .sign(privateKey)
      .then(verify)
}

test.each(Object.entries(shapes))(
  '%s is accepted',
  async (_name, { iss, aud = 'larder', typ, claims, read }) => {
    const meet = await verifier(iss, { audience: `other, ${aud}` })
    const payload = claims['client_id'] === undefined ? claims : { ...claims, aud: undefined as never }
    expect(await meet(payload, typ)).toEqual({ identity: 'ada', claims: { ...nobody, ...read } })
  },
)

describe('optional claims', () => {
  const wrong: unknown[] = [null, '', ' ', 7, true, [], {}, [null], { toString: 1 }]
  const names = [
    'phone_number',
    'email',
    'email_verified',
    'anonymous',
    'is_anonymous',
    'firebase',
    'role',
    'iat',
  ]

  test.each(names)('the optional claim %s never causes a refusal, for any type', async (name) => {
    const meet = await verifier('https://issuer.example')
    for (const value of wrong) {
      const { identity, claims } = await meet({ [name]: value })
      expect([identity, claims.phoneNumber, claims.email]).toEqual(['ada', null, null])
    }
  })

  test('boolean claims may be strings', async () => {
    const meet = await verifier('https://issuer.example')
    for (const [value, isTrue] of [
      ['true', true],
      ['True', true],
      [true, true],
      ['false', false],
      [false, false],
      ['yes', false],
      [1, false],
    ] as const) {
      const { claims } = await meet({
        email: 'a@b.example',
        email_verified: value,
        anonymous: value,
      })
      expect([value, claims.emailVerified, claims.anonymous]).toEqual([value, isTrue, isTrue])
      const said = await meet({ phone_number: PHONE, phone_number_verified: value })
      expect([value, said.claims.phoneNumber]).toEqual([value, isTrue ? PHONE : null])
    }
  })

  test('a phone number is normalised to E.164, and an invalid one is absent', async () => {
    const meet = await verifier('https://issuer.example')
    for (const written of [
      '+1 (415) 555-0100',
      '+1.415.555.0100',
      '+1\u2011415\u2011555\u20110100',
      ' +1 415 5550100 ',
    ])
      expect((await meet({ phone_number: written })).claims.phoneNumber).toBe(PHONE)
    expect((await meet({ phone_number: '+44 (0)20 7123 4567' })).claims.phoneNumber).toBe('+442071234567')
    for (const written of [
      '4155550100',
      '+1 415 555 0100 ext 7',
      '+0415',
      '+1',
      '+14155550100\0',
      'ada',
      '00 1 415',
    ])
      expect((await meet({ phone_number: written })).claims.phoneNumber).toBeNull()
  })

  test('an address that a request field would refuse is absent and not verified', async () => {
    const meet = await verifier('https://issuer.example')
    for (const email of [
      'not an address',
      'ada',
      'a@b',
      'a b@c.example',
      `${'x'.repeat(250)}@b.example`,
      'a\0@b.example',
    ])
      expect((await meet({ email, email_verified: true })).claims).toEqual(nobody)
  })
})

describe('times', () => {
  test.each([0, 60, 120])('a tolerance of %i s applies to exp and nbf', async (toleranceS) => {
    const meet = await verifier('https://issuer.example', { toleranceS })
    const nowS = virtualRuntime().clock.now() / 1000
    expect(await meet({ nbf: nowS + toleranceS, exp: nowS - toleranceS + 1 })).toMatchObject({
      identity: 'ada',
    })
    await expect(meet({ nbf: nowS + toleranceS + 1 })).rejects.toMatchObject({ code: 'invalid_token' })
    await expect(meet({ exp: nowS - toleranceS })).rejects.toMatchObject({ code: 'token_expired' })
  })

  test('an iat at any time in the future does not refuse a token', async () => {
    const meet = await verifier('https://issuer.example')
    const nowS = virtualRuntime().clock.now() / 1000
    expect(await meet({ iat: nowS + 86_400 })).toMatchObject({ identity: 'ada' })
  })
})

describe('the type of a token', () => {
  test('refresh and logout tokens are refused', async () => {
    const meet = await verifier('https://issuer.example')
    for (const claims of [{ typ: 'Refresh' }, { typ: 'Offline' }, { token_use: 'refresh' }])
      await expect(meet(claims)).rejects.toMatchObject({ code: 'invalid_token' })
    await expect(meet({}, 'logout+jwt')).rejects.toMatchObject({ code: 'invalid_token' })
    for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt'])
      expect(await meet({}, typ)).toMatchObject({ identity: 'ada' })
  })

  test('IDENTITY_TOKEN_USE=access refuses ID tokens', async () => {
    const meet = await verifier('https://issuer.example', { use: 'access' })
    for (const claims of [{ token_use: 'id' }, { typ: 'ID' }])
      await expect(meet(claims)).rejects.toMatchObject({ code: 'invalid_token' })
    for (const claims of [{}, { token_use: 'access' }, { typ: 'Bearer' }, { typ: null }])
      expect(await meet(claims)).toMatchObject({ identity: 'ada' })
  })

  test('IDENTITY_ROLES=false ignores the roles of tokens', async () => {
    const meet = await verifier('https://issuer.example', { trustsRoles: false })
    expect((await meet({ role: 'admin' })).claims.roles).toEqual([])
  })
})

test('a token without a key id is accepted if any of several keys signed it', async () => {
  const pairs = await Promise.all([1, 2].map(() => generateKeyPair('ES256')))
  const jwks = await Promise.all(pairs.map(({ publicKey }) => exportJWK(publicKey)))
  const { clock } = virtualRuntime()
  const keys = keySet({ keys: jwks.map((key) => ({ ...key, use: null, alg: 'ES256', key_ops: null })) })
  const verify = identityVerifier({ issuer: 'i', audience: 'larder', keys, clock })
  const other = await generateKeyPair('ES256')
  const sign = (key: typeof other) =>
    new SignJWT({ iss: 'i', aud: 'larder', sub: 'ada', exp: clock.now() / 1000 + 60 })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(key.privateKey)
  for (const pair of [...pairs, ...pairs])
    expect(await verify(await sign(pair))).toMatchObject({ identity: 'ada' })
  await expect(sign(other).then(verify)).rejects.toMatchObject({ code: 'invalid_token' })
})

test.each([
  ['Firebase', { firebase: { sign_in_provider: 'anonymous' } }],
  ['Supabase', { is_anonymous: true }],
  ['OIDC', { anonymous: 'true' }],
])('a guest of %s gets a user, who is kept when the guest registers', async (_name, claims) => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token({ sub: 'guest', ...claims })
  const created = await call('POST', '/users/user/bootstrap/guest', { token })
  expect([created.status, created.json]).toEqual([201, expect.objectContaining({ is_anonymous: true })])
  const again = await call('POST', '/users/user/bootstrap/guest', { token })
  const registered = await issuer.token({ sub: 'guest', email: 'ada@example.org', email_verified: 'true' })
  const user = await call('POST', '/users/user/bootstrap', { token: registered })
  expect(user.json).toMatchObject({ is_anonymous: false, email: 'ada@example.org', email_verified: true })
  const ids = [created, again, user].map(({ json }) => (json as { user_id: number }).user_id)
  expect(new Set(ids).size).toBe(1)
})

test('a role among several gives access to the diagnostics', async () => {
  const { call, issuer } = await openCloud()
  for (const [role, status] of [
    [['customer', 'admin'], 500],
    ['admin', 500],
    [['customer'], 403],
    [null, 403],
  ] as const) {
    const token = await issuer.token({ role: role as never })
    // 500: the route has no handler here.
    expect((await call('GET', '/diag/worker', { token })).status).toBe(status)
  }
})

test('the log names the reason of each refused token, once for repeated tokens', async () => {
  const lines: Record<string, unknown>[] = []
  const log = { ...silentLog, warn: (fields: object) => void lines.push(fields as Record<string, unknown>) }
  const { call, issuer, runtime } = await openCloud({ log })
  const nowS = runtime.clock.now() / 1000
  const refused: [JWTPayload, string, string?][] = [
    [{ iss: 'https://elsewhere.example/' }, 'iss is another issuer', 'https://elsewhere.example/'],
    [{ aud: ['account'] }, 'aud does not name this service', '["account"]'],
    [{ exp: nowS - 100 }, 'exp has passed', '100 s ago'],
    [{ nbf: nowS + 100 }, 'nbf is in the future', '100 s ahead'],
    [{ sub: '' }, 'sub is not text of 1 to 255 characters'],
  ]
  for (const [claims] of refused) {
    const token = await issuer.token(claims)
    for (let attempt = 0; attempt < 5; attempt += 1)
      expect(errorOf(await call('GET', '/users/user', { token })).error.message).not.toContain('elsewhere')
  }
  expect(lines.map(({ why, found, count }) => [why, found, count])).toEqual(
    refused.map(([, why, found]) => [why, found, 1]),
  )
})
