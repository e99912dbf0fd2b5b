import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { backupCommands } from '../../../../cloud/cli/backup.ts'
import { runCommandLine } from '../../../../cloud/cli/command-line.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { seedHubs } from '../../../world/seeds.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'larder-verify-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const larder = (folder: string, ...words: string[]) =>
  runCommandLine(backupCommands, systemRuntime(), words, { DATA_DIR: folder })

/** A backup of an installation with two hubs, after statements. */
async function backUp(statements = 'select 1'): Promise<string> {
  const folder = newFolder()
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  await db.migrate()
  await seedHubs(db)
  for (const statement of statements.split(';')) await sql.raw(statement).execute(db.kysely)
  await db.close()
  const { exitCode, stdout, stderr } = await larder(folder, 'create')
  expect([exitCode, stderr]).toEqual([0, ''])
  return (JSON.parse(stdout) as { file: string }).file
}

/** Changes the manifest of a backup. */
function rewrite(file: string, change: object): string {
  const folder = newFolder()
  mkdirSync(join(folder, 'members'))
  execFileSync('tar', ['-xzf', file, '-C', join(folder, 'members')])
  const path = join(folder, 'members/manifest.json')
  writeFileSync(path, JSON.stringify({ ...(JSON.parse(readFileSync(path, 'utf8')) as object), ...change }))
  execFileSync('tar', ['-czf', join(folder, 'changed.tar.gz'), '-C', join(folder, 'members'), '.'])
  return join(folder, 'changed.tar.gz')
}

test('a backup of an installation passes every check, and restores into an empty folder', async () => {
  const file = await backUp()
  const { exitCode, stdout } = await larder(newFolder(), 'verify', file)
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { name: string; ok: boolean }[] }
  expect([exitCode, ok, checks.filter((check) => !check.ok)]).toEqual([0, true, []])
  expect(checks.length).toBeGreaterThan(9)
  expect((await larder(newFolder(), 'restore', file)).exitCode).toBe(0)
})

test.each([
  [
    'an account that is not the sum of its entries',
    `insert into users (id, is_anonymous, created_at, updated_at) values (1, 0, 0, 0);
     insert into ledger_accounts (user_id, account, balance, debt, entries) values (1, 'wallet', 5, 0, 0)`,
    'each wallet and each account of points is the sum of its entries',
    '1 rows break this rule',
  ],
  [
    'a file that is missing',
    `insert into media (key, state, mime_type, size, sha256, created_at) values ('banners/x.png', 'kept', 'image/png', 1, '', 0)`,
    'every file that the database names is there',
    '1 files are missing',
  ],
])('verify names the check that a backup with %s fails', async (_fault, statements, name, message) => {
  const file = await backUp(statements)
  const { exitCode, stdout } = await larder(newFolder(), 'verify', file)
  expect(exitCode).toBe(1)
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { ok: boolean }[] }
  expect([ok, checks.filter((check) => !check.ok)]).toEqual([false, [{ name, ok: false, message }]])
})

test.each([
  ['of a newer schema', { schema_version: '9999-later' }, 'this software knows'],
  ['of another build', { schema: '0123456789abcdef' }, 'has other tables'],
])('a backup %s is refused by verify and by restore', async (_kind, change, sentence) => {
  const file = rewrite(await backUp(), change)
  expect(await larder(newFolder(), 'verify', file)).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining(sentence) as string,
  })
  const folder = newFolder()
  expect(await larder(folder, 'restore', file)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(sentence) as string,
  })
  expect(await larder(folder, 'create')).toMatchObject({ exitCode: 1 })
})

test('a backup of PostgreSQL is not restored into SQLite', async () => {
  const file = rewrite(await backUp(), { database: 'postgres' })
  expect(await larder(newFolder(), 'restore', file)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('set DATABASE_URL') as string,
  })
})

test('a target that cannot be written is an error with status 1, an unknown option one with status 2', async () => {
  expect(await larder(newFolder(), 'create', '--to', '/proc/none')).toMatchObject({ exitCode: 1 })
  expect(await larder(newFolder(), 'create', '--into', '/tmp')).toMatchObject({ exitCode: 2 })
})
