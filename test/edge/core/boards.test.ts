import { describe, expect, test } from 'vitest'
import { loadState } from '../../../edge/journal/state.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import type { ControllerDescription } from '../../../protocol/model/hardware.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { simulatedHardware } from '../../simulation/hardware.ts'
import { uuid } from '../../support/uuid.ts'
import { TestHub } from '../../world/hub.ts'

const alarmCodes = (bench: TestHub): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

/** Deletes old rows, as housekeeping does before the next start. */
function pruneTo({ journal: database }: TestHub, kept: number): void {
  const store = openStore({ path: ':memory:', database, checkpoint: noCheckpoint, log: silentLog })
  store.transact(() => loadState(store, []).prune({ rows: kept, stockRows: 20_000, acceptances: 20 }))
}

/** The hub's books, which a foreign board must not change. */
const books = (bench: TestHub) => ({ stock: bench.stock(), orders: bench.core.orders() })

describe('a used board of another hub on this hub’s line (serial SPEC §8)', () => {
  test('a foreign board of the bins forgets nothing, and moves nothing before a person takes it over', () => {
    const bench = TestHub.ready()
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

  test('drops of a foreign board of the cabinets at its former hub are not booked, and the hub sells without the cloud', () => {
    const bench = TestHub.ready()
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

  test('an operation of the replaced board is unknown, and is not repeated (I1)', () => {
    const bench = TestHub.ready()
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

  test('a taken-over board stays the hub’s own after a restart of the hub', () => {
    const bench = TestHub.ready()
    bench.fault('used_board', 'vending')
    bench.run(5000)
    bench.restart()
    bench.run(5000)
    expect(bench.core.foreignControllers()).toEqual(['vending'])
    bench.core.takeOverController('vending')
    bench.run(3000)
    bench.restart()
    bench.run(3000)
    bench.welcome()
    expect(bench.core.foreignControllers()).toEqual([])
    expect(bench.inboxResets).toBe(0)
    bench.queue(1, { 1: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })
})

test('the hub’s own board that lost its memory and restarts on the open line is taken over automatically', () => {
  const bench = TestHub.ready()
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

describe('a new board on a line that had its own board, or a cable to another room', () => {
  /** The line was dead before, so that nothing proves that the board was there. */
  const replaceByNew = (bench: TestHub, controller: string): void => {
    bench.fault('memory_loss', controller, { for_ms: 10_000 })
    bench.run(15_000)
  }

  test('a new board moves nothing and changes nothing before a person takes it over', () => {
    const bench = TestHub.ready()
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

  test('a new board moves nothing after a restart of the hub either', () => {
    const bench = TestHub.ready()
    replaceByNew(bench, 'bins')
    bench.restart()
    bench.run(5000)
    expect(bench.core.foreignControllers()).toEqual(['bins'])
  })

  test('a foreign board that loses its memory on the open line stays foreign', () => {
    const bench = TestHub.ready()
    bench.fault('used_board', 'bins')
    bench.run(5000)
    bench.fault('memory_loss', 'bins')
    bench.run(10_000)
    expect(bench.core.foreignControllers()).toEqual(['bins'])
  })

  test('the hub’s own board that loses its memory twice is taken over automatically', () => {
    const bench = TestHub.ready()
    bench.fault('memory_loss', 'bins')
    bench.runUntil(() => bench.entries('alarm').length > 0)
    bench.fault('memory_loss', 'bins')
    bench.run(10_000)
    expect(bench.core.foreignControllers()).toEqual([])
    expect(bench.core.health().bins).toMatchObject([{ status: 'healthy' }, { status: 'healthy' }])
  })
})

test('operations of a board are not applied twice if the next board of the hub and the journal change too', () => {
  const bench = TestHub.ready()
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

describe('a hub that has moved to another cell, where it has another number and a new journal', () => {
  const moved = (formerHubId: number | undefined): TestHub => {
    const bench = TestHub.ready()
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
    const { results } = bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
    bench.runUntil(() => results.length > 0)
    bench.run(1000)
    bench.takeAll()
    expect(bench.runUntil(() => bench.phase(1) === 'completed', 60_000)).toBe(true)
    bench.run(5000)
    bench.hardware = { ...bench.hardware, hubId: 100_000_001 }
    bench.formerHubId = formerHubId
    bench.restartOn()
    bench.apply(bench.snapshot())
    bench.run(10_000)
    return bench
  }

  test('it takes over its own boards without their old operations, and sells', () => {
    const bench = moved(1)
    expect(bench.core.foreignControllers()).toEqual([])
    expect([
      bench.entries('stock.dropped'),
      alarmCodes(bench).filter((text) => text.endsWith('true')),
    ]).toEqual([[], []])
    bench.queue(2, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(2) === 'ready', 60_000)).toBe(true)
    // Now they are its own boards, also for a store that knows no former number.
    bench.formerHubId = undefined
    bench.restart()
    bench.run(5000)
    expect(bench.core.foreignControllers()).toEqual([])
  })

  test.each([undefined, 17])(
    'boards of a hub that is not its former number (%j) wait for a person',
    (formerHubId) => {
      const bench = moved(formerHubId)
      expect(bench.core.foreignControllers().toSorted()).toEqual(['bins', 'cold', 'vending'])
      expect(bench.core.takeOverController('bins')).toEqual({ ok: true })
    },
  )
})

describe('lines to the wrong board', () => {
  const cross = (bench: TestHub): void => {
    bench.plugs.set('bins', 'vending').set('vending', 'bins')
    bench.restart()
    bench.run(5000)
  }
  const uncross = (bench: TestHub): void => {
    bench.plugs.clear()
    bench.restart()
    bench.run(5000)
    bench.welcome()
  }

  test('nothing moves on wrong lines, an alarm reports them, and all is well after their correction', () => {
    const bench = TestHub.ready()
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

  test('no board is taken over on the wrong line at the very first start', () => {
    const bench = new TestHub()
    bench.plugs.set('bins', 'vending').set('vending', 'bins')
    bench.begin()
    bench.apply(bench.snapshot())
    bench.run(5000)
    uncross(bench)
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })
})

describe('a motion that was open when the hardware description changed', () => {
  /** The door of bin 1 moves when the hub stops; the next life has another description. */
  function changed(description: (bins: ControllerDescription) => ControllerDescription): TestHub {
    const bench = TestHub.ready()
    bench.fault('slow_motion', 'bin-1')
    bench.command({ name: 'open_bin', bin: 1 })
    bench.run(100)
    bench.kill()
    bench.fault('memory_loss', 'bins')
    bench.run(5000)
    const { controllers } = simulatedHardware
    bench.hardware = {
      ...simulatedHardware,
      controllers: controllers.map((each) => (each.id === 'bins' ? description(each) : each)),
    }
    bench.begin()
    bench.run(5000)
    expect(bench.entries('command.finished')).toMatchObject([{ outcome: 'unknown', reason: 'interrupted' }])
    return bench
  }

  test('it is settled by the sensors if its controller has another name now', () => {
    const bench = changed((bins) => ({ ...bins, id: 'bins-a' }))
    bench.run(60_000)
    expect(bench.core.unknownOperations()).toEqual([])
    expect(bench.entries('operation.settled')).toMatchObject([{ by: 'sensor' }])
    const { results } = bench.command({ name: 'close_bin', bin: 1 })
    bench.run(60_000)
    expect(results).toMatchObject([{ outcome: 'executed' }])
  })

  test('it is settled by a person if the hub does not have its device any more', () => {
    const bench = changed((bins) => ({ ...bins, devices: bins.devices.slice(1) }))
    const [unknown] = bench.core.unknownOperations()
    expect(unknown).toMatchObject({ device: 'bin-1' })
    expect(bench.core.settle(unknown!.operation_id, true)).toMatchObject({ ok: true })
    expect(bench.core.unknownOperations()).toEqual([])
  })
})

test('the service waits with its stop while a connected controller moves something, and not for a silent controller', () => {
  const bench = TestHub.ready()
  bench.fault('slow_motion', 'bin-1')
  bench.command({ name: 'open_bin', bin: 1 })
  bench.run(100)
  expect(bench.core.reasonToWait()).toBe('something moves')
  bench.run(60_000)
  expect(bench.core.reasonToWait()).toBeUndefined()
  bench.command({ name: 'close_bin', bin: 1 })
  bench.run(100)
  bench.fault('silent_port', 'bins')
  bench.run(60_000)
  expect(bench.core.reasonToWait()).toBeUndefined()
})

test('a controller with an old last motion is not regarded as proof of a newer journal', () => {
  const bench = TestHub.ready()
  bench.command({ name: 'raise_bin', bin: 1 })
  bench.run(10_000)
  // For days it cannot write its memory, and refuses commands.
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
