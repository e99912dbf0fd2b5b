import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { connectSession } from '../../world/hub-log.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const hubs = (...args: string[]) => runCommandLine(hubCommands(runtime), args, environment)
const code = join(folder, 'code')
writeFileSync(code, 'K7QM2XRA\n')
const to = ['--to', 'https://shop.example/c1/', '--as', '100000001', '--code-file', code]

test('a hub in maintenance is sent to another cell with the code of a file; show and the audit log do not contain the code', async () => {
  await connectSession(db, runtime.clock.now())
  await db.kysely.updateTable('hub_sessions').set({ can_move: 1 }).execute()
  expect(await hubs('send', '1', ...to)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('takes orders') as string,
  })
  expect((await hubs('set', '1', '--maintenance', 'on')).exitCode).toBe(0)
  const sent = await hubs('send', '1', ...to)
  expect([sent.exitCode, sent.stderr]).toEqual([0, ''])
  expect(JSON.parse(sent.stdout)).toMatchObject({
    hub_id: 1,
    next_cell: { address: 'https://shop.example/c1', hub_id: 100_000_001, state: 'ordered', error: null },
  })
  const stored = await db.kysely.selectFrom('hub_moves').select('code').execute()
  expect(stored).toEqual([{ code: 'K7QM2XRA' }])
  const records = await db.kysely.selectFrom('audit_log').selectAll().execute()
  expect(JSON.stringify([records, sent.stdout])).not.toContain('K7QM2XRA')
  const withdrawn = await hubs('send', '1', '--withdraw')
  expect(JSON.parse(withdrawn.stdout)).toMatchObject({ next_cell: { state: 'failed', error: 'withdrawn' } })
  expect(await hubs('send', '1', '--withdraw')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no order to withdraw') as string,
  })
})

test.each([
  [['--to', 'shop.example', ...to.slice(2)], /--to must be the https address/],
  [['--to', 'http://shop.example', ...to.slice(2)], /--to must be the https address/],
  [['--to', `https://${'a'.repeat(600)}`, ...to.slice(2)], /--to must be the https address/],
  [[...to.slice(0, 3), 'x', ...to.slice(4)], /not a hub/],
  [to.slice(0, 4), /--code-file is needed/],
  [[...to.slice(0, 5), join(folder, 'none')], /--code-file: .*none/],
  [[...to.slice(0, 5), join(folder, 'larder.sqlite')], /--code-file/],
])('hubs send refuses %j', async (args, why) => {
  const { exitCode, stderr } = await hubs('send', '1', ...args)
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(why)])
})

test('an owner’s file that is too large, or that has no owner, is refused', async () => {
  const path = join(folder, 'owner.json')
  writeFileSync(path, '{}')
  const imported = () => runCommandLine(ownerCommands(runtime), ['import', path], environment)
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
