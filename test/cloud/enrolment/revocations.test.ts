import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { keepRevocations } from '../../../cloud/enrolment/revocations.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { programFolder } from '../support/program.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { onEachDatabase } from '../../world/database.ts'
import { hubRow, seedHub } from '../../world/seeds.ts'

const DAY = 86_400_000

onEachDatabase('revocations of certificates', (open) => {
  test('a restored database revokes again what its machine knows, shuts the stolen board out, and leaves an enrolled one alone', async () => {
    const folder = programFolder()
    const runtime = virtualRuntime(1)
    const now = runtime.clock.now()
    const issued = (db: CloudDatabase, serial: string, hub_id: number) =>
      db.kysely
        .insertInto('hub_certificates')
        .values({ serial, hub_id, issued_at: now, expires_at: now + DAY, revoked_at: null })
        .execute()
    const keep = (db: CloudDatabase) => keepRevocations(testContext(db, runtime), folder)
    const file = () => readFileSync(join(folder, 'revoked-certificates.json'), 'utf8')
    const lost = await open()
    for (const id of [1, 2, 3]) await seedHub(lost, id)
    for (const [serial, hub] of Object.entries({ a1: 1, a2: 1, b1: 2, c1: 3 }))
      await issued(lost, serial, hub)
    for (const id of [1, 2, 3]) await lost.transact((tx) => revokeHub(tx, runtime, id))
    // Another board is enrolled as hub 2.
    await lost.kysely.updateTable('hubs').set({ revoked_at: null }).where('id', '=', 2).execute()
    await keep(lost)
    expect(JSON.parse(file())).toHaveLength(4)

    // The backup knows the first certificate of each hub. Since then it has given the number 3 to another hub.
    const restored = await open()
    for (const id of [1, 2]) await seedHub(restored, id)
    await restored.kysely
      .insertInto('hubs')
      .values(hubRow({ id: 3, created_at: now + 1 }))
      .execute()
    await issued(restored, 'a1', 1)
    await issued(restored, 'b1', 2)
    await keep(restored)
    const all = await restored.kysely.selectFrom('hub_certificates').selectAll().orderBy('serial').execute()
    expect(all.map(({ serial, revoked_at }) => [serial, revoked_at])).toEqual([
      ['a1', now],
      ['a2', now],
      ['b1', now],
    ])
    const hubs = await restored.kysely.selectFrom('hubs').select('revoked_at').orderBy('id').execute()
    expect(hubs.map(({ revoked_at }) => revoked_at)).toEqual([now, null, null])
    const first = file()
    await keep(restored)
    expect(file()).toBe(first)
    const audit = await restored.kysely.selectFrom('audit_log').select('action').execute()
    expect(audit.map(({ action }) => action)).toEqual(['hubs.revoke', 'hubs.revoke', 'hubs.revoke'])
    // An expired certificate needs no revocation.
    runtime.clock.advance(2 * DAY)
    await keep(restored)
    expect(JSON.parse(file())).toEqual([])
  })
})
