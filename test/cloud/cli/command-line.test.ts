import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { backupCommands } from '../../../cloud/cli/backup.ts'
import { runCommandLine, type CommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { keyCommands } from '../../../cloud/cli/keys.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { releaseCommands } from '../../../cloud/cli/releases.ts'
import { roleCommands } from '../../../cloud/cli/roles.ts'
import { tableOf } from '../../../cloud/cli/table.ts'
import { userCommands } from '../../../cloud/cli/users.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const runtime = virtualRuntime()

const keys = (...args: string[]) => runCommandLine(keyCommands, runtime, args, environment)
const hubs = (...args: string[]) => runCommandLine(hubCommands, runtime, args, environment)
const roles = (...args: string[]) => runCommandLine(roleCommands, runtime, args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): unknown => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

test('a reading command, or one about an absent object, creates no database and prints a note', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'larder-empty-'))
  onTestFinished(() => rmSync(empty, { recursive: true }))
  const at = { DATA_DIR: join(empty, 'data') }
  const notes: string[] = []
  const terminal = {
    print: () => {},
    warn: (text: string) => void notes.push(text),
    signal: new AbortController().signal,
  }
  for (const [commands, ...args] of [
    [hubCommands, 'list'],
    [hubCommands, 'show', '1'],
    [keyCommands, 'list'],
    [keyCommands, 'revoke', 'abcdefgh'],
    [roleCommands, 'list'],
  ] as const)
    await runCommandLine(commands, runtime, args, at, terminal)
  expect(readdirSync(empty)).toEqual([])
  expect(notes).toHaveLength(5)
  for (const note of notes)
    expect(note).toMatch(/^DATABASE_URL: \S+larder\.sqlite is no database of Larder yet/)
  // The first command of an installation.
  await runCommandLine(
    roleCommands,
    runtime,
    ['grant', '--identity', 'a', '--role', 'technician', '--hubs', '*'],
    at,
    terminal,
  )
  expect(readdirSync(at.DATA_DIR)).toContain('larder.sqlite')
  expect(json(await runCommandLine(roleCommands, runtime, ['list'], at, terminal))).toHaveLength(1)
  expect(notes).toHaveLength(5)
})

test('commands too refuse an unencrypted connection to a remote database', async () => {
  const url = 'postgres://u:secret@db.example/larder'
  const outcome = await runCommandLine(keyCommands, runtime, ['list'], { DATABASE_URL: url })
  expect(outcome).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('ALLOW_INSECURE=plain-database'),
  })
  expect(outcome.stderr).not.toContain('secret')
})

test('a key can be created, listed without its secret, and revoked', async () => {
  const args = ['--owner', 'One', '--name', 'till', '--scopes', 'orders:write,hubs:read', '--hubs', '1']
  const created = json(await keys('create', ...args, '--expires', '2027-01-01T00:00:00Z')) as Record<
    string,
    unknown
  >
  const view = {
    prefix: expect.stringMatching(/^[0-9A-Za-z]{8}$/) as string,
    name: 'till',
    owner_id: 1,
    owner: 'One',
    scopes: ['orders:write', 'hubs:read'],
    hubs: [1],
    created_at: '2026-01-01T00:00:00.000Z',
    expires_at: '2027-01-01T00:00:00.000Z',
    revoked_at: null,
    last_used_at: null,
  }
  expect(created).toEqual({ api_key: expect.stringMatching(/^lk_/) as string, ...view })
  expect(json(await keys('list'))).toEqual([view])
  const key = String(created['api_key'])
  expect(json(await keys('revoke', key))).toEqual({ prefix: created['prefix'], revoked: true })
  expect(json(await keys('list'))).toEqual([{ ...view, revoked_at: '2026-01-01T00:00:00.000Z' }])
})

