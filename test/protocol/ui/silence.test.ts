import { expect, test } from 'vitest'
import { isSilent } from '../../../protocol/ui/silence.ts'

/** A stream with an event at each of these seconds, which the page closes at `closedAt`. */
async function watch(eventsAt: readonly number[], closedAt = Infinity) {
  let now = 0
  const result = await isSilent({
    events: () => eventsAt.filter((at) => at <= now).length,
    isClosed: () => now >= closedAt,
    pause: (ms) => {
      now += ms / 1000
      return Promise.resolve()
    },
  })
  return [result, now]
}

test('a stream is lost after 45 s without an event', async () => {
  expect(await watch([])).toEqual([true, 45])
  expect(await watch([0, 14, 29])).toEqual([true, 75])
})

test('a stream with an event every 16 s is not lost, and a closed one is not watched', async () => {
  const beats = Array.from({ length: 100 }, (_, index) => 16 * index)
  expect(await watch(beats, 1500)).toEqual([false, 1500])
})
