import { expect, test } from 'vitest'
import { loadState, type State } from '../../../edge/journal/state.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import type { NewRow } from '../../../edge/journal/table.ts'
import type { operations } from '../../../edge/journal/tables.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'

const open = (): { store: Store; state: State; count: (table: string) => unknown } => {
  const store = openStore({ path: ':memory:', checkpoint: noCheckpoint, log: silentLog })
  return {
    store,
    state: loadState(store, [1, 2]),
    count: (table) => store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
  }
}

const operation = (
  id: string,
  controller: string,
  state: NewRow<typeof operations>['state'],
): NewRow<typeof operations> => ({
  id,
  controller,
  device: 'bin-1',
  action: 'open_door',
  max_ms: 1,
  memory_id: 'm',
  state,
  intent_at: 0,
  ended_at: 0,
})

const waiting = { state: 'waiting', bin: null } as const

test('the newest operations of each controller and all unresolved ones are kept', () => {
  const { state } = open()
  state.operations.add(operation('rare', 'bins', 'done'))
  state.operations.add(operation('open', 'vending', 'open'))
  state.operations.add(operation('unknown', 'vending', 'unknown'))
  for (let index = 0; index < 20; index++)
    state.operations.add(operation(`often-${index}`, 'vending', 'done'))
  state.prune({ rows: 5, stockRows: 20_000, acceptances: 20 })
  const left = ['rare', 'open', 'unknown', 'often-14', 'often-15', 'often-19'].map(
    (id) => state.operations.find(id) !== undefined,
  )
  expect(left).toEqual([true, true, true, false, true, true])
})

test('ended orders are deleted with their lines and units, but unfinished ones and those in a bin are kept', () => {
  const { state, count } = open()
  for (let id = 1; id <= 10; id++) {
    state.orders.add({
      id: String(id),
      order_number: id,
      phase: 'queued',
      reserved_bin: null,
      open_when_ready: false,
      start_by: 0,
      bins: [],
      lines: [{ line_id: id, product_id: 1, known_dropped: 0, units: [waiting, waiting] }],
      received_at: 0,
    })
    if (id !== 2) state.orders.change(String(id), { phase: 'completed', ended_at: 0 })
  }
  state.bins.hold(1, '3')
  state.prune({ rows: 4, stockRows: 20_000, acceptances: 20 })
  expect([1, 2, 3, 4, 7].map((id) => state.orders.find(String(id)) !== undefined)).toEqual([
    false,
    true,
    true,
    false,
    true,
  ])
  expect(count('orders')).toBe(6)
})

test('old rows of the stock ledger are summed up, and the sums stay right', () => {
  const { store, state, count } = open()
  const places = [1, 2].map((row) => ({ cabinet: 1, shelf: 1, row }))
  for (const place of places) state.stock.putFacing(place, place.row, true)
  for (let index = 0; index < 100; index++)
    state.stock.change({
      kind: index % 3 === 0 ? 'restocked' : 'dropped',
      location: places[index % 2]!,
      delta: index % 3 === 0 ? 5 : -1,
      causeId: `cause-${index}`,
      at: index,
    })
  const before = places.map((place) => state.stock.facings.find(place)?.quantity)
  state.stock.prune(10)
  state.stock.prune(10)
  expect(count('stock_ledger')).toBe(12)
  expect(places.map((place) => state.stock.facings.find(place)?.quantity)).toEqual(before)
  const sums = places.map((place) =>
    store.db.prepare('SELECT sum(delta) FROM stock_ledger WHERE row = ?').pluck().get(place.row),
  )
  expect(sums).toEqual(before)
})

test('finished rows leave memory, and are found on the disk', () => {
  const { store, state } = open()
  const order = {
    order_number: 1,
    phase: 'queued',
    reserved_bin: null,
    open_when_ready: false,
    start_by: 0,
  } as const
  const lines = [{ line_id: 1, product_id: 1, known_dropped: 0, units: [waiting] }]
  for (const id of ['a', 'b']) state.orders.add({ ...order, id, lines, bins: [1], received_at: 0 })
  state.operations.add({ ...operation('of a', 'vending', 'open'), order_id: 'a' })
  state.commands.add({ id: 'c', body: {}, is_local: false })
  store.transact(() => {
    state.operations.change('of a', { state: 'done' })
    state.orders.setUnit({ order_id: 'a', line_id: 1, unit: 0 }, 'dropped', 2)
    state.orders.change('a', { phase: 'completed', ended_at: 1 })
    state.commands.change('c', { outcome: 'executed' })
  })
  for (const rows of [state.orders, state.operations, state.commands]) rows.shrink()
  expect(state.orders.all().map(({ id }) => id)).toEqual(['b'])
  expect([state.operations.all(), state.commands.all()]).toEqual([[], []])
  expect(state.orders.units('a')).toMatchObject([{ state: 'dropped', bin: 2 }])
  expect(state.operations.find('of a')).toMatchObject({ state: 'done' })
  expect(state.commands.find('c')).toMatchObject({ outcome: 'executed' })
})

test('a row that left memory can be changed, and the change is rolled back with its transaction', () => {
  const { store, state } = open()
  state.operations.add(operation('a', 'vending', 'done'))
  state.operations.shrink()
  const fails = (): void =>
    store.transact(() => {
      state.operations.change('a', { recheck: true })
      store.savepoint(() => {
        throw new Error('broken')
      })
    })
  expect(fails).toThrow('broken')
  expect(state.operations.find('a')).toMatchObject({ recheck: false })
  store.transact(() => {
    expect(() =>
      store.savepoint(() => {
        state.operations.change('a', { recheck: true })
        throw new Error('broken')
      }),
    ).toThrow('broken')
  })
  expect(state.operations.find('a')).toMatchObject({ recheck: false })
  expect(loadState(store, []).operations.find('a')).toMatchObject({ state: 'done' })
})

test('rows written before a rolled-back savepoint are written again', () => {
  const { store, state } = open()
  store.transact(() => {
    state.operations.add(operation('a', 'vending', 'open'))
    expect(() =>
      store.savepoint(() => {
        // A query writes the changes so far.
        expect(state.operations.settledSince(0)).toEqual([])
        throw new Error('broken')
      }),
    ).toThrow('broken')
  })
  expect(loadState(store, []).operations.open()).toMatchObject([{ id: 'a' }])
})
