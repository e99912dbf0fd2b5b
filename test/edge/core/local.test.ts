import { describe, expect, test } from 'vitest'
import { stockedFacings } from '../../simulation/hardware.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

test('actions of people at the hub are in its ledger, with their changes', () => {
  const bench = TestHub.ready()
  const location = { cabinet: 1, shelf: 1, row: 3 }
  bench.core.count(location, 5)
  bench.core.restock(location, 2)
  bench.core.unlockDoor('main', 5000)
  bench.core.operate({ name: 'open_bin', bin: 2 }, () => {})
  bench.run(5000)
  bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => bench.core.unknownOperations().length > 0)
  bench.core.settle(bench.core.unknownOperations()[0]!.operation_id, true)
  expect(bench.entries('local').map(({ action, subject, outcome }) => [action, subject, outcome])).toEqual([
    ['count_row', 'row 1/1/3', 'executed'],
    ['restock_row', 'row 1/1/3', 'executed'],
    ['unlock_door', 'door main', 'executed'],
    ['open_bin', 'bin 2', 'executed'],
    ['settle_operation', 'cabinet 1', 'executed'],
  ])
})

test.each([
  ['a count down', 'count', 6, 2],
  ['a count up', 'count', 2, 6],
  ['a count that confirms the number', 'count', 4, 4],
  ['a restock', 'restock', 3, 5],
] as const)('the entry of %s has the person, and the units before and after', (_, kind, before, after) => {
  const bench = TestHub.ready()
  const location = { cabinet: 1, shelf: 1, row: 3 }
  bench.core.count(location, before)
  const by = { person: 'Ada', shared_token: false }
  if (kind === 'count') bench.core.count(location, after, { by })
  else bench.core.restock(location, after - before, { by })
  expect(bench.entries('local').at(-1)).toMatchObject({ ...by, before, after, subject: 'row 1/1/3' })
})

describe('a late count from the page', () => {
  const row = { cabinet: 1, shelf: 1, row: 3 }
  const unitsOf = (bench: TestHub) => bench.core.stock().find(({ location }) => location.row === 3)!.quantity

  test.each([
    [3, 4, 5],
    [0, 4, 2],
    [9, 1, 2],
  ])('a late count keeps later drops (%i counted, restock of %i, %i sold)', (counted, added, sold) => {
    const bench = TestHub.ready()
    bench.core.count(row, Math.max(counted, sold))
    bench.run(60_000)
    const before = unitsOf(bench)
    bench.room.act({ action: 'restock', target: 'cabinet-1', shelf: 1, row: 3, units: sold })
    bench.queue(1, { 3: Math.min(sold, before, 2) })
    bench.run(60_000)
    const fallen = before - unitsOf(bench)
    expect(fallen).toBeGreaterThan(0)
    bench.core.restock(row, added)
    expect(bench.core.count(row, counted, { ageMs: 90_000 })).toEqual({ ok: true })
    expect(unitsOf(bench)).toBe(Math.max(0, counted + added - fallen))
  })

  test('a late count is refused if a person counted the row after it', () => {
    const bench = TestHub.ready()
    bench.run(60_000)
    bench.core.count(row, 5)
    expect(bench.core.count(row, 2, { ageMs: 30_000 })).toMatchObject({ ok: false, reason: 'not_now' })
    expect(unitsOf(bench)).toBe(5)
    bench.run(60_000)
    expect(bench.core.count(row, 2, { ageMs: 30_000 })).toEqual({ ok: true })
  })

  test('a late count or restock is booked once, for any number of repetitions', () => {
    const bench = TestHub.ready()
    bench.core.count(row, 1)
    for (let time = 0; time < 3; time += 1) bench.core.restock(row, 2, { id: uuid(1) })
    expect(unitsOf(bench)).toBe(3)
    bench.core.count(row, 6, { id: uuid(2) })
    bench.core.restock(row, 1)
    expect(bench.core.count(row, 6, { id: uuid(2) })).toEqual({ ok: true })
    expect(unitsOf(bench)).toBe(7)
    expect(bench.entries('stock.restocked')).toHaveLength(2)
  })
})

test('a person’s command is reported under the person’s name, also after a restart of the hub', () => {
  const bench = TestHub.ready()
  const by = { person: 'Ada', shared_token: true }
  bench.core.operate({ name: 'open_bin', bin: 2 }, () => {}, by)
  bench.restart()
  bench.run(10_000)
  expect(bench.entries('local')).toMatchObject([{ action: 'open_bin', subject: 'bin 2', ...by }])
})

