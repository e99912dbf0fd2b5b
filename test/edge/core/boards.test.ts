import { describe, expect, test } from 'vitest'
import { loadState } from '../../../edge/journal/state.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { uuid } from '../../support/uuid.ts'
import { HubBench } from './hub-bench.ts'

const alarmCodes = (bench: HubBench): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

/** Deletes old rows, as housekeeping does before the next start. */
function pruneTo({ journal: database }: HubBench, kept: number): void {
  const store = openStore({ path: ':memory:', database, checkpoint: noCheckpoint, log: silentLog })
  store.transact(() => loadState(store, []).prune(kept))
}

/** Of what a hub knows: what another board must not change. */
const books = (bench: HubBench) => ({ stock: bench.stock(), orders: bench.core.orders() })

describe('a used board of another hub in the place of one of this (serial SPEC §8)', () => {
  test("of the bins: nothing is forgotten, and it moves nothing before a person says that it is this hub's", () => {
    const bench = HubBench.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.phase(1) === 'ready')
    const before = books(bench)
    const unacknowledged = bench.ledger()
    bench.fault('used_board', 'bins')
    bench.run(10_000)
    expect(books(bench)).toEqual(before)
    expect(bench.ledger().slice(0, unacknowledged.length)).toEqual(unacknowledged)
    expect(bench.inboxResets).toBe(0)
    expect(alarmCodes(bench)).toEqual(['controller_foreign controller bins true'])
    expect(bench.entries('alarm')[0]?.detail).toContain('hub 1000001')
    expect(bench.core.foreignControllers()).toEqual(['bins'])
    const { results } = bench.command({ name: 'open_bin', bin: 1 })
    bench.run(1000)
    expect(results).toMatchObject([{ outcome: 'refused', reason: 'offline' }])

    expect(bench.core.takeOverController('vending')).toEqual({ ok: false, reason: 'not_found' })
    expect(bench.core.takeOverController('bins')).toEqual({ ok: true })
    bench.run(3000)
    expect(alarmCodes(bench).slice(1)).toEqual([
      'controller_foreign controller bins false',
      'controller_replaced controller bins true',
      'controller_replaced controller bins false',
    ])
    expect(bench.core.foreignControllers()).toEqual([])
    bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
    bench.run(5000)
    bench.takeAll()
    expect(bench.runUntil(() => bench.phase(1) === 'completed', 60_000)).toBe(true)
    expect(bench.core.health().accepting_orders).toBe(true)
  })

  test('of the cabinets: what it dispensed elsewhere is booked nowhere, and it sells without the cloud', () => {
    const bench = HubBench.ready()
    const before = books(bench)
    bench.fault('used_board', 'vending')
    bench.run(10_000)
    bench.core.takeOverController('vending')
    bench.run(3000)
    expect(books(bench)).toEqual(before)
    expect(bench.entries('stock.dropped')).toEqual([])
    expect(bench.stockErrors()).toEqual([])
    bench.queue(1, { 1: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
    expect(bench.stockErrors()).toEqual([])
  })

  test('what ran on the board before it is unknown, and is not done again (I1)', () => {
    const bench = HubBench.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.dispenses().length === 1)
    bench.fault('used_board', 'vending')
    bench.run(3000)
    bench.core.takeOverController('vending')
    bench.run(120_000)
    expect(bench.dispenses()).toHaveLength(1)
    expect(bench.core.unknownOperations()).toMatchObject([{ device: 'cabinet-2', action: 'dispense' }])
    expect(bench.phase(1)).toBe('failed')
  })

  test('stays what it was made also after a restart of the hub', () => {
    const bench = HubBench.ready()
    bench.fault('used_board', 'vending')
    bench.run(5000)
    bench.restart()
    bench.run(5000)
    expect(bench.core.foreignControllers()).toEqual(['vending'])
    bench.core.takeOverController('vending')
    bench.run(3000)
    bench.restart()
    bench.run(3000)
    expect(bench.core.foreignControllers()).toEqual([])
    expect(bench.inboxResets).toBe(0)
    bench.queue(1, { 1: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })
})

test('its own board that has lost its memory, heard to start again on the open line, is taken over by itself: everything goes on', () => {
  const bench = HubBench.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  const before = books(bench)
  bench.fault('memory_loss', 'bins')
  bench.run(5000)
  expect(books(bench)).toEqual(before)
  expect(alarmCodes(bench)).toEqual([
    'controller_replaced controller bins true',
    'controller_replaced controller bins false',
  ])
  expect(bench.core.health().bins).toMatchObject([{ status: 'healthy' }, { status: 'healthy' }])
})

describe('a board of nobody on a line that has its own (a new one, or a cable that leads into another room)', () => {
  /** It comes up on a line that was dead, so that nothing says that it is the board that was there. */
  const replaceByNew = (bench: HubBench, controller: string): void => {
    bench.fault('memory_loss', controller, { for_ms: 10_000 })
    bench.run(15_000)
  }

  test("it moves nothing and changes nothing before a person says that it is this hub's", () => {
    const bench = HubBench.ready()
    const before = books(bench)
    replaceByNew(bench, 'vending')
    expect(bench.core.foreignControllers()).toEqual(['vending'])
    expect(alarmCodes(bench)).toEqual(['controller_foreign controller vending true'])
    expect(bench.entries('alarm')[0]?.detail).toContain('new, or has lost its memory')
    bench.queue(1, { 4: 1 })
    bench.run(30_000)
    expect(bench.motions()).toEqual([])
    expect(books(bench).stock).toEqual(before.stock)
    expect(bench.core.takeOverController('vending')).toEqual({ ok: true })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
    expect(bench.core.foreignControllers()).toEqual([])
    expect(bench.stockErrors()).toEqual([])
  })

  test('also not after a restart of the hub', () => {
    const bench = HubBench.ready()
    replaceByNew(bench, 'bins')
    bench.restart()
    bench.run(5000)
    expect(bench.core.foreignControllers()).toEqual(['bins'])
  })

  test("and another hub's that loses its memory on the open line is no more this hub's than before", () => {
    const bench = HubBench.ready()
    bench.fault('used_board', 'bins')
    bench.run(5000)
    bench.fault('memory_loss', 'bins')
    bench.run(10_000)
    expect(bench.core.foreignControllers()).toEqual(['bins'])
  })

  test("but this hub's own that loses its memory twice is taken over by itself", () => {
    const bench = HubBench.ready()
    bench.fault('memory_loss', 'bins')
    bench.runUntil(() => bench.entries('alarm').length > 0)
    bench.fault('memory_loss', 'bins')
    bench.run(10_000)
    expect(bench.core.foreignControllers()).toEqual([])
    expect(bench.core.health().bins).toMatchObject([{ status: 'healthy' }, { status: 'healthy' }])
  })
})

test('what a board did for this hub is not taken over twice when its successor loses its journal too', () => {
  const bench = HubBench.ready()
  bench.fault('used_board', 'vending')
  bench.run(5000)
  bench.core.takeOverController('vending')
  bench.run(3000)
  bench.restartOn()
  bench.run(3000)
  bench.apply(bench.snapshot())
  bench.run(3000)
  expect(bench.entries('stock.dropped')).toEqual([])
  expect(bench.stockErrors()).toEqual([])
})

describe('lines that lead to the wrong board', () => {
  const cross = (bench: HubBench): void => {
    bench.plugs.set('bins', 'vending').set('vending', 'bins')
    bench.restart()
    bench.run(5000)
  }
  const uncross = (bench: HubBench): void => {
    bench.plugs.clear()
    bench.restart()
    bench.run(5000)
  }

  test('nothing moves on them, an alarm says so, and all is well when they are put right', () => {
    const bench = HubBench.ready()
    cross(bench)
    expect(alarmCodes(bench).toSorted()).toEqual([
      'controller_foreign controller bins true',
      'controller_foreign controller vending true',
    ])
    bench.queue(1, { 4: 1 })
    bench.run(30_000)
    expect(bench.motions()).toEqual([])
    expect(bench.core.takeOverController('bins')).toEqual({ ok: false, reason: 'invalid' })
    uncross(bench)
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
    expect(bench.core.foreignControllers()).toEqual([])
  })

  test('at the very first start no board is given to the wrong line', () => {
    const bench = new HubBench()
    bench.plugs.set('bins', 'vending').set('vending', 'bins')
    bench.begin()
    bench.apply(bench.snapshot())
    bench.run(5000)
    uncross(bench)
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })
})

test('a controller whose last motion was long ago is not taken for the proof of a newer journal', () => {
  const bench = HubBench.ready()
  bench.command({ name: 'raise_bin', bin: 1 })
  bench.run(10_000)
  // It cannot write its memory, and refuses what is asked of it, for days.
  bench.fault('flash_fault', 'bins')
  for (let count = 0; count < 30; count++) {
    bench.command({ name: 'lower_bin', bin: 1 })
    bench.run(1000)
  }
  bench.room.faults.clearAll()
  pruneTo(bench, 5)
  const before = books(bench)
  bench.restart()
  bench.run(3000)
  expect(bench.inboxResets).toBe(0)
  expect(books(bench)).toEqual(before)
})
