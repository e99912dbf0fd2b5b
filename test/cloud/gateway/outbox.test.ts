import { describe, expect, test } from 'vitest'
import { enqueue, forgetEntries } from '../../../cloud/gateway/outbox.ts'
import { crashAt, SETTLED, World, type CloudProcess } from '../../world/gateway.ts'
import { uuid } from '../../support/uuid.ts'

const cancel = (order: number) => ({ kind: 'order.cancel', order_id: uuid(order) }) as const
const put = (cloud: CloudProcess, ...orderIds: number[]): Promise<void> =>
  cloud.context.db.transact(async (tx) => {
    for (const id of orderIds) await enqueue(tx, 1, cancel(id))
  })
const entries = (world: World) =>
  world.db.kysely.selectFrom('hub_outbox_entries').select(['epoch', 'seq', 'tag']).orderBy('seq').execute()

/** Makes reads of entries fail. Returns a function that ends the failure. */
function withoutEntries({ context: { db } }: CloudProcess): () => void {
  const { kysely } = db
  db.kysely = new Proxy(kysely, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name !== 'selectFrom') return typeof value === 'function' ? (value.bind(target) as unknown) : value
      return (table: 'hub_outbox_entries') => {
        if (table === 'hub_outbox_entries') throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
        return target.selectFrom(table)
      }
    },
  })
  return () => void (db.kysely = kysely)
}

async function connected() {
  const { world, cloud, hub } = await World.connected()
  hub.applied = []
  return { world, cloud, hub }
}

