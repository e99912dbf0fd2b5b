import { expect, test } from 'vitest'
import { stepsOf } from '../../../edge/core/acceptance/steps.ts'
import { begun, last, open } from './acceptance-bench.ts'
import { TestHub } from '../../world/hub.ts'

/** The ids of row steps, in order. */
const rowsOf = (bench: TestHub, first = 0, count = 99): string[] =>
  open(bench)
    .steps.flatMap(({ id }) => (id.startsWith('row/') ? [id] : []))
    .slice(first, first + count)

function fill(bench: TestHub, ids: readonly string[]): void {
  for (const id of ids) {
    const [cabinet, shelf, row] = id.split('/').slice(1).map(Number)
    if (bench.shelf(`${cabinet}-${shelf}-${row}`) === 0)
      bench.room.act({ action: 'restock', target: `cabinet-${cabinet}`, shelf: shelf!, row: row!, units: 1 })
  }
}

test('the rows of a shelf are tested in a chain into one bin, and one verdict passes them all', () => {
  const bench = begun(['cabinet 1'])
  const ids = rowsOf(bench)
  expect(ids.length).toBeGreaterThan(1)
  fill(bench, ids)
  expect(bench.core.acceptance.beginSteps(ids)).toEqual({ ok: true })
  expect(bench.core.acceptance.state().running).toMatchObject({ step: ids[0], following: ids.length - 1 })
  bench.runUntil(() => bench.core.acceptance.state().running === null, 60_000 * ids.length)
  expect(ids.map((id) => last(bench, id))).toEqual(
    ids.map(() => expect.objectContaining({ agrees: true, verdict: null }) as unknown),
  )
  expect(bench.room.state().bins.map(({ units }) => units)).toEqual([ids.length, 0])
  expect(bench.core.acceptance.decide(ids, 'passed', '')).toEqual({ ok: true })
  expect(ids.map((id) => last(bench, id)?.verdict)).toEqual(ids.map(() => 'passed'))
})

test('a chain ends at the first row without a drop, at a stop, and at a restart', () => {
  const bench = begun(['cabinet 1'])
  const ids = rowsOf(bench, 0, 3)
  fill(bench, ids)
  const { acceptance } = bench.core
  const fault = bench.fault('jam_without_motion', 'cabinet-1')
  acceptance.beginSteps(ids)
  bench.runUntil(() => acceptance.state().running === null, 120_000)
  expect(ids.map((id) => last(bench, id)?.agrees)).toEqual([false, undefined, undefined])
  bench.room.faults.clear(fault)
  acceptance.beginSteps(ids.slice(1))
  acceptance.stop()
  bench.run(60_000)
  expect(last(bench, ids[2]!)).toBeUndefined()
  expect(acceptance.decide(ids, 'passed', '')).toMatchObject({ ok: false, reason: 'not_found' })
  expect(acceptance.decide(ids.slice(0, 2), 'passed', '')).toMatchObject({ ok: false, reason: 'not_now' })
})

test('rows without a product are left out and counted in the report, and an empty planogram leaves out none', () => {
  const bench = TestHub.ready()
  const all = stepsOf(bench.hardware).filter(({ id }) => id.startsWith('row/')).length
  const assigned = bench.core.stock().length
  expect(assigned).toBeLessThan(all)
  bench.core.acceptance.begin('Ann', null)
  expect([rowsOf(bench).length, open(bench).left_out]).toEqual([assigned, all - assigned])
  bench.core.acceptance.end()
  expect(bench.entries('maintenance.report')[0]!.description).toContain(
    `${all - assigned} rows without a product were left out.`,
  )
  bench.core.acceptance.begin('Ann', null, { withUnassignedRows: true })
  expect(rowsOf(bench)).toHaveLength(all)
  bench.core.acceptance.end()
  bench.apply({ kind: 'planogram', facings: [] })
  bench.core.acceptance.begin('Ann', null)
  expect([rowsOf(bench).length, open(bench).left_out]).toEqual([all, 0])
})
