import { silentLog } from '../../../../protocol/model/log.ts'
import { listAudit, type AuditFilter } from '../../../../cloud/platform/audit/audit.ts'
import { expect, test, vi } from 'vitest'
import {
  listApiKeys,
  mintApiKey,
  prefixOf,
  revokeApiKey,
  rotateApiKey,
} from '../../../../cloud/platform/credentials/api-keys.ts'
import { base62 } from '../../../../cloud/platform/credentials/secrets.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { emptySqlite } from '../../../world/database.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'

const hubs = '/api/v1/owners/hubs'
const health = (hub: number): string => `${hubs}/get_hub_health/?hub_id=${hub}`
const HOUR = 3_600_000

test('an API key is lk_, eight public characters and 32 random bytes in base 62', () => {
  const { key, prefix, digest } = mintApiKey(systemRuntime().random)
  expect(key).toMatch(/^lk_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/)
  expect(prefixOf(key)).toBe(prefix)
  expect(digest).toMatch(/^[0-9a-f]{64}$/)
  expect(base62(new Uint8Array(32).fill(255))).toHaveLength(43)
  expect(base62(Uint8Array.of(61))).toBe('0z')
})

test('the database stores only the digest of a key', async () => {
  const { context, key } = await openCloud()
  const issued = await key(['hubs:read'])
  const rows = await context.db.kysely.selectFrom('api_keys').selectAll().execute()
  expect(JSON.stringify(rows)).not.toContain(issued.slice(12))
})

test('a wrong, a revoked and an expired key are 401, each with its code', async () => {
  const { call, key, context, runtime } = await openCloud()
  const good = await key(['hubs:read'])
  const other = await key(['hubs:read'], { expiresAt: runtime.clock.now() + HOUR })
  const codeOf = async (presented: string) => {
    const answer = await call('GET', hubs, { key: presented })
    return answer.status === 200 ? 200 : [answer.status, errorOf(answer).error.code]
  }
  expect(await codeOf(good)).toBe(200)
  expect(await codeOf(other)).toBe(200)
  const mixed = good.slice(0, 12) + other.slice(12)
  for (const wrong of ['x', '', mixed, `${good}x`, good.slice(0, -1)])
    expect(await codeOf(wrong)).toEqual([401, 'invalid_api_key'])
  runtime.clock.advance(HOUR)
  expect(await codeOf(other)).toEqual([401, 'token_expired'])
  expect(await revokeApiKey(context.db.kysely, runtime, prefixOf(good)!)).toBe(true)
  runtime.clock.advance(1000)
  expect(await codeOf(good)).toEqual([401, 'invalid_api_key'])
  expect(await revokeApiKey(context.db.kysely, runtime, 'nokeyatall')).toBe(false)
})

test('a key that was revoked during its rotation gets no successor', async () => {
  const { context, key, runtime } = await openCloud()
  const q = context.db.kysely
  const prefix = prefixOf(await key(['hubs:read']))!
  const seen = (await listApiKeys(q)).find((one) => one.prefix === prefix)!
  await revokeApiKey(q, runtime, prefix)
  const ends = { endsAt: runtime.clock.now() + HOUR, expiresAt: null }
  expect(await rotateApiKey(q, runtime, seen, ends)).toBeUndefined()
  expect((await listApiKeys(q)).map((one) => one.name)).toEqual([seen.name])
})

test('the audit log records the use of a revoked key once an hour, and no use of a wrong key', async () => {
  const { call, key, context, runtime } = await openCloud()
  const revoked = await key(['hubs:read'])
  await revokeApiKey(context.db.kysely, runtime, prefixOf(revoked)!)
  const filter = { action: 'keys.use_revoked', limit: 10 } as AuditFilter
  const found = async () => await listAudit(context.db.kysely, filter)
  await call('GET', hubs, { key: `${revoked.slice(0, -1)}!` })
  await call('GET', hubs, { key: `${revoked.slice(0, 12)}${'0'.repeat(43)}` })
  expect(await found()).toEqual([])
  for (let attempt = 0; attempt < 5; attempt += 1) await call('GET', hubs, { key: revoked })
  const object = `key-${prefixOf(revoked)}`
  expect(await found()).toMatchObject([{ actor: 'address:192.0.2.1', object, result: 'refused' }])
  runtime.clock.advance(HOUR)
  await call('GET', '/diag/worker', { key: revoked })
  expect(await found()).toHaveLength(2)
})

