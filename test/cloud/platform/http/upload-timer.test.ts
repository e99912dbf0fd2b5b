import { expect, test } from 'vitest'
import { UploadTimer } from '../../../../cloud/platform/http/read-form.ts'
import { virtualClock } from '../../../world/clock.ts'

const pace = { uploadPatienceMs: 30_000, uploadBytesPerSecond: 1000 }

/** Seconds until a sender of `bytes` every `everyMs` is disconnected; at most an hour. */
async function secondsOf(bytes: number, everyMs: number): Promise<number> {
  const clock = virtualClock()
  const timer = new UploadTimer(clock, pace)
  let ms = 0
  while (ms < 3_600_000) {
    if (timer.leftMs <= everyMs) return (ms + timer.leftMs) / 1000
    const arrival = Promise.resolve().then(() => {
      clock.advance(everyMs)
      return new Uint8Array(bytes)
    })
    await timer.spend(arrival)
    ms += everyMs
  }
  return ms / 1000
}

test('an upload of one byte a second ends after its time-out, and a steady one at the minimum rate does not', async () => {
  expect(await secondsOf(1, 1000)).toBeCloseTo(30, 0)
  expect(await secondsOf(1, 5000)).toBeCloseTo(30, 0)
  expect(await secondsOf(500, 1000)).toBeCloseTo(60, -1)
  expect(await secondsOf(20_000, 20_000)).toBe(3600)
  expect(await secondsOf(1000, 1000)).toBe(3600)
})

test('fast bytes are no credit for a later silence', async () => {
  const clock = virtualClock()
  const timer = new UploadTimer(clock, pace)
  await timer.spend(Promise.resolve(new Uint8Array(10_000_000)))
  expect(timer.leftMs).toBe(30_000)
})
