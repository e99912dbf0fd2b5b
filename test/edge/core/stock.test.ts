import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { laterDropId, spread } from '../../../edge/core/stock.ts'
import { ApplyError } from '../../../edge/journal/inbox.ts'
import type { FacingRow } from '../../../edge/journal/tables.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import type { CloudEntry, Facing } from '../../../protocol/mqtt/cloud-entries.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

const count = (bench: TestHub, product: number, quantity: number, counted_at: number, id = uuid(900)): void =>
  bench.apply({
    kind: 'stock.count',
    count: { count_id: id, product_id: product, location: null, quantity, counted_at },
  })
const summed = (bench: TestHub): Record<string, number> =>
  Object.fromEntries(
    bench.journal
      .prepare<[], { place: string; units: number }>(
        "SELECT cabinet || '-' || shelf || '-' || row AS place, sum(delta) AS units FROM stock_ledger GROUP BY place",
      )
      .all()
      .map((row) => [row.place, row.units]),
  )

test('a count is reduced by later drops', () => {
  const bench = TestHub.ready()
  const countedAt = bench.core.cloudNow()
  bench.queue(1, { 4: 2 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  count(bench, 4, 11, countedAt)
  expect(bench.stock()['2-1-2']).toBe(9)
  expect(bench.entries('stock.counted')).toMatchObject([{ product_id: 4, delta: 5, quantity: 9 }])
  expect(summed(bench)).toMatchObject(bench.stock())
})

test('a repeated count changes nothing, and is confirmed', () => {
  const bench = TestHub.ready()
  count(bench, 4, 11, bench.core.cloudNow())
  count(bench, 4, 11, bench.core.cloudNow())
  expect(bench.entries('stock.counted').slice(1)).toMatchObject([{ delta: 0, quantity: 11 }])
})

test('a count of a product without a facing is a dead letter', () => {
  const bench = TestHub.ready()
  expect(() => count(bench, 99, 1, 0)).toThrow(ApplyError)
  expect(() => bench.apply({ kind: 'nonsense' } as never)).toThrow(ApplyError)
})

test('restocks and counts of a person at the hub are in the ledger', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 2, shelf: 1, row: 2 }
  expect(bench.core.restock(location, 3)).toEqual({ ok: true })
  expect(bench.core.count(location, 5)).toEqual({ ok: true })
  expect(bench.core.restock({ ...location, row: 9 }, 3)).toEqual({ ok: false, reason: 'not_found' })
  const refused = { ok: false, reason: 'invalid_quantity' }
  expect(bench.core.restock(location, 0)).toEqual({ ...refused, why: 'must be a whole number, 1 or more' })
  expect(bench.core.count(location, 0.5)).toEqual({ ...refused, why: 'must be a whole number, 0 or more' })
  expect(bench.entries('stock.restocked')).toMatchObject([{ delta: 3, quantity: 9 }])
  expect(bench.entries('stock.counted')).toMatchObject([{ delta: -4, quantity: 5 }])
  expect(summed(bench)).toMatchObject(bench.stock())
})

test('a planogram moves stock between facings, and removes stock without a facing', () => {
  const bench = TestHub.ready()
  const at = (cabinet: number, shelf: number, row: number) => ({ cabinet, shelf, row })
  bench.apply({
    kind: 'planogram',
    facings: [
      { product_id: 1, location: at(1, 1, 1), primary: true },
      { product_id: 9, location: at(1, 1, 2), primary: true },
      { product_id: 3, location: at(2, 2, 2), primary: true },
    ],
  })
  expect(bench.stock()).toEqual({ '1-1-1': 6, '1-1-2': 0, '2-2-2': 6 })
  const total = bench.entries('stock.counted').reduce((sum, entry) => sum + entry.delta, 0)
  expect(total).toBe(12 - 34)
})

const facings = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 5 }).map((quantities) =>
  quantities.map((quantity, index): FacingRow & { capacity: number } => ({
    cabinet: 1,
    shelf: 1,
    row: index + 1,
    product_id: 1,
    is_primary: index === 0,
    quantity,
    capacity: 12,
  })),
)

