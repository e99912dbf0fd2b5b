import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JournalOutbox } from '../../../edge/journal/outbox.ts'
import { defaultOutboxSettings, type OutboxSettings } from '../../../protocol/settings/hub-limits.ts'
import type { Outbox } from '../../../edge/journal/outbox.ts'
import { openStore } from '../../../edge/journal/store.ts'
import type { Store } from '../../../edge/journal/store.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { HubEntry, TelemetryEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { virtualRuntime } from '../../world/clock.ts'

const alarm = (detail: string): HubEntry => ({
  kind: 'alarm',
  at: 1,
  code: 'door_forced',
  subject: 'door main',
  raised: true,
  detail,
})
const reading = (celsius: number): TelemetryEntry => ({
  kind: 'temperature',
  at: 1,
  fridge_number: 1,
  celsius,
  min: celsius,
  max: celsius,
})

function setUp(settings: Partial<OutboxSettings> = {}) {
  const store: Store = openStore({ path: ':memory:', checkpoint: noCheckpoint, log: silentLog })
  const runtime = virtualRuntime()
  const outbox = new JournalOutbox(store, runtime, { ...defaultOutboxSettings, ...settings })
  return { store, runtime, outbox, reopen: () => new JournalOutbox(store, runtime) }
}

const details = (outbox: Outbox): string[] =>
  outbox
    .read('ledger', outbox.position('ledger').base + 1, 1000)
    .entries.map(({ body }) => (JSON.parse(body) as { detail: string }).detail)
const degrees = (outbox: Outbox): number[] =>
  outbox
    .read('telemetry', 1, 1000)
    .entries.map(({ body }) => (JSON.parse(body) as { celsius: number }).celsius)

describe('the ledger', () => {
  test('the ledger starts with its own epoch, which survives a restart', () => {
    const { outbox, reopen } = setUp()
    const position = outbox.position('ledger')
    expect(position).toEqual({ epoch: expect.stringMatching(/^[0-9a-f]{32}$/), base: 0, baseTag: 0, last: 0 })
    expect(outbox.knownEpochs()).toEqual([position.epoch])
    expect(reopen().position('ledger')).toEqual(position)
  })

  test('the ledger numbers entries without gaps, and reuses the number of a rolled-back entry', () => {
    const { outbox, store } = setUp()
    outbox.append('ledger', alarm('a'))
    expect(() =>
      store.transact((): void => {
        outbox.append('ledger', alarm('lost'))
        throw new Error('rolled back')
      }),
    ).toThrow('rolled back')
    outbox.append('ledger', alarm('b'))
    expect(outbox.position('ledger').last).toBe(2)
    expect(details(outbox)).toEqual(['a', 'b'])
  })

  test('the ledger announces entries only after the commit', () => {
    const { outbox, store } = setUp()
    const seen: number[] = []
    outbox.onAppended(() => seen.push(outbox.position('ledger').last))
    store.transact(() => {
      outbox.append('ledger', alarm('a'))
      outbox.append('ledger', alarm('b'))
      expect(seen).toEqual([])
    })
    expect(seen[0]).toBe(2)
    expect(() =>
      store.transact((): void => {
        outbox.append('ledger', alarm('c'))
        throw new Error('rolled back')
      }),
    ).toThrow('rolled back')
    expect(seen.every((last) => last === 2)).toBe(true)
  })

  test('the ledger returns the tag before each slice, also if that entry is deleted', () => {
    const { outbox } = setUp()
    for (const detail of ['a', 'b', 'c']) outbox.append('ledger', alarm(detail))
    const [a, b] = outbox.read('ledger', 1, 2).entries
    expect(outbox.read('ledger', 1, 1).previousTag).toBe(0)
    expect(outbox.read('ledger', 3, 1).previousTag).toBe(b!.tag)
    outbox.forget('ledger', 1)
    expect(outbox.position('ledger')).toMatchObject({ base: 1, baseTag: a!.tag, last: 3 })
    expect(outbox.read('ledger', 2, 1)).toMatchObject({ previousTag: a!.tag, oldest: 2 })
    expect(outbox.tagAt('ledger', 1)).toBe(a!.tag)
    expect(outbox.tagAt('ledger', 2)).toBe(b!.tag)
    expect(outbox.tagAt('ledger', 0)).toBeUndefined()
  })

  test('the ledger deletes acknowledged entries, once, and no others', () => {
    const { outbox } = setUp()
    for (const detail of ['a', 'b', 'c', 'd']) outbox.append('ledger', alarm(detail))
    outbox.forget('ledger', 2)
    outbox.forget('ledger', 1)
    outbox.forget('ledger', 2)
    expect(details(outbox)).toEqual(['c', 'd'])
    outbox.forget('ledger', 4)
    expect(outbox.position('ledger')).toMatchObject({ base: 4, last: 4 })
    outbox.append('ledger', alarm('e'))
    expect(outbox.position('ledger').last).toBe(5)
  })

  test('the ledger continues after its last entry, also if all are deleted and the hub restarted', () => {
    const { outbox, reopen } = setUp()
    for (const detail of ['a', 'b']) outbox.append('ledger', alarm(detail))
    outbox.forget('ledger', 2)
    const next = reopen()
    next.append('ledger', alarm('c'))
    expect(next.position('ledger')).toMatchObject({ base: 2, last: 3 })
  })

  test('the ledger is full at its limit, until the cloud has received some entries', () => {
    const { outbox } = setUp({ ledgerEntries: 2 })
    outbox.append('ledger', alarm('a'))
    expect(outbox.isLedgerFull()).toBe(false)
    outbox.append('ledger', alarm('b'))
    expect(outbox.isLedgerFull()).toBe(true)
    outbox.forget('ledger', 1)
    expect(outbox.isLedgerFull()).toBe(false)
  })
})

