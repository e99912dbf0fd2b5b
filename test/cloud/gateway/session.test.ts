import { describe, expect, test } from 'vitest'
import { hubState } from '../../../cloud/gateway/hub-state.ts'
import { ended, entered, isLate, noSessions, type Sessions } from '../../../cloud/gateway/sessions.ts'
import { SETTLED, World } from '../../world/gateway.ts'
import { alarm, type ScriptedHub } from '../../world/scripted-hub.ts'
import { healthy } from '../../world/health.ts'
import { uuid } from '../../support/uuid.ts'

describe('hello and welcome', () => {
  test('a hub that is new to the cloud is welcomed from 0, and its outbox starts with a snapshot', async () => {
    const { hub } = await World.connected()
    expect(hub.welcomes).toHaveLength(1)
    const [welcome] = hub.welcomes
    expect(welcome).toMatchObject({
      session: hub.session,
      ledger: { epoch: hub.ledger.epoch, cursor: 0, tag: 0, restart: false, left: false },
      outbox: { base: 0, last: 1 },
    })
    expect(hub.applied).toMatchObject([
      { kind: 'snapshot', config: { accepting_orders: true, disabled_bins: [3] }, orders: [] },
    ])
  })

  test('a hub with matching positions continues there', async () => {
    const { world, hub } = await World.connected()
    hub.append(alarm('y'))
    hub.sendEntries()
    await world.pass(200)
    const tag = hub.ledger.entries[0]!.tag
    expect(hub.acks.at(-1)).toMatchObject({ stream: 'ledger', cursor: 1, tag, resend: false, fork: false })
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)).toMatchObject({
      session: hub.session,
      ledger: { cursor: 1, tag, restart: false },
      outbox: { epoch: hub.inbox.epoch, base: 1, last: 1 },
    })
    expect(hub.applied).toHaveLength(1)
  })

  test.each([
    { why: 'has deleted entries that the cloud lacks', position: { base: 5, baseTag: 7, last: 9 } },
    { why: 'ends before the cursor', position: { base: 0, baseTag: 0, last: 1 } },
    { why: 'has another tag at the cursor', position: { base: 2, baseTag: 12345, last: 2 } },
  ])('a hub with a ledger that $why is asked to restart it', async ({ position }) => {
    const { world, hub } = await World.connected()
    hub.append(
      { kind: 'order.completed', order_id: uuid(1), at: 1 },
      { kind: 'order.completed', order_id: uuid(2), at: 1 },
    )
    hub.sendEntries()
    await world.pass(200)
    hub.position = () => ({ epoch: hub.ledger.epoch, ...position })
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)?.ledger).toMatchObject({ cursor: 2, restart: true })
  })

  test('an epoch is not applied if the cloud has left it or has missed its start, because it may be old', async () => {
    const { world, hub } = await World.connected()
    const first = hub.ledger
    hub.newEpoch()
    hub.hello()
    await world.pass(100)
    expect(hub.welcomes.at(-1)?.ledger).toMatchObject({ epoch: hub.ledger.epoch, restart: false })
    const second = hub.ledger.epoch
    hub.ledger = first
    hub.hello()
    await world.pass(100)
    expect(hub.welcomes.at(-1)?.ledger).toMatchObject({ epoch: second, restart: true, left: true })
    hub.newEpoch()
    hub.ledger.base = 3
    hub.hello()
    await world.pass(100)
    // A restored cloud may have lost the switch from this epoch to the second one.
    expect(hub.welcomes.at(-1)?.ledger).toMatchObject({ epoch: second, restart: true, left: true })
    const rows = await world.db.kysely
      .selectFrom('hub_streams')
      .selectAll()
      .where('stream', '=', 'ledger')
      .execute()
    expect(rows.map((row) => [row.epoch, row.is_current])).toEqual([
      [first.epoch, 0],
      [second, 1],
    ])
  })

  test('an epoch that the cloud has stopped following is left, because it may come from an older copy', async () => {
    const { world, hub } = await World.connected()
    // The cloud does this to request a snapshot from a hub.
    await world.db.kysely.updateTable('hub_streams').set({ is_current: 0 }).execute()
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)?.ledger).toMatchObject({ epoch: null, restart: true, left: true })
  })

  test('one of two live hubs with one identity is served, and the other starts no new epochs', async () => {
    const world = await World.create()
    const cloud = world.startCloud('cloud')
    const [mine, copy] = [world.hub(), world.hub()]
    mine.instance = 'a'.repeat(32)
    copy.instance = 'c'.repeat(32)
    await world.pass(100)
    mine.connect()
    await world.pass(60_000)
    const served: (string | undefined)[] = []
    for (let fight = 0; fight < 6; fight += 1)
      for (const hub of [copy, mine]) {
        hub.connect()
        await world.pass(1000)
        if (hub.welcomes.some(({ session }) => session === hub.session)) served.push(hub.instance)
      }
    // The copy is welcomed once, because it might be a restarted service.
    expect(served).toEqual([copy.instance, ...Array.from({ length: 6 }, () => mine.instance)])
    expect(cloud.refusals.totals.hub_identity).toBeGreaterThan(4)
    const epochs = await world.db.kysely
      .selectFrom('hub_streams')
      .select('epoch')
      .where('stream', '=', 'ledger')
      .execute()
    expect(epochs.length).toBeLessThanOrEqual(2)
  })

  test('a late hello changes nothing', async () => {
    const { world, hub } = await World.connected()
    const late = hub.hello()
    await world.pass(100)
    hub.append({ kind: 'order.completed', order_id: uuid(1), at: 1 })
    hub.sendEntries()
    hub.connect()
    await world.pass(300)
    const count = hub.welcomes.length
    hub.publish('hello', late)
    await world.pass(300)
    expect(hub.welcomes).toHaveLength(count)
  })

  /** A hub's service restarts; an unanswered hello of the former life is still in flight. */
  async function startedAnew(world: World) {
    const cloud = world.startCloud('cloud')
    const hub = world.hub()
    await world.pass(100)
    hub.instance = 'a'.repeat(32)
    hub.session = 'c'.repeat(32)
    const late = hub.hello()
    await world.pass(60_000)
    hub.instance = 'b'.repeat(32)
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)?.session).toBe(hub.session)
    return { cloud, hub, late }
  }

  test('a delayed hello of an ended life takes nothing from the present one', async () => {
    const world = await World.create()
    const { cloud, hub, late } = await startedAnew(world)
    const count = hub.welcomes.length
    hub.publish('presence', { session: late.session, online: false })
    hub.publish('hello', late)
    await world.pass(300)
    expect(hub.welcomes).toHaveLength(count)
    expect(cloud.refusals.totals.hub_identity).toBe(0)
  })

  test.each([
    { by: 'the next hello', say: (hub: ScriptedHub) => void hub.hello() },
    { by: 'a heartbeat, answered with a request for a hello', say: (hub: ScriptedHub) => hub.heartbeat() },
  ])('a hub with a lost will gets its session back by $by', async ({ say }) => {
    const world = await World.create()
    const { hub, late } = await startedAnew(world)
    hub.publish('hello', late)
    await world.pass(300)
    expect(hub.welcomes.at(-1)?.session).toBe(late.session)
    await world.pass(2000)
    say(hub)
    await world.pass(300)
    expect(hub.welcomes.at(-1)?.session).toBe(hub.session)
    hub.append({ kind: 'order.completed', order_id: uuid(1), at: 1 })
    hub.sendEntries()
    await world.pass(300)
    expect(hub.acks.at(-1)).toMatchObject({ stream: 'ledger', cursor: 1 })
  })

  test('a repeated hello that is older than its own acknowledgement starts no new epoch', async () => {
    const { world, hub } = await World.connected()
    const { epoch } = hub.inbox
    hub.hello({ inbox: { epoch, cursor: 0, tag: 0 } })
    await world.pass(200)
    expect(hub.welcomes.at(-1)?.outbox).toMatchObject({ epoch, base: 1 })
    expect(hub.applied).toHaveLength(1)
  })

  test.each([
    { what: 'another protocol version', change: (hello: object) => ({ ...hello, protocol: 99 }) },
    { what: 'no session', change: (hello: object) => ({ ...hello, session: 'no' }) },
    { what: 'no JSON', change: () => '{' },
  ])('the cloud ignores a hello with $what', async ({ change }) => {
    const { world, cloud, hub } = await World.connected()
    const hello = { ...hub.hello(), clock: { wall: 0, monotonic: 1e9 } }
    await world.pass(200)
    const count = hub.welcomes.length
    hub.publish('hello', change(hello))
    await world.pass(200)
    expect(hub.welcomes).toHaveLength(count)
    expect(cloud.faults).toEqual([])
  })

  test('a hub that does not exist gets no answer', async () => {
    const world = await World.create()
    world.startCloud('cloud')
    const hub = world.hub(77)
    await world.pass(100)
    hub.connect()
    hub.heartbeat()
    await world.pass(300)
    expect(hub.welcomes).toEqual([])
  })
})

