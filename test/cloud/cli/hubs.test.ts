import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { expect, test } from 'vitest'
import { runCommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { ownerCommands } from '../../../cloud/cli/owners.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { readClientKeys } from '../../../cloud/operations/ssh/remote.ts'
import { fingerprintOf } from '../../../protocol/management/ssh.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const keyFile = join(folder, 'management-key')
const host = newKey('hub')
const parsed = ssh2.utils.parseKey(host.publicKey)
if (parsed instanceof Error) throw parsed
const fingerprint = fingerprintOf(parsed.getPublicSSH())

const runtime = virtualRuntime()
const hubs = (...args: string[]) => runCommandLine(hubCommands, runtime, args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): Record<string, unknown> => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Record<string, unknown>
}

test('a hub’s management address is stored with its public key or fingerprint, and the cloud’s key is created once', async () => {
  const first = json(
    await hubs('set-management', '1', '--host', 'hub1.example', '--host-key', host.publicKey),
  )
  expect(first).toEqual({
    hub_id: 1,
    host: 'hub1.example',
    port: 8083,
    host_key: fingerprint,
    cloud_key: expect.stringMatching(/^ssh-ed25519 /) as string,
  })
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
  const again = json(
    await hubs('set-management', '1', '--host', '192.0.2.1', '--port', '22', '--host-key', fingerprint),
  )
  expect(again).toEqual({ ...first, host: '192.0.2.1', port: 22 })
  expect(json(await hubs('key'))).toEqual({ cloud_key: first['cloud_key'] })
  expect(json(await hubs('show', '1'))).toMatchObject({
    management: { host: '192.0.2.1', port: 22, host_key: fingerprint },
  })
  expect(json(await hubs('show', '2'))).toMatchObject({ management: null })

  expect(json(await hubs('clear-management', '1'))).toEqual({ hub_id: 1, cleared: true })
  expect(await hubs('clear-management', '1')).toMatchObject({ exitCode: 2 })
  const audit = await db.kysely.selectFrom('audit_log').select(['action', 'hub_id', 'object']).execute()
  expect(audit.map(({ action }) => action)).toEqual([
    'hubs.set_management',
    'hubs.set_management',
    'hubs.clear_management',
  ])
  expect(audit[0]).toMatchObject({ hub_id: 1, object: 'hub-1' })
})

test.each([
  [['set-management', 'x', '--host', 'h', '--host-key', fingerprint], /not a hub/],
  [['set-management', '1', '--host-key', fingerprint], /--host is needed/],
  [['set-management', '1', '--host', 'h'], /--host-key is needed/],
  [['set-management', '1', '--host', 'h', '--host-key', 'SHA256:short'], /neither a public key/],
  [['set-management', '1', '--host', 'h', `--host-key=${host.privateKey}`], /neither a public key/],
  [['set-management', '1', '--host', 'h', '--host-key', fingerprint, '--port', '0'], /not a port/],
  [['set-management', '1', '--host', 'h', '--host-key', fingerprint, '--port', '65536'], /not a port/],
  [['nothing'], /no such command/],
])('the hubs command refuses %j in words', async (args, why) => {
  const { exitCode, stderr } = await hubs(...args)
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(why)
})

test('an invalid key file is left unchanged', async () => {
  rmSync(keyFile, { force: true })
  writeFileSync(keyFile, 'hello')
  expect(await hubs('key')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no private key') as string,
  })
  expect(readFileSync(keyFile, 'utf8')).toBe('hello')
})

test('the help of the hubs command lists its subcommands', async () => {
  const { stdout } = await hubs('--help')
  for (const word of ['list', 'set-management', 'clear-management', 'key', 'DATA_DIR'])
    expect(stdout).toContain(word)
  expect(existsSync(keyFile)).toBe(true)
})

test('hubs show prints a hub with its settings, and hubs set changes only the given ones', async () => {
  expect(json(await hubs('show', '1'))).toMatchObject({
    hub_id: 1,
    name: 'Hub 1',
    hub_status: 'inactive',
    not_selling_reason: 'hub_offline',
    online: false,
    last_heartbeat: null,
    version: null,
    open_alarms: 0,
  })
  for (const external of ['customers', 'everyone', 'off'])
    expect(json(await hubs('set', '1', '--external-payments', external))).toMatchObject({
      hub_id: 1,
      external_payments: external,
    })
  const moved = ['--street', '2 Side Street', '--street-2', 'Floor 3', '--tax', '8.875']
  expect(json(await hubs('set', '1', ...moved, '--timezone', 'America/Denver'))).toMatchObject({
    street_address_1: '2 Side Street',
    street_address_2: 'Floor 3',
    tax: 8.875,
    timezone: 'America/Denver',
    external_payments: 'off',
  })
  expect(json(await hubs('set', '1', '--no-street-2'))).toMatchObject({ street_address_2: null })
  const { detail } = await db.kysely
    .selectFrom('audit_log')
    .select('detail')
    .where('action', '=', 'hubs.set')
    .where('object', '=', 'hub-1')
    .orderBy('id')
    .limit(1)
    .executeTakeFirstOrThrow()
  expect(JSON.parse(detail)).toEqual({ externalPayments: 'customers' })
})