test('a rotated key’s successor has the same rights, and the old key ends after the overlap or at its own expiry', async () => {
  const args = ['--owner', 'One', '--name', 'kiosk', '--scopes', 'hubs:read', '--hubs', '1']
  const old = json(await keys('create', ...args)) as Record<string, unknown>
  const rotated = json(await keys('rotate', String(old['api_key']), '--overlap', '1.5')) as Record<
    string,
    unknown
  >
  expect(rotated).toMatchObject({
    name: 'kiosk',
    scopes: ['hubs:read'],
    hubs: [1],
    expires_at: null,
    replaces: { prefix: old['prefix'], expires_at: '2026-01-01T01:30:00.000Z', revoked_at: null },
  })
  expect([rotated['prefix'], rotated['api_key']]).not.toEqual([old['prefix'], old['api_key']])
  const again = json(await keys('rotate', String(old['prefix']), '--overlap', '48')) as Record<
    string,
    unknown
  >
  expect(again['replaces']).toMatchObject({ expires_at: '2026-01-01T01:30:00.000Z' })
  const atOnce = json(await keys('rotate', String(rotated['prefix']), '--overlap', '0')) as Record<
    string,
    unknown
  >
  expect(atOnce['replaces']).toMatchObject({ expires_at: '2026-01-01T00:00:00.000Z' })
  const ended = await keys('rotate', String(rotated['prefix']))
  expect([ended.exitCode, ended.stderr]).toEqual([2, expect.stringContaining('has ended')])
  for (const { prefix } of [old, rotated, again, atOnce]) await keys('revoke', String(prefix))
})

test('an owner can be given by id, and "*" means all of its hubs', async () => {
  const args = ['--owner', '2', '--name', 'all', '--scopes', 'hubs:read', '--hubs', '*']
  expect(json(await keys('create', ...args))).toMatchObject({ owner: 'Two', hubs: '*', expires_at: null })
})

test('wrong arguments are reported in words, and nothing changes', async () => {
  const args = { owner: 'One', name: 'n', scopes: 'hubs:read', hubs: '1' }
  const create = (change: Partial<typeof args> & { expires?: string }) =>
    keys('create', ...Object.entries({ ...args, ...change }).flatMap(([name, value]) => [`--${name}`, value]))
  const before = json(await keys('list'))
  const cases: [() => Promise<Outcome>, RegExp][] = [
    [() => create({ owner: 'Nobody' }), /no owner "Nobody"; there are: 1 "One", 2 "Two"/],
    [() => create({ scopes: 'hubs:read,hubs:fly' }), /no such scope: hubs:fly\. There are: inventory:read/],
    [() => create({ hubs: '1,2' }), /no such hub of this owner: 2/],
    [() => create({ hubs: 'one' }), /--hubs takes hub ids/],
    [() => create({ name: '' }), /--name needs a value/],
    [() => create({ expires: 'soon' }), /--expires is not a time: soon/],
    [() => keys(), /a command is needed/],
    [() => keys('destroy'), /no such command: destroy/],
    [() => keys('list', '--colour', 'red'), /--colour/],
    [() => keys('rotate', 'abcdefgh'), /no key has the prefix abcdefgh/],
    [() => keys('rotate', 'abcdefgh', '--overlap', 'long'), /--overlap is not a number of hours: long/],
    [() => keys('revoke', 'abcdefgh'), /no key has the prefix abcdefgh/],
    [
      () => roles('grant', '--identity', 'a', '--role', 'king', '--hubs', '*'),
      /no role king; there are: owner/,
    ],
    [() => roles('grant', '--identity', 'a', '--role', 'owner', '--hubs', '9'), /no such hub: 9/],
    [() => roles('revoke', '99'), /no role has the id 99/],
  ]
  for (const [command, words] of cases) {
    const { exitCode, stdout, stderr } = await command()
    const isUnknownId = /no such hub|no key has|no role has/.test(words.source)
    expect([exitCode, stdout]).toEqual([isUnknownId ? 1 : 2, ''])
    expect(stderr).toMatch(words)
  }
  expect(json(await keys('list'))).toEqual(before)
})

