import { expect, test } from 'vitest'
import { loadState } from '../../../edge/journal/state.ts'
import { JournalOutbox, type Outbox } from '../../../edge/journal/outbox.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore, type Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { HubEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { virtualRuntime } from '../../world/clock.ts'

const database = () => new Sqlite(':memory:')
const storeOn = (db = database()) =>
  openStore({ path: ':memory:', database: db, checkpoint: noCheckpoint, log: silentLog })

let time = 0
const bin = (number: number, state: 'free' | 'open'): HubEntry => ({
  kind: 'state',
  at: ++time,
  state: { of: 'bin', bin: number, capacity: 5, state, order_id: null, fault: null, since: time },
})
const alarm = (subject: string, raised: boolean): HubEntry => ({
  kind: 'alarm',
  at: ++time,
  code: 'bin_blocked',
  subject,
  raised,
  detail: '',
})
const local = (): HubEntry => ({
  kind: 'local',
  person: null,
  shared_token: false,
  at: ++time,
  action: 'unlock_door',
  subject: 'door main',
  outcome: 'executed',
})

/** Waiting entries in short form, and whether their tags are a chain. */
function waiting(outbox: Outbox, store: Store): { short: string[]; isGapless: boolean } {
  const { base, last } = outbox.position('ledger')
  // A read past the outbox, which would regard read entries as sent.
  const body = store.db.prepare<[number], string>('SELECT body FROM outbox_ledger WHERE seq = ?').pluck()
  const seqs = Array.from({ length: last - base }, (_, index) => base + 1 + index)
  const short = seqs.map((seq) => {
    const entry = JSON.parse(body.get(seq)!) as HubEntry
    if (entry.kind === 'state')
      return `${entry.state.of} ${'bin' in entry.state ? entry.state.bin : ''} ${'state' in entry.state ? entry.state.state : ''}`
    return entry.kind === 'alarm' ? `${entry.subject} ${entry.raised ? 'raised' : 'lowered'}` : entry.kind
  })
  return { short, isGapless: seqs.every((seq) => outbox.tagAt('ledger', seq) !== undefined) }
}

test('a sensor that changes 12,000 times while the cloud is unreachable leaves a few entries', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  for (let change = 0; change < 6000; change += 1) {
    const isOpen = change % 2 === 0
    outbox.append('ledger', bin(2, isOpen ? 'open' : 'free'))
    outbox.append('ledger', alarm('bin 2', isOpen))
  }
  outbox.append('ledger', bin(2, 'open'))
  expect(waiting(outbox, store)).toEqual({
    short: ['bin 2 raised', 'bin 2 lowered', 'bin 2 open'],
    isGapless: true,
  })
})

test('entries of other subjects and people’s actions keep their order between replaced states', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(1, 'open'))
  outbox.append('ledger', local())
  outbox.append('ledger', bin(2, 'open'))
  outbox.append('ledger', alarm('bin 3', true))
  outbox.append('ledger', bin(1, 'free'))
  outbox.append('ledger', local())
  outbox.append('ledger', bin(2, 'free'))
  expect(waiting(outbox, store)).toEqual({
    short: ['local', 'bin 3 raised', 'bin 1 free', 'local', 'bin 2 free'],
    isGapless: true,
  })
})

test('an entry that was read for the cloud is not replaced, because it may have arrived', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(1, 'open'))
  outbox.append('ledger', local())
  const sent = outbox.read('ledger', 1, 2).entries
  outbox.append('ledger', bin(1, 'free'))
  outbox.append('ledger', bin(1, 'open'))
  expect(waiting(outbox, store).short).toEqual(['bin 1 open', 'local', 'bin 1 open'])
  expect(outbox.read('ledger', 1, 2).entries).toEqual(sent)
  outbox.forget('ledger', 2)
  outbox.append('ledger', bin(1, 'free'))
  expect(waiting(outbox, store).short).toEqual(['bin 1 free'])
})

test('an entry of an earlier life is not replaced, because that life may have sent it', () => {
  const db = database()
  new JournalOutbox(storeOn(db), virtualRuntime()).append('ledger', bin(1, 'open'))
  const store = storeOn(db)
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(1, 'free'))
  expect(waiting(outbox, store).short).toEqual(['bin 1 open', 'bin 1 free'])
})

test('a failed transaction leaves the entry that it would have replaced', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(1, 'open'))
  outbox.append('ledger', local())
  expect(() =>
    store.transact(() => {
      outbox.append('ledger', bin(1, 'free'))
      throw new Error('undone')
    }),
  ).toThrow('undone')
  expect(waiting(outbox, store)).toEqual({ short: ['bin 1 open', 'local'], isGapless: true })
})

test('under a new epoch an entry that was sent under the former one may be replaced', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(1, 'open'))
  outbox.read('ledger', 1, 1)
  outbox.newEpoch('ledger')
  outbox.append('ledger', bin(1, 'free'))
  expect(waiting(outbox, store).short).toEqual(['bin 1 free'])
})

test('a hub that was never connected has one state of each sensor, and each action of a person', () => {
  const store = storeOn()
  const { held } = loadState(store, [1])
  store.transact(() => {
    for (let change = 0; change < 500; change += 1) held.hold(bin(1, change % 2 === 0 ? 'open' : 'free'))
    held.hold(local())
    held.hold(local())
  })
  expect(held.take().map(({ kind }) => kind)).toEqual(['state', 'local', 'local'])
})

test('a sent entry stays as it was sent if the next epoch cannot be stored', () => {
  const store = storeOn()
  const outbox = new JournalOutbox(store, virtualRuntime())
  outbox.append('ledger', bin(2, 'open'))
  outbox.read('ledger', 1, 10)
  const full = new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL')
  expect(() =>
    store.transact((): void => {
      outbox.newEpoch('ledger')
      throw full
    }),
  ).toThrow('full')
  outbox.append('ledger', bin(2, 'free'))
  expect(waiting(outbox, store).short).toEqual(['bin 2 open', 'bin 2 free'])
})