test('a refused action changes nothing, and is reported only if something was tried', () => {
  const bench = TestHub.ready()
  expect(bench.core.count({ cabinet: 4, shelf: 1, row: 1 }, 5).ok).toBe(false)
  expect(bench.core.unlockDoor('fridge_8_left', 5000).ok).toBe(false)
  expect(bench.core.confirmFridge(1).ok).toBe(false)
  expect(bench.entries('local')).toEqual([])
})

test('a hold by a person at the hub stays, for any configuration of the cloud, until a person releases it', () => {
  const bench = TestHub.ready()
  expect(bench.core.hold(2, true)).toEqual({ ok: true })
  expect(bench.core.hold('orders', true)).toEqual({ ok: true })
  expect(bench.core.hold(9, true)).toEqual({ ok: false, reason: 'not_found' })
  bench.apply({ kind: 'config', config })
  const held = () => [
    bench.core.health().accepting_orders,
    bench.core.health().bins.map(({ enabled }) => enabled),
    bench.core.held(),
  ]
  expect(held()).toEqual([false, [true, false], { orders: true, bins: [2] }])
  bench.restart()
  expect(held()).toEqual([false, [true, false], { orders: true, bins: [2] }])
  bench.core.hold(2, false)
  bench.core.hold('orders', false)
  expect(bench.core.held()).toEqual({ orders: false, bins: [] })
  expect(bench.entries('local').map(({ action, subject }) => [action, subject])).toEqual([
    ['hold_bin', 'bin 2'],
    ['hold_orders', 'orders'],
    ['release_bin', 'bin 2'],
    ['release_orders', 'orders'],
  ])
})

describe('units that a person enters at the hub', () => {
  const row = { cabinet: 1, shelf: 1, row: 3 }
  const capacity = 12

  test.each([-3, -1, 13, 25, 10_000, 1.5, Number.NaN, Infinity])(
    'a count of %d is refused, and changes nothing',
    (units) => {
      const bench = TestHub.ready()
      const before = bench.stock()['1-1-3']
      expect(bench.core.count(row, units)).toMatchObject({ ok: false, reason: 'invalid_quantity' })
      expect(bench.stock()['1-1-3']).toBe(before)
      expect([bench.entries('stock.counted'), bench.entries('local')]).toEqual([[], []])
    },
  )

  test.each([0, 1, capacity])('a count of %d is accepted', (units) => {
    const bench = TestHub.ready()
    expect(bench.core.count(row, units)).toEqual({ ok: true })
    expect(bench.stock()['1-1-3']).toBe(units)
  })

  test('a restock above the row’s capacity is refused', () => {
    const bench = TestHub.ready()
    expect(bench.core.count(row, 10)).toEqual({ ok: true })
    for (const units of [-1, 0, 3, 2.5, 1000])
      expect(bench.core.restock(row, units)).toMatchObject({ ok: false, reason: 'invalid_quantity' })
    expect(bench.core.restock(row, 2)).toEqual({ ok: true })
    expect(bench.core.restock(row, 1)).toMatchObject({ why: 'the row holds 12 units and has room for 0' })
    expect(bench.stock()['1-1-3']).toBe(capacity)
  })

  test('the stock of a row is listed with its capacity', () => {
    const capacities = TestHub.ready()
      .core.stock()
      .map((facing) => facing.capacity)
    expect(capacities).toEqual(stockedFacings.map(() => capacity))
  })
})

describe('a late restock from the page', () => {
  const row = { cabinet: 1, shelf: 1, row: 3 }
  const unitsOf = (bench: TestHub): number =>
    bench.core.stock().find(({ location }) => location.row === row.row)!.quantity

  test('a restock that arrives after a later count of the row is refused, because the count included its units', () => {
    const bench = TestHub.ready()
    bench.run(60_000)
    expect(bench.core.count(row, 4)).toEqual({ ok: true })
    bench.run(10_000)
    expect(bench.core.restock(row, 2, { ageMs: 30_000 })).toMatchObject({ ok: false, reason: 'not_now' })
    expect(unitsOf(bench)).toBe(4)
    expect(bench.core.restock(row, 2, { ageMs: 5000 })).toEqual({ ok: true })
    expect(unitsOf(bench)).toBe(6)
  })

  test('a late count includes the units of an earlier restock that arrived late, too', () => {
    const bench = TestHub.ready()
    bench.core.count(row, 2)
    bench.run(60_000)
    expect(bench.core.restock(row, 2, { ageMs: 40_000 })).toEqual({ ok: true })
    expect(bench.core.count(row, 4, { ageMs: 30_000 })).toEqual({ ok: true })
    expect(unitsOf(bench)).toBe(4)
  })
})