test('a change of several facings adds up, goes below 0 only if no stock is left, and fills rows within their capacity first', () => {
  fc.assert(
    fc.property(facings, fc.integer({ min: -120, max: 60 }), (rows, delta) => {
      const shares = spread(rows, delta)
      expect(shares.reduce((sum, share) => sum + share.delta, 0)).toBe(delta)
      const after = shares.map((share) => share.facing.quantity + share.delta)
      const total = rows.reduce((sum, row) => sum + row.quantity, 0) + delta
      if (total >= 0) expect(Math.min(...after)).toBeGreaterThanOrEqual(0)
      const room = rows.reduce((sum, row) => sum + Math.max(0, row.capacity - row.quantity), 0)
      if (delta >= 0 && room >= delta)
        for (const { facing, delta: share } of shares)
          expect(share <= Math.max(0, facing.capacity - facing.quantity)).toBe(true)
    }),
  )
})

test('further drops of an operation have their own ids, which are equal in every life', () => {
  const id = '018f3c2a-7b4e-7c1d-9a3b-5c6d7e8f9012'
  expect(laterDropId(id, 2)).toBe('018f3c2a-7b4e-8c1d-9a3b-5c6d7e8f9002')
  expect(laterDropId(id, 2)).not.toBe(laterDropId(id, 3))
})

describe('a unit that drops after its row got another product is booked (I4, I5)', () => {
  const facingsWithout = (bench: TestHub, at: string, more: Facing[] = []): Facing[] => {
    const { facings } = bench.snapshot() as Extract<CloudEntry, { kind: 'snapshot' }>
    return [...facings.filter(({ location }) => locationKey(location) !== at), ...more]
  }

  test('a unit that drops after its row got another product is booked at its product’s present row', () => {
    const bench = TestHub.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.dispenses().length === 1)
    // The row's units move to another row, only in the planogram.
    const moved = { product_id: 4, location: { cabinet: 1, shelf: 2, row: 1 }, primary: true }
    const other = { product_id: 5, location: { cabinet: 2, shelf: 1, row: 2 }, primary: false }
    bench.apply({ kind: 'planogram', facings: facingsWithout(bench, '2-1-2', [moved, other]) })
    bench.runUntil(() => bench.phase(1) === 'ready')
    expect(bench.entries('stock.dropped')).toMatchObject([
      { product_id: 4, location: moved.location, delta: -1, quantity: 5, delivered: 1, order_id: uuid(1) },
    ])
    expect(bench.stock()['1-2-1']).toBe(5)
  })

  test('a unit that drops after its product was removed is booked as delivered', () => {
    const bench = TestHub.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.dispenses().length === 1)
    bench.apply({ kind: 'planogram', facings: facingsWithout(bench, '2-1-2') })
    bench.runUntil(() => bench.phase(1) === 'ready')
    expect(bench.entries('stock.dropped')).toMatchObject([
      { product_id: 4, delta: 0, delivered: 1, order_id: uuid(1), line_id: 10 },
    ])
    const counted = bench.entries('stock.counted').filter(({ product_id }) => product_id === 4)
    expect(counted).toMatchObject([{ delta: -6, quantity: 0 }])
  })
})

describe('a count of a product in several rows', () => {
  test('a count of a product in several rows is divided by their stock', () => {
    const bench = TestHub.ready()
    count(bench, 1, 20, bench.core.cloudNow())
    expect(bench.stock()).toMatchObject({ '1-1-1': 12, '2-1-1': 8 })
    count(bench, 1, 30, bench.core.cloudNow(), uuid(901))
    expect(bench.stock()).toMatchObject({ '1-1-1': 18, '2-1-1': 12 })
  })

  test('a count of one row sets only that row, less later drops, and unblocks it', () => {
    const bench = TestHub.ready()
    const fault = bench.fault('empty_turn', 'cabinet-1')
    bench.queue(1, { 1: 1 })
    bench.runUntil(() => bench.entries('operation.unknown').length > 0)
    bench.room.faults.clear(fault)
    const counted_at = bench.core.cloudNow()
    bench.run(90_000)
    const location = { cabinet: 1, shelf: 1, row: 1 }
    const counted = { count_id: uuid(902), product_id: 1, location, quantity: 7, counted_at }
    const rowTwo = bench.stock()['2-1-1']
    bench.apply({ kind: 'stock.count', count: counted })
    expect(bench.stock()).toMatchObject({ '1-1-1': 7, '2-1-1': rowTwo })
    expect(bench.core.stock().find(({ location: at }) => locationKey(at) === '1-1-1')?.blocked).toBeNull()
    expect(bench.entries('operation.settled')).toMatchObject([{ by: 'count', happened: false }])
    const before = bench.entries('stock.counted').length
    bench.apply({ kind: 'stock.count', count: counted })
    expect(bench.entries('stock.counted').slice(before)).toMatchObject([{ location, delta: 0, quantity: 7 }])
  })

  test('a count of a row with another product is refused', () => {
    const bench = TestHub.ready()
    const counted = { product_id: 1, location: { cabinet: 1, shelf: 1, row: 3 }, quantity: 7, counted_at: 1 }
    expect(() => bench.apply({ kind: 'stock.count', count: { count_id: uuid(903), ...counted } })).toThrow(
      ApplyError,
    )
  })
})

