import { expect, test } from 'vitest'
import { issueAbove } from '../../../../cloud/platform/store/next-id.ts'
import { eraseOrder } from '../../../../cloud/gateway/moves.ts'
import {
  noteMoved,
  orderMove,
  shownMove,
  withdrawMove,
} from '../../../../cloud/operations/ownership/next-cell.ts'
import { exportOwner, importOwner, OwnerFile } from '../../../../cloud/operations/ownership/owner-file.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { storeDesired } from '../../../../cloud/operations/hubs/desired.ts'
import { HardwareDescription } from '../../../../protocol/model/hardware.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { upcCheckDigit } from '../../../../protocol/model/upc.ts'
import { demoHub } from '../../../support/demo-hub.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openHub } from './support/owned-hub.ts'

const next = { cloud: 'https://shop.example/c1', hub_id: 100_000_001, code: 'K7QM2XRA' }

/** Hub 1 in maintenance, with a board that can move. */
async function world(open: OpenDatabase) {
  const opened = await openHub(open)
  const { db, context } = opened
  const set = (columns: object) => db.kysely.updateTable('hubs').set(columns).where('id', '=', 1).execute()
  await set({ hub_status: 'maintenance' })
  await db.kysely.updateTable('hub_sessions').set({ can_move: 1 }).where('hub_id', '=', 1).execute()
  const orderOf = async () =>
    (await db.kysely.selectFrom('hub_moves').select('ordered_at').executeTakeFirstOrThrow()).ordered_at
  return {
    ...opened,
    set,
    isRetired: async () =>
      (
        await db.kysely
          .selectFrom('hubs')
          .select(['retired_at'])
          .where('id', '=', 1)
          .executeTakeFirstOrThrow()
      ).retired_at !== null,
    send: (to = next) => db.transact((tx) => orderMove(tx, context, 1, to)),
    shown: () => shownMove(db.kysely, 1),
    answer: async (error?: string) =>
      noteMoved(context, 1, {
        order: await orderOf(),
        hub_id: next.hub_id,
        ...(error !== undefined && { error }),
      }),
  }
}

onEachDatabase('a hub that moves to another cell', (open) => {
  test('the cloud does not order a hub to move that sells, has an unfinished order, an unconfirmed count, or a board that cannot move', async () => {
    const { db, shop, send, set, shown } = await world(open)
    const refused = async (why: string) => {
      await expect(send()).rejects.toThrow(why)
      expect(await shown()).toBeNull()
    }
    await set({ hub_status: 'active' })
    await refused('takes orders: first run larder hubs set 1 --maintenance on')
    const { id } = await shop.paidOrder({ 1: 1 })
    await set({ hub_status: 'maintenance' })
    await refused(`has 1 unfinished order (${id})`)
    const ended = { processing_status: OrderStatus.COMPLETED }
    await db.kysely.updateTable('orders').set(ended).where('id', '=', id).execute()
    const count = { count_id: 'c', hub_id: 1, product_id: 1, quantity: 3, counted_at: 0, ledger_from: 0 }
    await db.kysely.insertInto('stock_counts').values(count).execute()
    await refused('has not confirmed a count of its stock yet')
    await db.kysely.updateTable('stock_counts').set({ settled_at: 1 }).execute()
    await db.kysely.updateTable('hub_sessions').set({ can_move: null }).execute()
    await refused('its version is too old, or its own configuration has MQTT_PASSWORD or MQTT_URL')
    await db.kysely.deleteFrom('hub_sessions').execute()
    await refused('no board has ever been hub 1')
  })

  test('an order retires nothing; only the answer of a hub that is enrolled there does, and the claim code is then gone', async () => {
    const { db, send, isRetired, shown, answer } = await world(open)
    await send()
    expect([await isRetired(), await shown()]).toEqual([
      false,
      { address: next.cloud, hub_id: next.hub_id, state: 'ordered', error: null },
    ])
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([true, { state: 'moved', error: null }])
    const rows = await db.kysely.selectFrom('hub_moves').select('code').execute()
    expect(rows).toEqual([{ code: null }])
    expect(await eraseOrder(db.kysely, 1)).toEqual({ next: next.hub_id })
    await answer()
    await expect(send()).rejects.toThrow('is retired')
    expect(await listAudit(db.kysely, { action: 'hubs.leave', limit: 10 })).toMatchObject([
      { actor: 'hub-1', result: 'executed', detail: { to: next.cloud, as: next.hub_id } },
    ])
  })

  test('a failed move leaves the hub in service, ends the order with its reason, and the operator can repeat it', async () => {
    const { db, send, isRetired, shown, answer } = await world(open)
    await send()
    const error = 'bin 2 is not known to be empty, closed and without fault'
    await answer(error)
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'failed', error }])
    expect(await db.kysely.selectFrom('hub_moves').select('code').execute()).toEqual([{ code: null }])
    expect(await listAudit(db.kysely, { action: 'hubs.leave', limit: 10 })).toMatchObject([
      { result: 'failed', detail: { error } },
    ])
    await answer()
    expect(await isRetired()).toBe(false)
    await send()
    expect(await shown()).toMatchObject({ state: 'ordered', error: null })
    await answer()
    expect(await isRetired()).toBe(true)
  })

  test('an enrolled hub stays in service if it takes orders again, or if the order to move was withdrawn', async () => {
    const { context, db, set, send, isRetired, shown, answer } = await world(open)
    await send()
    await set({ hub_status: 'active' })
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([
      false,
      { state: 'failed', error: expect.stringContaining('takes orders') as string },
    ])
    await set({ hub_status: 'maintenance' })
    await send()
    expect(await db.transact((tx) => withdrawMove(tx, 1))).toBe(true)
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'failed', error: 'withdrawn' }])
    expect(await db.transact((tx) => withdrawMove(tx, 1))).toBe(false)
    await send()
    await noteMoved(context, 1, { order: 0, hub_id: next.hub_id })
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'ordered' }])
  })
})

