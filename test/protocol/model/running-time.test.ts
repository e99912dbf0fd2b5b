import { expect, test } from 'vitest'
import { RunningTime } from '../../../protocol/model/running-time.ts'
import { virtualClock } from '../../world/clock.ts'

test('a suspension counts one second, and later time counts', () => {
  const clock = virtualClock()
  const running = new RunningTime(clock, 10_000)
  const since = running.ms()
  clock.advance(10_000)
  expect([running.ms() - since, running.suspensions]).toEqual([10_000, 0])
  clock.advance(600_000)
  expect([running.ms() - since, running.suspensions]).toEqual([11_000, 1])
  clock.advance(5000)
  expect([running.ms() - since, running.suspensions]).toEqual([16_000, 1])
})

test('a deadline ends also if the program is suspended again and again', () => {
  const clock = virtualClock()
  const running = new RunningTime(clock, 10_000)
  const since = running.ms()
  let suspensions = 0
  for (; running.ms() - since < 120_000 && suspensions < 1000; suspensions += 1) clock.advance(40_000)
  expect(suspensions).toBe(120)
})
