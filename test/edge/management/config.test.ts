import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { managementSettings, readManagementConfig } from '../../../edge/management/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'larder-management-'))
const HARDWARE = join(folder, 'hardware.json')
const AUTHORIZED_KEYS = join(folder, 'authorized_keys')
beforeAll(() => {
  const controllers = [{ id: 'bins', port: '/dev/x', devices: [{ kind: 'bin', number: 1 }] }]
  writeFileSync(HARDWARE, JSON.stringify({ hubId: 5, controllers, gpio: { chipLabel: 'none', lines: [] } }))
  writeFileSync(AUTHORIZED_KEYS, '')
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (settings: Record<string, string> = {}, ...args: string[]) =>
  readManagementConfig(args, { HARDWARE, AUTHORIZED_KEYS, ...settings })

test('the defaults of the management service are the documented ones: systemd, loopback, the host key beside the journal', () => {
  expect(read({ STORE: '/var/lib/larder/hub.sqlite' })).toMatchObject({
    kind: 'config',
    task: 'serve',
    config: {
      HOST: '127.0.0.1',
      PORT: 8083,
      HOST_KEY: '/var/lib/larder/hub.sqlite.host-key',
      STOP_TIMEOUT_MS: 8000,
      START_TIMEOUT_MS: 20_000,
      manager: { kind: 'systemd', unit: 'larder-edge.service' },
      hardware: { hubId: 5 },
    },
  })
})

test('stopping and starting end before the cloud’s time-out', () => {
  const result = read()
  if (result.kind !== 'config') throw new Error(result.kind)
  expect(result.config.STOP_TIMEOUT_MS + result.config.START_TIMEOUT_MS).toBeLessThan(40_000)
})

test.each([
  ['systemd:hub@1.service', { kind: 'systemd', unit: 'hub@1.service' }],
  ['supervisor:/run/s.sock#edge', { kind: 'supervisor', socket: '/run/s.sock', program: 'edge' }],
])('the setting SERVICE is parsed: %s', (SERVICE, manager) => {
  expect(read({ SERVICE })).toMatchObject({ config: { manager } })
})

test('--host-key is a separate task, with or without --config', () => {
  expect(read({}, '--host-key')).toMatchObject({ task: 'print-host-key' })
  const file = join(folder, 'c.json')
  writeFileSync(file, JSON.stringify({ PORT: 9 }))
  expect(read({}, '--config', file, '--host-key')).toMatchObject({
    task: 'print-host-key',
    config: { PORT: 9 },
  })
})

test.each([
  [{ SERVICE: 'systemd:a b; reboot' }, 'SERVICE'],
  [{ SERVICE: 'sh -c reboot' }, 'SERVICE'],
  [{ PORT: '70000' }, 'PORT'],
  [{ HARDWARE: '' }, 'HARDWARE'],
  [{ HARDWARE: '/nowhere' }, 'HARDWARE'],
  [{ AUTHORIZED_KEYS: '/nowhere' }, 'AUTHORIZED_KEYS'],
  [{ STOP_TIMEOUT_MS: '0' }, 'STOP_TIMEOUT_MS'],
])('the invalid setting %j is reported', (settings, name) => {
  expect(read(settings)).toMatchObject({
    kind: 'problems',
    problems: [expect.stringMatching(new RegExp(`^${name}`)) as string],
  })
})

test('the host key is printed without a file of keys, because operators need it first', () => {
  const result = read({ AUTHORIZED_KEYS: join(folder, 'not-there-yet') }, '--host-key')
  expect(result).toMatchObject({ kind: 'config', task: 'print-host-key' })
})

test('the management service of an enrolled board uses the description that the enrolment stored beside the journal', () => {
  const settings = { HARDWARE: '/nowhere', STORE: join(folder, 'hub.sqlite') }
  expect(read(settings)).toMatchObject({ kind: 'config', config: { hardware: { hubId: 5 } } })
})

test('an unknown option is reported, and --help --all lists every setting', () => {
  expect(read({}, '--shell')).toMatchObject({ kind: 'problems' })
  const help = read({}, '--help', '--all')
  if (help.kind !== 'help') throw new Error(help.kind)
  expect(help.text.match(/^ {2}[A-Z_]+( \(required\))?$/gm)).toHaveLength(
    Object.keys(managementSettings).length,
  )
  expect(help.text).toContain('  SHUTDOWN_TIMEOUT_MS\n')
  expect(help.text).toContain('--host-key')
})
