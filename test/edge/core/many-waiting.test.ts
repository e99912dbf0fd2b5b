import { expect, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { TestHub } from '../../world/hub.ts'

const UNITS = 10

/** Statements of one order from its start until READY, while others with ten units each wait. */
function statementsOfAnOrder(waiting: number): number {
  const bench = new TestHub()
  bench.isChecked = false
  let statements = 0
  bench.journal = new Sqlite(':memory:', { verbose: () => (statements += 1) })
  bench.begin()
  bench.apply(bench.snapshot())
  bench.run(2000)
  // Each order fills all bins: none can start before the first one has ended.
  for (let id = 1; id <= waiting + 1; id++) bench.queue(id, { 1: 4, 2: 3, 3: UNITS - 7 })
  const before = statements
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  expect(bench.journal.prepare("SELECT count(*) FROM orders WHERE phase = 'queued'").pluck().get()).toBe(
    waiting,
  )
  return statements - before
}

test('the statements of a turn do not grow with the number of waiting units', () => {
  expect(statementsOfAnOrder(100)).toBe(statementsOfAnOrder(10))
})
