import { expect, test } from 'vitest'
import { issueAbove } from '../../../../cloud/platform/store/next-id.ts'
import { readNextCell } from '../../../../cloud/gateway/draining.ts'
import { noteErased } from '../../../../cloud/enrolment/enrol.ts'
import { retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { exportOwner, importOwner, OwnerFile } from '../../../../cloud/operations/ownership/owner-file.ts'
import { listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { storeDesired } from '../../../../cloud/operations/hubs/desired.ts'
import { HardwareDescription } from '../../../../protocol/model/hardware.ts'
import { upcCheckDigit } from '../../../../protocol/model/upc.ts'
import { healthy } from '../../../world/health.ts'
import { demoHub } from '../../../support/demo-hub.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { reportBins } from '../../../world/seeds.ts'
import { openHub } from './support/owned-hub.ts'

const next = { cloud: 'https://shop.example/c1', hub_id: 100_000_001, code: 'K7QM2XRA' }

async function world(open: OpenDatabase, { hasBoard = true } = {}) {
  const opened = await openHub(open)
  const { db, context } = opened
  await reportBins(db, 1, healthy.bins, context.runtime.clock.now())
  if (!hasBoard) await db.kysely.deleteFrom('hub_sessions').where('hub_id', '=', 1).execute()
  const read = async () => {
    const hub = await db.kysely
      .selectFrom('hubs')
      .select(['retired_at', 'draining_until', 'secrets_erased_at', 'next_cell'])
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    return { ...hub, next_cell: readNextCell(hub.next_cell) }
  }
  return {
    ...opened,
    read,
    send: (to = next) =>
      db.transact((tx) =>
        retireHub(tx, context, { hubId: 1, force: false, actor: 'command line', next: to }),
      ),
  }
}

onEachDatabase('a hub that moves to another cell', (open) => {
  test('a hub stays while its bins hold goods, its fridges are warm, or an outcome is unknown', async () => {
    const { db, send, read } = await world(open)
    const bins = (state: 'left_behind' | 'free') =>
      db.kysely.updateTable('hub_bins').set({ state }).where('bin', '=', 1).execute()
    await bins('left_behind')
    await expect(send()).rejects.toThrow('empty and close these bins of hub 1 first: 1')
    await bins('free')
    const fridge = { hub_id: 1, fridge: 2, state: 'shutoff' as const, since: 0 }
    await db.kysely.insertInto('hub_fridge_states').values(fridge).execute()
    await expect(send()).rejects.toThrow(
      'fridges of hub 1 are or were too warm, and a person must check them first: 2',
    )
    await db.kysely.updateTable('hub_fridge_states').set({ state: 'cold' }).execute()
    const operation = { hub_id: 1, operation_id: 'o', device: 'bin-1', action: 'open', reason: 'lost' }
    await db.kysely
      .insertInto('unknown_operations')
      .values({ ...operation, started_at: 0, at: 0 })
      .execute()
    await expect(send()).rejects.toThrow('settle 1 operation of hub 1 with unknown outcome first')
    expect(await read()).toMatchObject({ retired_at: null, next_cell: undefined })
    await db.kysely.updateTable('unknown_operations').set({ settled_at: 1 }).execute()
    await send()
    expect(await read()).toMatchObject({ retired_at: expect.any(Number) as number, next_cell: next })
  })

  test('a board that no cell has ever heard is not sent, and nothing changes', async () => {
    const { send, read } = await world(open, { hasBoard: false })
    await expect(send()).rejects.toThrow('no board has ever been hub 1')
    expect(await read()).toMatchObject({ retired_at: null, next_cell: undefined })
  })

  test('a failed move is recorded and changes nothing, another code replaces the first, and a board that has moved is not sent again', async () => {
    const { context, db, send, read } = await world(open)
    await send()
    const error = 'the cloud refused the enrolment'
    for (const each of [error, error]) await noteErased(context, 1, { error: each })
    expect(await read()).toMatchObject({ secrets_erased_at: null, next_cell: { ...next, error } })
    const records = await listAudit(db.kysely, { action: 'hubs.leave', limit: 10 })
    expect(records).toMatchObject([
      {
        actor: 'hub-1',
        result: 'failed',
        detail: { cloud: next.cloud, error: 'the cloud refused the enrolment' },
      },
    ])
    const second = { ...next, code: 'AAAAAAAA' }
    await send(second)
    expect((await read()).next_cell).toEqual(second)
    await noteErased(context, 1, { hub_id: next.hub_id })
    expect(await read()).toMatchObject({
      draining_until: null,
      secrets_erased_at: expect.any(Number) as number,
      next_cell: { ...next, code: null },
    })
    await expect(send()).rejects.toThrow('has moved')
  })

  test('an owner’s file creates the same hub elsewhere: exported again, only its number and times differ', async () => {
    const { context, db } = await world(open)
    await db.kysely
      .insertInto('hub_people')
      .values({ hub_id: 1, name: 'Ann', pin_digest: 'digest', created_at: 0 })
      .execute()
    const one = { id: 1, name: 'One' }
    const upc = `03600029145${upcCheckDigit('03600029145')}`
    await db.kysely.updateTable('products').set({ upc }).execute()
    await expect(exportOwner(db.kysely, one, { hubs: '*', now: 0 })).rejects.toThrow(
      'hub 1 has no hardware description here',
    )
    await db.transact((tx) =>
      storeDesired(tx, 1, {
        hardware: HardwareDescription.parse(demoHub),
        settings: { HEARTBEAT_MS: '5000' },
      }),
    )
    const now = context.runtime.clock.now()
    const file = await exportOwner(db.kysely, one, { hubs: [1], now })
    const { id: ownerId } = await db.kysely
      .insertInto('owners')
      .values({ id: 99, name: 'Elsewhere' })
      .returning('id')
      .executeTakeFirstOrThrow()
    const parsed = OwnerFile.parse(JSON.parse(JSON.stringify(file)))
    // The rows of the test world have chosen ids.
    await db.transact(async (tx) => {
      for (const name of ['hubs', 'products', 'categories'] as const)
        await issueAbove(tx, name, { id: 50, maxStep: Infinity })
    })
    const [imported] = await importOwner(context, ownerId, parsed, 'command line')
    const again = await exportOwner(db.kysely, { ...one, id: ownerId }, { hubs: '*', now })
    const [hub] = file.hubs
    expect(again.hubs).toEqual([
      {
        ...hub!,
        hub_id: imported!.hubId,
        // The board has not applied the counts yet.
        stock: hub!.stock.map((row) => ({ ...row, quantity: 0 })),
        hardware: { ...hub!.hardware, hubId: imported!.hubId },
      },
    ])
    const counts = db.kysely.selectFrom('stock_counts').select(['cabinet', 'shelf', 'row', 'quantity'])
    expect(await counts.where('hub_id', '=', imported!.hubId).execute()).toEqual(
      hub!.stock.map(({ cabinet, shelf, row, quantity }) => ({ cabinet, shelf, row, quantity })),
    )
    await expect(importOwner(context, ownerId, parsed, 'command line')).rejects.toThrow(
      'has such hubs already',
    )
  })
})
