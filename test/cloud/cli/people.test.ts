import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { peopleCommands } from '../../../cloud/cli/people.ts'
import { isPinOf } from '../../../protocol/model/pin.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db, folder } = await cloudFolder()
const runtime = virtualRuntime()
const people = (...args: string[]) => runCommandLine(peopleCommands, runtime, args, environment)
const listed = async (): Promise<unknown> => JSON.parse((await people('list')).stdout)

test('people are added to hubs, listed without their PINs, and removed; the audit log has each change', async () => {
  const added = await people('add', '--name', 'Ann Larkin', '--pin', '271828', '--hubs', '2,1')
  expect(JSON.parse(added.stdout)).toEqual({ name: 'Ann Larkin', hubs: [1, 2] })
  const ann = { name: 'Ann Larkin', hubs: [1, 2], created_at: expect.any(String) as string }
  expect(await listed()).toEqual([ann])
  const rows = await db.kysely.selectFrom('hub_people').select('pin_digest').execute()
  expect(await Promise.all(rows.map(({ pin_digest }) => isPinOf(pin_digest, '271828')))).toEqual([true, true])

  for (const [args, exitCode] of [
    [['add', '--name', 'ann larkin', '--pin', '4711', '--hubs', '1'], 1],
    [['add', '--name', 'Bob', '--pin', '123', '--hubs', '1'], 2],
    [['add', '--name', 'Bob', '--pin', 'four', '--hubs', '1'], 2],
    [['add', '--name', 'Bob', '--pin', '4711', '--hubs', '99'], 1],
    [['add', '--name', 'Bob', '--pin', '4711'], 2],
    [['remove', '--name', 'Eve'], 1],
  ] as const)
    expect([args, (await people(...args)).exitCode]).toEqual([args, exitCode])

  await people('remove', '--name', 'ANN LARKIN', '--hubs', '1')
  expect(await listed()).toEqual([{ ...ann, hubs: [2] }])
  expect(await people('remove', '--name', 'Ann Larkin', '--hubs', '1')).toMatchObject({ exitCode: 1 })
  const audited = await db.kysely
    .selectFrom('audit_log')
    .select(['action', 'object', 'hub_id'])
    .orderBy('id')
    .execute()
  expect(audited.map((row) => Object.values(row))).toEqual([
    ['people.add', 'person:Ann Larkin', 1],
    ['people.add', 'person:Ann Larkin', 2],
    ['people.remove', 'person:ANN LARKIN', 1],
  ])
})

test('a hub that moves to another owner loses the people of its former owner', async () => {
  await people('add', '--name', 'Cleo', '--pin', '4711', '--hubs', '*')
  await runCommandLine(ownerCommands, runtime, ['create', '--name', 'Shelbyville'], environment)
  const moved = await runCommandLine(
    hubCommands,
    runtime,
    ['move', '2', '--owner', 'Shelbyville'],
    environment,
  )
  expect(moved.exitCode).toBe(0)
  expect(await listed()).toMatchObject([{ name: 'Cleo', hubs: [1] }])
})

test('a PIN is read from a file, so that it does not appear in the list of processes', async () => {
  const file = join(folder, 'pin')
  writeFileSync(file, '314159\n')
  const add = (...args: string[]) => people('add', '--name', 'Dora', '--hubs', '1', ...args)
  expect((await add('--pin-file', file, '--pin', '4711')).exitCode).toBe(2)
  expect((await add('--pin-file', `${file}.missing`)).exitCode).toBe(2)
  expect((await add('--pin-file', file)).exitCode).toBe(0)
  const dora = db.kysely.selectFrom('hub_people').select('pin_digest').where('name', '=', 'Dora')
  expect(await isPinOf((await dora.executeTakeFirstOrThrow()).pin_digest, '314159')).toBe(true)
})
