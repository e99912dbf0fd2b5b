import { expect, test } from 'vitest'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

const settled = (bench: TestHub): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(1) ?? 'queued')

const refund = (wanted: number): CloudEntry => ({
  kind: 'order.reduce',
  order_id: uuid(1),
  lines: [{ line_id: 10, wanted }],
})
const cancel: CloudEntry = { kind: 'order.cancel', order_id: uuid(1) }

const ends: [string, CloudEntry][] = [
  ['refunded', refund(0)],
  ['cancelled', cancel],
]

/** The units that fell from the shelves for the order. */
const fallen = (bench: TestHub): number =>
  bench.entries('stock.dropped').reduce((sum, { delta }) => sum - delta, 0)

/** Runs until the first unit of the order is running. */
function running(bench: TestHub): void {
  const isRunning = (): boolean =>
    bench.journal.prepare("SELECT 1 FROM operations WHERE action = 'dispense'").get() !== undefined
  expect(bench.runUntil(isRunning)).toBe(true)
}

test.each(ends)(
  'a unit that was %s while its row failed to move is not dispensed from another row',
  (_, entry) => {
    const bench = TestHub.ready()
    bench.fault('jam_without_motion', 'cabinet-1')
    bench.queue(1, { 1: 1 })
    running(bench)
    bench.apply(entry)
    bench.runUntil(() => settled(bench))
    expect(bench.dispenses()).toEqual([])
    expect(fallen(bench)).toBe(0)
    expect(bench.entries('order.failed')).toMatchObject([{ lines: [{ dropped: 0, doubtful: 0 }] }])
  },
)

test.each(ends)(
  'a unit that was %s while its fall was unconfirmed is not dispensed from another row',
  (_, entry) => {
    const bench = TestHub.ready()
    bench.fault('empty_turn', 'cabinet-1')
    bench.queue(1, { 1: 1 })
    bench.runUntil(() => bench.core.orders()[0]?.lines[0]?.doubtful === 1)
    bench.apply(entry)
    bench.runUntil(() => settled(bench))
    expect(bench.dispenses().map(({ device }) => device)).toEqual(['cabinet-1'])
    expect(bench.entries('order.failed')).toMatchObject([{ lines: [{ dropped: 0, doubtful: 1 }] }])
  },
)

test('a refund of one of two units leaves the other to be dispensed from another row', () => {
  const bench = TestHub.ready()
  bench.fault('jam_without_motion', 'cabinet-1')
  bench.queue(1, { 1: 2 })
  running(bench)
  bench.apply(refund(1))
  bench.restart()
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(bench.dispenses().map(({ device }) => device)).toEqual(['cabinet-2'])
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1, doubtful: 0 }])
})

test('after a refund of one of two units, an unconfirmed unit is replaced only while the customer lacks a unit', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { 1: 2 })
  bench.runUntil(() => bench.core.orders()[0]?.lines[0]?.doubtful === 1)
  bench.room.faults.clear(fault)
  bench.apply(refund(1))
  bench.runUntil(() => settled(bench))
  expect(bench.phase(1)).toBe('ready')
  expect(fallen(bench)).toBe(1)
  expect(bench.entries('order.ready')[0]?.lines).toMatchObject([{ dropped: 1 }])
})

test('a started order that the cloud has ended is not dispensed further if the snapshot replaces its cancellation', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 3 }, { open_when_ready: true })
  bench.runUntil(() => bench.dispenses().length === 1)
  bench.apply(bench.snapshot())
  bench.runUntil(() => settled(bench))
  bench.run(20_000)
  expect(bench.dispenses()).toHaveLength(1)
  expect(bench.entries('order.ready')).toMatchObject([{ lines: [{ dropped: 1 }] }])
  expect(bench.motions().filter(({ action }) => action === 'open_door')).toEqual([])
})
