import { expect, test } from 'vitest'
import { holdsWithin, sleep } from '../../../protocol/model/runtime.ts'
import { virtualClock } from '../../world/clock.ts'

/** Polls a condition that takes `tookMs` and holds from `fromMs`. */
async function poll({
  fromMs,
  timeoutMs,
  tookMs = 0,
}: {
  fromMs: number
  timeoutMs: number
  tookMs?: number
}) {
  const clock = virtualClock()
  const askedAt: number[] = []
  const holds = async (): Promise<boolean> => {
    askedAt.push(clock.monotonic())
    await sleep(clock, tookMs)
    return clock.monotonic() >= fromMs
  }
  const result = await clock.settle(holdsWithin(clock, timeoutMs, holds))
  return { result, askedAt }
}

test('a condition is seen a quarter of a second after it holds, or a sixteenth of the time that has passed', async () => {
  for (const fromMs of [0, 100, 1000, 3000, 10_000, 30_000]) {
    const { result, askedAt } = await poll({ fromMs, timeoutMs: 60_000 })
    expect(result).toBe(true)
    expect(askedAt.at(-1)! - fromMs).toBeLessThanOrEqual(Math.max(250, fromMs / 15) + 1)
  }
})

test('a condition that takes long is asked no more than half of the time', async () => {
  const { askedAt } = await poll({ fromMs: 8000, timeoutMs: 60_000, tookMs: 400 })
  for (const [index, at] of askedAt.slice(1).entries())
    expect(at - askedAt[index]!).toBeGreaterThanOrEqual(800)
})

test('the last question about a condition comes at the end of its time', async () => {
  const { result, askedAt } = await poll({ fromMs: 10_000, timeoutMs: 2000 })
  expect([result, askedAt.at(-1)]).toEqual([false, 2000])
})
