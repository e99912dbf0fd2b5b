import { expect, test } from 'vitest'
import { shutOut } from '../../../cloud/enrolment/enrol.ts'
import { hubState } from '../../../cloud/gateway/hub-state.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { MQTT_PROTOCOL_VERSION } from '../../../protocol/mqtt/version.ts'
import { SETTLED, World } from '../../world/gateway.ts'
import { healthy } from '../../world/health.ts'
import { alarm } from '../../world/scripted-hub.ts'
import { uuid } from '../../support/uuid.ts'

test('the cloud applies nothing from the open session of a hub whose certificate was revoked, and leaves the session', async () => {
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

test('a hub whose certificate is revoked is offline and accepts no order at once, and sells again after its next hello', async () => {
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

test('a hub whose certificate was revoked receives no command and no entry before its next heartbeat', async () => {
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
