import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { OwnerFile } from '../../../cloud/operations/ownership/owner-file.ts'
import { ensureStoreSecret, openSealer } from '../../../cloud/platform/store/sealer.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { connectSession } from '../../world/hub-log.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const owners = (...args: string[]) => runCommandLine(ownerCommands, runtime, args, environment)
const hubs = (...args: string[]) => runCommandLine(hubCommands, runtime, args, environment)
const code = join(folder, 'code')
writeFileSync(code, 'K7QM2XRA\n')
const to = [
  '--to',
  'https://shop.example/c1/',
  '--as',
  '100000001',
  '--export',
  'a'.repeat(64),
  '--code-file',
  code,
]

test('a hub in maintenance is sent to another cell with the code of a file; show and the audit log do not contain the code', async () => {
  await connectSession(db, runtime.clock.now())
  await db.kysely.updateTable('hub_sessions').set({ can_move: 1 }).execute()
  expect(await hubs('send', '1', ...to)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('STORE_SECRET: this command needs the secret of the service') as string,
  })
  const { random } = runtime
  await openSealer(db, [ensureStoreSecret(folder, random, () => {})], random)
  expect(await hubs('send', '1', ...to)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('takes orders') as string,
  })
  expect((await hubs('set', '1', '--maintenance', 'on')).exitCode).toBe(0)
  const session = async () => {
    const hub = await db.kysely
      .selectFrom('hubs')
      .select('desired_version')
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    const applied_version = hub.desired_version
    await db.kysely.updateTable('hub_sessions').set({ applied_version }).execute()
    await db.kysely
      .updateTable('hub_outboxes')
      .set((eb) => ({ base: eb.ref('last') }))
      .execute()
  }
  const hardware = join(folder, 'hardware.json')
  writeFileSync(hardware, JSON.stringify(demoHub))
  expect((await hubs('set', '1', '--hardware', hardware)).exitCode).toBe(0)
  expect(await hubs('send', '1', ...to)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('(apply_state: pending)') as string,
  })
  await session()
  const exported = await owners('export', '1', '--to', join(folder, 'owner.json'))
  expect([exported.exitCode, exported.stderr]).toEqual([0, ''])
  expect(await hubs('send', '1', ...to)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('--export is not the last export of hub 1') as string,
  })
  const [entry] = OwnerFile.parse(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8'))).hubs
  const sent = await hubs('send', '1', ...to.with(5, entry!.digest))
  expect([sent.exitCode, sent.stderr]).toEqual([0, ''])
  expect(JSON.parse(sent.stdout)).toMatchObject({
    hub_id: 1,
    next_cell: { address: 'https://shop.example/c1', hub_id: 100_000_001, state: 'ordered', error: null },
  })
  const stored = await db.kysely.selectFrom('hub_moves').selectAll().execute()
  expect(stored).toMatchObject([{ code: expect.any(String) as string }])
  const records = await db.kysely.selectFrom('audit_log').selectAll().execute()
  expect(JSON.stringify([stored, records, sent.stdout])).not.toContain('K7QM2XRA')
  expect(await hubs('retire', '1', '--force')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('first withdraw it with larder hubs send 1 --withdraw') as string,
  })
  const withdrawn = await hubs('send', '1', '--withdraw')
  expect(JSON.parse(withdrawn.stdout)).toMatchObject({ next_cell: { state: 'failed', error: 'withdrawn' } })
  expect(await hubs('send', '1', '--withdraw')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no order to withdraw') as string,
  })
})

/** The notes of a command, which it writes to the standard error. */
function notesOf(): string[] {
  const notes: string[] = []
  const said = vi.spyOn(process.stderr, 'write').mockImplementation((text) => notes.push(String(text)) > 0)
  onTestFinished(() => said.mockRestore())
  return notes
}

