import type { KyselyPlugin } from 'kysely'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appendAudit, appendAudits } from '../../../../cloud/platform/audit/audit.ts'
import { issueApiKey, revokeApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { openActs } from '../../../../cloud/platform/credentials/lost-acts.ts'
import {
  grantRole,
  listRoles,
  recordsOfGrant,
  revokeRole,
} from '../../../../cloud/platform/credentials/roles.ts'
import { startSession } from '../../../../cloud/platform/credentials/sessions.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { testContext } from '../../../world/context.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { seedHub, seedHubs } from '../../../world/seeds.ts'
import { programFolder } from '../../support/program.ts'

onEachDatabase('acts that a restored database lacks', (open) => {
  test('a restored database revokes lost keys, roles, passkeys and sessions again once, and lists the acts that a person must repeat', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const keep = (db: CloudDatabase) => openActs(testContext(db, runtime), folder)()
    const act = { actor: 'command line', hubId: null, result: 'executed' }
    const ann = { identity: 'ann', role: 'technician' as const, hubs: [1, 2] }

    /** A database with the state of the backup. It ends the database before. */
    async function backup() {
      const db = await open()
      const then = virtualRuntime(2)
      for (const id of [1, 2]) await seedHub(db, id)
      const q = db.kysely
      const { prefix } = await issueApiKey(q, then, {
        name: 'till',
        ownerId: 1,
        scopes: ['hubs:read'],
        hubs: '*',
        expiresAt: null,
      })
      const role = await grantRole(q, then, ann)
      const passkey = { id: 'p', identity: 'ann', name: 'Ann', email: null, public_key: 'x', counter: 0 }
      await q
        .insertInto('passkeys')
        .values({ ...passkey, created_at: then.clock.now() })
        .execute()
      for (const identity of ['ann', 'bob'])
        await startSession(testContext(db, then), q, {
          identity,
          claims: { phoneNumber: null, email: null, emailVerified: false, anonymous: false, roles: [] },
        })
      return { db, q, prefix, role }
    }
    const lost = await backup()
    const { q, prefix, role } = lost
    await keep(lost.db)
    runtime.clock.advance(1000)
    await revokeApiKey(q, runtime, prefix)
    await appendAudit(q, runtime, { ...act, action: 'keys.revoke', object: `key-${prefix}` })
    await lost.db.transact((tx) => revokeRole(tx, role))
    await appendAudits(
      q,
      runtime,
      recordsOfGrant({ actor: 'x', action: 'roles.revoke', object: `role-${role}` }, ann),
    )
    await appendAudit(q, runtime, { ...act, action: 'sessions.revoke', object: 'identity:bob' })
    await appendAudit(q, runtime, { ...act, action: 'users.erase', object: 'user-17' })
    await keep(lost.db)

    runtime.clock.advance(1000)
    const restored = await backup()
    // Since the restore the same person has another role.
    const later = await grantRole(restored.q, runtime, ann)
    await keep(restored.db)
    expect((await listRoles(restored.q)).map(({ id }) => id)).toEqual([later])
    const keys = await restored.q.selectFrom('api_keys').select('revoked_at').execute()
    expect(keys).toEqual([{ revoked_at: runtime.clock.now() }])
    const sessions = await restored.q.selectFrom('sessions').select('identity').execute()
    expect(sessions).toEqual([{ identity: 'ann' }])
    const repeated = async () =>
      (await restored.q.selectFrom('audit_log').selectAll().where('actor', '=', 'cloud').execute())
        .map(({ action, object, result }) => [action, object, result].join(' '))
        .toSorted()
    const all = [
      `keys.revoke key-${prefix} executed`,
      `roles.revoke role-${role} executed`,
      'sessions.revoke identity:bob executed',
      'users.erase user-17 lost',
    ]
    expect(await repeated()).toEqual(all)
    await keep(restored.db)
    expect(await repeated()).toEqual(all)

    // Without that role the person's passkeys and sessions end, too.
    const other = await backup()
    await keep(other.db)
    expect(await listRoles(other.q)).toEqual([])
    for (const table of ['passkeys', 'sessions'] as const)
      expect(await other.q.selectFrom(table).selectAll().execute()).toEqual([])
  })

  const executed = { actor: 'key:x', hubId: null, result: 'executed' }
  const removed = (numbers: readonly number[]) =>
    numbers.map((number) => ({ ...executed, action: 'contacts.remove', object: `contact-${number}` }))
  const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
  const repeatedIn = async ({ kysely }: CloudDatabase) =>
    (
      await kysely
        .selectFrom('audit_log')
        .select('object')
        .where('actor', '=', 'cloud')
        .orderBy('id')
        .execute()
    ).map(({ object }) => object)

  /** The same database, and the rows and statements that it has answered since the last call. */
  function counted(db: CloudDatabase) {
    let [rows, statements] = [0, 0]
    const counter: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      transformResult({ result }) {
        rows += result.rows.length
        statements += 1
        return Promise.resolve(result)
      },
    }
    const spent = () => {
      const sums = { rows, statements }
      ;[rows, statements] = [0, 0]
      return sums
    }
    return { db: { ...db, kysely: db.kysely.withPlugin(counter) }, spent }
  }

  test('an owner with 6,000 acts costs each run a limited number of rows, and takes no place of other acts', async () => {
    const folder = programFolder()
    const stored = () =>
      JSON.parse(readFileSync(join(folder, 'ended-rights.json'), 'utf8')) as { object: string }[]
    const runtime = virtualRuntime(1)
    const { db, spent } = counted(await open())
    await appendAudit(db.kysely, runtime, { ...executed, action: 'keys.revoke', object: 'key-early' })
    runtime.clock.advance(1000)
    await appendAudits(db.kysely, runtime, removed(numbersTo(6000)))
    spent()
    const run = openActs(testContext(db, runtime), folder)
    for (let runs = 0; runs < 4; runs += 1) {
      runtime.clock.advance(30_000)
      await run()
      const { rows, statements } = spent()
      expect(rows).toBeLessThanOrEqual(2101)
      expect(statements).toBeLessThanOrEqual(20)
    }
    expect(stored().map(({ object }) => object)).toEqual([
      'key-early',
      ...numbersTo(6000)
        .map((number) => `contact-${number}`)
        .toSorted()
        .slice(-1000),
    ])

    // Later runs read only new rows, and look up the newest acts.
    runtime.clock.advance(600_000)
    for (let runs = 0; runs < 4; runs += 1) await run()
    spent()
    runtime.clock.advance(30_000)
    await run()
    // One statement for each action, and one look-up of the newest acts.
    expect(spent()).toEqual({ rows: 100, statements: 14 })

    // A start looks up each stored act once, and reads the rows since the newest one.
    await openActs(testContext(db, runtime), folder)()
    expect(spent().statements).toBeLessThanOrEqual(30)
    expect(await repeatedIn(db)).toEqual([])
  })

  test('the acts of an owner take no place of another owner’s acts of the same kind', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const db = await open()
    await seedHubs(db)
    const own = { ...executed, action: 'hubs.renew_password' }
    const acts = (hubId: number, count: number) =>
      numbersTo(count).map((number) => ({
        ...own,
        actor: `person:${number}`,
        hubId,
        object: `${hubId}/${number}`,
      }))
    await appendAudits(db.kysely, runtime, acts(1, 5))
    runtime.clock.advance(1000)
    await appendAudits(db.kysely, runtime, acts(2, 1900))
    await openActs(testContext(db, runtime), folder)()
    const stored = JSON.parse(readFileSync(join(folder, 'ended-rights.json'), 'utf8')) as { hub_id: number }[]
    const countOf = (hubId: number) => stored.filter(({ hub_id }) => hub_id === hubId).length
    expect([countOf(1), countOf(2)]).toEqual([5, 995])
  })

  test('a lost act of a clock that was ahead is repeated once', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const ahead = virtualRuntime(1)
    ahead.clock.advance(86_400_000)
    const db = await open()
    const run = openActs(testContext(db, runtime), folder)
    await appendAudits(db.kysely, ahead, removed([1]))
    await run()
    await run()
    expect(await repeatedIn(db)).toEqual([])
    await db.kysely.deleteFrom('audit_log').execute()
    for (let runs = 0; runs < 3; runs += 1) {
      await run()
      runtime.clock.advance(30_000)
    }
    await openActs(testContext(db, runtime), folder)()
    expect(await repeatedIn(db)).toEqual(['contact-1'])
  })

  test('a running service finds acts that a failover has lost, and acts that are committed late', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const db = await open()
    const run = openActs(testContext(db, runtime), folder)
    const late = virtualRuntime(1)
    late.clock.advance(200_000)
    runtime.clock.advance(300_000)
    await appendAudits(db.kysely, runtime, removed([1]))
    await run()
    await appendAudits(db.kysely, late, removed([2]))
    await run()
    expect(await repeatedIn(db)).toEqual([])
    await db.kysely.deleteFrom('audit_log').execute()
    await run()
    expect(await repeatedIn(db)).toEqual(['contact-2', 'contact-1'])
    await run()
    expect(await repeatedIn(db)).toEqual(['contact-2', 'contact-1'])
  })
})
