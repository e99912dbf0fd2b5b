import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { once, isRunning } from '../../../cloud/console/page/running-acts.ts'
import { oneAtATime } from '../../../cloud/console/page/one-at-a-time.ts'
import { watchedFetch } from '../../../cloud/console/page/watched-fetch.ts'
import { createClient } from '../../../protocol/client/client.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** Answers of a service, one after the other; the last one stays. */
const answers = (...list: (() => Response | Promise<Response>)[]) => {
  const stub = vi.fn((_url: string, _init: RequestInit) => {
    const next = list.length > 1 ? list.shift()! : list[0]!
    return Promise.resolve().then(next)
  })
  vi.stubGlobal('fetch', stub)
  return stub
}
/** A service that accepts calls and does not answer them. */
const silence = () =>
  vi.stubGlobal(
    'fetch',
    (_url: string, { signal }: RequestInit) =>
      new Promise((_resolve, reject) => {
        const end = (): void => reject(signal!.reason as Error)
        if (signal!.aborted) end()
        signal!.addEventListener('abort', end)
      }),
  )
const json = (status: number, body: object) => (): Response => Response.json(body, { status })
const page = (status: number) => (): Response => new Response('<html>Bad Gateway</html>', { status })

/** The state in the header of the console. */
const shown = { isAway: false, isSignedIn: true }
const fetch = watchedFetch({
  away: () => (shown.isAway = true),
  present: () => (shown.isAway = false),
  signedOut: () => (shown.isSignedIn = false),
})
const client = (timeoutMs: number) =>
  createClient({
    baseUrl: 'http://larder.invalid',
    retry: { tries: 2, firstMs: 1 },
    timeoutMs,
    system: { fetch },
  })
beforeEach(() => void Object.assign(shown, { isAway: false, isSignedIn: true }))

test('the console shows a service as away that accepts calls and does not answer them', async () => {
  silence()
  expect((await client(20).call('GET /owners/hubs')).ok).toBe(false)
  expect(shown.isAway).toBe(true)
})

test('a call that the console ends itself does not make the service look away', async () => {
  silence()
  const end = new AbortController()
  const called = client(10_000).call('GET /owners/hubs', { signal: end.signal })
  end.abort()
  expect((await called).ok).toBe(false)
  expect(shown.isAway).toBe(false)
})

test.each([
  ['of a proxy without the service', page(502), true],
  ['of a proxy without the service', page(504), true],
  ['of a proxy with JSON', json(504, { message: 'Endpoint request timed out' }), true],
  ['of a service that cannot serve', json(503, { error: { code: 'service_unavailable' } }), true],
  ['about a hub that is offline', json(503, { error: { code: 'hub_offline' } }), false],
  ['about a hub that does not answer', json(504, { error: { code: 'hardware_error' } }), false],
  ['of a service that failed', json(500, { error: { code: 'internal_error' } }), false],
])('the console knows from an answer %s whether the service is away (%#)', async (_name, answer, isAway) => {
  answers(answer)
  shown.isAway = !isAway
  await client(10_000).call('GET /owners/hubs')
  expect(shown).toEqual({ isAway, isSignedIn: true })
})

test('an act that is running does not begin a second time, and others begin', async () => {
  const ends: (() => void)[] = []
  const slow = (): Promise<void> => new Promise((resolve) => ends.push(resolve))
  const first = once('refund 1', slow)
  await once('refund 1', slow)
  const other = once('refund 2', slow)
  expect([ends.length, isRunning('refund 1')]).toEqual([2, true])
  for (const end of ends) end()
  await Promise.all([first, other])
  expect(isRunning('refund 1')).toBe(false)
  await expect(once('refund 1', () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  expect(isRunning('refund 1')).toBe(false)
})

test('events that come faster than a reading takes do not discard what is read', async () => {
  vi.useFakeTimers()
  let readings = 0
  const read = oneAtATime(async () => {
    await new Promise((resolve) => setTimeout(resolve, 2000))
    readings += 1
  })
  for (let second = 0; second < 10; second += 1) {
    void read()
    await vi.advanceTimersByTimeAsync(1000)
  }
  expect(readings).toBe(5)
  // The last event came during the last reading but one.
  await vi.advanceTimersByTimeAsync(10_000)
  expect(readings).toBeLessThanOrEqual(6)
  vi.useRealTimers()
})

test('data is read again after a change that happened during a reading', async () => {
  let stored = 'old'
  let seen = ''
  const read = oneAtATime(async () => {
    const found = stored
    await Promise.resolve()
    seen = found
  })
  const first = read()
  stored = 'new'
  await Promise.all([first, read()])
  expect(seen).toBe('new')
})
