import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Queries } from '../../../cloud/platform/store/database.ts'
import type { Hello } from '../../../protocol/mqtt/session.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import { insertSent, recordFinished } from '../../../cloud/gateway/command-store.ts'
import { answerHellos } from '../../../cloud/gateway/hello.ts'
import { hubState, noteHealth } from '../../../cloud/gateway/hub-state.ts'
import { LeaseKeeper, type Beat, type Renewal } from '../../../cloud/gateway/leases.ts'
import {
  enqueue,
  forgetEntries,
  isOurHistory,
  readEntries,
  readPosition,
} from '../../../cloud/gateway/outbox.ts'
import { DeadLetterRoom } from '../../../cloud/gateway/dead-letter-room.ts'
import { receiveBatch } from '../../../cloud/gateway/receiver.ts'
import { ApplyError } from '../../../cloud/gateway/domain.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { virtualRuntime, type VirtualRuntime } from '../../world/clock.ts'
import { onEachDatabase } from '../../world/database.ts'
import { healthy } from '../../world/health.ts'
import { seedHub } from '../../world/seeds.ts'
import { inertDomain } from '../../world/gateway.ts'
import { uuid } from '../../support/uuid.ts'
import { testContext } from '../../world/context.ts'
import { lockWaits } from '../../world/lock-waits.ts'

const LEASE_MS = defaultLimits.gateway.leaseMs
const hex = (digit: string): string => digit.repeat(32)
const hello = (changes: Partial<Hello> = {}): Hello => ({
  protocol: 1,
  session: hex('5'),
  software: 'test',
  ledger: { epoch: hex('a'), base: 0, baseTag: 0, last: 0 },
  telemetry: { epoch: hex('b'), base: 0, baseTag: 0, last: 0 },
  inbox: { epoch: null, cursor: 0, tag: 0 },
  clock: { wall: 0, monotonic: 0 },
  ...changes,
})
const alarm = (subject: string) => ({
  kind: 'alarm',
  at: 1.7,
  code: 'door_forced',
  subject,
  raised: true,
  detail: '',
})
const batch = (first: number, ...codes: string[]) => ({
  epoch: hex('a'),
  first,
  previousTag: first === 1 ? 0 : 4_000_000_000 + first - 1,
  oldest: 1,
  entries: codes.map((code, index) => ({ tag: 4_000_000_000 + first + index, body: alarm(code) })),
})

