import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { identityVerifier } from '../../../../cloud/platform/credentials/identity-token.ts'
import { createEmbeddedIssuer } from '../../../../cloud/platform/identity/embedded-issuer.ts'
import {
  keptSigningKey,
  mintSigningKey,
  signingKeyOf,
} from '../../../../cloud/platform/identity/signing-key.ts'
import { testApp } from '../../support/app.ts'
import { stillRuntime } from '../../support/clock.ts'

const audience = 'larder'

async function embedded(issuer = 'http://larder.test') {
  const runtime = stillRuntime()
  const key = await signingKeyOf(await mintSigningKey())
  return { runtime, key, ...createEmbeddedIssuer({ issuer, audience, key, runtime }) }
}

test('the embedded issuer gives tokens that the service takes', async () => {
  const { runtime, keys, issuer, handlers } = await embedded()
  const { call } = await testApp({ handlers })
  const body = {
    sub: 'ada',
    email: 'ada@example.org',
    phone_number: '+14155550100',
    anonymous: false,
    role: 'admin',
  }
  const { json, status } = await call('POST', '/demo/identity/token', { body })
  expect([status, json]).toEqual([200, expect.objectContaining({ token_type: 'Bearer', expires_in: 43_200 })])
  const verify = identityVerifier({ issuer, audience, keys, clock: runtime.clock })
  expect(await verify((json as { access_token: string }).access_token)).toEqual({
    identity: 'ada',
    claims: {
      phoneNumber: '+14155550100',
      email: 'ada@example.org',
      emailVerified: true,
      anonymous: false,
      roles: ['admin'],
    },
  })
  expect((await call('POST', '/demo/identity/token', { body: {} })).status).toBe(422)
})

test('its public keys are no private ones', async () => {
  const { handlers } = await embedded()
  const { call } = await testApp({ handlers })
  const { json } = await call('GET', '/.well-known/jwks.json')
  const { keys } = json as { keys: object[] }
  expect(Object.keys(keys[0]!).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
})

test('its key outlives the process, and of processes that start at once one makes it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-identity-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const found = await Promise.all([1, 2, 3].map(() => keptSigningKey(folder, () => {})))
  const ids = new Set(
    [...found, await keptSigningKey(folder, () => {})].map(({ publicJwk }) => publicJwk.kid),
  )
  expect(ids.size).toBe(1)
  expect(statSync(join(folder, 'identity-key.json')).mode & 0o777).toBe(0o600)
})
