import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appendAudit } from '../../../cloud/platform/audit/audit.ts'
import { auditCommands } from '../../../cloud/cli/audit.ts'
import { listAudit } from '../../../cloud/platform/audit/audit.ts'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { stillRuntime, type StillRuntime } from '../support/clock.ts'
import { onEachDatabase } from '../support/database.ts'

const all = {
  hubId: undefined,
  since: undefined,
  until: undefined,
  action: undefined,
  actor: undefined,
  object: undefined,
  limit: 100,
}

/** Six records, a second apart: hub 1 and 2 in turn. */
async function fill({ kysely }: CloudDatabase, runtime: StillRuntime): Promise<number> {
  const began = runtime.clock.now()
  const actions = ['controls.open_bin', 'controls.open_binx', 'inventory.update_price']
  for (let index = 0; index < 6; index++) {
    await appendAudit(kysely, runtime, {
      actor: index < 3 ? 'key:aaaaaaaa' : 'identity:ada',
      action: actions[index % 3]!,
      hubId: (index % 2) + 1,
      object: `bin-${index}`,
      result: 'executed',
      detail: { index },
    })
    runtime.advance(1000)
  }
  return began
}

onEachDatabase('the audit log', (open) => {
  test('tells who did what to what, when, and what came of it, oldest first', async () => {
    const db = await open()
    const runtime = stillRuntime()
    await db.migrate()
    const began = await fill(db, runtime)
    const [first, ...rest] = await listAudit(db.kysely, all)
    expect(first).toEqual({
      id: 1,
      at: new Date(began).toISOString(),
      actor: 'key:aaaaaaaa',
      action: 'controls.open_bin',
      hub_id: 1,
      object: 'bin-0',
      result: 'executed',
      detail: { index: 0 },
    })
    expect(rest.map(({ id }) => id)).toEqual([2, 3, 4, 5, 6])
  })

  test.each([
    { filter: { hubId: 2 }, ids: [2, 4, 6] },
    { filter: { action: 'controls.open_bin' }, ids: [1, 4] },
    { filter: { action: 'controls.' }, ids: [1, 2, 4, 5] },
    { filter: { action: '%.' }, ids: [] },
    { filter: { actor: 'identity:ada', hubId: 1 }, ids: [5] },
    { filter: { object: 'bin-3' }, ids: [4] },
    { filter: { limit: 2 }, ids: [5, 6] },
    { filter: { afterMs: 2000, beforeMs: 4000 }, ids: [3, 4] },
  ])('$filter shows $ids', async ({ filter: { afterMs, beforeMs, ...filter }, ids }) => {
    const db = await open()
    const began = await fill(db, stillRuntime())
    const since = afterMs === undefined ? undefined : began + afterMs
    const until = beforeMs === undefined ? undefined : began + beforeMs
    const found = await listAudit(db.kysely, { ...all, since, until, ...filter })
    expect(found.map(({ id }) => id)).toEqual(ids)
  })
})

test('the command line prints each record as JSON on a line of its own, and says what is wrong with its options', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-audit-'))
  try {
    const audit = (...args: string[]) => runCommandLine(auditCommands, args, { DATA_DIR: folder })
    expect(await audit('list')).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    const runtime = stillRuntime()
    const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
    await db.migrate()
    const began = await fill(db, runtime)
    await db.close()
    const since = new Date(began + 3000).toISOString()
    const { stdout } = await audit('list', '--hub', '1', '--since', since, '--action', 'controls.')
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ id: 5, detail: { index: 4 } }])
    for (const [option, value] of [
      ['--hub', 'x'],
      ['--hub', '0'],
      ['--limit', '10001'],
      ['--since', 'yesterday'],
    ] as const)
      expect(await audit('list', option, value)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(option) as string,
      })
    expect((await audit('--help')).stdout).toContain('npm run audit -- list')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
