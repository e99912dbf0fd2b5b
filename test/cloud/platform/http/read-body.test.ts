import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { bodyReader } from '../../../../cloud/platform/http/read-body.ts'
import { Budget } from '../../../../protocol/model/budget.ts'
import { virtualClock, type VirtualClock } from '../../../world/clock.ts'

const KIB = 1024
const limits = { bodyIdleMs: 10_000, bodyTimeoutMs: 60_000 }
const from = (network: string) => ({ isOwner: false, holder: { network } })
const budgetOf = (total: number, network = total) =>
  new Budget({ total, shares: { network }, atShare: 'replace' })

/** A body that the test sends piece by piece. */
function slowBody(length = 0) {
  const bytes = new PassThrough()
  return {
    body: { length, bytes },
    send: (count: number) => bytes.write(new Uint8Array(count)),
    end: () => bytes.end(),
  }
}

/** The chunks of a body pass through the event loop. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1))
  clock.advance(ms)
  await new Promise((resolve) => setTimeout(resolve, 1))
}

/** The result of reading a body so far. */
function outcomeOf(reading: Promise<string>) {
  const outcome: { now: string } = { now: 'reading' }
  reading.then(
    (text) => (outcome.now = `${text.length} bytes`),
    (error: { code: string }) => (outcome.now = error.code),
  )
  return outcome
}

test('a silent body and a dripping body are aborted', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits, budgetOf(100 * KIB))
  const [silent, dripping, steady] = [slowBody(), slowBody(), slowBody()]
  const outcomes = [silent, dripping, steady].map(({ body }) => outcomeOf(read(body, from('192.0.2.1'))))
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

test('unfinished bodies hold a bounded number of bytes together, which are freed at their end', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits, budgetOf(100 * KIB))
  const first = Array.from({ length: 5 }, () => slowBody())
  const outcomes = first.map(({ body, send }) => {
    send(30 * KIB)
    return outcomeOf(read(body, from('192.0.2.1')))
  })
  await pass(clock, 1)
  const refused = outcomes.filter(({ now }) => now === 'service_unavailable')
  expect(refused).toHaveLength(2)
  await pass(clock, 10_000)
  expect(outcomes.map(({ now }) => now)).not.toContain('reading')
  const later = slowBody()
  const outcome = outcomeOf(read(later.body, from('192.0.2.1')))
  later.send(90 * KIB)
  later.end()
  await pass(clock, 1)
  expect(outcome.now).toBe(`${90 * KIB} bytes`)
})

test('a thousand bodies that announce a megabyte and send one byte take nothing from a caller of the same network', async () => {
  const clock = virtualClock()
  const budget = budgetOf(100 * KIB)
  const read = bodyReader(clock, limits, budget)
  const slow = Array.from({ length: 1000 }, () => slowBody(1024 * KIB))
  const outcomes = slow.map(({ body, send }) => {
    send(1)
    return outcomeOf(read(body, from('192.0.2.1')))
  })
  await pass(clock, 1)
  expect(budget.used).toBe(1000)
  const honest = slowBody(50 * KIB)
  const outcome = outcomeOf(read(honest.body, from('192.0.2.1')))
  honest.send(50 * KIB)
  honest.end()
  await pass(clock, 1)
  expect(outcome.now).toBe(`${50 * KIB} bytes`)
  expect(outcomes.every(({ now }) => now === 'reading')).toBe(true)
})

test('networks that use up the budget of bytes lose their largest bodies to a caller of another network', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits, budgetOf(100 * KIB, 50 * KIB))
  const outcomes = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].flatMap((network) =>
    [24, 25].map((size) => {
      const { body, send } = slowBody()
      send(size * KIB)
      return outcomeOf(read(body, from(network)))
    }),
  )
  await pass(clock, 1)
  expect(outcomes.map(({ now }) => now)).toContain('service_unavailable')
  const honest = slowBody()
  const outcome = outcomeOf(read(honest.body, from('198.51.100.1')))
  honest.send(20 * KIB)
  await pass(clock, 1)
  honest.send(20 * KIB)
  honest.end()
  await pass(clock, 1)
  expect(outcome.now).toBe(`${40 * KIB} bytes`)
})

test('a body longer than its route allows is refused, with or without an announced length', async () => {
  const clock = virtualClock()
  const read = bodyReader(clock, limits, budgetOf(1024 * KIB))
  const options = { ...from('192.0.2.1'), limitBytes: 10 * KIB }
  const [announced, sent] = [slowBody(10 * KIB + 1), slowBody()]
  sent.send(10 * KIB + 1)
  const outcomes = [announced, sent].map(({ body }) => outcomeOf(read(body, options)))
  await pass(clock, 1)
  expect(outcomes.map(({ now }) => now)).toEqual(['payload_too_large', 'payload_too_large'])
})

test('a body arrives whole in chunks of any size', async () => {
  const read = bodyReader(virtualClock(), limits, budgetOf(1024 * KIB))
  const sizes = fc.array(fc.oneof(fc.nat(5), fc.nat(100 * KIB)), { maxLength: 9 })
  const property = fc.asyncProperty(sizes, async (lengths) => {
    const chunks = lengths.map((length, index) => 'abcdefghi'[index]!.repeat(length))
    const bytes = new PassThrough()
    const reading = read({ length: 0, bytes }, from('192.0.2.1'))
    for (const chunk of chunks) bytes.write(chunk)
    bytes.end()
    expect(await reading).toBe(chunks.join(''))
  })
  await fc.assert(property, { numRuns: 30 })
})

test('an unfinished body of chunks of one byte occupies little more memory than its bytes', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const occupied = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const { body, send, end } = slowBody()
  const reading = bodyReader(virtualClock(), limits, budgetOf(1024 * KIB))(body, from('192.0.2.1'))
  const before = occupied()
  for (let sent = 0; sent < 100_000; sent += 1000) {
    for (let count = 0; count < 1000; count += 1) send(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(occupied() - before).toBeLessThan(3_000_000)
  end()
  expect(await reading).toHaveLength(100_000)
})