test('the log has one line for each caller and reason, for any number of refused credentials', async () => {
  const lines: object[] = []
  const { call, key } = await openCloud({ log: { ...silentLog, warn: (fields) => void lines.push(fields) } })
  const poor = await key(['hubs:write'])
  for (let attempt = 0; attempt < 500; attempt += 1)
    await call('GET', hubs, { key: `lk_${String(attempt).padStart(8, '0')}_${'x'.repeat(43)}` })
  await call('GET', hubs, { token: 'x' })
  await call('GET', hubs)
  await call('GET', hubs, { key: poor })
  const caller = '192.0.2.1'
  expect(lines).toEqual([
    {
      refused: 'http_credential',
      caller,
      code: 'invalid_api_key',
      why: 'there is no such key',
      path: hubs,
      key: '00000000',
      count: 1,
    },
    {
      refused: 'http_credential',
      caller,
      code: 'invalid_token',
      why: 'it is malformed',
      path: hubs,
      count: 1,
    },
    { refused: 'http_right', caller, code: 'scope_missing', path: hubs, key: prefixOf(poor), count: 1 },
  ])
})

test('last_used_at is updated at most hourly', async () => {
  const { call, key, context, runtime } = await openCloud()
  const mine = await key(['hubs:read'])
  const start = runtime.clock.now()
  const lastUsed = async () => (await listApiKeys(context.db.kysely))[0]!.lastUsedAt
  expect(await lastUsed()).toBeNull()
  await call('GET', hubs, { key: mine })
  await vi.waitFor(async () => expect(await lastUsed()).toBe(start))
  runtime.clock.advance(HOUR - 1)
  await call('GET', hubs, { key: mine })
  expect(await lastUsed()).toBe(start)
  runtime.clock.advance(1)
  await call('GET', hubs, { key: mine })
  await vi.waitFor(async () => expect(await lastUsed()).toBe(start + HOUR))
})

test('a failed write of last_used_at does not fail a reading call, and a later call writes it', async () => {
  const sqlite = await emptySqlite()
  const { call, key, context, runtime } = await openCloud({
    db: openDatabase({ url: 'sqlite::memory:', sqlite }),
  })
  const mine = await key(['hubs:read'])
  sqlite.exec(
    `create trigger refused before update on api_keys begin select raise(abort, 'the disk is full'); end`,
  )
  for (let time = 0; time < 3; time += 1) expect((await call('GET', hubs, { key: mine })).status).toBe(200)
  await vi.waitFor(async () => expect((await listApiKeys(context.db.kysely))[0]!.lastUsedAt).toBeNull())
  sqlite.exec('drop trigger refused')
  runtime.clock.advance(60_000)
  expect((await call('GET', hubs, { key: mine })).status).toBe(200)
  await vi.waitFor(async () =>
    expect((await listApiKeys(context.db.kysely))[0]!.lastUsedAt).toBe(runtime.clock.now()),
  )
})

test('the API key decides if both headers are sent, without fallback', async () => {
  const { call, key, issuer, context, runtime } = await openCloud()
  await grantRole(context.db.kysely, runtime, { identity: 'ada', role: 'owner', hubs: '*' })
  const token = await issuer.token()
  expect((await call('GET', hubs, { token })).status).toBe(200)
  expect((await call('GET', hubs, { token, key: 'lk_bad' })).status).toBe(401)
  expect((await call('GET', hubs, { token, key: await key(['orders:read']) })).status).toBe(403)
})

test('the list of hubs contains exactly the hubs of the credential', async () => {
  const { call, key, issuer, context, runtime } = await openCloud()
  const idsOf = async (options: { key: string } | { token: string }) => {
    const { json } = await call('GET', hubs, options)
    return (json as { id: number }[]).map(({ id }) => id)
  }
  expect(await idsOf({ key: await key(['hubs:read']) })).toEqual([1])
  expect(await idsOf({ key: await key(['hubs:read'], { ownerId: 2, hubs: [2] }) })).toEqual([2])
  expect(await idsOf({ key: await key(['hubs:read'], { hubs: [] }) })).toEqual([])
  await grantRole(context.db.kysely, runtime, { identity: 'ada', role: 'technician', hubs: [2] })
  expect(await idsOf({ token: await issuer.token() })).toEqual([2])
})

test('a role grants its scopes only on its hubs', async () => {
  const { call, issuer, context, runtime } = await openCloud()
  const q = context.db.kysely
  await grantRole(q, runtime, { identity: 'tess', role: 'technician', hubs: [1] })
  await grantRole(q, runtime, { identity: 'tess', role: 'analyst', hubs: [2] })
  await grantRole(q, runtime, { identity: 'olga', role: 'owner', hubs: '*' })
  const statusOf = async (sub: string, method: string, path: string) =>
    (await call(method, path, { token: await issuer.token({ sub }) })).status
  expect(await statusOf('tess', 'GET', health(1))).toBe(200)
  expect(await statusOf('tess', 'GET', health(2))).toBe(200)
  expect(await statusOf('tess', 'POST', '/api/v1/owners/orders/1/refund')).toBe(403)
  const open = (hub: number) => `/api/v1/owners/controls/open_bin?bin=1&hub=${hub}`
  expect(await statusOf('tess', 'POST', open(2))).toBe(403)
  expect(await statusOf('olga', 'GET', health(2))).toBe(200)
  expect(await statusOf('olga', 'GET', health(99))).toBe(404)
  expect(await statusOf('nobody', 'GET', hubs)).toBe(403)
})
