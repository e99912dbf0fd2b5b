import { expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

const alarms = (bench: TestHub): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

const status = (bench: TestHub) => bench.core.health().fridges[0]

/** A hub with a frozen probe, and a door of the fridge that stood open. `before` runs before the door opens. */
function withFrozenProbe(before: (bench: TestHub) => void = () => {}) {
  const bench = new TestHub()
  const { frozen } = bench.settings
  bench.settings = { ...bench.settings, frozen: { ...frozen, frozenMs: 40 * MINUTE } }
  bench.begin()
  bench.apply(bench.snapshot())
  bench.run(MINUTE)
  const fault = bench.fault('frozen_probe')
  bench.run(60 * MINUTE)
  before(bench)
  bench.core.unlockDoor('fridge_1_left', 60_000)
  bench.room.act({ action: 'open_door', target: 'fridge_1_left' })
  bench.run(3 * MINUTE)
  bench.room.act({ action: 'close_door', target: 'fridge_1_left' })
  bench.run(MINUTE)
  return { bench, fault }
}

test('a probe that repeats one value for hours is frozen if a door of its fridge was open', () => {
  const { bench } = withFrozenProbe((hub) => {
    expect(alarms(hub)).toEqual([])
    expect(status(hub)).toMatchObject({ status: 'healthy' })
  })
  expect(status(bench)).toMatchObject({ status: 'unknown', temperature: null })
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'fridge_unreadable', raised: true, detail: expect.stringContaining('repeated') as string },
  ])
  bench.run(31 * MINUTE)
  expect(status(bench)).toMatchObject({ shutoff: true })
})

test.each<[string, (bench: TestHub) => void]>([
  ['restart', (bench) => bench.restart()],
  ['suspension', (bench) => bench.suspend(5 * MINUTE)],
])('a probe that was frozen before a %s proves nothing until its value changes', (_name, interrupt) => {
  const { bench, fault } = withFrozenProbe()
  const unreadable = () => alarms(bench).filter((alarm) => alarm.startsWith('fridge_unreadable'))
  interrupt(bench)
  bench.run(20 * MINUTE)
  expect([unreadable(), status(bench)?.temperature]).toEqual([['fridge_unreadable fridge 1 true'], null])
  bench.room.faults.clear(fault)
  bench.run(20 * MINUTE)
  expect(unreadable().at(-1)).toBe('fridge_unreadable fridge 1 false')
})

test('a probe that is frozen while the alarm is open for another reason proves nothing after a restart', () => {
  const { bench } = withFrozenProbe((hub) => {
    // The controller of the fridge is silent for long: the alarm has this reason.
    hub.fault('silent_port', 'cold', { for_ms: 8 * MINUTE })
    hub.run(7 * MINUTE)
  })
  const unreadable = bench.entries('alarm').filter(({ code }) => code === 'fridge_unreadable')
  expect(unreadable.map(({ raised, detail }) => [raised, detail.split(' ').slice(0, 3).join(' ')])).toEqual([
    [true, 'its controller does'],
    [true, 'its probe has'],
  ])
  bench.restart()
  bench.run(20 * MINUTE)
  expect(status(bench)?.temperature).toBe(null)
})
