import { describe, expect, test } from 'vitest'
import { config, HubBench } from './hub-bench.ts'

test('what people do at the hub itself is in its ledger, with what it changed', () => {
  const bench = HubBench.ready()
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

test('what was refused there changes nothing, and is told only where something was tried', () => {
  const bench = HubBench.ready()
  expect(bench.core.count({ cabinet: 4, shelf: 1, row: 1 }, 5).ok).toBe(false)
  expect(bench.core.unlockDoor('fridge_8_left', 5000).ok).toBe(false)
  expect(bench.core.confirmFridge(1).ok).toBe(false)
  expect(bench.entries('local')).toEqual([])
})

test('what a person holds at the hub stays held, whatever the cloud’s configuration says, until a person gives it back', () => {
  const bench = HubBench.ready()
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
