import { expect, test } from 'vitest'
import { createJournal, pruneJournal, type Journal } from '../../../edge/journal/journal.ts'
import type { NewOperation } from '../../../edge/journal/operations.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'

const open = (): { store: Store; journal: Journal; count: (table: string) => unknown } => {
  const store = openStore({ path: ':memory:', checkpoint: noCheckpoint, log: silentLog })
  return {
    store,
    journal: createJournal(store, [1, 2]),
    count: (table) => store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
  }
}

const operation = (id: string, controller: string, state: NewOperation['state']): NewOperation => ({
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

test('the newest operations of each controller stay, and those that are not settled', () => {
  const { journal } = open()
  journal.operations.insert(operation('rare', 'bins', 'done'))
  journal.operations.insert(operation('open', 'vending', 'open'))
  journal.operations.insert(operation('unknown', 'vending', 'unknown'))
  for (let index = 0; index < 20; index++)
    journal.operations.insert(operation(`often-${index}`, 'vending', 'done'))
  pruneJournal(journal, 5)
  const left = ['rare', 'open', 'unknown', 'often-14', 'often-15', 'often-19'].map(
    (id) => journal.operations.find(id) !== undefined,
  )
  expect(left).toEqual([true, true, true, false, true, true])
})

test('ended orders go with their lines and units, unfinished ones and those in a bin stay', () => {
  const { journal, count } = open()
  for (let id = 1; id <= 10; id++) {
    journal.orders.insert(
      {
        id: String(id),
        order_number: id,
        phase: 'queued',
        reserved_bin: null,
        open_when_ready: 0,
        start_by: 0,
        bins: '[]',
        received_at: 0,
      },
      [{ order_id: String(id), line_id: id, product_id: 1, quantity: 2, known_dropped: 0 }],
    )
    if (id !== 2) journal.orders.end(String(id), 'completed', 0, null)
  }
  journal.bins.hold(1, '3')
  pruneJournal(journal, 4)
  expect([1, 2, 3, 4, 7].map((id) => journal.orders.find(String(id)) !== undefined)).toEqual([
    false,
    true,
    true,
    false,
    true,
  ])
  expect(count('order_lines')).toBe(6)
  expect(count('units')).toBe(12)
})

test('old rows of the stock ledger are summed up, and still add up', () => {
  const { store, journal, count } = open()
  const places = [1, 2].map((row) => ({ cabinet: 1, shelf: 1, row }))
  for (const place of places) journal.stock.putFacing(place, place.row, true)
  for (let index = 0; index < 100; index++)
    journal.stock.change({
      kind: index % 3 === 0 ? 'restocked' : 'dropped',
      location: places[index % 2]!,
      delta: index % 3 === 0 ? 5 : -1,
      causeId: `cause-${index}`,
      at: index,
    })
  const before = places.map((place) => journal.stock.facing(place)?.quantity)
  journal.stock.prune(10)
  journal.stock.prune(10)
  expect(count('stock_ledger')).toBe(12)
  expect(places.map((place) => journal.stock.facing(place)?.quantity)).toEqual(before)
  const sums = places.map((place) =>
    store.db.prepare('SELECT sum(delta) FROM stock_ledger WHERE row = ?').pluck().get(place.row),
  )
  expect(sums).toEqual(before)
})

test('of orders that have ended nothing is kept in memory, whoever asks for them', () => {
  const { store } = open()
  const all: Set<unknown>[] = []
  const keys = (): unknown[] => [...new Set(all.flatMap((each) => [...each]))]
  const noted: Store = {
    ...store,
    keepBy<Key, T>(read: (key: Key) => T) {
      const kept = store.keepBy(read)
      const keys = new Set<unknown>()
      all.push(keys)
      return {
        get(key: Key) {
          keys.add(key)
          return kept.get(key)
        },
        forget(...forgotten: [Key] | []) {
          if (forgotten.length === 0) keys.clear()
          else keys.delete(forgotten[0])
          kept.forget(...forgotten)
        },
      }
    },
  }
  const { orders } = createJournal(noted, [1, 2])
  const unit = { order_id: 'a', line_id: 1, unit: 0 }
  const row = {
    phase: 'queued',
    reserved_bin: null,
    open_when_ready: 0,
    start_by: 0,
    received_at: 0,
  } as const
  orders.insert({ ...row, id: 'a', order_number: 1, bins: '[]' }, [
    { order_id: 'a', line_id: 1, product_id: 1, quantity: 1, known_dropped: 0 },
  ])
  const ask = (): unknown => [orders.lines('a').length, orders.units('a')]
  expect(ask()).toEqual([1, [{ ...unit, state: 'waiting', bin: null }]])
  expect(keys()).toEqual(['a'])
  orders.setUnit(unit, 'dropped', 2)
  ask()
  orders.end('a', 'completed', 1, null)
  expect(keys()).toEqual([])
  expect(ask()).toEqual([1, [{ ...unit, state: 'dropped', bin: 2 }]])
  expect(keys()).toEqual([])
})
