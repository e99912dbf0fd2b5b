import { expect, test } from 'vitest'
import { watchedStream } from '../../../../cloud/platform/limits/relayed-stream.ts'
import { virtualRuntime } from '../../../world/clock.ts'

/** A source that sends chunks on request, checked every second. */
function watched() {
  const { clock } = virtualRuntime()
  const state = { isAllowed: true as boolean | Error, isFailing: false, requested: 0, cancelled: false }
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (state.isFailing) throw new Error('the source failed')
        state.requested += 1
        if (state.requested > 3) return new Promise(() => {})
        controller.enqueue(Uint8Array.of(state.requested))
        return undefined
      },
      cancel: () => void (state.cancelled = true),
    },
    { highWaterMark: 0 },
  )
  const isAllowed = () =>
    state.isAllowed instanceof Error ? Promise.reject(state.isAllowed) : Promise.resolve(state.isAllowed)
  const reader = watchedStream(source, { clock, everyMs: 1000, isAllowed }).getReader()
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { state, reader, clock, pass }
}

test('a watched stream passes one chunk for each request of its reader', async () => {
  const { state, reader } = watched()
  expect(state.requested).toBe(0)
  expect(await reader.read()).toEqual({ done: false, value: Uint8Array.of(1) })
  expect(state.requested).toBe(1)
})

test('a watched stream ends at the first check that refuses its reader, also while the reader waits', async () => {
  const { state, reader, clock, pass } = watched()
  for (let chunk = 0; chunk < 3; chunk += 1) await reader.read()
  const waiting = reader.read()
  await pass(5000)
  state.isAllowed = false
  await pass(1000)
  expect(await waiting).toEqual({ done: true, value: undefined })
  expect([state.cancelled, clock.pending]).toEqual([true, 0])
})

test('a failed check ends no stream', async () => {
  const { state, reader, pass } = watched()
  state.isAllowed = new Error('the database is away')
  await pass(1000)
  expect(await reader.read()).toMatchObject({ done: false })
})

test('a watched stream that its reader leaves stops its checks and cancels its source', async () => {
  const { state, reader, clock } = watched()
  await reader.cancel()
  expect([state.cancelled, clock.pending]).toEqual([true, 0])
})

test('a watched stream stops its checks if its source fails', async () => {
  const { state, reader, clock } = watched()
  state.isFailing = true
  await expect(reader.read()).rejects.toThrow('the source failed')
  expect(clock.pending).toBe(0)
})
