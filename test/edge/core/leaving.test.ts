import { expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'
import { uuid } from '../../support/uuid.ts'

const MINUTE = 60_000

/** A hub in maintenance whose fridges are proven cold. */
function closed(): TestHub {
  const bench = TestHub.ready()
  close(bench)
  expect(bench.runUntil(() => bench.core.reasonToStay() === undefined, 20 * MINUTE)).toBe(true)
  return bench
}

const close = (bench: TestHub): void =>
  bench.apply({ kind: 'config', config: { ...config, accepting_orders: false } })

test('a hub that takes orders stays, and so does one with an order until its goods are collected', () => {
  const bench = closed()
  bench.apply({ kind: 'config', config })
  expect(bench.core.reasonToStay()).toBe('the hub takes orders: maintenance must be on')
  bench.queue(1, { 4: 1 })
  close(bench)
  expect(bench.core.reasonToStay()).toBe('order 1 is in progress')
  expect(bench.runUntil(() => bench.phase(1) === 'ready', MINUTE)).toBe(true)
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.run(3000)
  bench.takeAll()
  expect(bench.runUntil(() => bench.phase(1) === 'completed', MINUTE)).toBe(true)
  expect(bench.runUntil(() => bench.core.reasonToStay() === undefined, 10 * MINUTE)).toBe(true)
})

test('a hub stays while a bin is not known to be empty and closed, and while a motion runs', () => {
  const bench = closed()
  bench.command({ name: 'open_bin', bin: 2 })
  expect(bench.core.reasonToStay()).toBe('something moves')
  bench.run(10_000)
  expect(bench.core.reasonToStay()).toBe('bin 2 is not known to be empty, closed and without fault')
})

test('a hub stays with a row that a person has blocked, and with a part that a person has taken out of service', () => {
  const bench = closed()
  const row = { cabinet: 1, shelf: 1, row: 1 }
  bench.command({ name: 'block_row', location: row })
  expect(bench.core.reasonToStay()).toBe('row 1-1-1 is blocked: a person must check and unblock it')
  bench.command({ name: 'unblock_row', location: row })
  expect(bench.core.reasonToStay()).toBeUndefined()
  for (const what of ['orders', 2] as const) {
    bench.core.hold(what, true)
    expect(bench.core.reasonToStay()).toBe('a person at the hub has taken a part of it out of service')
    bench.core.hold(what, false)
  }
  expect(bench.core.reasonToStay()).toBeUndefined()
})

test('a hub stays until this process has proven that its fridges are cold', () => {
  const bench = closed()
  bench.restart()
  bench.run(5000)
  expect(bench.core.reasonToStay()).toMatch(/^fridge \d is not proven to be cold$/)
  expect(bench.runUntil(() => bench.core.reasonToStay() === undefined, 20 * MINUTE)).toBe(true)
  const fault = bench.fault('warm_fridge')
  expect(bench.runUntil(() => bench.core.reasonToStay() !== undefined, 60 * MINUTE)).toBe(true)
  bench.run(40 * MINUTE)
  bench.room.faults.clear(fault)
  // It is cold again, and shut off until a person has checked the goods.
  bench.run(120 * MINUTE)
  expect(bench.core.reasonToStay()).toMatch(/^fridge \d is not proven to be cold$/)
})

test('a hub stays with an operation of unknown outcome, and during an acceptance', () => {
  const bench = closed()
  const [part] = bench.core.acceptance.parts()
  expect(bench.core.acceptance.begin('Ann', [part!])).toEqual({ ok: true })
  expect(bench.core.reasonToStay()).toBe('an acceptance of the hub is not ended')
  bench.core.acceptance.end()
  expect(bench.core.reasonToStay()).toBeUndefined()
  bench.apply({ kind: 'config', config })
  bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  expect(bench.runUntil(() => bench.phase(1) === 'failed')).toBe(true)
  close(bench)
  expect(bench.core.reasonToStay()).toMatch(
    /^the outcome of a motion of \S+ is unknown: a person must settle it$/,
  )
})
