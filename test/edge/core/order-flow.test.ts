import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

test('an order goes from the queue to COMPLETED, and every unit moves once', () => {
  const bench = TestHub.ready()
  bench.queue(7, { 1: 2, 4: 1 })
  expect(bench.runUntil(() => bench.phase(7) === 'ready')).toBe(true)
  expect(bench.dispenses()).toHaveLength(3)
  expect(bench.kinds().filter((kind) => kind.startsWith('order.'))).toEqual([
    'order.preparing',
    'order.ready',
  ])
  expect(bench.entries('order.ready')[0]).toMatchObject({
    order_id: uuid(7),
    bins: [1],
    lines: [
      { line_id: 70, dropped: 2, doubtful: 0, bins: [1] },
      { line_id: 71, dropped: 1, doubtful: 0, bins: [1] },
    ],
  })
  const { results } = bench.command({ name: 'open_delivery', order_id: uuid(7), bins: [1] })
  expect(bench.runUntil(() => results.length > 0)).toBe(true)
  expect(results[0]).toMatchObject({
    outcome: 'executed',
    data: { results: [{ bin_number: 1, success: true, error: null }] },
  })
  bench.run(1000)
  expect(bench.phase(7)).toBe('collecting')
  bench.takeAll()
  expect(bench.runUntil(() => bench.phase(7) === 'completed', 30_000)).toBe(true)
  bench.run(10_000)
  expect(bench.core.health().bins[0]).toMatchObject({ door: 'closed', lift: 'down', order_id: null })
  expect(bench.stockErrors()).toEqual([])
  expect(bench.kinds().filter((kind) => kind.startsWith('order.'))).toEqual([
    'order.preparing',
    'order.ready',
    'order.collecting',
    'order.completed',
  ])
})