/** Hub 1 of owner 1 with everything that a file needs. */
async function exported(open: OpenDatabase) {
  const opened = await world(open)
  const { context, db } = opened
  const upc = `03600029145${upcCheckDigit('03600029145')}`
  await db.kysely.updateTable('products').set({ upc }).execute()
  await db.transact((tx) =>
    storeDesired(tx, 1, { hardware: HardwareDescription.parse(demoHub), settings: { HEARTBEAT_MS: '5000' } }),
  )
  await db.kysely
    .insertInto('hub_people')
    .values({ hub_id: 1, name: 'Ann', pin_digest: 'digest', created_at: 0 })
    .execute()
  // The rows of the test world have chosen ids.
  await db.transact(async (tx) => {
    for (const name of ['owners', 'hubs', 'products', 'categories'] as const)
      await issueAbove(tx, name, { id: 50, maxStep: Infinity })
  })
  const now = context.runtime.clock.now()
  const read = (id = 1) =>
    db.transact((tx) =>
      exportOwner(tx, { id, name: 'One' }, { hubs: '*', currency: context.settings.currency, now }),
    )
  const file = OwnerFile.parse(JSON.parse(JSON.stringify(await read())))
  return {
    ...opened,
    read,
    file: { ...file, owner: 'Elsewhere' },
    importIt: (from: OwnerFile, ownerId?: number, within: CloudContext = context) =>
      importOwner(within, from, {
        ownerId,
        actor: 'command line',
        async createOwner(tx) {
          const { id } = await tx.q
            .insertInto('owners')
            .values({ name: from.owner })
            .returning('id')
            .executeTakeFirstOrThrow()
          return id
        },
      }),
  }
}

