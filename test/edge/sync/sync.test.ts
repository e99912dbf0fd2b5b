import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { defaultSyncSettings } from '../../../edge/sync/settings.ts'
import type { SyncSettings } from '../../../edge/sync/settings.ts'
import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { virtualRuntime } from '../../support/virtual-clock.ts'
import { alarm, Crash, effectsIn, startHub } from './hub-life.ts'
import { Line } from './line.ts'
import { ScriptedCloud } from './scripted-cloud.ts'

const cancel = (order_id: number): CloudEntry => ({ kind: 'order.cancel', order_id })

function setUp(settings: Partial<SyncSettings> = {}) {
  const runtime = virtualRuntime()
  const { clock } = runtime
  const line = new Line(clock)
  const cloud = new ScriptedCloud(line, clock)
  const db = new Database(':memory:')
  const startOn = (db: Database.Database) =>
    startHub(db, line, runtime, { ...defaultSyncSettings, ...settings })
  const start = () => startOn(db)
  const details = (): unknown[] =>
    cloud.streams.ledger.applied.map((body) => {
      const entry = body as { kind: string; detail?: string }
      return entry.detail ?? entry.kind
    })
  return { clock, line, cloud, db, start, startOn, details }
}

describe('a session', () => {
  test('begins with its will, presence, hello and a heartbeat, and ends with a goodbye', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    expect(hub.sync.state()).toMatchObject({ phase: 'connecting', heardMsAgo: null })
    clock.advance(10)
    const { session } = cloud.hellos[0]!
    expect(cloud.presences).toEqual([JSON.stringify({ session, online: true })])
    expect(cloud.heartbeats).toMatchObject([{ session, health: { accepting_orders: true } }])
    expect(hub.sync.state()).toMatchObject({ phase: 'welcomed', session })
    hub.sync.stop()
    clock.advance(60_000)
    expect(cloud.presences[1]).toBe(JSON.stringify({ session, online: false }))
    expect(hub.sync.state().phase).toBe('stopped')
    expect(line.connections).toBe(1)
    expect(clock.pending).toBe(0)
  })

  test('has an id of its own on every connection, and its will names it', () => {
    const { clock, line, cloud, start } = setUp()
    start()
    clock.advance(10)
    line.cut()
    clock.advance(1000)
    expect(cloud.hellos[1]!.session).not.toBe(cloud.hellos[0]!.session)
    expect(line.wills).toEqual([JSON.stringify({ session: cloud.hellos[0]!.session, online: false })])
  })

  test('is opened again for ever, with a back-off that a welcome resets', () => {
    const { clock, line, start } = setUp()
    const hub = start()
    line.up = false
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('waiting')
    clock.advance(24 * 3600_000)
    line.up = true
    clock.advance(30_000)
    expect(hub.sync.state().phase).toBe('welcomed')
    line.cut()
    clock.advance(510)
    expect(line.connections).toBe(2)
  })

  test('repeats its hello until the welcome to this very session and hello comes', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    const hub = start()
    clock.advance(10_000)
    expect(cloud.hellos.map((hello) => hello.session)).toEqual(Array(4).fill(cloud.session))
    cloud.send('welcome', cloud.welcome({ session: 'f'.repeat(32) }))
    cloud.send('welcome', cloud.welcome({ answers: cloud.hellos[0]!.clock.monotonic }))
    cloud.send('welcome', cloud.welcome({ protocol: 99 }))
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('greeting')
    cloud.send('welcome', cloud.welcome())
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('welcomed')
    const count = cloud.hellos.length
    clock.advance(30_000)
    expect(cloud.hellos).toHaveLength(count)
  })

  test('answers a hail with a hello, at most once a second', () => {
    const { clock, cloud, start } = setUp()
    start()
    clock.advance(5000)
    for (let n = 0; n < 10; n++) cloud.send('hail', { session: null })
    clock.advance(500)
    expect(cloud.hellos).toHaveLength(2)
    cloud.send('hail', { session: null })
    clock.advance(300)
    expect(cloud.hellos).toHaveLength(2)
    clock.advance(500)
    expect(cloud.hellos).toHaveLength(3)
  })

  test('says hello again when the cloud takes nothing, or is not heard, without dropping the connection', () => {
    const { clock, line, cloud, start, details } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.answersBatches = false
    hub.report('a')
    clock.advance(7000)
    expect(cloud.hellos).toHaveLength(2)
    cloud.answersBatches = true
    clock.advance(40_000)
    expect(details()).toEqual(['a'])
    const count = cloud.hellos.length
    clock.advance(60_001)
    expect(cloud.hellos).toHaveLength(count + 1)
    expect(line.connections).toBe(1)
  })

  test('is deaf to nonsense', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    for (const channel of ['welcome', 'entries', 'ack', 'command', 'hail'] as const)
      for (const payload of ['', '{', 'null', '[]', '{"epoch":1}', `"${'x'.repeat(1_100_000)}"`])
        cloud.send(channel, payload)
    clock.advance(10)
    expect(hub.warnings).toHaveLength(30)
    hub.report('a')
    clock.advance(10)
    expect(cloud.streams.ledger.applied).toHaveLength(1)
  })
})

