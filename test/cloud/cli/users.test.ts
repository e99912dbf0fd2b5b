import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { userCommands } from '../../../cloud/cli/users.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const users = (...args: string[]) => runCommandLine(userCommands, virtualRuntime(), args, environment)

test('users export and erase are audited, print JSON, and end with status 1 for an unknown number', async () => {
  const row = { identity: 'ada', is_anonymous: 0, first_name: 'Ada', created_at: 1, updated_at: 1 } as const
  const { id } = await db.kysely.insertInto('users').values(row).returning('id').executeTakeFirstOrThrow()
  const file = join(folder, 'ada.json')
  expect(await users('export', String(id), '--to', file)).toMatchObject({ exitCode: 0 })
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ user_id: id, user: { first_name: 'Ada' } })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const first = await users('erase', String(id))
  expect(JSON.parse(first.stdout)).toMatchObject({ user_id: id, erased_at: expect.any(String) as string })
  expect(await users('erase', String(id))).toEqual(first)
  expect((await users('export', String(id))).stdout).not.toContain('Ada')
  for (const verb of ['export', 'erase']) {
    expect(await users(verb, '99')).toMatchObject({ exitCode: 1 })
    expect(await users(verb)).toMatchObject({ exitCode: 2 })
  }
  const acts = await db.kysely.selectFrom('audit_log').select(['action', 'object']).orderBy('id').execute()
  expect(acts).toEqual(
    ['users.export', 'users.erase', 'users.export'].map((action) => ({ action, object: `user-${id}` })),
  )
})
