import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { Crash, TestHub } from '../../world/hub.ts'

/** A person in the cloud resolves an operation with unknown outcome. */

/** A hub with a unit of product 3 that dropped without a sensor. */
function doubtful(): { bench: TestHub; operation_id: string } {
  const bench = TestHub.ready()
  const fault = bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => bench.phase(1) === 'failed')
  bench.room.faults.clear(fault)
  bench.run(1000)
  return { bench, operation_id: bench.core.unknownOperations()[0]!.operation_id }
}
const settle = (operation_id: string, happened = true) =>
  ({ name: 'settle_operation', operation_id, happened }) as const

test('the hub resolves an operation for the cloud as its own page does, without a report of a local action', () => {
  const { bench, operation_id } = doubtful()
  expect(bench.stockErrors()).toHaveLength(1)
  const { results, id } = bench.command(settle(operation_id))
  expect(results).toMatchObject([{ command_id: id, outcome: 'executed', reason: null }])
  expect(bench.core.unknownOperations()).toEqual([])
  expect(bench.entries('operation.settled')).toMatchObject([{ operation_id, by: 'person', happened: true }])
  expect(bench.entries('stock.dropped')).toMatchObject([{ operation_id, delta: -1, delivered: 0 }])
  expect(bench.entries('local')).toEqual([])
  expect(bench.stockErrors()).toEqual([])
  // The row dispenses again.
  bench.queue(2, { 3: 1 })
  expect(bench.runUntil(() => bench.phase(2) === 'ready')).toBe(true)
})

test('a repeated resolution is executed and books nothing, and a contradicting one is too late', () => {
  const { bench, operation_id } = doubtful()
  const command = bench.command(settle(operation_id))
  for (const id of [command.id, uuid(71), uuid(72)])
    expect(bench.command(settle(operation_id), id).results).toMatchObject([{ outcome: 'executed' }])
  expect(bench.command(settle(operation_id, false)).results).toMatchObject([
    { outcome: 'refused', reason: 'too_late' },
  ])
  expect(bench.entries('stock.dropped')).toHaveLength(1)
  expect(bench.entries('operation.settled')).toHaveLength(1)
})

test('the result by a person at the hub, a count or a sensor stands', () => {
  const { bench, operation_id } = doubtful()
  bench.core.count({ cabinet: 1, shelf: 1, row: 3 }, bench.shelf('1-1-3'))
  expect(bench.entries('operation.settled')).toMatchObject([{ by: 'count', happened: true }])
  expect(bench.command(settle(operation_id, false)).results).toMatchObject([{ reason: 'too_late' }])
  expect(bench.command(settle(operation_id)).results).toMatchObject([{ outcome: 'executed' }])
  expect(bench.stockErrors()).toEqual([])
})

test('an operation that the hub does not know is not found, and an operation that was never unknown is unchanged', () => {
  const bench = TestHub.ready()
  expect(bench.command(settle(uuid(99))).results).toMatchObject([{ outcome: 'refused', reason: 'not_found' }])
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const [dispense] = bench.dispenses()
  expect(bench.command(settle(String(dispense!.operation_id))).results).toMatchObject([
    { outcome: 'refused', reason: 'too_late' },
  ])
  expect(bench.entries('stock.dropped')).toHaveLength(1)
})

test('a hub that dies at any point of a resolution executes it once at its repetition', () => {
  let crashes = 0
  for (let isOver = false; !isOver; crashes++) {
    const { bench, operation_id } = doubtful()
    const where = `crash at point ${crashes}`
    let passed = 0
    bench.onCheckpoint = (point) => {
      if (passed++ === crashes) throw new Crash(point)
    }
    const { id } = bench.command(settle(operation_id))
    bench.run(100)
    bench.onCheckpoint = () => {}
    isOver = bench.alive
    if (isOver) break
    bench.begin()
    bench.run(2000)
    for (const again of [id, uuid(77)])
      expect(bench.command(settle(operation_id), again).results, where).toMatchObject([
        { outcome: 'executed' },
      ])
    expect(bench.entries('operation.settled'), where).toHaveLength(1)
    expect(bench.entries('stock.dropped'), where).toHaveLength(1)
    expect(bench.stockErrors(), where).toEqual([])
    const finished = bench.entries('command.finished').filter(({ command_id }) => command_id === id)
    expect(finished, where).toHaveLength(1)
  }
  expect(crashes).toBeGreaterThanOrEqual(3)
})

test('a cloud that has lost reports gets the resolutions of operations again', () => {
  const { bench, operation_id } = doubtful()
  bench.command(settle(operation_id))
  bench.outbox.forget('ledger', bench.outbox.position('ledger').last)
  bench.core.restartLedger('the cloud was restored')
  expect(bench.entries('operation.unknown')).toEqual([])
  expect(bench.entries('operation.settled')).toMatchObject([{ operation_id, by: 'person', happened: true }])
  bench.rewrite('UPDATE operations SET ended_at = ended_at - ?', 49 * 3_600_000)
  bench.outbox.forget('ledger', bench.outbox.position('ledger').last)
  bench.core.restartLedger('the cloud was restored')
  expect(bench.entries('operation.settled')).toEqual([])
})

test('an operation with unknown outcome has its start time', () => {
  const { bench } = doubtful()
  const [entry] = bench.entries('operation.unknown')
  expect(entry!.at - entry!.started_at).toBeGreaterThan(0)
  expect(entry!.at - entry!.started_at).toBeLessThan(120_000)
})