describe('the outbox stream', () => {
  test('an enqueued entry is sent after its commit, and deleted after its acknowledgement', async () => {
    const { world, cloud, hub } = await connected()
    await put(cloud, 1, 2)
    expect(await entries(world)).toHaveLength(2)
    await world.pass(50)
    expect(hub.applied).toEqual([cancel(1), cancel(2)])
    expect(await entries(world)).toEqual([])
  })

  test('every batch and acknowledgement contains the cloud’s time, also after a correction of its clock', async () => {
    let wallOffset = 2 * 24 * 3_600_000
    const { world, cloud, hub } = await World.connected({ wallOffset: () => wallOffset })
    wallOffset = 0
    hub.batches = []
    hub.acks = []
    const from = cloud.context.runtime.clock.now()
    await put(cloud, 1)
    hub.append({ kind: 'order.completed', at: 1, order_id: uuid(1) })
    hub.sendEntries()
    await world.pass(100)
    const to = cloud.context.runtime.clock.now()
    const told = [...hub.batches, ...hub.acks].map(({ clock }) => clock?.wall ?? 0)
    expect(told).toHaveLength(2)
    expect(told.filter((wall) => wall < from || wall > to)).toEqual([])
  })

  test('an entry acknowledged while the database is down is deleted when it returns, without another entry', async () => {
    const { world, cloud, hub } = await connected()
    const { db } = cloud.context
    const transact = db.transact.bind(db)
    await put(cloud, 1)
    db.transact = () => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))
    await world.pass(50)
    expect(hub.applied).toEqual([cancel(1)])
    expect(await entries(world)).toHaveLength(1)
    expect(hub.hails).toHaveLength(1)
    db.transact = transact
    // A hub repeats an unanswered hello like this.
    hub.hello()
    await world.pass(50)
    expect(await entries(world)).toEqual([])
  })

  test('an entry that cannot be read while the database is down is sent when it returns, without another entry', async () => {
    const { world, cloud, hub } = await connected()
    const restore = withoutEntries(cloud)
    await put(cloud, 1)
    await world.pass(60_000)
    expect(hub.applied).toEqual([])
    expect(hub.hails).toHaveLength(1)
    restore()
    hub.hello()
    // A cloud that was quiet for 30 s answers within a second (SPEC §3).
    await world.pass(1500)
    expect(hub.applied).toEqual([cancel(1)])
  })

  test('a lost request for a hello is repeated with the hub’s heartbeats until the hello comes', async () => {
    const { world, cloud, hub } = await connected()
    hub.ignoresHails = true
    const restore = withoutEntries(cloud)
    await put(cloud, 1)
    await world.pass(5_000)
    restore()
    hub.heartbeat()
    await world.pass(5_000)
    expect([hub.hails.length, hub.applied]).toEqual([2, []])
    hub.ignoresHails = false
    hub.heartbeat()
    await world.pass(SETTLED)
    expect(hub.applied).toEqual([cancel(1)])
    hub.heartbeat()
    await world.pass(5_000)
    expect(hub.hails).toHaveLength(3)
  })

  test('entries that another process has sent and had acknowledged are skipped, and later ones are sent', async () => {
    const { world, cloud, hub } = await connected()
    await put(cloud, 1)
    await world.pass(50)
    await cloud.context.db.transact(async (tx) => {
      await enqueue(tx, 1, cancel(2))
      const { epoch, seq, tag } = await tx.q
        .selectFrom('hub_outbox_entries')
        .select(['epoch', 'seq', 'tag'])
        .executeTakeFirstOrThrow()
      await forgetEntries(tx, 1, epoch, seq)
      hub.inbox = { epoch, cursor: seq, tag }
    })
    hub.applied = []
    await put(cloud, 3)
    await world.pass(50)
    expect(hub.applied).toEqual([cancel(3)])
  })

  test.for([
    ['more commits than the next entry', [2, 3]],
    ['as many commits as the next entry, under equal numbers', [2]],
  ] as const)(
    'a database that has lost its last commits (%s) starts a new epoch with the next entry',
    async ([, lost]) => {
      const { world, cloud, hub } = await connected()
      await put(cloud, 1)
      await world.pass(50)
      const q = world.db.kysely
      const position = () => q.selectFrom('hub_outboxes').selectAll().executeTakeFirstOrThrow()
      const { base, base_tag, last, epoch } = await position()
      await put(cloud, ...lost)
      await world.pass(50)
      hub.applied = []
      await q.updateTable('hub_outboxes').set({ base, base_tag, last }).execute()
      await put(cloud, 4)
      await world.pass(SETTLED)
      expect(hub.applied.map((entry) => (entry as { kind: string }).kind)).toEqual(['snapshot'])
      expect((await position()).epoch).not.toBe(epoch)
    },
  )

  test('a rolled-back entry is never sent, and leaves no gap', async () => {
    const { world, cloud, hub } = await connected()
    const failed = cloud.context.db.transact(async (tx) => {
      await enqueue(tx, 1, cancel(1))
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await put(cloud, 2)
    await world.pass(50)
    expect(hub.applied).toEqual([cancel(2)])
  })

  test('I3: an entry without an acknowledgement is kept and sent again; the broker’s PUBACK does not count', async () => {
    const { world, cloud, hub } = await connected()
    hub.deaf = true
    hub.batches = []
    await put(cloud, 1)
    await world.pass(4_900)
    expect([hub.batches.length, hub.hails.length]).toEqual([1, 0])
    // The hub is asked again after 5 and 10 s, and reports each time that it has nothing.
    await world.pass(12_000)
    expect([hub.batches.length, hub.hails.length]).toEqual([3, 2])
    expect(await entries(world)).toHaveLength(1)
    hub.deaf = false
    await world.pass(20_000)
    expect(hub.applied).toEqual([cancel(1)])
    expect(await entries(world)).toEqual([])
  })

  test('no entry is stored for a hub that never sent a hello, because its first snapshot contains everything', async () => {
    const world = await World.create([1, 2])
    const cloud = world.startCloud('cloud')
    await put(cloud, 1)
    expect(await entries(world)).toEqual([])
    const hub = world.hub()
    await world.pass(100)
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.applied.map((entry) => entry.kind)).toEqual(['snapshot'])
  })

  test('an entry that is enqueued while the hub is offline is sent when it returns', async () => {
    const { world, cloud, hub } = await connected()
    world.network.severe('hub-1', true)
    await world.pass(5_000)
    await put(cloud, 1, 2)
    await world.pass(5_000)
    world.network.severe('hub-1', false)
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.applied).toEqual([cancel(1), cancel(2)])
  })

  test('each tag is a digest of the history: equal entries after a different one have different tags', async () => {
    const { world, cloud, hub } = await connected()
    hub.deaf = true
    await put(cloud, 1, 2, 2)
    const tags = (await entries(world)).map((entry) => entry.tag)
    expect(new Set(tags).size).toBe(3)
  })

  test.each([
    { why: 'is null', inbox: { epoch: null, cursor: 0, tag: 0 } },
    { why: 'is another', inbox: { epoch: 'e'.repeat(32), cursor: 4, tag: 9 } },
  ])('a hub with an inbox epoch that $why gets a new epoch with a snapshot', async ({ inbox }) => {
    const { world, hub } = await connected()
    const before = hub.welcomes.at(-1)!.outbox.epoch
    hub.inbox = inbox
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)?.outbox.epoch).not.toBe(before)
    expect(hub.applied.map((entry) => entry.kind)).toEqual(['snapshot'])
    const epochs = new Set((await entries(world)).map((entry) => entry.epoch))
    expect(epochs.size).toBe(0)
  })

  test.each([
    { why: 'ahead of the outbox', change: { cursor: 9 } },
    { why: 'before deleted entries', change: { cursor: 0, tag: 0 } },
    { why: 'at another tag', change: { tag: 1 } },
  ])('a hub with an inbox that is $why gets a new epoch with a snapshot', async ({ change }) => {
    const { world, hub } = await connected()
    const before = hub.welcomes.at(-1)!.outbox.epoch
    hub.inbox = { ...hub.inbox, ...change }
    hub.connect()
    await world.pass(SETTLED)
    expect(hub.welcomes.at(-1)?.outbox.epoch).not.toBe(before)
    expect(hub.applied.map((entry) => entry.kind)).toEqual(['snapshot'])
  })

  test('an acknowledgement with `fork`, or of an entry that was never sent, starts a new epoch', async () => {
    for (const change of [{ fork: true }, { cursor: 99 }, { tag: 5 }]) {
      const { world, cloud, hub } = await connected()
      const before = hub.inbox.epoch
      hub.deaf = true
      await put(cloud, 1)
      await world.pass(50)
      const { cursor } = hub.inbox
      hub.inbox.tag = (hub.inbox.tag ^ 1) >>> 0
      hub.ack({ cursor, ...change })
      hub.deaf = false
      await world.pass(SETTLED)
      expect(hub.inbox.epoch).not.toBe(before)
      expect(hub.applied.map((entry) => entry.kind)).toEqual(['snapshot'])
    }
  })

  test('a batch is smaller than the limit of bytes', async () => {
    const { world, cloud, hub } = await connected()
    const facings = Array.from({ length: 2_000 }, (_, index) => ({
      product_id: index,
      location: { cabinet: 1, shelf: 1, row: 1 },
      primary: true,
    }))
    hub.batches = []
    await cloud.context.db.transact(async (tx) => {
      for (let index = 0; index < 8; index++) await enqueue(tx, 1, { kind: 'planogram', facings })
    })
    await world.pass(200)
    expect(hub.applied).toHaveLength(8)
    expect(hub.batches.length).toBeGreaterThan(1)
    for (const batch of hub.batches) expect(JSON.stringify(batch).length).toBeLessThan(600_000)
  })

  test.each(['db.before-commit', 'db.after-commit', 'gateway.hello-committed'])(
    'a cloud that dies at %s of a hello or an acknowledgement sends everything in the end',
    async (point) => {
      for (const nth of [1, 2, 3]) {
        const world = await World.create()
        const first: CloudProcess = world.startCloud('cloud', {
          checkpoint: crashAt(point, () => first.life, nth),
        })
        const hub = world.hub()
        await world.pass(100)
        hub.connect()
        await world.pass(SETTLED)
        if (first.life.alive) await put(first, 1).catch(() => {})
        await world.pass(SETTLED)
        world.kill(first)
        const second = world.startCloud('cloud')
        await world.pass(100)
        hub.connect()
        await world.pass(SETTLED)
        await put(second, 2)
        await world.pass(SETTLED)
        const kinds = hub.applied.map((entry) => entry.kind)
        expect(kinds).toContain('snapshot')
        expect(hub.applied.at(-1)).toEqual(cancel(2))
        expect(await entries(world)).toEqual([])
      }
    },
  )
})