test.each([
  {
    args: ['set', '1', '--external-payments', 'some'],
    exit: 1,
    says: /--external-payments: must be one of off/,
  },
  { args: ['set', '1', '--tax', '8,5', '--city', 'Elsewhere'], exit: 1, says: /--tax: must be a percentage/ },
  { args: ['set', '1', '--timezone', 'Nowhere'], exit: 1, says: /--timezone/ },
  { args: ['set', '1', '--hardware', '/nowhere.json'], exit: 1, says: /nowhere/ },
  { args: ['set', '99', '--city', 'Elsewhere'], exit: 1, says: /no such hub: 99/ },
  { args: ['show', '99'], exit: 1, says: /no such hub: 99/ },
  { args: ['set', '1'], exit: 2, says: /needs an option/ },
  { args: ['set', '1', '--colour', 'red'], exit: 2, says: /colour/ },
])('the command $args exits with $exit and changes nothing', async ({ args, exit, says }) => {
  const before = await hubs('show', '1')
  const { exitCode, stderr } = await hubs(...args)
  expect(exitCode).toBe(exit)
  expect(stderr).toMatch(says)
  expect(await hubs('show', '1')).toEqual(before)
})

test('a description of another hub is refused, and a new hub gets its number', async () => {
  const file = join(folder, 'hardware.json')
  const demo = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../simulator/hardware/demo-hub.json'), 'utf8'),
  ) as object
  writeFileSync(file, JSON.stringify({ ...demo, hubId: 7 }))
  const place = [
    '--street',
    's',
    '--city',
    'c',
    '--state',
    'IL',
    '--postal-code',
    '62701',
    '--latitude',
    '39.78',
  ]
  const what = ['--owner', '1', '--name', 'New', '--timezone', 'America/Chicago', '--longitude=-89.65']
  const created = json(await hubs('create', ...what, ...place, '--hardware', file))
  expect(created).toMatchObject({
    hub_id: 3,
    to_do: expect.stringMatching(/"hubId": 7.*"hubId": 3/) as string,
  })
  const wrong = await hubs('set-layout', '3', '--hardware', file)
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('describes hub 7, not hub 3')])
  writeFileSync(file, JSON.stringify({ ...demo, hubId: 3 }))
  expect(json(await hubs('set-layout', '3', '--hardware', file))).toMatchObject({ hub_id: 3 })
})

test('a rotation of the management key keeps the former key until it ends', async () => {
  rmSync(keyFile, { force: true })
  const { cloud_key: first } = json(await hubs('key'))
  const rotated = json(await hubs('rotate-key'))
  expect(rotated).toMatchObject({ former_key: first })
  expect(readClientKeys(keyFile)).toHaveLength(2)
  expect(statSync(`${keyFile}.former`).mode & 0o777).toBe(0o600)
  expect((await hubs('rotate-key')).exitCode).toBe(2)
  expect(json(await hubs('end-key-rotation'))).toEqual({ cloud_key: rotated['cloud_key'] })
  expect(readClientKeys(keyFile)).toHaveLength(1)
  expect((await hubs('end-key-rotation')).exitCode).toBe(2)
})

const owners = (...args: string[]) => runCommandLine(ownerCommands, runtime, args, environment)
const audited = async (action: string) => {
  const rows = await db.kysely.selectFrom('audit_log').selectAll().where('action', '=', action).execute()
  return rows.map(({ hub_id, object, detail }) => ({ hub_id, object, detail: JSON.parse(detail) as unknown }))
}