describe('the heartbeat', () => {
  test('comes every 15 s, and once half a second after changes of health', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(45_010)
    expect(cloud.heartbeats).toHaveLength(4)
    hub.changeHealth()
    clock.advance(400)
    hub.changeHealth()
    clock.advance(90)
    expect(cloud.heartbeats).toHaveLength(4)
    clock.advance(20)
    expect(cloud.heartbeats).toHaveLength(5)
    expect(cloud.heartbeats[4]!.monotonic).toBe(45_510)
  })
})

describe("the cloud's clock", () => {
  test('is its time in the welcome, carried on by the monotonic clock whatever the wall clock does', () => {
    const { clock, cloud, start } = setUp()
    clock.advance(5000)
    clock.shiftWall(-1e12)
    const hub = start()
    clock.advance(3)
    expect(hub.offsets).toEqual([cloud.wallMs - 5003])
  })
})

describe('the ledger', () => {
  test('I4: what was reported offline arrives in order, and is forgotten when the cloud has it', () => {
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

  test('I4: an accepting broker is no acknowledgement', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersBatches = false
    const hub = start()
    hub.report('a')
    clock.advance(3600_000)
    expect(cloud.batches.length).toBeGreaterThan(3)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 0, last: 1 })
  })

  test('splits batches by their bytes, and sends a longer entry alone', () => {
    const { clock, cloud, start, details } = setUp({ batchBytes: 2000 })
    const hub = start()
    const all = ['x'.repeat(900), 'y'.repeat(500), '3', '4', '5', '6', '7', '8', '9']
    clock.advance(10)
    cloud.answersBatches = false
    hub.outbox.append('ledger', alarm('first'))
    hub.outbox.append('ledger', { kind: 'snapshot', at: 1, stock: bigStock })
    for (const detail of all) hub.report(detail)
    cloud.answersBatches = true
    clock.advance(10_000)
    expect(details()).toEqual(['first', 'snapshot', ...all])
    const lengths = cloud.batches.map((batch) => JSON.stringify(batch.entries).length)
    expect(lengths.filter((length) => length > 2100)).toHaveLength(lengths.filter((l) => l > 20_000).length)
  })

  test('a cloud that lost what it had acknowledged gets a new epoch with a snapshot', () => {
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
  })

  test('a hub restored from a copy that has outgrown it since is found out by its tags', () => {
    const { clock, line, cloud, db, start, startOn, details } = setUp()
    const first = start()
    first.report('a')
    clock.advance(100)
    const copy = db.serialize()
    for (const detail of ['b', 'c']) first.report(detail)
    clock.advance(100)
    first.kill()
    line.up = false
    const hub = startOn(new Database(copy))
    for (const detail of ['d', 'e', 'f', 'g']) hub.report(detail)
    line.up = true
    clock.advance(10_000)
    expect(details()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'snapshot'])
    expect(new Set(cloud.hellos.map((hello) => hello.ledger.epoch)).size).toBe(2)
    expect(hub.outbox.position('ledger')).toMatchObject({ base: 5, last: 5 })
  })

  test('a restart that the welcome asks for is answered with a new epoch', () => {
    const { clock, cloud, start, details } = setUp()
    cloud.answersHello = false
    const hub = start()
    hub.report('a')
    clock.advance(10)
    const { epoch } = hub.outbox.position('ledger')
    cloud.answersHello = true
    cloud.send('welcome', cloud.welcome({ ledger: { epoch: null, cursor: 0, tag: 0, restart: true } }))
    clock.advance(5000)
    expect(details()).toEqual(['a', 'snapshot'])
    expect(hub.outbox.position('ledger').epoch).not.toBe(epoch)
  })
})

