import { expect, test } from 'vitest'
import { ownerCommands } from '../../../../cloud/cli/owners.ts'
import { runCommandLine } from '../../../../cloud/cli/command-line.ts'
import { issueApiKey, prefixOf } from '../../../../cloud/platform/credentials/api-keys.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { takeCell } from '../../../../cloud/platform/store/take-cell.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { programFolder } from '../../support/program.ts'
import { onEachDatabase } from '../../../world/database.ts'

const runtime = systemRuntime()

const newOwner = async ({ kysely }: CloudDatabase, name: string): Promise<number> =>
  (await kysely.insertInto('owners').values({ name }).returning('id').executeTakeFirstOrThrow()).id

onEachDatabase('the cell of a database', (open) => {
  test('a new database of cell 7 issues ids from 700,000,001, and an API key of its owner begins with lk7_', async () => {
    const db = await open()
    await takeCell(db, 7)
    const ownerId = await newOwner(db, 'Anna')
    expect(ownerId).toBe(700_000_001)
    const category = { name: 'Drinks', parent_id: null }
    const { id } = await db.kysely
      .insertInto('categories')
      .values(category)
      .returning('id')
      .executeTakeFirstOrThrow()
    expect(id).toBe(1)
    const grant = { name: 'key', ownerId, scopes: [], hubs: '*', expiresAt: null } as const
    const { key, prefix } = await issueApiKey(db.kysely, runtime, grant)
    expect(key).toMatch(/^lk7_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/)
    expect(prefixOf(key)).toBe(prefix)
  })

  test('a database in use keeps its ids when its cell is set again, also by several processes at once', async () => {
    const db = await open()
    await Promise.all([takeCell(db, 2), takeCell(db, 2), takeCell(db, 2)])
    const first = await newOwner(db, 'Anna')
    await Promise.all([takeCell(db, 2), takeCell(db, 2)])
    expect([first, await newOwner(db, 'Ben')]).toEqual([200_000_001, 200_000_002])
  })

  test('a new database takes its cell while sessions of the service are open', async () => {
    const db = await open({ isBusy: true, pools: defaultLimits.database })
    await takeCell(db, 2)
    expect(await newOwner(db, 'Anna')).toBe(200_000_001)
  })

  test('a database that has issued ids is refused in every other cell, also after their rows are deleted', async () => {
    const db = await open()
    await newOwner(db, 'Anna')
    await db.kysely.deleteFrom('owners').execute()
    await takeCell(db, 0)
    await expect(takeCell(db, 2)).rejects.toThrow(
      'CELL is 2, and this database has issued ids of cell 0 (owners up to 1). A database stays in its cell: set CELL to 0, or use another database',
    )
    const other = await open()
    await takeCell(other, 3)
    await expect(takeCell(other, 0)).rejects.toThrow('set CELL to 3')
    await expect(takeCell(other, 2)).rejects.toThrow('set CELL to 3')
  })
})

test('the command line refuses a database of another cell, and creates the first owner in its cell', async () => {
  const DATABASE_URL = `sqlite:${programFolder()}/larder.sqlite`
  const run = (CELL: string, ...args: string[]) =>
    runCommandLine(ownerCommands, runtime, args, { DATABASE_URL, CELL })
  const created = await run('4', 'create', '--name', 'Anna')
  expect(JSON.parse(created.stdout)).toMatchObject({ owner_id: 400_000_001 })
  const refused = await run('5', 'list')
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('set CELL to 4')])
  const outside = await run('21', 'list')
  expect([outside.exitCode, outside.stderr]).toEqual([2, expect.stringContaining('CELL')])
})
