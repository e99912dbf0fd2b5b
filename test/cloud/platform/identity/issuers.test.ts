import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isMetricsHost } from '../../../../protocol/model/allowed-hosts.ts'
import { identityVerifier } from '../../../../cloud/platform/credentials/identity-token.ts'
import {
  createEmbeddedIssuer,
  ensureSigningKey,
  mintSigningKey,
  signingKeyOf,
} from '../../../../cloud/platform/identity/open-issuer.ts'
import { openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'

const audience = 'larder'

async function embedded(issuer = 'http://larder.test') {
  const runtime = virtualRuntime()
  const key = await signingKeyOf(await mintSigningKey())
  return { runtime, key, ...createEmbeddedIssuer({ issuer, audience, key, runtime }) }
}

test('the service accepts tokens of the embedded issuer', async () => {
  const { runtime, keys, issuer, handlers } = await embedded()
  const { call } = await openCloud({ handlers })
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

describe('demo routes that return credentials', () => {
  const allowed = [
    {},
    { Host: 'localhost:8080' },
    { Host: '127.0.0.1:8080', Origin: 'http://127.0.0.1:8080' },
    { Host: '[::1]:8080' },
    { Host: '10.1.2.3' },
    { Host: 'larder.test' },
    { Host: 'LARDER.test:8080', Origin: 'http://larder.test:8080' },
    { Host: 'shop.localhost' },
    { Host: '127.0.0.1:8080', Origin: 'https://shop.example' },
  ]
  const refused = [
    { Host: 'evil.example' },
    { Host: 'evil.example', Origin: 'http://evil.example' },
    { Host: '127.0.0.1.evil.example' },
    { Host: '127.0.0.1:8080', Origin: 'http://evil.example' },
    { Host: '127.0.0.1:8080', Origin: 'http://127.0.0.1:9999' },
    { Host: '127.0.0.1:8080', Origin: 'null' },
  ]
  const calls = [
    ['POST', '/demo/identity/token', { sub: 'ada', role: 'admin' }],
    ['GET', '/demo/credentials', undefined],
  ] as const

  test.each(calls)(
    'the route %s %s answers programs and own pages, and refuses pages of other sites',
    async (method, path, body) => {
      const { handlers } = await embedded()
      const { call } = await openCloud({
        handlers,
        allowedHosts: ['larder.test'],
        corsOrigins: ['https://shop.example'],
      })
      const send = async (headers: Record<string, string>) =>
        (await call(method, path, { headers, ...(body && { body }) })).status
      for (const headers of allowed) expect([headers, await send(headers)]).toEqual([headers, 200])
      for (const headers of refused) expect([headers, await send(headers)]).toEqual([headers, 403])
    },
  )
})

test('metrics at a loopback address are refused under foreign host names, but not at other addresses', () => {
  for (const host of ['127.0.0.1:9090', 'localhost:9090', undefined])
    expect(isMetricsHost('127.0.0.1')(host)).toBe(true)
  expect(isMetricsHost('127.0.0.1')('evil.example:9090')).toBe(false)
  expect(isMetricsHost('::1')('evil.example:9090')).toBe(false)
  expect(isMetricsHost('0.0.0.0')('prometheus-target:9090')).toBe(true)
})

test('the public keys of the embedded issuer contain no private part', async () => {
  const { handlers } = await embedded()
  const { call } = await openCloud({ handlers })
  const { json } = await call('GET', '/.well-known/jwks.json')
  const { keys } = json as { keys: object[] }
  expect(Object.keys(keys[0]!).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
})

test('the key of the embedded issuer survives the process, and simultaneous first starts create one key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-identity-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const found = await Promise.all([1, 2, 3].map(() => ensureSigningKey(folder, () => {})))
  const ids = new Set(
    [...found, await ensureSigningKey(folder, () => {})].map(({ publicJwk }) => publicJwk.kid),
  )
  expect(ids.size).toBe(1)
  expect(statSync(join(folder, 'identity-key.json')).mode & 0o777).toBe(0o600)
})
