import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { alarmCommands } from '../../../cloud/cli/alarms.ts'
import { apiCommands } from '../../../cloud/cli/api-commands.ts'
import { auditCommands } from '../../../cloud/cli/audit.ts'
import { backupCommands } from '../../../cloud/cli/backup.ts'
import { runCommandLine, type CommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { contactCommands } from '../../../cloud/cli/contacts.ts'
import { deadLetterCommands } from '../../../cloud/cli/dead-letters.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { keyCommands } from '../../../cloud/cli/keys.ts'
import { mailCommands } from '../../../cloud/cli/mail.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { paymentCommands } from '../../../cloud/cli/payments.ts'
import { productCommands } from '../../../cloud/cli/products.ts'
import { roleCommands } from '../../../cloud/cli/roles.ts'
import { sessionCommands } from '../../../cloud/cli/sessions.ts'
import { userCommands } from '../../../cloud/cli/users.ts'
import { webhookCommands } from '../../../cloud/cli/webhooks.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const root = resolve(import.meta.dirname, '../../..')

const commandLines: Record<string, CommandLine> = {
  alarms: alarmCommands,
  audit: auditCommands,
  contacts: contactCommands,
  'dead-letters': deadLetterCommands,
  hubs: hubCommands,
  keys: keyCommands,
  mail: mailCommands,
  owners: ownerCommands,
  payments: paymentCommands,
  products: productCommands,
  roles: roleCommands,
  sessions: sessionCommands,
  webhooks: webhookCommands,
}
const run = (command: string, ...args: string[]) =>
  runCommandLine(commandLines[command]!, runtime, args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): unknown => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

const subcommands = Object.entries(commandLines).flatMap(([command, { subcommands: all }]) =>
  Object.entries(all).map(([name, subcommand]) => ({ command, name, ...subcommand })),
)

test.each(subcommands)('the command $command $name refuses an empty option or argument', async (each) => {
  const { command, name, options, positionals = [] } = each
  for (const option of [...options, 'config'])
    for (const empty of ['', ' ', '\u200B'])
      expect(await run(command, name, `--${option}=${empty}`)).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: `error: --${option} needs a value\n`,
      })
  for (const index of positionals.keys())
    expect(await run(command, name, ...positionals.slice(0, index).map(() => '1'), '')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('needs a value') as string,
    })
})

test.each(subcommands)('the command $command $name refuses a repeated value', async (each) => {
  const { command, name, options, positionals = [], repeated = [] } = each
  for (const option of options.filter((one) => !repeated.includes(one)))
    expect(await run(command, name, `--${option}`, '1', `--${option}=2`)).toMatchObject({
      exitCode: 2,
      stderr: `error: --${option} is given twice\n`,
    })
  for (const both of positionals.filter((positional) => options.includes(positional)))
    expect(await run(command, name, '2', `--${both}`, '3')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('is given twice') as string,
    })
})

test.each(subcommands.filter(({ positionals }) => positionals !== undefined))(
  'the command $command $name refuses a missing argument',
  async ({ command, name }) => {
    expect(await run(command, name)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/(is|are) needed/) as string,
    })
  },
)

const coordinates = { latitude: '39.78', longitude: '-89.65' }
const creation = (changed: Record<string, string>) =>
  Object.entries({
    owner: 'One',
    name: 'New',
    street: '1 Street',
    city: 'City',
    state: 'IL',
    'postal-code': '1',
    timezone: 'UTC',
    ...coordinates,
    ...changed,
  }).map(([name, value]) => `--${name}=${value}`)

test.each(['0x10', '1e1', '0b1', 'Infinity', 'NaN', 'north', '1_0', '1,5', '5.', '--5', '200', '-181'])(
  'hubs create and hubs set refuse the coordinate %s, which is not a decimal number within bounds',
  async (value) => {
    const before = json(await run('hubs', 'list'))
    const record = json(await run('hubs', 'show', '1'))
    for (const option of Object.keys(coordinates)) {
      const words = new RegExp(
        `^error: --${option}: must be (a decimal number such as -89.65|at (least|most) -?\\d+)\\n$`,
      )
      const created = await run('hubs', 'create', ...creation({ [option]: value }))
      expect([created.exitCode, created.stderr]).toEqual([2, expect.stringMatching(words)])
      const set = await run('hubs', 'set', '1', `--${option}=${value}`)
      expect([set.exitCode, set.stderr]).toEqual([1, expect.stringMatching(words)])
    }
    expect(json(await run('hubs', 'list'))).toEqual(before)
    expect(json(await run('hubs', 'show', '1'))).toEqual(record)
  },
)

test.each(['0', '-0.5', '.25', '45', '-89.123456', '007'])(
  'the decimal coordinate %s is stored',
  async (value) => {
    const set = json(await run('hubs', 'set', '1', '--latitude', value, '--longitude', value))
    expect(set).toMatchObject({ geojson_location: { coordinates: [Number(value), Number(value)] } })
  },
)