onEachDatabase('the file of an owner', (open) => {
  test('a hub is exported only in maintenance, with a hardware description, with its counted units', async () => {
    const { db, set, read } = await exported(open)
    const [facing] = await db.kysely.selectFrom('facings').selectAll().execute()
    await set({ hub_status: 'active' })
    await expect(read()).rejects.toThrow('takes orders')
    await set({ hub_status: 'maintenance' })
    const { hubs } = await read()
    expect(hubs[0]!.stock).toMatchObject([{ quantity: facing!.quantity }])
    await set({ hardware: null })
    await expect(read()).rejects.toThrow('hub 1 has no hardware description here')
  })

  test('it creates the same hub elsewhere: exported again, only its number and times differ', async () => {
    const { db, file, read, importIt } = await exported(open)
    const { ownerId, hubs } = await importIt(file)
    const { hubId } = hubs[0]!
    const counts = await db.kysely
      .selectFrom('stock_counts')
      .select(['cabinet', 'shelf', 'row', 'quantity'])
      .where('hub_id', '=', hubId)
      .execute()
    const [hub] = file.hubs
    expect(counts).toEqual(
      hub!.stock.map(({ cabinet, shelf, row, quantity }) => ({ cabinet, shelf, row, quantity })),
    )
    // As if its board had confirmed them.
    await db.kysely.updateTable('stock_counts').set({ settled_at: 1 }).execute()
    await db.kysely.updateTable('hubs').set({ hub_status: 'maintenance' }).execute()
    const again = OwnerFile.parse(JSON.parse(JSON.stringify(await read(ownerId))))
    expect(again.hubs).toEqual([
      {
        ...hub!,
        hub_id: hubId,
        stock: hub!.stock.map((row) => ({ ...row, quantity: 0 })),
        hardware: { ...hub!.hardware, hubId },
      },
    ])
  })

  test('an interrupted import continues when it is repeated, and a finished hub stays as it is', async () => {
    const { context, db, file, importIt } = await exported(open)
    const [hub] = file.hubs
    const second = { ...hub!, hub_id: 2, record: { ...hub!.record, name: 'Second' } }
    const both = { ...file, hubs: [hub!, second] }
    // The machine loses its power at the third, fifth, … transaction.
    let [left, tries] = [3, 0]
    const mortal: CloudContext = {
      ...context,
      db: Object.assign(Object.create(context.db) as typeof db, {
        transact: (work: Parameters<typeof db.transact>[0]) =>
          left-- > 0 ? db.transact(work) : Promise.reject(new Error('power')),
      }),
    }
    for (; ; tries += 1) {
      left = 3 + 2 * tries
      const done = await importIt(both, undefined, mortal).catch((error: Error) => error.message)
      if (typeof done !== 'string') break
      expect(done).toBe('power')
    }
    expect(tries).toBeGreaterThan(1)
    const { hubs, ownerId } = await importIt(both)
    const created = await db.kysely.selectFrom('hubs').select('id').where('owner_id', '=', ownerId).execute()
    expect([hubs.length, created.length]).toEqual([2, 2])
    const counts = await db.kysely
      .selectFrom('stock_counts')
      .select('quantity')
      .where('hub_id', '=', hubs[0]!.hubId)
      .where('settled_at', 'is', null)
      .execute()
    expect(counts).toEqual(hub!.stock.map(({ quantity }) => ({ quantity })))
    await db.kysely.deleteFrom('stock_counts').execute()
    await importIt(both)
    expect(await db.kysely.selectFrom('stock_counts').select('count_id').execute()).toEqual([])
  })

  test('another currency, an owner of the same name, and a hub of the same name are refused', async () => {
    const { db, file, importIt } = await exported(open)
    await expect(importIt({ ...file, currency: 'JPY' })).rejects.toThrow(
      'the prices of the file are in JPY, and this installation sells in USD',
    )
    await expect(importIt({ ...file, owner: 'One' })).rejects.toThrow(
      'owner 1 has the name "One" here: add --owner 1 if it is the same owner',
    )
    // The test world's own hub of owner 1 has the name.
    await expect(importIt(file, 1)).rejects.toThrow('this owner has such hubs already: 1 ')
    const hubs = await db.kysely.selectFrom('hubs').select('id').where('id', '>', 2).execute()
    const owners = await db.kysely.selectFrom('owners').select('id').where('name', '=', file.owner).execute()
    expect([hubs, owners]).toEqual([[], []])
  })
})