describe('telemetry', () => {
  test('that was overwritten before the cloud had it is not waited for', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    clock.advance(100)
    line.up = false
    line.cut()
    for (let celsius = 0; celsius < 50_010; celsius++)
      hub.outbox.append('telemetry', { kind: 'temperature', at: 1, fridge_number: 1, celsius })
    hub.outbox.flush()
    for (let celsius = 50_010; celsius < 50_020; celsius++)
      hub.outbox.append('telemetry', { kind: 'temperature', at: 1, fridge_number: 1, celsius })
    hub.outbox.flush()
    line.up = true
    clock.advance(600_000)
    const seen = cloud.streams.telemetry.applied.map((body) => (body as { celsius: number }).celsius)
    expect(seen).toHaveLength(50_000)
    expect([seen[0], seen.at(-1)]).toEqual([20, 50_019])
  })
})

describe("the cloud's stream", () => {
  test('I3: is applied in order, once, and acknowledged after the commit', () => {
    const { clock, cloud, db, start } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.enqueue(...[1, 2, 3, 4, 5, 6, 7].map(cancel))
    clock.advance(100)
    expect(effectsIn(db)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(cloud.unsent).toBe(0)
    expect(hub.inbox.position().cursor).toBe(7)
  })

  test('I8: goes on behind an entry that cannot be applied', () => {
    const { clock, cloud, db, start } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.enqueue(cancel(12), cancel(13), { kind: 'mystery' } as unknown as CloudEntry, cancel(14))
    clock.advance(100)
    expect(effectsIn(db)).toEqual([12, 14])
    expect(hub.inbox.deadLetters(10)).toHaveLength(2)
    expect(cloud.unsent).toBe(0)
  })

  test('is taken up from the beginning under a new epoch, and not under one that was left', () => {
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
    cloud.send('welcome', cloud.welcome({ outbox: { epoch: old!, base: 0, baseTag: 0, last: 1 } }))
    clock.advance(10)
    expect(cloud.acks.at(-1)).toMatchObject({ epoch: old, fork: true })
    expect(hub.inbox.position().epoch).not.toBe(old)
  })

  test.each(['journal.before-commit', 'journal.after-commit', 'sync.before-ack', 'sync.after-ack'])(
    'I3: survives a crash at %s',
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
])('I4: what was reported survives a crash at %s', (point) => {
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

describe('I2: a command', () => {
  test('is carried out within its session and time, and its result published', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    const id = cloud.command()
    clock.advance(10)
    expect(hub.executed).toEqual([id])
    expect(cloud.results).toMatchObject([{ command_id: id, outcome: 'executed', session: cloud.session }])
  })

  test('of another session is refused', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    const { session } = cloud
    line.cut()
    clock.advance(1000)
    const id = cloud.command({ session })
    clock.advance(10)
    expect(hub.executed).toEqual([])
    expect(cloud.results).toMatchObject([
      { command_id: id, outcome: 'refused', reason: 'stale_session', data: null },
    ])
  })

  test("past its time on the hub's monotonic clock is refused, whatever the wall clock says", () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    clock.shiftWall(-3600_000)
    const late = cloud.command({ expires_monotonic: 10 })
    clock.advance(10)
    clock.shiftWall(7200_000)
    const timely = cloud.command()
    clock.advance(10)
    expect(cloud.results.map(({ command_id, reason }) => [command_id, reason])).toEqual([
      [late, 'expired'],
      [timely, null],
    ])
    expect(hub.executed).toEqual([timely])
  })
})

const bigStock = Array.from({ length: 400 }, (_, n) => ({
  product_id: n,
  location: { cabinet: 1, shelf: 1, row: 1 },
  quantity: 1,
}))