onEachDatabase('the gateway’s store', (open) => {
  let context: CloudContext
  let runtime: VirtualRuntime

  beforeEach(async () => {
    runtime = virtualRuntime()
    const db = await open()
    context = testContext(db, runtime)
    await seedHub(db, 1)
    await seedHub(db, 2)
  })
  const as = (processId: string) => ({
    context,
    domain: inertDomain,
    refusals: cloudRefusals(context),
    leases: new LeaseKeeper({ context, settings: defaultLimits.gateway, processId }),
    erase() {},
  })
  const answerHello = async (greeter: Parameters<typeof answerHellos>[0], hubId: number, said: Hello) =>
    (await answerHellos(greeter, [{ hubId, hello: said }])).get(hubId)
  const receiving = () => {
    const room = new DeadLetterRoom({
      clock: context.runtime.clock,
      settings: defaultLimits.gateway,
      hubId: 1,
    })
    return { context, domain: inertDomain, room, hubId: 1, onCommandFinished: () => {} }
  }
  const cancel = (order: number) => ({ kind: 'order.cancel', order_id: uuid(order) }) as const

  describe('leases', () => {
    test('exactly one of the processes that answer one hello at once takes the hub', async () => {
      const answers = await Promise.all(['a', 'b', 'c', 'd'].map((name) => answerHello(as(name), 1, hello())))
      expect(answers.filter((welcome) => welcome !== undefined)).toHaveLength(1)
      const epochs = await context.db.kysely.selectFrom('hub_streams').selectAll().execute()
      expect(epochs).toHaveLength(2)
    })

    test('a hello that a later one of the same life has overtaken is late at every process', async () => {
      const life = { instance: hex('a') }
      const said = (session: string, monotonic: number) => ({
        ...hello(),
        ...life,
        session: hex(session),
        clock: { wall: 0, monotonic },
      })
      expect(await answerHello(as('a'), 1, said('6', 20))).toBeDefined()
      await as('a').leases.handOver([1], 'b')
      expect(await answerHello(as('b'), 1, said('5', 10))).toBeUndefined()
      expect(await as('b').leases.held()).toEqual([{ hubId: 1, session: hex('6') }])
      expect(await answerHello(as('b'), 1, said('7', 30))).toBeDefined()
      expect(await answerHello(as('b'), 1, { ...said('8', 1), instance: hex('b') })).toBeDefined()
    })

    test('heartbeats of many hubs lock their rows in the order in which hellos lock them', async () => {
      // SQLite has one writer.
      if (context.db.kind === 'sqlite') return
      const heartbeat = { session: hex('5'), monotonic: 1, health: healthy }
      const beats = [2, 1].map((hubId) => ({ hubId, heartbeat }))
      for (const { hubId } of beats) await answerHello(as('a'), hubId, hello())
      const renew = () =>
        context.db.for('gateway').transact(async (tx) => {
          // The ways in which the server reads a large table.
          for (const way of ['hashjoin', 'mergejoin', 'seqscan'])
            await sql.raw(`set local enable_${way} = off`).execute(tx.q)
          return as('a').leases.renew(tx, beats)
        })
      const lockFree = (q: Queries, hubId: number) =>
        sql`select hub_id from hub_sessions where hub_id = ${hubId} for no key update skip locked`.execute(q)
      const { renewed } = await context.db.transact(async (tx) => {
        await lockFree(tx.q, 1)
        const waits = renew()
        await lockWaits(context.db)
        expect((await lockFree(tx.q, 2)).rows).toHaveLength(1)
        return { renewed: waits }
      })
      expect((await renewed).size).toBe(2)
    })

    test('a lease is handed over at once, and only by its holder', async () => {
      await answerHello(as('a'), 1, hello())
      await answerHello(as('a'), 2, hello())
      await as('a').leases.handOver([1], 'b')
      await as('c').leases.handOver([2], 'b')
      expect((await as('b').leases.held()).map(({ hubId }) => hubId)).toEqual([1])
      expect((await as('a').leases.held()).map(({ hubId }) => hubId)).toEqual([2])
    })

    test('each process takes exactly its share of the leases of gone processes', async () => {
      await answerHello(as('gone'), 1, hello())
      await answerHello(as('here'), 2, hello())
      await as('b').leases.takeFromAbsent(['here', 'b'], (hubId) => hubId === 2)
      expect(await as('b').leases.held()).toEqual([])
      await as('b').leases.takeFromAbsent(['here', 'b'], () => true)
      expect((await as('b').leases.held()).map(({ hubId }) => hubId)).toEqual([1])
      expect((await as('here').leases.held()).map(({ hubId }) => hubId)).toEqual([2])
    })

    /** Records a heartbeat as a process does. */
    async function record(processId: string, beat: Beat): Promise<Renewal> {
      const { leases } = as(processId)
      const compared = (await leases.compare(context.db.kysely, [beat])).get(beat.hubId)!
      if (compared !== 'due') return compared
      return (await context.db.transact((tx) => leases.renew(tx, [beat]))).get(beat.hubId)!
    }

    test('a message newer than a heartbeat stays the latest known one', async () => {
      await answerHello(as('a'), 1, hello())
      const said = (monotonic: number, accepting_orders: boolean) => ({
        session: hex('5'),
        monotonic,
        health: { ...healthy, accepting_orders },
      })
      const renew = (monotonic: number) => record('a', { hubId: 1, heartbeat: said(monotonic, true) })
      expect(await renew(10.25)).toMatchObject({ kind: 'held', isLatest: true })
      await noteHealth(context.db.kysely, 1, said(20.5, false), runtime.clock.now())
      expect(await renew(15)).toMatchObject({ kind: 'held', isLatest: false })
      const { health } = await hubState(context.db.kysely, 1, runtime.clock.now())
      expect(health?.accepting_orders).toBe(false)
      expect(await renew(20.75)).toMatchObject({ kind: 'held', isLatest: true })
    })

    test('a lease moves only after its expiry, and to one process', async () => {
      await answerHello(as('a'), 1, hello())
      const heartbeat = { session: hex('5'), monotonic: 0, health: healthy }
      const ask = (processId: string, hubId = 1) => record(processId, { hubId, heartbeat })
      expect(await ask('b')).toEqual({ kind: 'other' })
      runtime.clock.advance(LEASE_MS)
      const taken = await Promise.all(['b', 'c', 'd'].map((name) => ask(name)))
      expect(taken.filter(({ kind }) => kind === 'held')).toHaveLength(1)
      expect(await ask('a', 2)).toEqual({
        kind: 'unknown-session',
        session: null,
      })
    })
  })

  describe('the outbox', () => {
    const hubOne = { hubId: 1, now: 0 }
    const entries = async () =>
      (await readEntries(context.db.kysely, hubOne, await epoch(), 1, 1000))!.entries
    const epoch = async () => (await readPosition(context.db.kysely, 1))!.epoch

    test('simultaneous transactions leave no gap and no duplicate number', async () => {
      await answerHello(as('a'), 1, hello())
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => context.db.transact((tx) => enqueue(tx, 1, cancel(index)))),
      )
      expect((await entries()).map((entry) => entry.seq)).toEqual(Array.from({ length: 21 }, (_, i) => i + 1))
    })

    test('an entry that is enqueued during a snapshot is in it or after it', async () => {
      // Writes a dead letter beside an entry; a snapshot has the letters that it sees. The order of
      // answers proves nothing.
      const change = (id: number) =>
        context.db.transact(async (tx) => {
          await enqueue(tx, 1, cancel(id))
          const letter = { hub_id: 1, stream: 'ledger', epoch: hex('a'), seq: id } as const
          const values = { ...letter, body: uuid(id), error: '', at: 0 }
          await tx.q.insertInto('dead_letters').values(values).execute()
        })
      const held: string[] = []
      const domain: typeof inertDomain = {
        ...inertDomain,
        hubSnapshot: async (tx, ...asked) => {
          const letters = await tx.q.selectFrom('dead_letters').select('body').execute()
          held.push(...letters.map(({ body }) => body))
          return inertDomain.hubSnapshot(tx, ...asked)
        },
      }
      await change(0)
      await Promise.all([answerHello({ ...as('a'), domain }, 1, hello()), ...[1, 2, 3].map(change)])
      const behind = (await entries())
        .slice(1)
        .map((entry) => (JSON.parse(entry.body) as { order_id: string }).order_id)
      expect([...held, ...behind].toSorted()).toEqual([0, 1, 2, 3].map(uuid))
    })

    test('deletion of entries advances the base, keeps its tag, and never goes back', async () => {
      await answerHello(as('a'), 1, hello())
      for (const id of [1, 2, 3]) await context.db.transact((tx) => enqueue(tx, 1, cancel(id)))
      const all = await entries()
      const at = await epoch()
      for (const through of [3, 2]) await context.db.transact((tx) => forgetEntries(tx, 1, at, through))
      const { previousTag, ...rest } = (await readEntries(context.db.kysely, hubOne, at, 4, 10))!
      expect(rest).toMatchObject({ base: 3, entries: [{ seq: 4 }] })
      expect(previousTag).toBe(all[2]!.tag)
      expect(await readEntries(context.db.kysely, hubOne, at, 3, 10)).toBeUndefined()
      const ours = (cursor: number, tag: number) =>
        isOurHistory(context.db.kysely, 1, { epoch: at, cursor, tag })
      expect(await Promise.all([ours(3, all[2]!.tag), ours(4, all[3]!.tag), ours(2, 0)])).toEqual([
        true,
        true,
        true,
      ])
      expect(await Promise.all([ours(3, 1), ours(4, 1), ours(5, 0)])).toEqual([false, false, false])
    })
  })

  describe('the receiver', () => {
    const codes = async () => {
      const rows = await context.db.kysely.selectFrom('alarms').select('subject').orderBy('seq').execute()
      return rows.map((row) => row.subject)
    }

    test('I4: one batch that several processes apply at once is applied once', async () => {
      await answerHello(as('a'), 1, hello())
      const acks = await Promise.all(
        [1, 2, 3, 4].map(() => receiveBatch(receiving(), 'ledger', batch(1, 'one', 'two'), false)),
      )
      expect(acks).toEqual(
        Array.from({ length: 4 }, () => ({
          stream: 'ledger',
          epoch: hex('a'),
          cursor: 2,
          tag: 4_000_000_002,
          resend: false,
          fork: false,
        })),
      )
      expect(await codes()).toEqual(['one', 'two'])
    })

    test('I8: an entry that the database refuses becomes a dead letter, and the rest is applied', async () => {
      await answerHello(as('a'), 1, hello())
      const odd = { ...batch(1, 'one', 'x', 'three') }
      // A text that SQLite stores and PostgreSQL refuses.
      odd.entries[1]!.body.subject = '\u0000'
      await receiveBatch(receiving(), 'ledger', odd, false)
      const letters = await context.db.kysely.selectFrom('dead_letters').select('seq').execute()
      expect((await codes()).filter((code) => code !== '\u0000')).toEqual(['one', 'three'])
      expect(letters).toEqual(context.db.kind === 'postgres' ? [{ seq: 2 }] : [])
    })

    test('I8: an entry that fails in mid-statement leaves nothing', async () => {
      await answerHello(as('a'), 1, hello())
      const domain = {
        ...inertDomain,
        applyOrderEntry: async (tx: Parameters<typeof inertDomain.applyOrderEntry>[0]) => {
          await tx.q.insertInto('owners').values({ id: 77, name: 'half' }).execute()
          throw new ApplyError('refused')
        },
      }
      const bad = { tag: 9, body: { kind: 'order.completed', at: 1, order_id: uuid(1) } }
      const mixed = { ...batch(1, 'one'), entries: [...batch(1, 'one').entries, bad] }
      expect(await receiveBatch({ ...receiving(), domain }, 'ledger', mixed, false)).toMatchObject({
        cursor: 2,
      })
      expect(await context.db.kysely.selectFrom('owners').where('id', '=', 77).selectAll().execute()).toEqual(
        [],
      )
      expect(await codes()).toEqual(['one'])
      expect(await context.db.kysely.selectFrom('dead_letters').select(['seq', 'error']).execute()).toEqual([
        { seq: 2, error: 'refused' },
      ])
    })

    /** Readings at some instants, with the sequence numbers from `first` on. */
    const telemetry = (first: number, instants: readonly number[]) => {
      const reading = { kind: 'temperature', fridge_number: 1, celsius: 4.25, min: 4, max: 5 }
      const entries = instants.map((at, index) => ({ tag: first + index, body: { ...reading, at } }))
      const batch = { epoch: hex('b'), first, previousTag: first - 1, oldest: 1, entries }
      return receiveBatch(receiving(), 'telemetry', batch, false)
    }
    const history = () => context.db.kysely.selectFrom('temperatures').select(['sum', 'samples']).execute()

    test('I8: a reading that the database refuses becomes a dead letter, and the other telemetry is applied', async () => {
      await answerHello(as('a'), 1, hello())
      // No column accepts the instant of the second reading.
      expect(await telemetry(1, [1, 1e300, 3])).toMatchObject({ cursor: 3 })
      expect(await history()).toEqual([{ sum: 2 * 4.25, samples: 2 }])
      const letters = await context.db.kysely.selectFrom('dead_letters').select(['stream', 'seq']).execute()
      expect(letters).toEqual([{ stream: 'telemetry', seq: 2 }])
    })

    test('telemetry that is repeated after its cursor was reset is not doubled', async () => {
      await answerHello(as('a'), 1, hello())
      await telemetry(1, [1.5, 2.5])
      // The database is a copy from before the readings.
      await answerHello(as('a'), 1, hello({ session: hex('6') }))
      await telemetry(1, [1.5, 2.5])
      await telemetry(3, [60_000])
      expect(await history()).toEqual([{ sum: 3 * 4.25, samples: 3 }])
    })
  })

  test('the first result of a command counts, and a hub can finish only its own commands', async () => {
    const id = (index: number): string => `01900000-0000-7000-8000-00000000000${index}`
    const body = { name: 'open_bin', bin: 1 } as const
    for (const [index, hubId] of [1, 1, 2].entries())
      await insertSent(
        context.db.kysely,
        { id: id(index), hubId, session: hex('5'), body, actor: 'a' },
        index,
      )
    const result = (index: number, outcome: 'executed' | 'failed') => ({
      command_id: id(index),
      outcome,
      reason: null,
      data: outcome === 'executed' ? { door: 'open' } : null,
    })
    await context.db.transact((tx) =>
      recordFinished(tx, runtime.clock, 1, [
        result(0, 'executed'),
        result(0, 'failed'),
        result(1, 'failed'),
        result(2, 'executed'),
      ]),
    )
    const rows = await context.db.kysely
      .selectFrom('commands')
      .select(['state', 'data'])
      .orderBy('id')
      .execute()
    expect(rows).toEqual([
      { state: 'executed', data: '{"door":"open"}' },
      { state: 'failed', data: null },
      { state: 'sent', data: null },
    ])
    const audit = await context.db.kysely.selectFrom('audit_log').select(['hub_id', 'result']).execute()
    expect(audit.toSorted((a, b) => a.result.localeCompare(b.result))).toEqual([
      { hub_id: 1, result: 'executed' },
      { hub_id: 1, result: 'failed' },
    ])
  })

  test('the state of a hub is that of its hello, and is empty for a silent or unknown hub', async () => {
    await answerHello(as('a'), 1, hello())
    const stateOf = (hubId: number) => hubState(context.db.kysely, hubId, runtime.clock.now())
    expect(await stateOf(1)).toMatchObject({
      online: true,
      ledgerEpoch: hex('a'),
      version: 'test',
      health: null,
    })
    expect(await stateOf(2)).toMatchObject({ online: false, ledgerEpoch: null })
    expect(await stateOf(99)).toMatchObject({ online: false, lastHeardAt: null })
  })
})
