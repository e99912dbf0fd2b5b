import { expect, test } from 'vitest'
import {
  days,
  defaultsOf,
  duration,
  helpText,
  inGroup,
  limits,
  named,
  prefixed,
  readSettings,
  requiredText,
  settingsIn,
  wholeNumber,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'

const door = named('DOOR_MAX_MS', duration(8000, 'A door stops.'))
const table = {
  PORT: wholeNumber([0, 65_535], 80, 'The port.'),
  idleOrderMs: duration(500, 'Idle.', 1000),
  keptMs: days('KEPT_DAYS', 2, 'Kept.'),
  core: { maxMs: { open: door, close: door }, rows: 7 },
  ...prefixed('MQTT', { keepAliveMs: duration(10, 'Heartbeat.'), tries: 3 }),
} satisfies SettingsTable

test('a setting is named after its key, unless it has its own name or a prefix', () => {
  const names = ['PORT', 'IDLE_ORDER_MS', 'KEPT_DAYS', 'DOOR_MAX_MS', 'MQTT_KEEP_ALIVE_MS']
  expect([...settingsIn(table).keys()]).toEqual(names)
  for (const name of names) expect(helpText('', table).split(`  ${name}\n`)).toHaveLength(2)
})

test('two settings with one name are refused', () => {
  const one = { retryMs: duration(5, 'One.') }
  expect(() => settingsIn({ one, other: { retryMs: duration(7, 'Other.') } })).toThrow('RETRY_MS')
  expect([...settingsIn({ one, again: one }).keys()]).toEqual(['RETRY_MS'])
})

test('values are grouped as in the table, and one setting may appear in several groups', () => {
  expect(defaultsOf(table)).toEqual({
    PORT: 80,
    idleOrderMs: 500,
    keptMs: 2 * 24 * 3_600_000,
    core: { maxMs: { open: 8000, close: 8000 }, rows: 7 },
    keepAliveMs: 10,
    tries: 3,
  })
  expect(readSettings(table, { DOOR_MAX_MS: '5', MQTT_KEEP_ALIVE_MS: '9' })).toMatchObject({
    settings: { core: { maxMs: { open: 5, close: 5 } }, keepAliveMs: 9 },
  })
})

test('each setting that is missing or out of bounds is named once', () => {
  const strict = { ...table, secret: requiredText('The secret.') }
  expect(readSettings(strict, { DOOR_MAX_MS: '0', IDLE_ORDER_MS: '1001', KEPT_DAYS: '36501' })).toEqual({
    ok: false,
    problems: [
      'IDLE_ORDER_MS (environment): must be between 1 and 1000',
      'KEPT_DAYS (environment): must be between 1 and 36500',
      'DOOR_MAX_MS (environment): must be between 1 and 86400000',
      'SECRET is not set: The secret.',
    ],
  })
  expect(() => defaultsOf(strict)).toThrow('SECRET')
})

test('the help lists limits only with --all, each under its heading', () => {
  const limited = {
    ...inGroup('Door', { PORT: wholeNumber([0, 9], 8, 'The port.') }),
    ...limits('Times', {
      core: { open: door, close: door },
      ...inGroup('Door', { keptMs: duration(5, 'Kept.') }),
    }),
  }
  const help = helpText('', limited)
  expect(help).toContain('Settings: Door\n  PORT\n      The port. Default: 8, 0 to 9\n  KEPT_MS')
  expect(help).not.toContain('DOOR_MAX_MS')
  expect(help).toContain('lists 1 limits')
  expect(helpText('', limited, true)).toContain('Limits and details: Times\n  DOOR_MAX_MS\n')
  expect(defaultsOf(limited)).toEqual({ PORT: 8, core: { open: 8000, close: 8000 }, keptMs: 5 })
})
