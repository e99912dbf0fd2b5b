import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { expect, test } from 'vitest'
import { runCommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { readClientKeys } from '../../../cloud/operations/ssh/remote.ts'
import { fingerprintOf } from '../../../protocol/management/ssh.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import { stillRuntime } from '../support/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const keyFile = join(folder, 'management-key')
const host = newKey('hub')
const parsed = ssh2.utils.parseKey(host.publicKey)
if (parsed instanceof Error) throw parsed
const fingerprint = fingerprintOf(parsed.getPublicSSH())

const hubs = (...args: string[]) => runCommandLine(hubCommands(stillRuntime()), args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): Record<string, unknown> => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Record<string, unknown>
}

test('a hub is told where its management is, by its public key or its fingerprint; the cloud’s key is made once', async () => {
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
  expect(json(await hubs('list'))).toMatchObject([
    { hub_id: 1, name: 'Hub 1', host: '192.0.2.1', port: 22, host_key: fingerprint },
    { hub_id: 2, host: null, port: null, host_key: null },
  ])

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
  [['set-management', '9', '--host', 'h', '--host-key', fingerprint], /no such hub: 9/],
  [['set-management', 'x', '--host', 'h', '--host-key', fingerprint], /not a hub/],
  [['set-management', '1', '--host-key', fingerprint], /--host is needed/],
  [['set-management', '1', '--host', 'h'], /--host-key is needed/],
  [['set-management', '1', '--host', 'h', '--host-key', 'SHA256:short'], /neither a public key/],
  [['set-management', '1', '--host', 'h', `--host-key=${host.privateKey}`], /neither a public key/],
  [['set-management', '1', '--host', 'h', '--host-key', fingerprint, '--port', '0'], /not a port/],
  [['set-management', '1', '--host', 'h', '--host-key', fingerprint, '--port', '65536'], /not a port/],
  [['nothing'], /no such command/],
])('%j is refused in words', async (args, why) => {
  const { exitCode, stderr } = await hubs(...args)
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(why)
})

test('a key file that is no key is left as it is', async () => {
  rmSync(keyFile, { force: true })
  writeFileSync(keyFile, 'hello')
  expect(await hubs('key')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no private key') as string,
  })
  expect(readFileSync(keyFile, 'utf8')).toBe('hello')
})

test('--help says what there is', async () => {
  const { stdout } = await hubs('--help')
  for (const word of ['list', 'set-management', 'clear-management', 'key', 'DATA_DIR'])
    expect(stdout).toContain(word)
  expect(existsSync(keyFile)).toBe(true)
})

test('hubs show prints a hub with its settings, hubs set changes those that are given', async () => {
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
  expect(json(await hubs('set', '1', '--street-2', ''))).toMatchObject({ street_address_2: null })
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
])('$args exits with $exit, and nothing changes', async ({ args, exit, says }) => {
  const before = await hubs('show', '1')
  const { exitCode, stderr } = await hubs(...args)
  expect(exitCode).toBe(exit)
  expect(stderr).toMatch(says)
  expect(await hubs('show', '1')).toEqual(before)
})

test('a description of another hub is refused, and a new hub is told its number', async () => {
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

test('the key for management services is rotated with the former one beside it, until the rotation ends', async () => {
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
