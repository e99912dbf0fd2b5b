import { expect, test } from 'vitest'
import type { State } from '../../../protocol/mqtt/hub-entries.ts'
import { uuid } from '../../support/uuid.ts'
import { stockedFacings } from '../../simulation/hardware.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

const settled = (bench: TestHub, order = 1): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(order) ?? 'queued')

/** Time passes, and the cloud reads each entry when it is written, so that no later one replaces it. */
const runRead = (bench: TestHub, ms: number, done: () => boolean = () => false): boolean =>
  bench.runUntil(() => bench.ledger().length === 0 || done(), ms)

/** States in the ledger, each as `subject: state`, oldest first. */
const told = (bench: TestHub, of?: State['of']): string[] =>
  bench
    .entries('state')
    .filter(({ state }) => of === undefined || state.of === of)
    .map(({ state }) => line(state))

function line(state: State): string {
  switch (state.of) {
    case 'row':
      return `row ${state.location.cabinet}/${state.location.shelf}/${state.location.row}: ${state.blocked}`
    case 'bin':
      return `bin ${state.bin}: ${[state.state, state.fault].filter((word) => word !== null).join(' ')}`
    case 'cabinet':
      return `cabinet ${state.cabinet}: ${state.withheld}`
    case 'fridge':
      return `fridge ${state.fridge}: ${state.state}`
  }
}

const alarms = (bench: TestHub): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

test('states of bins, cabinets and fridges are reported once, and again at each change', () => {
  const bench = TestHub.ready()
  bench.run(30_000)
  expect(told(bench).toSorted()).toEqual([
    'bin 1: free',
    'bin 2: free',
    'cabinet 1: null',
    'cabinet 2: null',
    'fridge 1: cold',
  ])
  bench.queue(1, { 4: 1 }, { open_when_ready: true })
  runRead(bench, 600_000, () => bench.phase(1) === 'collecting')
  runRead(bench, 1000)
  bench.takeAll()
  runRead(bench, 60_000)
  expect(bench.phase(1)).toBe('completed')
  expect(told(bench, 'bin').slice(2)).toEqual(['bin 1: held', 'bin 1: free'])
})

