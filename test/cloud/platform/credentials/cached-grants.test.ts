import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { prefixOf, revokeApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { cachedGrants } from '../../../../cloud/platform/credentials/resolve.ts'
import { grantRole, revokeRole } from '../../../../cloud/platform/credentials/roles.ts'
import { cloudLimits, defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'

const hubs = '/api/v1/owners/hubs'
const health = (hub: number): string => `${hubs}/get_hub_health/?hub_id=${hub}`

test('a key that any process revokes is refused within a second', async () => {
  const { call, key, context, runtime } = await openCloud()
  const mine = await key(['hubs:read'])
  const status = async () => (await call('GET', hubs, { key: mine })).status
  expect(await status()).toBe(200)
  await revokeApiKey(context.db.kysely, runtime, prefixOf(mine)!)
  runtime.clock.advance(999)
  // The key is not read again for each call.
  expect(await status()).toBe(200)
  runtime.clock.advance(1)
  expect(await status()).toBe(401)
})

test('a key is refused after its expiry', async () => {
  const { call, key, runtime } = await openCloud()
  const mine = await key(['hubs:read'], { expiresAt: runtime.clock.now() + 500 })
  expect((await call('GET', hubs, { key: mine })).status).toBe(200)
  runtime.clock.advance(500)
  expect((await call('GET', hubs, { key: mine })).status).toBe(401)
})

test('a role is valid at once, and is refused within a second of its removal', async () => {
  const { call, issuer, context, runtime } = await openCloud()
  const token = await issuer.token()
  const status = async () => (await call('GET', hubs, { token })).status
  expect(await status()).toBe(403)
  const role = await grantRole(context.db.kysely, runtime, { identity: 'ada', role: 'owner', hubs: '*' })
  expect(await status()).toBe(200)
  await context.db.transact((tx) => revokeRole(tx, role))
  runtime.clock.advance(1000)
  expect(await status()).toBe(403)
})

test('a hub that moved to another owner is denied within a second', async () => {
  const { call, key, context, runtime } = await openCloud()
  const mine = await key(['hubs:read'])
  const status = async () => (await call('GET', health(1), { key: mine })).status
  expect(await status()).toBe(200)
  await sql`update hubs set owner_id = 2 where id = 1`.execute(context.db.kysely)
  runtime.clock.advance(1000)
  expect(await status()).toBe(404)
})

test('simultaneous calls read a grant once, and a missing or unreadable grant is read again', async () => {
  const { clock, random } = virtualRuntime(1)
  const reads: string[] = []
  const answers = new Map<string, number | Error>([['broken', new Error('no database')]])
  const grantOf = cachedGrants(
    { runtime: { clock, random }, settings: defaultLimits.rules },
    (name: string) => {
      reads.push(name)
      const answer = answers.get(name)
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
  )
  expect(await grantOf('new')).toBeUndefined()
  answers.set('new', 1)
  expect(await Promise.all([grantOf('new'), grantOf('new'), grantOf('new')])).toEqual([1, 1, 1])
  await expect(grantOf('broken')).rejects.toThrow('no database')
  answers.set('broken', 2)
  expect(await grantOf('broken')).toBe(2)
  expect(reads).toEqual(['new', 'new', 'broken', 'broken'])
})

test('no setting lets a revoked grant live for more than five seconds', () => {
  expect(cloudLimits.rules.grantsKeptMs.schema.safeParse('5000').success).toBe(true)
  expect(cloudLimits.rules.grantsKeptMs.schema.safeParse('5001').success).toBe(false)
})
