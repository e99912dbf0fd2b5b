import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { productCommands } from '../../../../cloud/cli/products.ts'
import { digestOf } from '../../../../cloud/platform/credentials/secrets.ts'
import { runCommandLine, type CommandLine, type Outcome } from '../../../../cloud/cli/command-line.ts'
import { keyCommands } from '../../../../cloud/cli/keys.ts'
import { readFridges, readLayout } from '../../../../cloud/commerce/catalogue/layout.ts'
import { hubCommands } from '../../../../cloud/cli/hubs.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { virtualRuntime } from '../../../world/clock.ts'

const hardware = resolve(import.meta.dirname, '../../../../simulator/hardware/demo-hub.json')
const runtime = virtualRuntime()
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-hubs-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

// An absent folder: no program has ever run.
const run = (commands: CommandLine, ...args: string[]): Promise<Outcome> =>
  runCommandLine(commands, runtime, args, { DATA_DIR: join(folder, 'data', 'cloud') })
const json = ({ exitCode, stdout, stderr }: Outcome): Record<string, unknown> => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Record<string, unknown>
}
const hubs = (...args: string[]) => run(hubCommands, ...args)
const where = {
  street: '1 Main Street',
  city: 'Springfield',
  state: 'IL',
  'postal-code': '62701',
  latitude: '39.78',
  longitude: '-89.65',
  timezone: 'America/Chicago',
}
const create = (options: Record<string, string>): Promise<Outcome> =>
  hubs(
    'create',
    ...Object.entries({ name: 'Station', ...where, ...options }).map(([name, value]) => `--${name}=${value}`),
  )

async function inDatabase<T>(look: (db: ReturnType<typeof openDatabase>) => Promise<T>): Promise<T> {
  const db = openDatabase({ url: `sqlite:${join(folder, 'data/cloud/larder.sqlite')}` })
  try {
    return await look(db)
  } finally {
    await db.close()
  }
}

test('an owner, a hub, a key and products can be created before the first start of the cloud', async () => {
  const hub = json(await create({ 'new-owner': 'Springfield Vending', tax: '8.25', hardware }))
  expect(hub).toMatchObject({
    hub_id: 1,
    owner_id: 1,
    owner: 'Springfield Vending',
    mqtt_user: 'hub-1',
    shelves: 20,
  })
  const second = json(await create({ owner: 'Springfield Vending', name: 'Library' }))
  expect(second).toMatchObject({ hub_id: 2, owner_id: 1, shelves: 0 })
  const keyArgs = ['--owner', 'Springfield Vending', '--name', 'till', '--scopes', 'hubs:read', '--hubs', '1']
  expect(json(await run(keyCommands, 'create', ...keyArgs))).toMatchObject({ owner_id: 1 })

  const file = join(folder, 'products.json')
  const cola = { upc: '036000291452', name: 'Cola', category: 'Drinks', price: 189, purchase_price: 70 }
  writeFileSync(file, JSON.stringify([{ ...cola, facings: [{ cabinet: 1, shelf: 1, row: 1 }] }]))
  expect(json(await run(productCommands, 'import', '--hub', '1', '--file', file))).toEqual({
    hub_id: 1,
    created: 1,
    updated: 0,
    facings: 1,
    counted: 0,
  })
  await inDatabase(async ({ kysely: q }) => {
    const rows = await q.selectFrom('hubs').selectAll().orderBy('id').execute()
    expect(rows[0]).toMatchObject({
      name: 'Station',
      tax_millipercent: 8250,
      hub_status: 'active',
      mqtt_password_digest: digestOf(String(hub['mqtt_password'])),
    })
    expect(Object.keys(await readLayout(q, 1))).toHaveLength(4)
    expect(await readFridges(q, 1)).not.toEqual([])
    const acts = await q.selectFrom('audit_log').select(['action', 'hub_id']).orderBy('id').execute()
    expect(acts.map(({ action }) => action)).toEqual([
      'hubs.create',
      'hubs.create',
      'keys.create',
      'products.import',
    ])
  })
})