describe('counts that arrive late', () => {
  const row = { cabinet: 1, shelf: 1, row: 3 }
  const ofRow = (counted_at: number, quantity: number, id: number): CloudEntry => ({
    kind: 'stock.count',
    count: { count_id: uuid(id), product_id: 3, location: row, quantity, counted_at },
  })

  test('a count at the hub stays if an older count of the cloud arrives later, which is confirmed', () => {
    const bench = TestHub.ready()
    const older = bench.core.cloudNow()
    bench.run(60_000)
    expect(bench.core.count(row, 5)).toEqual({ ok: true })
    bench.run(60_000)
    for (let time = 0; time < 2; time += 1) bench.apply(ofRow(older, 2, 910))
    expect(bench.stock()['1-1-3']).toBe(5)
    expect(bench.entries('stock.counted').slice(1)).toMatchObject([
      { count_id: uuid(910), delta: 0, quantity: 5 },
      { count_id: uuid(910), delta: 0, quantity: 5 },
    ])
    expect(summed(bench)).toMatchObject(bench.stock())
  })

  test('counts of the cloud apply in the order in which people counted, although they arrive together', () => {
    const bench = TestHub.ready()
    const first = bench.core.cloudNow()
    bench.run(60_000)
    const second = bench.core.cloudNow()
    bench.run(60_000)
    bench.apply(ofRow(first, 2, 911), ofRow(second, 4, 912))
    expect(bench.stock()['1-1-3']).toBe(4)
    bench.apply(ofRow(first + 1000, 3, 913))
    expect(bench.stock()['1-1-3']).toBe(4)
  })

  test('two late counts from the page apply in the order in which a person counted', () => {
    const bench = TestHub.ready()
    bench.run(60_000)
    expect(bench.core.count(row, 2, { ageMs: 50_000 })).toEqual({ ok: true })
    expect(bench.core.count(row, 4, { ageMs: 40_000 })).toEqual({ ok: true })
    expect(bench.stock()['1-1-3']).toBe(4)
  })

  test('a count of a product leaves the row that a person counted later, and sets its other rows', () => {
    const bench = TestHub.ready()
    const older = bench.core.cloudNow()
    bench.run(60_000)
    expect(bench.stock()).toMatchObject({ '1-1-1': 3, '2-1-1': 3 })
    expect(bench.core.count({ cabinet: 1, shelf: 1, row: 1 }, 2)).toEqual({ ok: true })
    count(bench, 1, 1, older, uuid(914))
    expect(bench.stock()).toMatchObject({ '1-1-1': 2, '2-1-1': 1 })
    expect(summed(bench)).toMatchObject(bench.stock())
  })

  test('a late count from the page resolves no dispense that came after it, and unblocks no row that failed after it', () => {
    const bench = TestHub.ready()
    bench.run(60_000)
    const other = { cabinet: 1, shelf: 1, row: 2 }
    const blockOf = (): string | null | undefined =>
      bench.core.stock().find(({ location }) => locationKey(location) === locationKey(other))?.blocked
    const jam = bench.fault('jam_without_motion', 'cabinet-1')
    bench.queue(1, { 2: 1 })
    bench.runUntil(() => bench.phase(1) === 'failed')
    const reason = blockOf()
    expect(reason).not.toBeNull()
    bench.room.faults.clear(jam)
    bench.fault('missed_drop', 'cabinet-1')
    bench.queue(2, { 3: 1 })
    bench.runUntil(() => bench.core.unknownOperations().length > 0)
    expect(bench.core.count(row, 6, { ageMs: 50_000 })).toEqual({ ok: true })
    expect(bench.core.count(other, bench.shelf('1-1-2'), { ageMs: 50_000 })).toEqual({ ok: true })
    expect(bench.core.unknownOperations()).toHaveLength(1)
    expect(blockOf()).toBe(reason)
    expect(bench.core.count(row, bench.shelf('1-1-3'))).toEqual({ ok: true })
    expect(bench.core.unknownOperations()).toEqual([])
    expect(bench.stockErrors()).toEqual([])
  })
})
