import { expect, test } from 'vitest'
import { noteErased } from '../../../cloud/enrolment/enrol.ts'
import { startDraining } from '../../../cloud/gateway/draining.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { stillHolds } from '../../../cloud/gateway/hub-logins.ts'
import { eraseOrder } from '../../../cloud/gateway/moves.ts'
import { retireHub } from '../../../cloud/operations/ownership/hand-over.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { DAY_MS } from '../../../protocol/model/times.ts'
import { reportBins } from '../../world/seeds.ts'
import { uuid } from '../../support/uuid.ts'
import { alarm } from '../../world/scripted-hub.ts'
import { healthy } from '../../world/health.ts'
import { SETTLED, World } from '../../world/gateway.ts'

/** A welcomed hub that is offline. While it is offline the hub is retired, and one of its orders is cancelled. */
async function retiredOffline() {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime } = cloud.context
  const row = await db.kysely
    .selectFrom('hubs')
    .select('mqtt_password_digest as digest')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  world.network.cut(() => true, 'cut')
  await world.pass(SETTLED)
  await db.transact(async (tx) => {
    const { retiredAt } = await retireHub(tx, cloud.context, { hubId: 1, force: true, actor: 'command line' })
    await startDraining(tx, 1, retiredAt + defaultLimits.rules.hubDrainMs)
    await enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(1) })
  })
  return {
    world,
    hub,
    cloud,
    hasLogin: () => stillHolds(db.kysely, runtime.clock.now(), { hubId: 1, ...row }),
    /** Time in which the cloud asks its draining hubs more than once. */
    settle: () => world.pass(15_000),
    alarms: async () => (await db.kysely.selectFrom('alarms').select('subject').execute()).length,
    tellBin: (state: 'held' | 'free') =>
      reportBins(db, 1, healthy.bins, runtime.clock.now()).then(() =>
        db.kysely.updateTable('hub_bins').set({ state }).where('bin', '=', 1).execute(),
      ),
  }
}

test('a hub that was retired while offline gets its cancellation, its last report is applied, and its login ends', async () => {
  const { world, hub, hasLogin, settle, alarms } = await retiredOffline()
  expect(await hasLogin()).toBe(true)
  hub.append(alarm('fell while offline'))
  hub.connect()
  await settle()
  expect(hub.applied.map(({ kind }) => kind)).toEqual(['snapshot', 'config', 'order.cancel'])
  expect(hub.applied[1]).toMatchObject({ config: { accepting_orders: false } })
  expect(await hasLogin()).toBe(true)
  hub.sendEntries()
  await settle()
  expect(await alarms()).toBe(1)
  expect(await hasLogin()).toBe(false)
  const welcomes = hub.welcomes.length
  hub.connect()
  await world.pass(SETTLED)
  expect(hub.welcomes).toHaveLength(welcomes)
})

test('a retired hub keeps its login while an order holds one of its bins', async () => {
  const { hub, hasLogin, settle, tellBin } = await retiredOffline()
  await tellBin('held')
  hub.connect()
  await settle()
  expect(await hasLogin()).toBe(true)
  await tellBin('free')
  await settle()
  expect(await hasLogin()).toBe(false)
})

test('a retired hub that acknowledges nothing keeps its login', async () => {
  const { hub, hasLogin, settle } = await retiredOffline()
  hub.deaf = true
  hub.connect()
  await settle()
  expect(await hasLogin()).toBe(true)
})

test('the login of a retired hub that never returns ends after HUB_DRAIN_MS', async () => {
  const { cloud, hasLogin } = await retiredOffline()
  const { db } = cloud.context
  const { retired_at, draining_until } = await db.kysely
    .selectFrom('hubs')
    .select(['retired_at', 'draining_until'])
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  expect(draining_until! - retired_at!).toBe(defaultLimits.rules.hubDrainMs)
  await db.kysely.updateTable('hubs').set({ draining_until: cloud.context.runtime.clock.now() }).execute()
  expect(await hasLogin()).toBe(false)
})

test('a hub that has never said hello has no login after it was retired', async () => {
  const world = await World.create()
  const cloud = world.startCloud('cloud')
  const { db, runtime } = cloud.context
  await db.transact((tx) => retireHub(tx, cloud.context, { hubId: 1, force: false, actor: 'command line' }))
  const { digest } = await db.kysely
    .selectFrom('hubs')
    .select('mqtt_password_digest as digest')
    .executeTakeFirstOrThrow()
  expect(await stillHolds(db.kysely, runtime.clock.now(), { hubId: 1, digest })).toBe(false)
})