test('the withdrawal for a hub that is retired and has not left reports that it leaves nevertheless', async () => {
  const retired = { hub_status: 'retired', retired_at: 5 } as const
  await db.kysely.updateTable('hubs').set(retired).where('id', '=', 1).execute()
  await db.kysely
    .updateTable('hub_moves')
    .set({ code: 'sealed', moved_at: 5, error: 'bin 2 is open' })
    .execute()
  const notes = notesOf()
  const withdrawn = await hubs('send', '1', '--withdraw')
  expect(notes.join('')).toContain('Only the claim code is withdrawn: hub 1 is retired here')
  const { code } = await db.kysely.selectFrom('hub_moves').select('code').executeTakeFirstOrThrow()
  expect([JSON.parse(withdrawn.stdout), code]).toMatchObject([
    { next_cell: { state: 'leaving', error: 'bin 2 is open' } },
    null,
  ])
})

test('the revocation of a board that was ordered to move names its hub in the other cell', async () => {
  const now = runtime.clock.now()
  const certificate = { serial: '01', hub_id: 1, authority: 1, issued_at: now, revoked_at: null }
  await db.kysely
    .insertInto('hub_certificates')
    .values({ ...certificate, expires_at: now + 1e6 })
    .execute()
  const notes = notesOf()
  const revoked = await hubs('revoke', '1')
  expect([revoked.exitCode, notes.join('')]).toEqual([
    0,
    expect.stringContaining('enrolled as hub 100000001 at https://shop.example/c1, revoke it there, too'),
  ])
})

test('an import that is repeated prints a code and the command until the board has arrived, also if it was enrolled', async () => {
  const path = join(folder, 'other.json')
  const { hubs: entries, ...rest } = JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')) as {
    hubs: { hub_id: number }[]
  }
  writeFileSync(path, JSON.stringify({ ...rest, owner: 'Elsewhere', hubs: [{ ...entries[0], hub_id: 77 }] }))
  const imported = async () => {
    const { exitCode, stdout, stderr } = await owners('import', path)
    expect([exitCode, stderr]).toEqual([0, ''])
    return (JSON.parse(stdout) as { hubs: Record<string, unknown>[] }).hubs[0]!
  }
  const send = expect.stringContaining('larder hubs send 77 --to ') as string
  const { hub_id, ...first } = await imported()
  expect(first).toMatchObject({ is_enrolled: false, send })
  const now = runtime.clock.now()
  await db.kysely
    .insertInto('hub_certificates')
    .values({
      serial: '02',
      hub_id: Number(hub_id),
      authority: 1,
      issued_at: now,
      revoked_at: null,
      expires_at: now + 1e6,
    })
    .execute()
  expect(await imported()).toMatchObject({
    hub_id,
    is_enrolled: true,
    claim_code: expect.any(String) as string,
    send,
  })
  const session = await db.kysely.selectFrom('hub_sessions').selectAll().executeTakeFirstOrThrow()
  await db.kysely
    .insertInto('hub_sessions')
    .values({ ...session, hub_id: Number(hub_id) })
    .execute()
  expect(await imported()).not.toHaveProperty('claim_code')
})

test.each([
  [['--to', 'shop.example', ...to.slice(2)], /--to must be the https address/],
  [['--to', 'http://shop.example', ...to.slice(2)], /--to must be the https address/],
  [['--to', `https://${'a'.repeat(600)}`, ...to.slice(2)], /--to must be the https address/],
  [[...to.slice(0, 3), 'x', ...to.slice(4)], /not a hub/],
  [to.slice(0, 4), /--export is needed/],
  [to.slice(0, 6), /--code-file is needed/],
  [[...to.slice(0, 7), join(folder, 'none')], /--code-file: .*none/],
  [[...to.slice(0, 7), join(folder, 'larder.sqlite')], /--code-file/],
])('hubs send refuses %j', async (args, why) => {
  const { exitCode, stderr } = await hubs('send', '1', ...args)
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(why)])
})

test('an owner’s file that is too large, or that has no owner, is refused', async () => {
  const path = join(folder, 'owner.json')
  writeFileSync(path, '{}')
  const imported = () => runCommandLine(ownerCommands, runtime, ['import', path], environment)
  expect(await imported()).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('owner') as string,
  })
  truncateSync(path, 65 * 1024 * 1024)
  expect(await imported()).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('has more than 67108864 bytes') as string,
  })
})
