import { expect, test } from 'vitest'
import { heldStream } from '../../../../cloud/platform/limits/relayed-stream.ts'
import { Budget, type Holder } from '../../../../protocol/model/budget.ts'

const budgetOf = (total: number, user: number) =>
  new Budget({ total, shares: { network: total, user }, atShare: 'refuse' })

/** An endless stream. */
function source() {
  const state = { isCancelled: false, end: () => {}, fail: () => {} }
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      state.end = () => controller.close()
      state.fail = () => controller.error(new Error('the source failed'))
    },
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
  const [ended, left, failed] = opened
  sources[0]!.state.end()
  expect((await ended!.body!.getReader().read()).done).toBe(true)
  await left!.body!.cancel()
  expect(sources[1]!.state.isCancelled).toBe(true)
  sources[2]!.state.fail()
  await expect(failed!.body!.getReader().read()).rejects.toThrow('the source failed')
  expect(budget.usedBy('user', 'ada')).toBe(3)
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

test('a stream that makes room while it opens is refused, and its source is cancelled', async () => {
  const budget = budgetOf(2, 2)
  const { state, stream } = source()
  const ada = { network: 'n', user: 'ada' }
  let opens = (): void => {}
  const opening = heldStream(
    budget,
    ada,
    () => new Promise<ReadableStream>((resolve) => (opens = () => resolve(stream))),
    (opened) => opened,
  )
  await openFor(budget, ada, source().stream)
  await openFor(budget, { network: 'm', user: 'bob' }, source().stream)
  opens()
  await expect(opening).rejects.toMatchObject({ code: 'service_unavailable' })
  expect([state.isCancelled, budget.used]).toEqual([true, 2])
})
