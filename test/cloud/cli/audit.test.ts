import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appendAudit, listAudit } from '../../../cloud/platform/audit/audit.ts'
import { auditCommands } from '../../../cloud/cli/audit.ts'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { virtualRuntime, type VirtualRuntime } from '../../world/clock.ts'
import { issueApiKey } from '../../../cloud/platform/credentials/api-keys.ts'
import { csvLine } from '../../../cloud/platform/csv.ts'
import { seedHubs } from '../../world/seeds.ts'
import { onEachDatabase } from '../../world/database.ts'

const all = { limit: 100 }

/** Six records, one second apart, of hubs 1 and 2 in turn. */
async function fill({ kysely }: CloudDatabase, runtime: VirtualRuntime): Promise<number> {
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
    runtime.clock.advance(1000)
  }
  return began
}

onEachDatabase('the audit log', (open) => {
  test('the audit log lists actor, action, object, time and result, oldest first', async () => {
    const db = await open()
    const runtime = virtualRuntime()
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
  ])(
    'the filter $filter shows the records $ids',
    async ({ filter: { afterMs, beforeMs, ...filter }, ids }) => {
      const db = await open()
      const began = await fill(db, virtualRuntime())
      const since = afterMs === undefined ? undefined : began + afterMs
      const until = beforeMs === undefined ? undefined : began + beforeMs
      const found = await listAudit(db.kysely, { ...all, since, until, ...filter })
      expect(found.map(({ id }) => id)).toEqual(ids)
    },
  )
})

onEachDatabase('the audit log of an owner', (open) => {
  test('an owner’s audit log has the records of the owner’s hubs during the ownership, and of the owner’s keys', async () => {
    const db = await open()
    const runtime = virtualRuntime()
    await seedHubs(db)
    const began = await fill(db, runtime)
    // Hub 1 belonged to owner 2 until its second record.
    await db.kysely
      .insertInto('former_owners')
      .values({ hub_id: 1, owner_id: 2, since: 0, until: began + 1500 })
      .execute()
    await db.kysely
      .updateTable('hubs')
      .set({ owned_since: began + 1500 })
      .where('id', '=', 1)
      .execute()
    const { prefix } = await issueApiKey(db.kysely, runtime, {
      name: 'k',
      ownerId: 1,
      scopes: ['hubs:read'],
      hubs: '*',
      expiresAt: null,
    })
    const act = { hubId: null, result: 'executed' }
    await appendAudit(db.kysely, runtime, { ...act, actor: 'x', action: 'a', object: `key-${prefix}` })
    await appendAudit(db.kysely, runtime, { ...act, actor: `key:${prefix}`, action: 'a', object: 'webhook' })
    await appendAudit(db.kysely, runtime, { ...act, actor: 'x', action: 'a', object: 'owner-2' })
    const ids = async (ownerId: number) =>
      (await listAudit(db.kysely, { ownerId, limit: 100 })).map(({ id }) => id)
    expect(await ids(1)).toEqual([3, 5, 7, 8])
    expect(await ids(2)).toEqual([1, 2, 4, 6, 9])
  })
})

test.each([
  [['=1+1', '+1', '-1', '@x', '\tx', 'a,"b"\n'], `'=1+1,'+1,'-1,'@x,'\tx,"a,""b""\n"\r\n`],
  [[-1, 2.5, true, null, ''], '-1,2.5,true,,\r\n'],
])('a line of CSV of %j shields formulas in text cells only', (cells, line) => {
  expect(csvLine(cells)).toBe(line)
})

test('the audit command prints each record as JSON on its own line, and refuses wrong options in words', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-audit-'))
  try {
    const runtime = virtualRuntime()
    const audit = (...args: string[]) => runCommandLine(auditCommands, runtime, args, { DATA_DIR: folder })
    expect(await audit('list')).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
    await db.migrate()
    await seedHubs(db)
    const began = await fill(db, runtime)
    await db.close()
    expect(await audit('list', '--hub', '99')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'error: no such hub: 99\n',
    })
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
    const printed: string[] = []
    const notes: string[] = []
    const terminal = {
      print: (text: string) => void printed.push(text),
      warn: (sentence: string) => void notes.push(sentence),
      signal: new AbortController().signal,
    }
    const ids = async (...args: string[]) => {
      const outcome = await runCommandLine(
        auditCommands,
        runtime,
        ['list', ...args],
        { DATA_DIR: folder },
        terminal,
      )
      return outcome.stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: number }).id)
    }
    expect(await ids('--limit', '4')).toEqual([3, 4, 5, 6])
    expect(notes).toEqual(['Older records: --cursor 3\n'])
    expect(await ids('--limit', '4', '--cursor', '3')).toEqual([1, 2])
    expect(notes).toHaveLength(1)
    await runCommandLine(
      auditCommands,
      runtime,
      ['list', '--csv', '--hub', '2'],
      { DATA_DIR: folder },
      terminal,
    )
    expect(printed.join('').split('\r\n')).toEqual([
      'id,at,actor,action,hub_id,object,result,detail',
      `6,${new Date(began + 5000).toISOString()},identity:ada,inventory.update_price,2,bin-5,executed,"{""index"":5}"`,
      `4,${new Date(began + 3000).toISOString()},identity:ada,controls.open_bin,2,bin-3,executed,"{""index"":3}"`,
      `2,${new Date(began + 1000).toISOString()},key:aaaaaaaa,controls.open_binx,2,bin-1,executed,"{""index"":1}"`,
      '',
    ])
    expect((await audit('--help')).stdout).toContain('larder audit list')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
