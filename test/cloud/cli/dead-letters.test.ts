import { beforeEach, expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { deadLetterCommands } from '../../../cloud/cli/dead-letters.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()

const run = (...args: string[]) => runCommandLine(deadLetterCommands, systemRuntime(), args, environment)
const json = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await run(...args)
  return [exitCode, stderr, stdout === '' ? undefined : (JSON.parse(stdout) as unknown)]
}

const local = { kind: 'local', at: 1, action: 'unlock_door', subject: 'door main', outcome: 'executed' }
beforeEach(async () => {
  await db.kysely.deleteFrom('dead_letters').execute()
  for (const [id, hub_id, body] of [
    [1, 1, local],
    [2, 1, { kind: 'mystery' }],
    [3, 2, local],
  ] as const)
    await db.kysely
      .insertInto('dead_letters')
      .values({
        id,
        hub_id,
        stream: 'ledger',
        epoch: 'e'.repeat(32),
        seq: id,
        body: JSON.stringify(body),
        error: 'a defect',
        at: 0,
      })
      .execute()
})

test('the dead-letters command lists all dead letters, or those of a hub, as JSON', async () => {
  expect(await json('list')).toEqual([
    0,
    '',
    [
      {
        id: 1,
        hub_id: 1,
        stream: 'ledger',
        epoch: 'e'.repeat(32),
        seq: 1,
        kind: 'local',
        error: 'a defect',
        at: '1970-01-01T00:00:00.000Z',
        body: local,
      },
      expect.objectContaining({ id: 2 }),
      expect.objectContaining({ id: 3 }),
    ],
  ])
  expect(await json('list', '--hub', '2')).toMatchObject([0, '', [{ id: 3 }]])
  expect(await json('list', '--limit', '1')).toMatchObject([0, '', [{ id: 1 }]])
})

test('applied dead letters are deleted, and a dead letter that fails again gives exit code 1', async () => {
  expect(await json('replay', '--hub', '1')).toMatchObject([
    1,
    '',
    [
      { id: 1, outcome: 'applied' },
      { id: 2, outcome: 'failed', error: expect.any(String) as string },
    ],
  ])
  expect(await json('replay', '3')).toMatchObject([0, '', [{ id: 3, outcome: 'applied' }]])
  expect(await json('list')).toMatchObject([0, '', [{ id: 2 }]])
  const audited = await db.kysely
    .selectFrom('audit_log')
    .select(['actor', 'hub_id'])
    .where('action', '=', 'hub.unlock_door')
    .orderBy('id')
    .execute()
  expect(audited).toEqual([
    { actor: 'hub page', hub_id: 1 },
    { actor: 'hub page', hub_id: 2 },
  ])
})

test('dropped dead letters are deleted, and an unknown one gives exit code 1', async () => {
  expect(await json('drop', '2,1')).toMatchObject([
    0,
    '',
    [
      { id: 1, outcome: 'dropped' },
      { id: 2, outcome: 'dropped' },
    ],
  ])
  expect(await json('drop', '2')).toMatchObject([1, '', [{ id: 2, outcome: 'not_found' }]])
})

test.each([
  [['replay'], 'ids are needed, or --hub'],
  [['drop', '1', '--hub', '1'], 'ids are needed, or --hub'],
  [['drop', '1,x'], 'ids are whole numbers separated by commas: 1,x'],
  [['list', '--limit', '0'], '--limit must be a whole number from 1 to 10000: 0'],
])('the dead-letters command refuses %j in words', async (args, words) => {
  const { exitCode, stderr } = await run(...args)
  expect([exitCode, stderr]).toEqual([2, `error: ${words}\n`])
})

test('the help of the dead-letters command is complete', async () => {
  const { exitCode, stdout } = await run('--help')
  expect(exitCode).toBe(0)
  for (const word of ['list', 'replay', 'drop', '--hub', 'DATABASE_URL']) expect(stdout).toContain(word)
})
