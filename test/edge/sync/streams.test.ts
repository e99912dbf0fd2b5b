import { describe, expect, test } from 'vitest'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { alarm, Crash, effectsIn } from './hub-life.ts'
import { setUp } from './set-up.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { uuid } from '../../support/uuid.ts'

const cancel = (order: number): CloudEntry => ({ kind: 'order.cancel', order_id: uuid(order) })
const bigStock = Array.from({ length: 400 }, (_, n) => ({
  product_id: n,
  location: { cabinet: 1, shelf: 1, row: 1 },
  quantity: 1,
}))

describe('the ledger', () => {
  test('I4: offline reports arrive in order, and are deleted when the cloud has them', () => {
    const { clock, line, start, details } = setUp()
    line.up = false
    const hub = start()
    const all = Array.from({ length: 2500 }, (_, n) => `${n}`)
    for (const detail of all) hub.report(detail)
    clock.advance(60_000)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 0, last: 2500 })
    line.up = true
    clock.advance(60_000)
    expect(details()).toEqual(all)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 2500, last: 2500 })
  })

  test('I4: a PUBACK of the broker is no acknowledgement', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersBatches = false
    const hub = start()
    hub.report('a')
    clock.advance(3600_000)
    expect(cloud.batches.length).toBeGreaterThan(3)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 0, last: 1 })
  })

  test('the ledger splits batches by bytes, and sends a longer entry alone', () => {
    const { clock, cloud, start, details } = setUp({ batchBytes: 2000 })
    const hub = start()
    const all = ['x'.repeat(900), 'y'.repeat(500), '3', '4', '5', '6', '7', '8', '9']
    clock.advance(10)
    cloud.answersBatches = false
    hub.outbox.append('ledger', alarm('first'))
    hub.outbox.append('ledger', { kind: 'snapshot', at: 1, stock: bigStock, states: [], alarms: [] })
    for (const detail of all) hub.report(detail)
    cloud.answersBatches = true
    clock.advance(10_000)
    expect(details()).toEqual(['first', 'snapshot', ...all])
    const lengths = cloud.batches.map((batch) => JSON.stringify(batch.entries).length)
    expect(lengths.filter((length) => length > 2100)).toHaveLength(lengths.filter((l) => l > 20_000).length)
  })

  test('entries of one moment are sent together, and deleted together', () => {
    const { clock, cloud, start, details } = setUp({ lingerMs: 20 })
    const hub = start()
    clock.advance(1000)
    for (const detail of ['a', 'b', 'c']) {
      hub.report(detail)
      clock.advance(6)
    }
    expect(cloud.batches).toEqual([])
    clock.advance(50)
    expect(cloud.batches).toHaveLength(1)
    expect(details()).toEqual(['a', 'b', 'c'])
    hub.report('d')
    clock.advance(50)
    expect(details()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('a cloud that lost acknowledged entries gets a new epoch with a snapshot', () => {
    const { clock, line, cloud, start, details } = setUp()
    const hub = start()
    for (const detail of ['a', 'b', 'c']) hub.report(detail)
    clock.advance(100)
    line.cut()
    hub.report('d')
    const { epoch } = hub.outbox.position('ledger')
    cloud.loseLedger(1, 12345)
    clock.advance(10_000)
    expect(hub.outbox.position('ledger').epoch).not.toBe(epoch)
    expect(details()).toEqual(['a', 'b', 'c', 'd', 'snapshot'])
    expect(hub.outbox.knownEpochs()).toHaveLength(2)
    expect(hub.restarts).toEqual([undefined])
  })

  test('a hub restored from a copy that has outgrown the lost entries is detected by its tags', () => {
    const { clock, line, cloud, db, start, startOn, details } = setUp()
    const first = start()
    first.report('a')
    clock.advance(100)
    const copy = db.serialize()
    for (const detail of ['b', 'c']) first.report(detail)
    clock.advance(100)
    first.kill()
    line.up = false
    const hub = startOn(new Sqlite(copy))
    for (const detail of ['d', 'e', 'f', 'g']) hub.report(detail)
    line.up = true
    clock.advance(10_000)
    expect(details()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'snapshot'])
    expect(hub.restarts).toEqual(['ahead'])
    expect(new Set(cloud.hellos.map((hello) => hello.ledger.epoch)).size).toBe(2)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 5, last: 5 })
  })

  test('the core is informed if the cloud is ahead of a restored copy', () => {
    const { clock, db, start, startOn } = setUp()
    const first = start()
    first.report('a')
    clock.advance(100)
    const copy = db.serialize()
    first.report('b')
    clock.advance(100)
    first.kill()
    const hub = startOn(new Sqlite(copy))
    clock.advance(10_000)
    expect(hub.restarts).toEqual(['ahead'])
  })

  test('a restart requested by the welcome starts a new epoch', () => {
    const { clock, cloud, start, details } = setUp()
    cloud.answersHello = false
    const hub = start()
    hub.report('a')
    clock.advance(10)
    const { epoch } = hub.outbox.position('ledger')
    cloud.answersHello = true
    cloud.send(
      'welcome',
      cloud.welcome({ ledger: { epoch: null, cursor: 0, tag: 0, restart: true, left: false } }),
    )
    clock.advance(5000)
    expect(details()).toEqual(['a', 'snapshot'])
    expect(hub.outbox.position('ledger').epoch).not.toBe(epoch)
    expect(hub.restarts).toEqual([undefined])
  })

  test('the core is informed if the cloud has left this epoch for another one, and so is ahead', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    const hub = start()
    clock.advance(10)
    cloud.answersHello = true
    const elsewhere = { epoch: 'f'.repeat(32), cursor: 4, tag: 9, restart: true, left: true }
    cloud.send('welcome', cloud.welcome({ ledger: elsewhere }))
    clock.advance(10)
    expect(hub.restarts).toEqual(['ahead'])
  })
})

