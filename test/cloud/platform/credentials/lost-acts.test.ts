import { expect, test } from 'vitest'
import { appendAudit, appendAudits } from '../../../../cloud/platform/audit/audit.ts'
import { issueApiKey, revokeApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { keepActs } from '../../../../cloud/platform/credentials/lost-acts.ts'
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
import { seedHub } from '../../../world/seeds.ts'
import { programFolder } from '../../support/program.ts'

onEachDatabase('acts that a restored database lacks', (open) => {
  test('a restored database revokes lost keys, roles, passkeys and sessions again once, and lists the acts that a person must repeat', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const keep = (db: CloudDatabase) => keepActs(testContext(db, runtime), folder)
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
    await revokeRole(q, role)
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
})
