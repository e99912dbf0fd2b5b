import { expect, test } from 'vitest'
import { demoHelp, demoTable, readDemoSettings } from '../../../simulator/demo/settings.ts'

test('the default ports are the documented ones', () => {
  expect(readDemoSettings([], {})).toEqual({
    ok: true,
    settings: {
      PORT: 8080,
      EDGE_PORT: 8081,
      SIMULATOR_PORT: 8082,
      MANAGEMENT_PORT: 8083,
      MQTT_PORT: 18830,
      DATA_DIR: `${process.cwd()}/data`,
      GPIO: 'auto',
      GPIO_BASE: 512,
      shutdownTimeoutMs: 8000,
      fresh: false,
    },
  })
})

test('the command line takes precedence over the environment', () => {
  expect(readDemoSettings(['--fresh', '--gpio', 'socket'], { GPIO: 'sysfs', PORT: '9000' })).toMatchObject({
    settings: { fresh: true, GPIO: 'socket', PORT: 9000 },
  })
  expect(readDemoSettings(['--gpio=sysfs'], {})).toMatchObject({ settings: { GPIO: 'sysfs' } })
})

test('all invalid settings are named at once', () => {
  const read = readDemoSettings(['--frehs', '--gpio'], { PORT: 'http', EDGE_PORT: '70000' })
  const names = (read.ok ? [] : read.problems).map((problem) => /^[-\w]+/.exec(problem)?.[0])
  expect(names).toEqual(['--frehs', '--gpio', 'PORT', 'EDGE_PORT'])
})

test('the demo refuses NODE_ENV=production', () => {
  expect(readDemoSettings([], { NODE_ENV: 'production' })).toEqual({
    ok: false,
    problems: ['NODE_ENV: the demo is refused with production'],
  })
  expect(readDemoSettings([], { NODE_ENV: 'Production' })).toEqual({
    ok: false,
    problems: ['NODE_ENV: must be development or test'],
  })
  for (const NODE_ENV of ['', 'development', 'test'])
    expect(readDemoSettings([], { NODE_ENV })).toMatchObject({ ok: true })
})

test('the help names every setting', () => {
  expect(demoHelp().match(/^ {2}[A-Z_]+$/gm)).toHaveLength(Object.keys(demoTable).length)
  for (const name of ['PORT', 'SHUTDOWN_TIMEOUT_MS', 'GPIO_BASE']) expect(demoHelp()).toContain(`  ${name}\n`)
  expect(demoHelp()).not.toContain('--config')
})