test('owners can be listed, created and renamed, and each name exists once', async () => {
  const created = json(await owners('create', '--name', 'Three'))
  expect(created).toEqual({
    owner_id: 3,
    name: 'Three',
    hub_ids: [],
    created_at: expect.stringMatching(/^\d{4}-/) as string,
  })
  expect(json(await owners('rename', '3', '--name', 'Fourth'))).toEqual({ ...created, name: 'Fourth' })
  expect(json(await owners('rename', '3', '--name', 'Fourth'))).toEqual({ ...created, name: 'Fourth' })
  expect(json(await owners('list'))).toMatchObject([
    { owner_id: 1, name: 'One', created_at: null },
    { owner_id: 2, name: 'Two', created_at: null },
    { owner_id: 3, name: 'Fourth', hub_ids: [] },
  ])
  for (const [args, exit, why] of [
    [['create', '--name', 'One'], 1, /the name exists: owner 1/],
    [['rename', '3', '--name', 'Two'], 1, /the name exists/],
    [['rename', '99', '--name', 'Nine'], 1, /no such owner: 99/],
    [['create'], 2, /--name is needed/],
    [['create', '--name', ' '], 2, /--name needs a value/],
    [['rename', 'x', '--name', 'Nine'], 2, /not an owner's id/],
  ] as const) {
    const { exitCode, stderr } = await owners(...args)
    expect([args, exitCode]).toEqual([args, exit])
    expect(stderr).toMatch(why)
  }
  expect(await audited('owners.rename')).toEqual([
    { hub_id: null, object: 'owner-3', detail: { from: 'Three', to: 'Fourth' } },
  ])
})

test('a hub can be renamed, moved and retired once, with an audit record each', async () => {
  expect(json(await hubs('rename', '2', '--name', 'Lobby'))).toMatchObject({ hub_id: 2, name: 'Lobby' })
  expect(await hubs('rename', '2', '--name', '')).toMatchObject({ exitCode: 2 })
  expect(await hubs('rename', '99', '--name', 'x')).toMatchObject({ exitCode: 1 })
  expect(json(await hubs('move', '2', '--owner', 'One'))).toEqual({
    hub_id: 2,
    from_owner: 'Two',
    to_owner: 'One',
    moved_at: expect.stringMatching(/^\d{4}-/) as string,
  })
  expect(await hubs('move', '2', '--owner', 'One')).toMatchObject({
    exitCode: 1,
    stderr: 'error: hub 2 already belongs to this owner\n',
  })
  expect(await hubs('move', '2')).toMatchObject({ exitCode: 2 })
  expect(await hubs('move', '99', '--owner', 'One')).toMatchObject({ exitCode: 1 })
  expect(json(await hubs('list'))).toMatchObject([
    { hub_id: 1, owner: 'One', hub_status: 'inactive', online: false, last_heartbeat: null, version: null },
    { hub_id: 2, name: 'Lobby', owner: 'One', open_alarms: 0 },
    { hub_id: 3 },
  ])
  const retired = json(await hubs('retire', '2'))
  expect(retired).toMatchObject({ hub_id: 2, secrets_erased: false })
  expect(json(await hubs('retire', '2', '--force'))).toEqual(retired)
  expect(json(await hubs('show', '2'))).toMatchObject({ hub_status: 'retired' })
  for (const args of [
    ['set', '2', '--maintenance', 'off'],
    ['rename', '2', '--name', 'Again'],
    ['move', '2', '--owner', 'Two'],
    ['renew-password', '2'],
    ['claim-code', '2'],
    ['qr', '2'],
    ['set-management', '2', '--host', 'hub2.example', '--host-key', host.publicKey],
    ['clear-management', '2'],
  ])
    expect(await hubs(...args)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is retired') as string,
    })
  expect(await hubs('retire', '99')).toMatchObject({ exitCode: 1 })
  expect(await audited('hubs.move')).toEqual([
    { hub_id: 2, object: 'hub-2', detail: { from_owner: 'Two', to_owner: 'One', roles: [] } },
    { hub_id: null, object: 'owner-2', detail: { hub_id: 2, name: 'Lobby', to_owner: 'One' } },
  ])
  expect(await audited('hubs.retire')).toHaveLength(1)
})

test('a claim code replaces the former one, only its digest is stored, and a hub without a certificate cannot be revoked', async () => {
  const hub = () => db.kysely.selectFrom('hubs').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  const first = json(await hubs('claim-code', '1'))
  expect(first).toEqual({
    hub_id: 1,
    claim_code: expect.stringMatching(/^[A-HJ-NP-Z2-9]{8}$/) as string,
    claim_expires_at: expect.stringMatching(/^\d{4}-/) as string,
  })
  const { claim_code_digest: digest } = await hub()
  const second = json(await hubs('claim-code', '1'))
  expect(second['claim_code']).not.toBe(first['claim_code'])
  const row = await hub()
  expect(row.claim_code_digest).not.toBe(digest)
  expect(JSON.stringify(row)).not.toContain(second['claim_code'])
  expect(json(await hubs('show', '1'))).toMatchObject({ certificate: null })
  expect(await hubs('revoke', '1')).toMatchObject({
    exitCode: 1,
    stderr: 'error: hub 1 has no valid certificate\n',
  })
  for (const name of ['claim-code', 'revoke'])
    expect([(await hubs(name, '99')).exitCode, (await hubs(name)).exitCode]).toEqual([1, 2])
  expect(await audited('hubs.claim_code')).toHaveLength(2)
})

