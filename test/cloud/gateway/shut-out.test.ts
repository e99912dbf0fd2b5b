import { expect, onTestFinished, test } from 'vitest'
import { shutOut } from '../../../cloud/enrolment/enrol.ts'
import { answerHellos } from '../../../cloud/gateway/hello.ts'
import { hubState } from '../../../cloud/gateway/hub-state.ts'
import { LeaseKeeper } from '../../../cloud/gateway/leases.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { defaultLimits } from '../../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { MQTT_PROTOCOL_VERSION } from '../../../protocol/mqtt/version.ts'
import { inertDomain, SETTLED, World } from '../../world/gateway.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { healthy } from '../../world/health.ts'
import { seedHub } from '../../world/seeds.ts'
import { alarm } from '../../world/scripted-hub.ts'
import { uuid } from '../../support/uuid.ts'

test('the cloud applies nothing from the open session of a hub with a revoked certificate, and leaves the session', async () => {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime } = cloud.context
  const seen = async () => ({
    alarms: (await db.kysely.selectFrom('alarms').select('subject').execute()).map(({ subject }) => subject),
    session: await db.kysely
      .selectFrom('hub_sessions')
      .select(['last_heard_at', 'lease_until', 'health'])
      .executeTakeFirst(),
  })
  hub.append(alarm('before'))
  hub.sendEntries()
  hub.heartbeat()
  await world.pass(SETTLED)
  const before = await seen()
  expect(before.alarms).toEqual(['before'])
  await db.kysely.updateTable('hubs').set({ revoked_at: runtime.clock.now() }).execute()
  const [welcomes, acks, batches] = [hub.welcomes.length, hub.acks.length, hub.batches.length]
  // The lease is due to be renewed.
  await world.pass(40_000)
  hub.append(alarm('after'))
  hub.sendEntries()
  hub.heartbeat()
  await world.pass(SETTLED)
  const storage = { reason: 'read_only', setting: 'STORE', path: '/data/hub.sqlite', detail: 'read-only' }
  const session = 'f'.repeat(32)
  const monotonic = runtime.clock.monotonic()
  const report = { protocol: MQTT_PROTOCOL_VERSION, session, instance: session, software: 'test', monotonic }
  hub.publish('storage', { ...report, health: { ...healthy, storage } })
  await world.pass(SETTLED)
  expect(await seen()).toEqual(before)
  expect([hub.welcomes.length, hub.acks.length, hub.batches.length]).toEqual([welcomes, acks, batches])
  expect(hub.hails.length).toBeGreaterThan(0)

  await db.kysely.updateTable('hubs').set({ revoked_at: null }).execute()
  hub.connect()
  hub.sendEntries()
  await world.pass(SETTLED)
  hub.sendEntries()
  await world.pass(SETTLED)
  expect((await seen()).alarms).toEqual(['before', 'after'])
})

test('a hub with a revoked certificate is offline and accepts no order at once, and sells again after its next hello', async () => {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime } = cloud.context
  hub.heartbeat()
  await world.pass(SETTLED)
  const state = async () => {
    const { online, connected, acceptingOrders } = await hubState(db.kysely, 1, runtime.clock.now())
    return { online, connected, acceptingOrders }
  }
  expect(await state()).toEqual({ online: true, connected: true, acceptingOrders: true })
  await db.transact((tx) => shutOut(tx, runtime.random, 1, runtime.clock.now()))
  const offline = { online: false, connected: false, acceptingOrders: false }
  expect(await state()).toEqual(offline)
  hub.heartbeat()
  await world.pass(SETTLED)
  expect(await state()).toEqual(offline)

  await db.kysely.updateTable('hubs').set({ revoked_at: null }).execute()
  hub.connect()
  await world.pass(SETTLED)
  hub.heartbeat()
  await world.pass(SETTLED)
  expect(await state()).toEqual({ online: true, connected: true, acceptingOrders: true })
})

test('a hub with a revoked certificate receives no command and no entry before its next heartbeat', async () => {
  const { world, cloud, hub } = await World.connected()
  const { db, runtime } = cloud.context
  const cancel = (order: number) =>
    db.transact((tx) => enqueue(tx, 1, { kind: 'order.cancel', order_id: uuid(order) }))
  const order = { hubId: 1, body: { name: 'open_bin', bin: 2 }, actor: 'key:test' } as const
  const commanded = async () => {
    let outcome: string | undefined
    void cloud.gateway.commands.send(order).then(({ kind }) => (outcome = kind))
    await world.pass(50)
    return outcome
  }
  hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
  await cancel(1)
  expect(await commanded()).toBe('executed')
  const before = [hub.batches.length, hub.commands.length]
  await db.kysely.updateTable('hubs').set({ revoked_at: runtime.clock.now() }).execute()
  await cancel(2)
  expect(await commanded()).toBe('offline')
  await world.pass(SETTLED)
  expect([hub.batches.length, hub.commands.length]).toEqual(before)
})

test('a hello of an unknown hub is noted once, after the commit, if its transaction is repeated', async () => {
  const runtime = virtualRuntime()
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  onTestFinished(() => db.close())
  await seedHub(db, 1)
  const context = testContext(db, runtime)
  const noted: string[] = []
  const refusals = cloudRefusals(context)
  refusals.note = (_kind, from) => void noted.push(from)
  let conflicts = 1
  const hubsHeard = () => {
    expect(noted).toEqual([])
    conflicts -= 1
    return conflicts < 0 ? Promise.resolve() : Promise.reject(withCode('40001'))
  }
  const leases = new LeaseKeeper({ context, settings: defaultLimits.gateway, processId: 'a' })
  const domain = { ...inertDomain, hubsHeard }
  const position = { epoch: 'a'.repeat(32), base: 0, baseTag: 0, last: 0 }
  const hello = {
    protocol: MQTT_PROTOCOL_VERSION,
    session: '5'.repeat(32),
    software: 'test',
    ledger: position,
    telemetry: { ...position, epoch: 'b'.repeat(32) },
    inbox: { epoch: null, cursor: 0, tag: 0 },
    clock: { wall: 0, monotonic: 0 },
  }
  const said = [1, 2].map((hubId) => ({ hubId, hello }))
  expect((await answerHellos({ context, domain, refusals, leases, erase() {} }, said)).size).toBe(1)
  expect([conflicts, noted]).toEqual([-1, ['hub-2']])
})

const withCode = (code: string): Error => Object.assign(new Error(code), { code })
