import { expect, test } from 'vitest'
import { bodyReader } from '../../../../cloud/platform/http/read-body.ts'
import { virtualClock, type VirtualClock } from '../../../support/virtual-clock.ts'

const KIB = 1024
const limits = { bodyIdleMs: 10_000, bodyTimeoutMs: 60_000, heldBodyBytes: 100 * KIB }

/** A body that comes as its sender pleases. */
function slowBody() {
  let sender!: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (sender = controller) })
  const request = new Request('http://larder.test', { method: 'POST', body, duplex: 'half' })
  return {
    request,
    send: (bytes: number) => sender.enqueue(new Uint8Array(bytes)),
    end: () => sender.close(),
  }
}

/** A body's chunks come by way of the event loop. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1))
  clock.advance(ms)
  await new Promise((resolve) => setTimeout(resolve, 1))
}

/** What became of a body so far. */
function outcomeOf(reading: Promise<string>) {
  const outcome: { now: string } = { now: 'reading' }
  reading.then(
    (text) => (outcome.now = `${text.length} bytes`),
    (error: { code: string }) => (outcome.now = error.code),
  )
  return outcome
}

test('a body that falls silent is given up, and so is one that drips', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits)
  const [silent, dripping, steady] = [slowBody(), slowBody(), slowBody()]
  const outcomes = [silent, dripping, steady].map(({ request }) => outcomeOf(read(request, false)))
  const now = () => outcomes.map((outcome) => outcome.now)
  silent.send(900)
  steady.send(10)
  for (let second = 0; second < 9; second += 1) {
    dripping.send(1)
    await pass(clock, 1000)
  }
  steady.end()
  await pass(clock, 1001)
  expect(now()).toEqual(['request_timeout', 'reading', '10 bytes'])
  for (let second = 10; second < 61; second += 1) {
    if (now()[1] === 'reading') dripping.send(1)
    await pass(clock, 1000)
  }
  expect(now()[1]).toBe('request_timeout')
})

test('bodies that are not whole hold a bounded number of bytes together, which are free when they end', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits)
  const first = Array.from({ length: 5 }, slowBody)
  const outcomes = first.map(({ request, send }) => {
    send(30 * KIB)
    return outcomeOf(read(request, false))
  })
  await pass(clock, 1)
  const refused = outcomes.filter(({ now }) => now === 'service_unavailable')
  expect(refused).toHaveLength(2)
  await pass(clock, 10_000)
  expect(outcomes.map(({ now }) => now)).not.toContain('reading')
  const later = slowBody()
  const outcome = outcomeOf(read(later.request, false))
  later.send(90 * KIB)
  later.end()
  await pass(clock, 1)
  expect(outcome.now).toBe(`${90 * KIB} bytes`)
})