test('the whole hardware description is stored, and exported without secrets', async () => {
  const demo = JSON.parse(readFileSync('simulator/hardware/demo-hub.json', 'utf8')) as object
  const file = join(folder, 'whole.json')
  writeFileSync(file, JSON.stringify({ ...demo, hubId: 1 }))
  json(await hubs('set', '1', '--hardware', file))
  const exported = json(await hubs('export', '1'))
  expect(exported).toMatchObject({ hub_id: 1, settings: {}, mqtt_ca: null })
  expect(exported['mqtt_url']).toBe('mqtt://127.0.0.1:18830')
  expect(HardwareDescription.parse(exported['hardware'])).toEqual(
    HardwareDescription.parse({ ...demo, hubId: 1 }),
  )
  expect(exported['desired_version']).toBeGreaterThan(1)
  const to = join(folder, 'card')
  json(await hubs('export', '1', '--to', to))
  expect(JSON.parse(readFileSync(join(to, 'hardware.json'), 'utf8'))).toEqual(exported['hardware'])
  expect(JSON.parse(readFileSync(join(to, 'hub.json'), 'utf8'))).toEqual({
    MQTT_URL: 'mqtt://127.0.0.1:18830',
    HARDWARE: '/etc/larder/hardware.json',
    STORE: '/var/lib/larder/hub.sqlite',
  })
  const external = { ...environment, MQTT_URL: 'mqtt://cloud:secret@broker.example:1883' }
  const other = await runCommandLine(hubCommands, runtime, ['export', '2'], external)
  expect(json(other)).toMatchObject({ hardware: null, mqtt_url: 'mqtt://broker.example:1883' })
  expect(await hubs('export', '99')).toMatchObject({ exitCode: 1 })
})

test('settings of a hub are stored under a version that each change raises, and a wrong one changes nothing', async () => {
  const before = json(await hubs('show', '3'))
  expect(before).toMatchObject({ applied_version: null, apply_state: 'pending' })
  const set = (...given: string[]) => hubs('set', '3', ...given.flatMap((setting) => ['--setting', setting]))
  const wrong = [
    ['NO_SUCH=1', 'a hub has no such setting'],
    ['HEARTBEAT_MS=0', 'must be between 1 and'],
    ['LOG_LEVEL=loud', 'Invalid option'],
    ['MQTT_URL=ftp://x', 'mqtt'],
    ...[
      'STORE=/x',
      'HARDWARE=/x',
      'MQTT_CA=/x',
      'LOCAL_CERT=/x',
      'HOST=0.0.0.0',
      'PORT=1',
      'METRICS_PORT=1',
    ].map((each) => [each, 'set it at the board']),
    ['MQTT_PASSWORD=secret', 'no secrets'],
  ] as const
  for (const [setting, why] of wrong)
    expect(await set('LOG_LEVEL=debug', setting)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(why) as string,
    })
  expect((await set('LOG_LEVEL')).exitCode).toBe(2)
  expect(json(await hubs('show', '3'))).toEqual(before)
  const version = Number(before['desired_version'])
  expect(json(await set('LOG_LEVEL=debug', 'MQTT_URL=mqtts://a.example'))).toMatchObject({
    desired_version: version + 1,
    apply_state: 'pending',
  })
  json(await set('LOG_LEVEL='))
  expect(json(await hubs('export', '3'))).toMatchObject({
    settings: { MQTT_URL: 'mqtts://a.example' },
    desired_version: version + 2,
  })
})

test.each([
  [
    '/proc/x',
    /^error: --to: \/proc\/x cannot be written: its file system takes no new folder \(ENOTSUP\)\n$/,
  ],
  [
    '/dev/null/x',
    /^error: --to: \/dev\/null\/x cannot be written: a part of the path is no folder \(ENOTDIR\)\n$/,
  ],
  ['/dev/null', /^error: --to: \/dev\/null cannot be written: .+ \(EEXIST\)\n$/],
  [join(folder, 'taken'), /^error: --to: .+hub\.json cannot be written: it is a folder \(EISDIR\)\n$/],
])('hubs export to %s ends with status 1 and a sentence', async (to, sentence) => {
  mkdirSync(join(folder, 'taken/hub.json'), { recursive: true })
  const { exitCode, stdout, stderr } = await hubs('export', '1', '--to', to)
  expect([exitCode, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(sentence)
})

test('a negative number is read as the value of the option before it', async () => {
  expect(json(await hubs('set', '1', '--longitude', '-89.65', '--latitude', '-3'))).toMatchObject({
    geojson_location: { coordinates: [-89.65, -3] },
  })
})