describe('a new epoch', () => {
  test('a new epoch starts with its first entries, then the unacknowledged ones in order, then the snapshot', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 20 }),
        fc.nat({ max: 20 }),
        fc.nat({ max: 3 }),
        (count, acknowledged, ahead) => {
          const { outbox } = setUp()
          const first = Array.from({ length: ahead }, (_, index) => `first ${index}`)
          const all = Array.from({ length: count }, (_, index) => `${index}`)
          for (const detail of all) outbox.append('ledger', alarm(detail))
          const forgotten = Math.min(acknowledged, count)
          outbox.forget('ledger', forgotten)
          const { epoch } = outbox.position('ledger')
          outbox.newEpoch('ledger', first.map(alarm))
          outbox.append('ledger', alarm('snapshot'))
          const kept = [...first, ...all.slice(forgotten), 'snapshot']
          expect(outbox.position('ledger')).toMatchObject({ base: 0, baseTag: 0, last: kept.length })
          expect(outbox.read('ledger', 1, 1)).toMatchObject({ previousTag: 0, oldest: 1 })
          expect(details(outbox)).toEqual(kept)
          expect(outbox.knownEpochs()).toEqual([epoch, outbox.position('ledger').epoch])
        },
      ),
      { numRuns: 50 },
    )
  })

  test('a new epoch carries no old snapshot, because its content is outdated', () => {
    const { outbox } = setUp()
    const snapshot: HubEntry = { kind: 'snapshot', at: 1, stock: [], states: [], alarms: [] }
    for (const entry of [alarm('acknowledged'), snapshot, alarm('a'), snapshot, alarm('b'), snapshot])
      outbox.append('ledger', entry)
    outbox.forget('ledger', 1)
    outbox.newEpoch('ledger')
    outbox.append('ledger', alarm('c'))
    expect(details(outbox)).toEqual(['a', 'b', 'c'])
    expect(outbox.position('ledger')).toMatchObject({ base: 0, baseTag: 0, last: 3 })
  })

  test('a new epoch of a copied store disowns the epochs before it', () => {
    const { outbox, store } = setUp()
    store.transact(() => {
      outbox.disown()
      outbox.newEpoch('ledger')
    })
    expect(outbox.knownEpochs()).toEqual([outbox.position('ledger').epoch])
  })
})

describe('telemetry', () => {
  test('telemetry is collected in memory, and written in one transaction', () => {
    const { outbox, store } = setUp()
    const announced: string[] = []
    outbox.onAppended((stream) => announced.push(stream))
    for (const celsius of [1, 2, 3]) outbox.append('telemetry', reading(celsius))
    expect(outbox.position('telemetry').last).toBe(0)
    const before = store.commits()
    outbox.flush()
    outbox.flush()
    expect(store.commits()).toBe(before + 1)
    expect(degrees(outbox)).toEqual([1, 2, 3])
    expect(announced).toEqual(['telemetry'])
  })

  test('telemetry stays in memory if its transaction is rolled back', () => {
    const { outbox, store } = setUp()
    outbox.append('telemetry', reading(1))
    expect(() =>
      store.transact((): void => {
        outbox.flush()
        throw new Error('undone')
      }),
    ).toThrow('undone')
    expect(outbox.position('telemetry').last).toBe(0)
    outbox.flush()
    expect(degrees(outbox)).toEqual([1])
  })

  test('telemetry overwrites its oldest entries, in memory and in the store', () => {
    const { outbox } = setUp({ telemetryEntries: 3 })
    for (const celsius of [1, 2, 3, 4, 5]) outbox.append('telemetry', reading(celsius))
    outbox.flush()
    expect(degrees(outbox)).toEqual([3, 4, 5])
    for (const celsius of [6, 7]) outbox.append('telemetry', reading(celsius))
    const before = outbox.tagAt('telemetry', 2)
    outbox.flush()
    expect(degrees(outbox)).toEqual([5, 6, 7])
    expect(outbox.position('telemetry')).toMatchObject({ base: 2, baseTag: before, last: 5 })
    expect(outbox.read('telemetry', 3, 1).oldest).toBe(3)
  })

  test('acknowledged telemetry is deleted with the next write', () => {
    const { outbox, store } = setUp()
    const stored = (): unknown => store.db.prepare('SELECT seq FROM outbox_telemetry').pluck().all()
    for (const celsius of [1, 2, 3]) outbox.append('telemetry', reading(celsius))
    outbox.flush()
    const before = store.commits()
    outbox.forget('telemetry', 2)
    expect(store.commits()).toBe(before)
    outbox.append('telemetry', reading(4))
    outbox.flush()
    expect(store.commits()).toBe(before + 1)
    expect(stored()).toEqual([3, 4])
  })

  test('acknowledged telemetry is not carried into a new epoch', () => {
    const { outbox } = setUp()
    for (const celsius of [1, 2, 3]) outbox.append('telemetry', reading(celsius))
    outbox.flush()
    outbox.forget('telemetry', 2)
    outbox.newEpoch('telemetry')
    expect(degrees(outbox)).toEqual([3])
    outbox.append('telemetry', reading(4))
    outbox.flush()
    expect(degrees(outbox)).toEqual([3, 4])
  })

  test('telemetry leaves the last space of a full disk to the ledger', () => {
    const { store, runtime } = setUp()
    let full = true
    const outbox = new JournalOutbox(Object.assign(store, { isFull: () => full }), runtime)
    outbox.append('telemetry', reading(1))
    outbox.flush()
    expect(outbox.position('telemetry').last).toBe(0)
    full = false
    outbox.append('telemetry', reading(2))
    outbox.flush()
    expect(degrees(outbox)).toEqual([1, 2])
  })
})