describe('I4: a new epoch without space on a full disk', () => {
  test('a new epoch that the welcome requests starts when a full disk has space again', () => {
    const { clock, line, cloud, start, details } = setUp()
    const hub = start()
    for (const detail of ['a', 'b', 'c']) hub.report(detail)
    clock.advance(100)
    line.cut()
    cloud.loseLedger(5, 12345)
    hub.isDiskFull = true
    clock.advance(10 * 60_000)
    hub.isDiskFull = false
    hub.report('d')
    clock.advance(10_000)
    expect(details()).toEqual(['a', 'b', 'c', 'd', 'snapshot'])
    expect(line.connections).toBe(2)
  })

  test('a new epoch that an acknowledgement requests starts when a full disk has space again', () => {
    const { clock, cloud, start, details } = setUp()
    const hub = start()
    hub.report('a')
    clock.advance(100)
    cloud.loseLedger(1, 12345)
    hub.isDiskFull = true
    hub.report('b')
    clock.advance(10 * 60_000)
    hub.isDiskFull = false
    clock.advance(10_000)
    expect(details()).toEqual(['a', 'b', 'snapshot'])
  })
})

describe('telemetry', () => {
  test('overwritten telemetry that the cloud does not have is not awaited', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    clock.advance(100)
    line.up = false
    line.cut()
    const reading = { kind: 'temperature', at: 1, fridge_number: 1, min: 1, max: 5 } as const
    for (let celsius = 0; celsius < 50_010; celsius++) hub.outbox.append('telemetry', { ...reading, celsius })
    hub.outbox.flush()
    for (let celsius = 50_010; celsius < 50_020; celsius++)
      hub.outbox.append('telemetry', { ...reading, celsius })
    hub.outbox.flush()
    line.up = true
    clock.advance(600_000)
    const seen = cloud.streams.telemetry.applied.map((body) => (body as { celsius: number }).celsius)
    expect(seen).toHaveLength(50_000)
    expect([seen[0], seen.at(-1)]).toEqual([20, 50_019])
  })
})

describe("the cloud's stream", () => {
  test('I3: the cloud’s stream is applied in order, once, and acknowledged after the commit', () => {
    const { clock, cloud, db, start } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.enqueue(...[1, 2, 3, 4, 5, 6, 7].map(cancel))
    clock.advance(100)
    expect(effectsIn(db)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(cloud.unsent).toBe(0)
    expect(hub.inbox.position().cursor).toBe(7)
  })

  test('I8: the cloud’s stream continues after an entry that cannot be applied', () => {
    const { clock, cloud, db, start } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.enqueue(cancel(12), cancel(13), { kind: 'mystery' } as unknown as CloudEntry, cancel(14))
    clock.advance(100)
    expect(effectsIn(db)).toEqual([12, 14])
    expect(hub.inbox.deadLetters(10)).toHaveLength(2)
    expect(cloud.unsent).toBe(0)
  })

  test('the cloud sends its stream from the beginning under a new epoch, but not under a former epoch', () => {
    const { clock, line, cloud, db, start } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.enqueue(cancel(1))
    clock.advance(100)
    const old = hub.inbox.position().epoch
    line.cut()
    cloud.newEpoch()
    cloud.enqueue(cancel(2))
    clock.advance(5000)
    expect(effectsIn(db)).toEqual([1, 2])
    expect(hub.inbox.position().epoch).not.toBe(old)
    cloud.answersHello = false
    cloud.send('hail', { session: null })
    clock.advance(10)
    cloud.send('welcome', cloud.welcome({ outbox: { epoch: old!, base: 0, baseTag: 0, last: 1 } }))
    clock.advance(10)
    expect(cloud.acks.at(-1)).toMatchObject({ epoch: old, fork: true })
    expect(hub.inbox.position().epoch).not.toBe(old)
  })

  test.each(['journal.before-commit', 'journal.after-commit', 'sync.before-ack', 'sync.after-ack'])(
    'I3: the cloud’s stream survives a crash at %s',
    (point) => {
      const { clock, cloud, db, start } = setUp()
      const hub = start()
      clock.advance(10)
      hub.gate.crashAt = point
      cloud.enqueue(cancel(1), cancel(2))
      expect(() => clock.advance(100)).toThrow(Crash)
      start()
      clock.advance(10_000)
      expect(effectsIn(db)).toEqual([1, 2])
      expect(cloud.unsent).toBe(0)
    },
  )
})

test.each([
  'sync.after-hello',
  'sync.before-send',
  'sync.after-send',
  'journal.before-commit',
  'journal.after-commit',
])('I4: a reported entry survives a crash at %s', (point) => {
  const { clock, line, start, details } = setUp()
  line.up = false
  const hub = start()
  for (const detail of ['a', 'b']) hub.report(detail)
  hub.gate.crashAt = point
  line.up = true
  expect(() => clock.advance(10_000)).toThrow(Crash)
  const next = start()
  next.report('c')
  clock.advance(10_000)
  expect(details()).toEqual(['a', 'b', 'c'])
  expect(next.outbox.position('ledger')).toMatchObject({ base: 3, last: 3 })
})