describe('presence and health', () => {
  test('the last heartbeat is the hub’s health, and 90 s of silence make it offline', async () => {
    const world = await World.create()
    const { context } = world.startCloud('cloud')
    const hub = world.hub()
    const state = () => hubState(world.db.kysely, 1, context.runtime.clock.now())
    await world.pass(100)
    expect(await state()).toMatchObject({ online: false, connected: false, health: null, ledgerEpoch: null })
    hub.connect()
    await world.pass(SETTLED)
    expect(await state()).toMatchObject({
      online: true,
      acceptingOrders: false,
      ledgerEpoch: hub.ledger.epoch,
    })
    hub.heartbeat()
    await world.pass(200)
    expect(await state()).toMatchObject({
      online: true,
      connected: true,
      acceptingOrders: true,
      health: healthy,
    })
    hub.heartbeat({ ...healthy, accepting_orders: false })
    await world.pass(1_200)
    expect((await state()).acceptingOrders).toBe(false)
    await world.pass(89_000)
    expect((await state()).online).toBe(true)
    await world.pass(2_000)
    expect(await state()).toMatchObject({ online: false, connected: false, acceptingOrders: false })
  })

  test('a goodbye makes the hub offline at once, a will does not, and the next hello makes it online', async () => {
    const world = await World.create()
    const { context } = world.startCloud('cloud')
    const hub = world.hub()
    const state = () => hubState(world.db.kysely, 1, context.runtime.clock.now())
    await world.pass(100)
    hub.connect()
    await world.pass(SETTLED)
    hub.heartbeat()
    await world.pass(200)
    const { session } = hub
    hub.publish('presence', { session: 'a'.repeat(32), online: false, goodbye: true })
    await world.pass(200)
    expect(await state()).toMatchObject({ online: true, acceptingOrders: true })
    hub.heartbeat()
    hub.publish('presence', { session, online: false, goodbye: true })
    await world.pass(1500)
    expect(await state()).toMatchObject({ online: false, connected: false, acceptingOrders: false })
    expect((await state()).lastHeardAt).not.toBeNull()
    hub.connect()
    await world.pass(SETTLED)
    hub.heartbeat()
    await world.pass(1500)
    expect(await state()).toMatchObject({ online: true, connected: true, acceptingOrders: true })
    hub.publish('presence', { session: hub.session, online: false })
    await world.pass(1500)
    expect(await state()).toMatchObject({ online: true, connected: false })
  })

  test('a will ends the connection at once, but only that of its own session', async () => {
    const world = await World.create()
    const { context } = world.startCloud('cloud')
    const hub = world.hub()
    const state = () => hubState(world.db.kysely, 1, context.runtime.clock.now())
    await world.pass(100)
    hub.connect()
    await world.pass(SETTLED)
    hub.publish('presence', { session: 'a'.repeat(32), online: false })
    await world.pass(100)
    expect((await state()).connected).toBe(true)
    world.network.cut((life) => life.name === 'hub-1', 'cut')
    await world.pass(100)
    expect(await state()).toMatchObject({ online: true, connected: false })
  })

  test('a heartbeat of an unknown session causes a request for a hello, and the hello is welcomed', async () => {
    const { world, hub } = await World.connected()
    hub.session = 'b'.repeat(32)
    hub.heartbeat()
    await world.pass(200)
    expect(hub.hails).toHaveLength(1)
    expect(hub.welcomes.at(-1)?.session).toBe(hub.session)
  })
})