test('a role can be granted, listed and revoked', async () => {
  const role = {
    id: 1,
    identity: 'tess',
    role: 'technician',
    hubs: [1, 2],
    created_at: '2026-01-01T00:00:00.000Z',
  }
  expect(
    json(await roles('grant', '--identity', ' tess\n', '--role', 'technician', '--hubs', '1,2')),
  ).toEqual(role)
  expect(json(await roles('list'))).toEqual([role])
  expect(json(await roles('list', '--identity', 'nobody'))).toEqual([])
  expect(json(await roles('revoke', '1'))).toEqual({ id: 1, revoked: true })
  expect(json(await roles('list'))).toEqual([])
})

test('--help prints the usage, and a configuration file of the service is accepted', async () => {
  for (const run of [keys, roles]) {
    const { exitCode, stdout } = await run('--help')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/Usage:\n/)
    expect(stdout).toMatch(/DATABASE_URL/)
  }
  const path = join(folder, 'config.json')
  writeFileSync(path, JSON.stringify({ DATA_DIR: folder, PORT: 9000 }))
  const { stdout } = await runCommandLine(keyCommands, runtime, ['list', '--config', path], {})
  expect(JSON.parse(stdout)).not.toEqual([])
  const missing = await keys('list', '--config', join(folder, 'none.json'))
  expect([missing.exitCode, missing.stderr]).toEqual([2, expect.stringContaining('--config: ')])
})

test('every change of keys, roles and addresses of hubs is in the audit log', async () => {
  const q = db.kysely
  const args = ['--owner', 'One', '--name', 'unheard', '--scopes', 'hubs:read', '--hubs', '1']
  const { prefix } = json(await keys('create', ...args)) as { prefix: string }
  const { id } = json(await roles('grant', '--identity', 'eve', '--role', 'analyst', '--hubs', '1')) as {
    id: number
  }
  const stored = async () => ({
    keys: await q.selectFrom('api_keys').selectAll().where('name', '=', 'unheard').execute(),
    roles: await q.selectFrom('roles').selectAll().where('identity', '=', 'eve').execute(),
    addresses: await q.selectFrom('hub_management').selectAll().execute(),
  })
  const before = await stored()
  await sql`create trigger deaf before insert on audit_log begin select raise(abort, 'deaf'); end`.execute(q)
  try {
    for (const act of [
      () => keys('create', ...args),
      () => keys('rotate', prefix),
      () => keys('revoke', prefix),
      () => roles('grant', '--identity', 'eve', '--role', 'owner', '--hubs', '1'),
      () => roles('revoke', String(id)),
      () => hubs('set-management', '1', '--host', 'a.example', '--host-key', `SHA256:${'A'.repeat(43)}`),
    ]) {
      expect(await act()).toMatchObject({ exitCode: 1, stderr: 'error: deaf\n' })
      expect(await stored()).toEqual(before)
    }
  } finally {
    await sql`drop trigger deaf`.execute(q)
  }
})

