import { expect, test } from 'vitest'
import { heldStream } from '../../../../cloud/platform/limits/relayed-stream.ts'
import { Budget, type Holder } from '../../../../protocol/model/budget.ts'

const budgetOf = (total: number, user: number) =>
  new Budget({ total, shares: { network: total, user }, atShare: 'refuse' })

/** An endless stream. */
function source() {
  const state = { isCancelled: false, end: () => {} }
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (state.end = () => controller.close()),
    cancel: () => void (state.isCancelled = true),
  })
  return { state, stream }
}

const openFor = (budget: Budget, holder: Holder, stream: ReadableStream) =>
  heldStream(
    budget,
    holder,
    () => Promise.resolve(stream),
    (opened) => opened,
  )

test('the seventh open stream of a user is refused with 429 until one ends', async () => {
  const budget = budgetOf(100, 6)
  const ada = { network: 'n', user: 'ada' }
  const sources = Array.from({ length: 6 }, source)
  const opened = await Promise.all(sources.map(({ stream }) => openFor(budget, ada, stream)))
  await expect(openFor(budget, ada, source().stream)).rejects.toMatchObject({
    code: 'rate_limit_exceeded',
    details: { share_of: 'user' },
  })
  await openFor(budget, { network: 'n', user: 'bob' }, source().stream)

  // The ends: the source ends, the reader leaves, the source fails.
  const [ended, left] = opened
  sources[0]!.state.end()
  expect((await ended!.body!.getReader().read()).done).toBe(true)
  await left!.body!.cancel()
  expect(sources[1]!.state.isCancelled).toBe(true)
  expect(budget.usedBy('user', 'ada')).toBe(4)
})

test('a stream that fails to open, or an answer without a stream, holds nothing', async () => {
  const budget = budgetOf(100, 6)
  const holder = { network: 'n', user: 'ada' }
  const failing = heldStream(
    budget,
    holder,
    () => Promise.reject(new Error('no such order')),
    () => undefined,
  )
  await expect(failing).rejects.toThrow('no such order')
  await heldStream(
    budget,
    holder,
    () => Promise.resolve('text'),
    () => undefined,
  )
  expect(budget.used).toBe(0)
})

test('at the total the network with the most streams loses one to a caller of another network', async () => {
  const budget = budgetOf(4, 4)
  const all = Array.from({ length: 4 }, source)
  const readers = []
  for (const { stream } of all)
    readers.push((await openFor(budget, { network: 'n', user: 'ada' }, stream)).body!.getReader())
  await openFor(budget, { network: 'm', user: 'bob' }, source().stream)
  await expect(readers[0]!.read()).rejects.toThrow('made room')
  expect(all.map(({ state }) => state.isCancelled)).toEqual([true, false, false, false])
  expect(budget.used).toBe(4)
})