describe('the sessions of a hub', () => {
  const sessions = (...ids: string[]): Sessions =>
    ids.reduce<Sessions>((known, id) => entered(known, id, 10), noSessions)

  test.each([
    { hello: 'the first one', known: sessions(), session: 'a', at: 1, late: false },
    {
      hello: 'the first of a new session, at any clock',
      known: sessions('a'),
      session: 'b',
      at: 1,
      late: false,
    },
    { hello: 'a later one of the same session', known: sessions('a'), session: 'a', at: 11, late: false },
    { hello: 'a repetition', known: sessions('a'), session: 'a', at: 10, late: true },
    { hello: 'an earlier one of the same session', known: sessions('a'), session: 'a', at: 9, late: true },
    {
      hello: 'an earlier one of a former session',
      known: sessions('a', 'b'),
      session: 'a',
      at: 10,
      late: true,
    },
    {
      hello: 'a later one of a former session',
      known: sessions('a', 'b'),
      session: 'a',
      at: 11,
      late: false,
    },
    { hello: 'one of an ended session', known: ended(sessions('a'), 'a'), session: 'a', at: 99, late: true },
    {
      hello: 'one of a former session that has ended',
      known: entered(ended(sessions('a'), 'a'), 'b', 10),
      session: 'a',
      at: 99,
      late: true,
    },
    {
      hello: 'one of a session that has ended while its hello was answered',
      known: entered(ended(sessions('a'), 'b'), 'b', 10),
      session: 'b',
      at: 99,
      late: true,
    },
    {
      hello: 'one of an ended session that was never welcomed',
      known: ended(sessions('a'), 'b'),
      session: 'b',
      at: 99,
      late: true,
    },
    {
      hello: 'the first of a session that another process has welcomed',
      known: entered(sessions('a'), 'b', -Infinity),
      session: 'b',
      at: 1,
      late: false,
    },
  ])('a hello that is $hello is late: $late', ({ known, session, at, late }) => {
    expect(isLate(known, session, at)).toBe(late)
  })

  test('the last eight former sessions are remembered, without the present one', () => {
    const ids = Array.from({ length: 12 }, (_, index) => `s${index}`)
    const known = sessions(...ids, 's11')
    expect(known).toMatchObject({ current: 's11', helloAt: 10 })
    expect([...known.former.keys()]).toEqual(ids.slice(3, 11))
    expect([...ended(known, 'gone').former.keys()]).toEqual([...ids.slice(4, 11), 'gone'])
    expect([...sessions('a', 'b', 'a').former.keys()]).toEqual(['b'])
  })
})
