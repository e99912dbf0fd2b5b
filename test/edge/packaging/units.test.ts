import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const units = [
  'edge/systemd/larder-edge.service',
  'edge/systemd/larder-management.service',
  'edge/systemd/larder-updater.service',
  'cloud/systemd/larder-cloud.service',
]

/** A setting of a unit; systemd uses the last value. */
const wordOf = (unit: string, setting: string): string | undefined =>
  [...readFileSync(unit, 'utf8').matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].at(-1)?.[1]

test.each(units)('the unit %s has a limit of memory', (unit) => {
  expect(wordOf(unit, 'MemoryMax')).toMatch(/^\d+[M%]$/)
})

test('the hub’s unit has a watchdog, and the hub itself notifies the manager', () => {
  const unit = 'edge/systemd/larder-edge.service'
  expect(wordOf(unit, 'Type')).toBe('notify')
  expect(Number(wordOf(unit, 'WatchdogSec'))).toBeGreaterThan(0)
  // By default the manager accepts notifications only from the unit's main process.
  expect(wordOf(unit, 'NotifyAccess')).toBeUndefined()
})

/** All values of a setting that may occur several times. */
const wordsOf = (unit: string, setting: string): string[] =>
  [...readFileSync(unit, 'utf8').matchAll(new RegExp(`^${setting}=-?(.*)$`, 'gm'))].map(([, path]) => path!)

test('the management service cannot read secrets of the hub’s service, nor the reverse', () => {
  const { STORE: store } = JSON.parse(readFileSync('edge/packaging/etc/hub.json', 'utf8')) as {
    STORE: string
  }
  expect(wordsOf('edge/systemd/larder-management.service', 'InaccessiblePaths')).toEqual([
    '/etc/larder/hub.json',
    ...['token', 'people', 'sessions'].map((end) => `${store}.${end}`),
  ])
  expect(wordsOf('edge/systemd/larder-edge.service', 'InaccessiblePaths')).toEqual([
    `${store}.host-key`,
    '/etc/larder/authorized_keys',
    '/etc/larder/management.json',
  ])
})

test('the packaged management service listens on the loopback address', () => {
  const { HOST } = JSON.parse(readFileSync('edge/packaging/etc/management.json', 'utf8')) as { HOST: string }
  expect(HOST).toBe('127.0.0.1')
})
