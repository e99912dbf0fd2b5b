import { expect, test } from 'vitest'
import { authorityCommands } from '../../../cloud/cli/ca.ts'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { createAuthority } from '../../../cloud/enrolment/authority.ts'
import { authorityWork } from '../../../cloud/enrolment/rotation.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { cloudFolder } from './cloud-folder.ts'

interface Shown {
  authorities: { id: number; overlap_until: string | null }[]
  hubs_without_newest: number[]
}

const DAY = 86_400_000
const { environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const context = testContext(db, runtime)
const ca = (...args: string[]) => runCommandLine(authorityCommands, runtime, args, environment)
const shown = async (): Promise<Shown> => JSON.parse((await ca('show')).stdout) as Shown

/** The service does the requested work. */
async function serve(): Promise<void> {
  const works = await db.kysely
    .selectFrom('due_work')
    .select('subject')
    .where('kind', '=', 'authority')
    .execute()
  for (const { subject } of works)
    await authorityWork(context)['authority']!.run({ kind: 'authority', subject, attempts: 1 })
}

/** A hub with a certificate of an authority. */
const certify = (hubId: number, authority: number) =>
  db.kysely
    .insertInto('hub_certificates')
    .values({
      serial: `${hubId}${authority}`,
      hub_id: hubId,
      issued_at: runtime.clock.now(),
      expires_at: runtime.clock.now() + 90 * DAY,
      revoked_at: null,
      authority,
    })
    .execute()

test('the command line rotates the authority, names the hubs that lack the new one, and retires the former one', async () => {
  const early = await ca('rotate')
  expect([early.exitCode, early.stderr]).toEqual([1, expect.stringContaining('no authority yet')])
  await createAuthority(context, 1)
  await certify(1, 1)
  await certify(2, 1)
  expect((await shown()).authorities).toMatchObject([{ id: 1, overlap_until: null }])
  expect((await ca('retire')).exitCode).toBe(1)

  for (const days of ['0', '366', '1.5', 'x', '']) {
    const refused = await ca('rotate', '--overlap', days)
    expect([days, refused.exitCode]).toEqual([days, 2])
  }
  const requested = await ca('rotate', '--overlap', '30')
  expect(JSON.parse(requested.stdout)).toMatchObject({
    requested: true,
    overlap_days: 30,
    hubs_without_newest: [1, 2],
  })
  const again = await ca('rotate', '--overlap', '60')
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining('requested already')])
  await serve()
  const both = await shown()
  expect(both.authorities.map(({ id }) => id)).toEqual([2, 1])
  expect(both.hubs_without_newest).toEqual([1, 2])
  expect((await ca('rotate')).exitCode).toBe(1)

  await certify(1, 2)
  const kept = await ca('retire')
  expect([kept.exitCode, kept.stderr]).toEqual([1, expect.stringContaining('enrolment: 2.')])
  expect((await shown()).authorities).toHaveLength(2)
  const retired = await ca('retire', '--force')
  expect(JSON.parse(retired.stdout)).toMatchObject({ hubs_to_enrol: [2], authorities: [{ id: 2 }] })
  expect((await ca('retire', '--force')).exitCode).toBe(1)

  const audited = await db.kysely.selectFrom('audit_log').select('action').orderBy('id').execute()
  expect(audited.map(({ action }) => action)).toEqual(['ca.rotate', 'ca.create', 'ca.retire'])
})
