import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const units = [
  'edge/systemd/larder-edge.service',
  'edge/systemd/larder-management.service',
  'cloud/systemd/larder-cloud.service',
]

/** What a unit says of one thing; systemd takes the last word. */
const wordOf = (unit: string, setting: string): string | undefined =>
  [...readFileSync(unit, 'utf8').matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].at(-1)?.[1]

test.each(units)('%s may take so much memory and no more', (unit) => {
  expect(wordOf(unit, 'MemoryMax')).toMatch(/^\d+[M%]$/)
})

test('the hub is watched, and speaks to its manager itself', () => {
  const unit = 'edge/systemd/larder-edge.service'
  expect(wordOf(unit, 'Type')).toBe('notify')
  expect(Number(wordOf(unit, 'WatchdogSec'))).toBeGreaterThan(0)
  // By default the manager listens to the unit's main process alone.
  expect(wordOf(unit, 'NotifyAccess')).toBeUndefined()
})