test('a restart reports no state again, and a new epoch reports all in its snapshot', () => {
  const bench = TestHub.ready()
  bench.fault('empty_turn', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  bench.run(60_000)
  const before = told(bench)
  bench.restart()
  bench.run(2000)
  bench.welcome()
  bench.run(28_000)
  expect(told(bench)).toEqual(before)
  bench.core.restartLedger('test')
  const snapshot = bench.entries('snapshot').at(-1)!
  expect(snapshot.states.map(line)).toEqual([
    'bin 1: free',
    'bin 2: free',
    'cabinet 1: null',
    'cabinet 2: null',
    'fridge 1: cold',
    'row 1/1/3: no_drop',
  ])
  expect(snapshot.states.every(({ since }) => since > 0 && since <= bench.core.cloudNow())).toBe(true)
  expect(snapshot.alarms).toMatchObject([{ code: 'row_blocked', subject: 'row 1/1/3', detail: 'no_drop' }])
})

test.each([
  ['empty_turn', 'no_drop'],
  ['missed_drop', 'no_drop'],
  ['jam', 'jam'],
] as const)('a row without a drop (%s) is reported as blocked until it is counted', (fault, why) => {
  const bench = TestHub.ready()
  const raised = bench.fault(fault, 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  bench.room.faults.clear(raised)
  expect(told(bench, 'row')).toEqual([`row 1/1/3: ${why}`])
  expect(alarms(bench)).toContain('row_blocked row 1/1/3 true')
  expect(bench.core.stock().find(({ product_id }) => product_id === 3)?.blocked).toBe(why)
  const kinds = bench.kinds()
  expect(kinds.indexOf('state', kinds.indexOf('operation.unknown'))).toBe(
    kinds.indexOf('operation.unknown') + 1,
  )
  bench.core.count({ cabinet: 1, shelf: 1, row: 3 }, bench.shelf('1-1-3'))
  expect(told(bench, 'row')).toEqual([`row 1/1/3: ${why}`, 'row 1/1/3: null'])
  expect(alarms(bench)).toContain('row_blocked row 1/1/3 false')
})

test('removed hardware is reported once as out of use, and is in no snapshot', () => {
  const bench = TestHub.ready()
  const { controllers } = bench.hardware
  bench.hardware = {
    ...bench.hardware,
    controllers: controllers
      .filter(({ id }) => id !== 'cold')
      .map((each) => ({
        ...each,
        devices: each.devices.filter(({ kind, number }) => kind !== 'bin' || number !== 2),
      })),
  }
  const before = bench.ledger().length
  bench.restart()
  bench.run(5000)
  bench.restart()
  bench.run(5000)
  const told = bench
    .ledger()
    .slice(before)
    .flatMap((entry) => (entry.kind === 'state' ? [entry.state] : []))
  expect(told).toMatchObject([
    { of: 'bin', bin: 2, state: 'offline' },
    { of: 'fridge', fridge: 1, state: 'unknown' },
  ])
  bench.core.restartLedger('test')
  const { states } = bench.entries('snapshot').at(-1)!
  expect(states.filter(({ of }) => of === 'bin')).toMatchObject([{ bin: 1, state: 'free' }])
  expect(states.filter(({ of }) => of === 'fridge')).toEqual([])
})

test('a row that failed without a motion is not sold until a unit has dropped from it', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('jam_without_motion', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => settled(bench))
  expect(told(bench, 'row')).toEqual(['row 1/1/3: jam'])
  bench.restart()
  bench.run(30_000)
  bench.room.faults.clear(fault)
  // It was sold before the cloud received the report.
  bench.queue(2, { 3: 1 })
  bench.runUntil(() => settled(bench, 2))
  expect(bench.phase(2)).toBe('ready')
  expect(told(bench, 'row')).toEqual(['row 1/1/3: jam', 'row 1/1/3: null'])
})

test('a row that failed without a motion is retried with growing pauses and a limit, if another row can replace it', () => {
  const bench = TestHub.ready()
  bench.apply({ kind: 'config', config: { ...config, unclaimed_timeout_ms: 1000 } })
  bench.fault('jam_without_motion', 'cabinet-1')
  const triesOf = (): number =>
    Number(
      bench.journal
        .prepare("SELECT count(*) FROM operations WHERE device = 'cabinet-1' AND state = 'nothing'")
        .pluck()
        .get(),
    )
  const tries: number[] = []
  for (let order = 1; order <= 3; order++) {
    bench.queue(order, { 1: 1 })
    bench.runUntil(() => settled(bench, order))
    expect(bench.entries('order.ready').at(-1)?.lines).toMatchObject([{ dropped: 1 }])
    tries.push(triesOf())
    bench.command({ name: 'open_bin', bin: 1 })
    bench.command({ name: 'open_bin', bin: 2 })
    bench.run(3000)
    bench.takeAll()
    bench.run(order === 1 ? 5 * 60_000 : 11 * 60_000)
  }
  expect(tries).toEqual([1, 1, 2])
})

test('a bin with left units is reported as such until it is emptied and closed', () => {
  const bench = TestHub.ready()
  runRead(bench, 1000)
  const fault = bench.fault('missed_drop', 'cabinet-1')
  bench.queue(1, { 3: 1 })
  runRead(bench, 600_000, () => settled(bench))
  bench.room.faults.clear(fault)
  runRead(bench, 5000)
  expect(told(bench, 'bin').slice(2)).toEqual(['bin 1: held', 'bin 1: left_behind'])
  expect(bench.entries('state').findLast(({ state }) => state.of === 'bin')?.state).toMatchObject({
    order_id: uuid(1),
    capacity: 4,
  })
  expect(alarms(bench)).toContain('bin_blocked bin 1 true')
  bench.command({ name: 'open_bin', bin: 1 })
  bench.run(3000)
  bench.takeAll()
  bench.run(30_000)
  expect(told(bench, 'bin').at(-1)).toBe('bin 1: free')
  expect(alarms(bench)).toContain('bin_blocked bin 1 false')
})

test('a bin with a failed motion is faulty, and the hub tests automatically whether it moves again', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('jam', 'bin-1')
  runRead(bench, 1000)
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  runRead(bench, 600_000, () => results.length > 0)
  runRead(bench, 20_000)
  expect(bench.core.health().bins[0]).toMatchObject({ status: 'fault', fault_code: 'open_door:jam' })
  expect(told(bench, 'bin').slice(2)).toEqual(['bin 1: open', 'bin 1: faulty open_door:jam'])
  expect(alarms(bench)).toEqual(['bin_fault bin 1 true'])
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => settled(bench))
  expect(bench.entries('order.ready')).toMatchObject([{ bins: [2] }])
  bench.room.faults.clear(fault)
  bench.run(90_000)
  expect(bench.core.health().bins[0]).toMatchObject({ status: 'healthy', fault_code: null, door: 'closed' })
  expect(told(bench, 'bin').at(-1)).toBe('bin 1: free')
  expect(alarms(bench)).toEqual(['bin_fault bin 1 true', 'bin_fault bin 1 false'])
})