test.each([
  [['lst'], /no such command: lst; did you mean list\?/],
  [['rev'], /no such command: rev; did you mean revoke\?/],
  [['zzz'], /no such command: zzz; --help lists them/],
  [['create', '--ownr', 'One'], /no such option: --ownr; did you mean --owner\?/],
  [['create', '--owner'], /--owner needs a value/],
  [['create', '--owner', '--name', 'x'], /--owner needs a value/],
  [['list', 'all'], /unexpected: all/],
])('the command %j is refused with a suggestion', async (args, words) => {
  const { exitCode, stdout, stderr } = await keys(...args)
  expect([exitCode, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(words)
  expect(stderr).not.toMatch(/Option|argument/)
})

test('a terminal gets a table, or JSON with --json, and any other output is JSON', async () => {
  const terminal = (columns?: number) => ({
    print: () => {},
    signal: new AbortController().signal,
    ...(columns !== undefined && { columns }),
  })
  const list = async (columns: number | undefined, ...args: string[]) =>
    (await runCommandLine(ownerCommands, virtualRuntime(), ['list', ...args], environment, terminal(columns)))
      .stdout
  const [header, first] = (await list(120)).split('\n')
  expect(header).toMatch(/^owner_id {2}name {2,}hub_ids {2,}created_at$/)
  expect(first).toMatch(/^1 {9}One {3,}\[1\]/)
  expect(await list(20)).toMatch(/^owner_id {4}1\nname {8}One\n/)
  expect(JSON.parse(await list(120, '--json'))).toEqual(JSON.parse(await list(undefined)))
})

test('a table shows control characters of a text and does not send them to the terminal', () => {
  const table = tableOf([{ name: 'a\u001b[2J\u009b\nb', detail: { text: '\u001b' } }], 80)
  expect(table.split('\n')).toHaveLength(3)
  expect(table).toContain('a\\u001b[2J\\u009b\\u000ab')
  expect(table.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
})

test('a file that is unreadable or not JSON is refused in words', async () => {
  const file = join(folder, 'broken.json')
  writeFileSync(file, '[')
  const run = (path: string) =>
    runCommandLine(hubCommands, virtualRuntime(), ['set-layout', '1', '--hardware', path], environment)
  expect((await run('/nowhere.json')).stderr).toBe('error: /nowhere.json: there is no such file (ENOENT)\n')
  expect((await run(folder)).stderr).toBe(`error: ${folder}: it is a folder (EISDIR)\n`)
  expect((await run(file)).stderr).toMatch(/broken\.json is not valid JSON: /)
})

const NO_FOLDER = 'its file system takes no new folder (ENOTSUP)'
const BELOW_FILE = 'a part of the path is no folder (ENOTDIR)'
const ABSENT = 'there is no such file (ENOENT)'
/** Each command writes to, or reads, a path that its operator names. */
const refusedPaths: [string, CommandLine, string, string][] = [
  ['a backup in /proc', backupCommands, 'create --to /proc/nope', `/proc/nope cannot be used: ${NO_FOLDER}`],
  [
    'a backup below a file',
    backupCommands,
    'create --to /dev/null/x',
    `/dev/null/x cannot be used: ${BELOW_FILE}`,
  ],
  [
    'a list of backups in a file',
    backupCommands,
    'list --to /dev/null',
    `/dev/null cannot be used: ${BELOW_FILE}`,
  ],
  ['a backup that is a folder', backupCommands, 'verify /proc', '/proc is not a file'],
  ['a folder to restore', backupCommands, 'restore /proc', '/proc is not a file'],
  ['keys of releases', releaseCommands, 'keygen --to /proc/nope', `/proc/nope cannot be used: ${NO_FOLDER}`],
  [
    'a release',
    releaseCommands,
    'add /nope.tar.gz --keys /nope',
    `/nope/root.json cannot be used: ${ABSENT}`,
  ],
  [
    "a customer's data",
    userCommands,
    'export 1 --to /proc/nope',
    `--to: /proc/nope cannot be used: ${ABSENT}`,
  ],
  ["a hub's code", hubCommands, 'qr 1 --to /proc/nope', `--to: /proc/nope cannot be written: ${ABSENT}`],
  [
    "a hub's files",
    hubCommands,
    'export 1 --to /proc/nope',
    `--to: /proc/nope cannot be written: ${NO_FOLDER}`,
  ],
]

test.each(refusedPaths)(
  '%s: a path that cannot be used is reported in words',
  async (_, commands, line, why) => {
    const user = { id: 1, identity: 'ada', is_anonymous: 0, created_at: 1, updated_at: 1 } as const
    await db.kysely
      .insertInto('users')
      .values(user)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const { exitCode, stderr } = await runCommandLine(commands, runtime, line.split(' '), environment)
    expect(stderr).toBe(`error: ${why}\n`)
    expect([1, 2]).toContain(exitCode)
  },
)