test('a new password ends the old one; a layout can be set later, but must have room for existing products', async () => {
  const { mqtt_password: first } = json(await create({ 'new-owner': 'One' }))
  const { mqtt_password: second } = json(await hubs('renew-password', '1'))
  expect(second).not.toBe(first)
  await inDatabase(async ({ kysely: q }) => {
    const { mqtt_password_digest: digest } = await q.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    expect(digest).toBe(digestOf(String(second)))
  })
  expect(json(await hubs('set-layout', '1', '--hardware', hardware))).toMatchObject({ shelves: 20 })
  const file = join(folder, 'products.json')
  const product = { upc: '036000291452', name: 'Cola', category: 'Drinks', price: 1, purchase_price: 1 }
  writeFileSync(file, JSON.stringify([{ ...product, facings: [{ cabinet: 4, shelf: 5, row: 6 }] }]))
  json(await run(productCommands, 'import', '--hub', '1', '--file', file))
  const small = join(folder, 'small.json')
  const bins = { id: 'bins', port: '/dev/x', devices: [{ kind: 'bin', number: 1 }] }
  writeFileSync(small, JSON.stringify({ hubId: 1, controllers: [bins], gpio: { chipLabel: 'x', lines: [] } }))
  const refused = await hubs('set-layout', '1', '--hardware', small)
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringMatching(/1 at 4\/5\/6/)])
  await inDatabase(async ({ kysely: q }) => expect(Object.keys(await readLayout(q, 1))).toHaveLength(4))
})

test('a renewal with an overlap returns the time until which the former password is valid', async () => {
  json(await create({ 'new-owner': 'One' }))
  const at = (hours: number) => new Date(runtime.clock.now() + hours * 3_600_000).toISOString()
  expect(json(await hubs('renew-password', '1', '--overlap', '24'))).toEqual({
    hub_id: 1,
    mqtt_user: 'hub-1',
    mqtt_password: expect.stringMatching(/^[0-9a-f]{32}$/),
    previous_password_expires_at: at(24),
  })
  expect(json(await hubs('renew-password', '1'))).toMatchObject({ previous_password_expires_at: null })
  for (const hours of ['169', '-1', '1.5', ''])
    expect((await hubs('renew-password', '1', `--overlap=${hours}`)).exitCode).toBe(2)
})

test('a new password for an external broker is printed as a line of its password file', async () => {
  json(await create({ 'new-owner': 'One' }))
  const withBroker = (...args: string[]) =>
    runCommandLine(hubCommands, runtime, args, {
      DATA_DIR: join(folder, 'data', 'cloud'),
      MQTT_URL: 'mqtt://larder-cloud:x@127.0.0.1:1',
    })
  const renewed = json(await withBroker('renew-password', '1'))
  expect(renewed).toMatchObject({
    password_file_line: expect.stringMatching(/^hub-1:\$7\$101\$[^$]+\$[^$]+$/),
    to_do: expect.stringContaining('former password still works'),
  })
  const file = join(folder, 'old-password')
  writeFileSync(file, 'a former password\n')
  const tried = await withBroker('renew-password', '1', '--old-password-file', file)
  expect([tried.exitCode, JSON.parse(tried.stdout)]).toEqual([
    1,
    expect.objectContaining({ old_password: 'unreachable' }),
  ])
  expect((await hubs('renew-password', '1', '--old-password-file', file)).exitCode).toBe(2)
})

test('a hub can have a tax rate with three decimals', async () => {
  json(await create({ 'new-owner': 'One', tax: '8.875' }))
  await inDatabase(async ({ kysely: q }) => {
    const hub = await q.selectFrom('hubs').select('tax_millipercent').executeTakeFirstOrThrow()
    expect(hub.tax_millipercent).toBe(8875)
  })
})

test('invalid options are reported in words, and nothing is created', async () => {
  json(await create({ 'new-owner': 'One' }))
  const cases: [() => Promise<Outcome>, RegExp][] = [
    [() => create({}), /one of --owner and --new-owner is needed/],
    [() => create({ 'new-owner': 'Two', owner: 'One' }), /one of --owner and --new-owner/],
    [() => create({ 'new-owner': 'One' }), /there is an owner "One" already: --owner "One"/],
    [() => create({ owner: 'Nobody' }), /no owner "Nobody"; there is: 1 "One"/],
    [() => create({ owner: 'One', timezone: 'Mars/Olympus' }), /timezone: is no time zone/],
    [() => create({ owner: 'One', latitude: '91' }), /latitude/],
    [() => create({ owner: 'One', tax: '8,25' }), /tax: must be a percentage/],
    [() => create({ owner: 'One', tax: '8.8755' }), /tax: must be a percentage .* three decimals/],
    [() => create({ owner: 'One', city: '' }), /--city needs a value/],
    [() => create({ owner: 'One', hardware: join(folder, 'none.json') }), /none\.json/],
    [() => hubs('renew-password', '9'), /no such hub: 9/],
  ]
  for (const [outcome, words] of cases) {
    const { exitCode, stdout, stderr } = await outcome()
    expect([exitCode, stdout]).toEqual([words.source.includes('no such hub') ? 1 : 2, ''])
    expect(stderr).toMatch(words)
  }
  expect(JSON.parse((await hubs('list')).stdout)).toHaveLength(1)
})
