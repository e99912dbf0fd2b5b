import { expect, test } from 'vitest'
import { progressOn, progressText, type ProgressStream } from '../../../protocol/model/progress.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'

function setUp(stream: Omit<ProgressStream, 'write'>) {
  let now = 5000
  const written: string[] = []
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} }
  const progress = progressOn({ ...stream, write: (text) => written.push(text) }, clock)
  return { progress, written, pass: (ms: number) => void (now += ms) }
}

test('work that takes less than two seconds shows no progress', () => {
  for (const isTTY of [true, false]) {
    const { progress, written, pass } = setUp({ isTTY })
    progress.show('1 of 2')
    pass(1999)
    progress.show('2 of 2')
    progress.clear()
    expect(written).toEqual([])
  }
})

test('a terminal shows progress in one line, which is rewritten in place and removed at the end', () => {
  const { progress, written, pass } = setUp({ isTTY: true, columns: 6 })
  pass(2000)
  progress.show('1 of 20')
  pass(99)
  progress.show('2 of 20')
  pass(1)
  progress.show('3 of 20')
  progress.clear()
  progress.clear()
  expect(written).toEqual(['\r\u001b[2K1 of ', '\r\u001b[2K3 of ', '\r\u001b[2K'])
})

test('an output that is not a terminal shows a plain progress line every 30 seconds at most', () => {
  const { progress, written, pass } = setUp({})
  for (let second = 0; second < 75; second++) {
    progress.show(`after ${second} s`)
    pass(1000)
  }
  progress.clear()
  expect(written).toEqual(['after 30 s\n', 'after 60 s\n'])
})

test('a progress line shows the amount done, the rate and the remaining time', () => {
  expect(progressText(0, 200, 'seeds', 0)).toBe('0 of 200 seeds')
  expect(progressText(40, 200, 'seeds', 20_000)).toBe('40 of 200 seeds, 2.0 a second, about 80 s to go')
})