const order = {
  cloud: 'https://shop.example/c1',
  next_id: 100_000_001,
  code: 'K7QM2XRA',
  error: null,
  moved_at: null,
}

test('a hub in service gets the order to move until it is answered or a day old, and stays in service', async () => {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime } = cloud.context
  const ordered_at = runtime.clock.now()
  const code = cloud.context.sealer.seal('next claim code', order.code)
  await db.kysely
    .insertInto('hub_moves')
    .values({ hub_id: 1, ordered_at, ...order, code })
    .execute()
  await world.pass(15_000)
  expect(hub.moves.length).toBeGreaterThan(1)
  expect(hub.moves[0]).toEqual({
    order: ordered_at,
    cloud: order.cloud,
    hub_id: order.next_id,
    code: order.code,
  })
  await db.kysely.updateTable('hub_moves').set({ code: null }).execute()
  await world.pass(5000)
  const { length } = hub.moves
  await world.pass(15_000)
  expect([hub.moves.length, hub.erases]).toEqual([length, []])
  const old = { code, ordered_at: runtime.clock.now() - DAY_MS }
  await db.kysely.updateTable('hub_moves').set(old).execute()
  await world.pass(15_000)
  expect(hub.moves).toHaveLength(length)
  const stored = await db.kysely.selectFrom('hub_moves').select(['code', 'error']).executeTakeFirstOrThrow()
  expect(stored).toEqual({ code: null, error: 'the hub did not answer within a day' })
})

test('a retired or revoked hub does not get the order to move, and the order and its code end after a day', async () => {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime, sealer } = cloud.context
  const code = sealer.seal('next claim code', order.code)
  await db.kysely
    .insertInto('hub_moves')
    .values({ hub_id: 1, ordered_at: runtime.clock.now(), ...order, code })
    .execute()
  await db.kysely.updateTable('hubs').set({ revoked_at: runtime.clock.now() }).where('id', '=', 1).execute()
  await world.pass(15_000)
  expect(hub.moves).toEqual([])
  await db.kysely
    .updateTable('hub_moves')
    .set({ ordered_at: runtime.clock.now() - DAY_MS })
    .execute()
  await world.pass(15_000)
  expect(await db.kysely.selectFrom('hub_moves').select('code').execute()).toEqual([{ code: null }])
})

test('a hub that is enrolled in another cell gets the order to leave when its streams are drained, again and again, and keeps its login until it has left', async () => {
  const { world, cloud, hub, hasLogin, settle } = await retiredOffline()
  const { db, runtime } = cloud.context
  const now = runtime.clock.now()
  await db.kysely
    .insertInto('hub_moves')
    .values({ hub_id: 1, ordered_at: now, ...order, code: null, moved_at: now })
    .execute()
  hub.append(alarm('fell while offline'))
  hub.connect()
  await settle()
  // The hub has not reported its last entry.
  expect([hub.erases, await hasLogin()]).toEqual([[], true])
  hub.sendEntries()
  await settle()
  expect([hub.erases[0], await hasLogin()]).toEqual([{ next: order.next_id }, true])
  // A hub that must stay gets the order again on the same connection, and on the next one.
  for (const wait of [settle, () => (hub.connect(), world.pass(SETTLED))]) {
    const { length } = hub.erases
    await wait()
    expect(hub.erases.length).toBeGreaterThan(length)
  }
  await noteErased(cloud.context, 1)
  expect(await hasLogin()).toBe(false)
})

test('a board with a revoked certificate does not leave for another cell: it only erases its secrets', async () => {
  const { cloud } = await retiredOffline()
  const { db, runtime } = cloud.context
  const now = runtime.clock.now()
  expect(await eraseOrder(db.kysely, 1)).toEqual({})
  await db.kysely
    .insertInto('hub_moves')
    .values({ hub_id: 1, ordered_at: now, ...order, code: null, moved_at: now })
    .execute()
  expect(await eraseOrder(db.kysely, 1)).toEqual({ next: order.next_id })
  await db.kysely.updateTable('hubs').set({ revoked_at: now }).where('id', '=', 1).execute()
  expect(await eraseOrder(db.kysely, 1)).toEqual({})
})
