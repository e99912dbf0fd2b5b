import { expect, test } from 'vitest'
import { RunningTime } from '../../../protocol/model/running-time.ts'
import { virtualClock } from '../../world/clock.ts'

test('the time of a suspension does not count, and later time does', () => {
  const clock = virtualClock()
  const running = new RunningTime(clock, 10_000)
  const since = running.ms()
  clock.advance(10_000)
  expect([running.ms() - since, running.suspensions]).toEqual([10_000, 0])
  clock.advance(600_000)
  expect([running.ms() - since, running.suspensions]).toEqual([10_000, 1])
  clock.advance(5000)
  expect([running.ms() - since, running.suspensions]).toEqual([15_000, 1])
})
