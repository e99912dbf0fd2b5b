import { expect, test } from 'vitest'
import { Devices } from '../../../edge/core/devices.ts'
import { createLayout } from '../../../edge/core/layout.ts'
import { defaultCoreSettings } from '../../../protocol/settings/hub-limits.ts'

const layout = createLayout({
  controllers: [{ id: 'bins', port: '/dev/null', devices: [{ kind: 'bin', number: 1 }] }],
} as never)

function line(steadyMs: number) {
  let now = 0
  const clock = { monotonic: () => now } as never
  const devices = new Devices(layout, clock, { ...defaultCoreSettings, steadyMs })
  const awayMs = (): number | undefined => {
    const since = devices.awaySince('bins')
    return since === undefined ? undefined : now - since
  }
  return {
    awayMs,
    up: (ms: number): void => {
      devices.up('bins', 'memory', 3)
      now += ms
    },
    down: (ms: number): number => {
      devices.down('bins')
      now += ms
      return now - devices.awaySince('bins')!
    },
  }
}

test('a line that returns repeatedly for a moment counts as down all the time', () => {
  const { up, down } = line(30_000)
  up(60_000)
  expect(down(20_000)).toBe(20_000)
  up(20_000)
  expect(down(20_000)).toBe(60_000)
  up(29_999)
  expect(down(20_000)).toBe(109_999)
})

test('a line that was up for long enough starts a new outage', () => {
  const { up, down } = line(30_000)
  up(60_000)
  down(20_000)
  up(30_000)
  expect(down(5000)).toBe(5000)
})

test('a line that is up for a moment counts as down until it has been up for a while', () => {
  const { up, down, awayMs } = line(30_000)
  up(60_000)
  expect(awayMs()).toBeUndefined()
  down(20_000)
  up(29_999)
  expect(awayMs()).toBe(49_999)
  up(1)
  expect(awayMs()).toBeUndefined()
})
