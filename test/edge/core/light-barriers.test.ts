import { describe, expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

describe('light barriers', () => {
  const flicker = (bench: TestHub, changes: number, everyMs: number): void => {
    for (let change = 1; change <= changes; change++) {
      bench.core.controllerEvents.onDevice('bins', { device: 'bin-2', occupied: change % 2 === 1 })
      bench.run(everyMs)
    }
  }
  const states = (bench: TestHub) =>
    bench
      .entries('state')
      .flatMap(({ state }) => (state.of === 'bin' && state.bin === 2 ? [state.state] : []))

  test.each([50, 250, 1500])(
    'a light barrier that changes 40 times, every %i ms, is one alarm and a few reports',
    (everyMs) => {
      const bench = TestHub.ready()
      const before = bench.ledger().length
      flicker(bench, 40, everyMs)
      bench.run(60_000)
      const raised = bench.entries('alarm').filter(({ raised }) => raised)
      expect(raised.length).toBeLessThanOrEqual(1)
      expect(bench.ledger().length - before).toBeLessThanOrEqual(4)
      expect(states(bench).at(-1)).toBe('free')
    },
  )

  test('an unsettled light barrier blocks its bin, with the reason', () => {
    const bench = TestHub.ready()
    flicker(bench, 40, 250)
    expect(states(bench).at(-1)).toBe('left_behind')
    expect(bench.core.health().bins[1]).toMatchObject({ occupied: null })
    expect(bench.entries('alarm')).toMatchObject([
      { code: 'bin_blocked', subject: 'bin 2', detail: 'its light barrier does not settle' },
    ])
  })

  test('a light barrier that blinks once reports nothing', () => {
    const bench = TestHub.ready()
    const before = bench.ledger().length
    flicker(bench, 2, 500)
    bench.run(10_000)
    expect(bench.ledger().length).toBe(before)
  })
})
