import { beforeEach, expect, test } from 'vitest'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { uuid } from '../../support/uuid.ts'
import { onEachDatabase } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const EPOCH = '2'.repeat(32)
const ENTRIES = 8
const cancel = { kind: 'order.cancel', order_id: uuid(1) } as const

onEachDatabase('entries of outboxes', (open) => {
  let db: CloudDatabase
  beforeEach(async () => {
    db = await open()
    for (const hub_id of [1, 2]) {
      await seedHub(db, hub_id)
      await db.kysely
        .insertInto('hub_outboxes')
        .values({ hub_id, epoch: EPOCH, base: 0, base_tag: 0, last: 0 })
        .execute()
    }
  })

  const put = (hubId: number) => db.transact((tx) => enqueue(tx, hubId, cancel))
  const tagsOf = (hubId: number) =>
    db.kysely
      .selectFrom('hub_outbox_entries')
      .select(['seq', 'tag'])
      .where('hub_id', '=', hubId)
      .orderBy('seq')
      .execute()

  test('entries of simultaneous transactions have the numbers and tags of successive ones', async () => {
    await Promise.all(Array.from({ length: ENTRIES }, () => put(1)))
    for (let count = 0; count < ENTRIES; count += 1) await put(2)
    const tags = await tagsOf(1)
    expect(tags).toEqual(await tagsOf(2))
    expect(new Set(tags.map(({ tag }) => tag)).size).toBe(ENTRIES)
  })

  test('several entries of one transaction have the numbers and tags of successive ones', async () => {
    await db.transact(async (tx) => {
      for (let count = 0; count < ENTRIES; count += 1) await enqueue(tx, 1, cancel)
    })
    for (let count = 0; count < ENTRIES; count += 1) await put(2)
    expect(await tagsOf(1)).toEqual(await tagsOf(2))
  })

  test('a transaction with an entry that cannot be stored is undone', async () => {
    await db.kysely
      .insertInto('hub_outbox_entries')
      .values({ hub_id: 1, epoch: EPOCH, seq: 1, tag: 0, body: '{}' })
      .execute()
    const failing = db.transact(async (tx) => {
      await tx.q.insertInto('owners').values({ name: 'New' }).execute()
      await enqueue(tx, 1, cancel)
    })
    await expect(failing).rejects.toThrow(/unique/i)
    const owners = await db.kysely.selectFrom('owners').select('name').where('name', '=', 'New').execute()
    expect(owners).toEqual([])
  })

  test('a part of a transaction with an entry that cannot be stored is undone alone', async () => {
    await db.kysely
      .insertInto('hub_outbox_entries')
      .values({ hub_id: 1, epoch: EPOCH, seq: 1, tag: 0, body: '{}' })
      .execute()
    await db.transact(async (tx) => {
      await expect(tx.savepoint(() => enqueue(tx, 1, cancel))).rejects.toThrow(/unique/i)
      await enqueue(tx, 2, cancel)
    })
    expect((await tagsOf(2)).map(({ seq }) => seq)).toEqual([1])
  })
})