test.each(['2026-02-31', '2026-2-1', '31.01.2026', '2026-01-31T08:00:00Z'])(
  'mail morning refuses %s, which is not a date',
  async (date) =>
    expect(await run('mail', 'morning', '--hub', '1', '--date', date)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `error: --date must be a date, YYYY-MM-DD: ${date}\n`,
    }),
)

test('mail morning refuses a retired hub', async () => {
  const { hub_id: id } = json(await run('hubs', 'create', ...creation({}))) as { hub_id: number }
  json(await run('hubs', 'retire', String(id)))
  expect(await run('mail', 'morning', '--hub', String(id))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('is retired') as string,
  })
})

test('a text that is too long is refused in words that name the option', async () => {
  for (const option of ['name', 'street', 'street-2', 'city', 'state', 'postal-code'])
    for (const args of [
      ['set', '1', `--${option}=${'x'.repeat(201)}`],
      ['create', ...creation({ [option]: 'x'.repeat(201) })],
    ])
      expect((await run('hubs', ...args)).stderr).toBe(
        `error: --${option}: must have at most 200 characters\n`,
      )
})

test('--no-street-2 removes the second line of a hub’s address', async () => {
  expect(json(await run('hubs', 'set', '1', '--street-2', 'Floor 3'))).toMatchObject({
    street_address_2: 'Floor 3',
  })
  expect(await run('hubs', 'set', '1', '--street-2', 'Floor 4', '--no-street-2')).toMatchObject({
    exitCode: 2,
  })
  expect(json(await run('hubs', 'set', '1', '--no-street-2'))).toMatchObject({ street_address_2: null })
})

test.each(['1', 'March', '2026-02-30', '2026-13-01T00:00:00Z', '01/02/2026', 'in 5 days'])(
  'the text %s is refused as a time, because it is not ISO 8601',
  async (time) => {
    for (const args of [
      ['audit', 'list', '--since', time],
      [
        'keys',
        'create',
        '--owner',
        'One',
        '--name',
        'n',
        '--scopes',
        'hubs:read',
        '--hubs',
        '1',
        '--expires',
        time,
      ],
    ])
      expect(await run(args[0]!, ...args.slice(1))).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('is not a time') as string,
      })
  },
)

test('--owner is a name first: an owner with a number as name takes precedence over the owner with that id', async () => {
  const list = async (command: string) => json(await run(command, 'list', '--owner', '1')) as unknown[]
  const add = (owner: string, email: string) => run('contacts', 'add', '--owner', owner, '--email', email)
  json(await add('1', 'first@example.com'))
  expect(await list('contacts')).toMatchObject([{ owner_id: 1, email: 'first@example.com' }])

  const { owner_id: named } = json(await run('owners', 'create', '--name', '1')) as { owner_id: number }
  expect(await list('contacts')).toEqual([])
  json(await add('1', 'named@example.com'))
  expect(await list('contacts')).toMatchObject([{ owner_id: named, email: 'named@example.com' }])

  expect(json(await run('hubs', 'move', '2', '--owner', '1'))).toMatchObject({ to_owner: '1' })
  const { owner_id: mover } = await db.kysely
    .selectFrom('hubs')
    .select('owner_id')
    .where('id', '=', 2)
    .executeTakeFirstOrThrow()
  expect(mover).toBe(named)
})

test('a rotated key keeps its owner if another owner’s name is the id of that owner', async () => {
  const args = ['--owner', 'One', '--name', 'till', '--scopes', 'hubs:read', '--hubs', '1']
  const { prefix } = json(await run('keys', 'create', ...args)) as { prefix: string }
  expect(json(await run('keys', 'rotate', prefix))).toMatchObject({
    owner_id: 1,
    owner: 'One',
    replaces: { owner: 'One' },
  })
})

/** The documents for operators and callers. */
const documents = ['README.md', 'cloud/README.md', 'edge/README.md', 'protocol/mqtt/SPEC.md'].concat(
  ['cloud/docs/operating', 'cloud/docs/guides'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  ),
)
const COMMAND = /(?:larder|npm run) ([a-z-]+) (?:-- )?([a-z-]+)((?:[^`\n\\]|\\\n)*)/g

test.each(documents)('%s names only commands and options that exist', (path) => {
  const all: typeof commandLines = {
    ...commandLines,
    backup: backupCommands,
    users: userCommands,
  }
  for (const [, noun = '', verb = '', rest = ''] of readFileSync(join(root, path), 'utf8').matchAll(
    COMMAND,
  )) {
    const calls = apiCommands(noun)?.subcommands
    const own = all[noun]?.subcommands
    if (!calls && !own) continue
    const found = [calls?.[verb], own?.[verb]].filter((each) => each !== undefined)
    expect([noun, verb, found.length > 0]).toEqual([noun, verb, true])
    const known = found.flatMap(({ options, flags = [] }) => [...options, ...flags, 'json', 'config', 'help'])
    const named = [...rest.matchAll(/(?<=\s)--([a-z][a-z-]*)/g)].map(([, option = '']) => option)
    expect([noun, verb, named.filter((option) => !known.includes(option))]).toEqual([noun, verb, []])
  }
})