test('lifts that failed in a brown-out are tried again, and the bin recovers without a person', () => {
  const bench = TestHub.ready()
  for (const bin of [1, 2]) {
    bench.fault('weak_supply', `bin-${bin}`, { for_ms: 5000 })
    bench.command({ name: 'raise_bin', bin })
  }
  bench.run(4000)
  expect(bench.core.health().bins).toMatchObject([{ status: 'fault' }, { status: 'fault' }])
  bench.run(60_000)
  expect(bench.core.health().bins).toMatchObject([
    { status: 'healthy', lift: 'down', door: 'closed' },
    { status: 'healthy', lift: 'down', door: 'closed' },
  ])
})

test('a bin that fails repeatedly is left to people after a number of trials', () => {
  const bench = TestHub.ready()
  const fault = bench.fault('jam_without_motion', 'bin-1')
  bench.command({ name: 'raise_bin', bin: 1 })
  bench.run(30 * 60_000)
  const tries = bench.journal.prepare("SELECT count(*) FROM operations WHERE device = 'bin-1'").pluck().get()
  expect(tries).toBe(10)
  bench.room.faults.clear(fault)
  bench.run(5 * 60_000)
  expect(bench.core.health().bins[0]).toMatchObject({ status: 'fault', fault_code: 'raise_lift:jam' })
  bench.command({ name: 'raise_bin', bin: 1 })
  bench.run(5000)
  expect(bench.core.health().bins[0]).toMatchObject({ status: 'healthy', fault_code: null })
})

test('devices of a silent controller are blocked until shortly after it answers again', () => {
  const bench = TestHub.ready()
  const before = told(bench)
  bench.fault('brown_out', 'vending', { for_ms: 1000 })
  bench.run(4000)
  expect(told(bench)).toEqual(before)
  bench.fault('brown_out', 'vending', { for_ms: 20_000 })
  bench.fault('brown_out', 'bins', { for_ms: 20_000 })
  bench.run(15_000)
  expect(told(bench).slice(before.length).toSorted()).toEqual([
    'bin 1: offline',
    'bin 2: offline',
    'cabinet 1: silent',
    'cabinet 2: silent',
  ])
  bench.run(20_000)
  expect(
    told(bench)
      .slice(before.length + 4)
      .toSorted(),
  ).toEqual(['bin 1: free', 'bin 2: free', 'cabinet 1: null', 'cabinet 2: null'])
})

test('a row of the planogram that the hub does not have is blocked, until the planogram drops it', () => {
  const bench = TestHub.ready()
  const known = stockedFacings.map(({ product_id, primary, cabinet, shelf, row }) => ({
    product_id,
    primary,
    location: { cabinet, shelf, row },
  }))
  const nowhere = { product_id: 9, primary: true, location: { cabinet: 1, shelf: 7, row: 1 } }
  bench.apply({ kind: 'planogram', facings: [...known, nowhere] })
  bench.run(1000)
  expect(bench.core.stock().find(({ product_id }) => product_id === 9)).toMatchObject({
    capacity: 0,
    blocked: 'no_such_row',
  })
  const states = () =>
    bench.entries('state').flatMap(({ state }) => (state.of === 'row' ? [state.blocked] : []))
  expect(states()).toEqual(['no_such_row'])
  bench.apply({ kind: 'planogram', facings: known })
  bench.run(1000)
  expect(states()).toEqual(['no_such_row', null])
})
