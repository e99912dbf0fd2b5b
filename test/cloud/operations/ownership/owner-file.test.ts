import { expect, test } from 'vitest'
import { importOwner, OwnerFile } from '../../../../cloud/operations/ownership/owner-file.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { exportedHub } from './support/moving-hub.ts'

onEachDatabase('the file of an owner', (open) => {
  test('a hub is exported only in maintenance, with a hardware description, with its counted units', async () => {
    const { db, set, read } = await exportedHub(open)
    const [facing] = await db.kysely.selectFrom('facings').selectAll().execute()
    await set({ hub_status: 'active' })
    await expect(read()).rejects.toThrow('takes orders')
    await set({ hub_status: 'maintenance' })
    const { hubs } = await read()
    expect(hubs[0]!.stock).toMatchObject([{ quantity: facing!.quantity }])
    await set({ hardware: null })
    await expect(read()).rejects.toThrow('hub 1 has no hardware description here')
  })

  test('a hub is exported only while it is connected, has all changes of the cloud, and uses its configuration', async () => {
    const { db, setSession, deliver, desired_version, read } = await exportedHub(open)
    await setSession({ is_connected: 0 })
    await expect(read()).rejects.toThrow('hub 1 is not connected, or its reports do not arrive')
    await setSession({ is_connected: 1, stalled: JSON.stringify({ ledger: { error: 'x', since: 0 } }) })
    await expect(read()).rejects.toThrow('hub 1 is not connected, or its reports do not arrive')
    await setSession({ stalled: null })
    await db.kysely
      .updateTable('hub_outboxes')
      .set((eb) => ({ last: eb('last', '+', 1) }))
      .execute()
    await expect(read()).rejects.toThrow('hub 1 has not received all changes yet')
    await deliver()
    await setSession({ applied_version: desired_version - 1, failed_version: desired_version })
    await expect(read()).rejects.toThrow('(apply_state: rolled_back)')
    await setSession({ applied_version: desired_version, failed_version: null })
    expect(await read()).toMatchObject({ hubs: [{ hub_id: 1 }] })
  })

  test('it creates the same hub elsewhere: exported again, only its number and times differ', async () => {
    const { db, file, read, deliver, importIt } = await exportedHub(open)
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
    // As if its board had arrived and confirmed them.
    await db.kysely.updateTable('stock_counts').set({ settled_at: 1 }).execute()
    const session = await db.kysely.selectFrom('hub_sessions').selectAll().executeTakeFirstOrThrow()
    const { desired_version } = await db.kysely
      .selectFrom('hubs')
      .select('desired_version')
      .where('id', '=', hubId)
      .executeTakeFirstOrThrow()
    await db.kysely
      .insertInto('hub_sessions')
      .values({ ...session, hub_id: hubId, applied_version: desired_version })
      .execute()
    await deliver()
    await db.kysely.updateTable('hubs').set({ hub_status: 'maintenance' }).execute()
    const again = OwnerFile.parse(JSON.parse(JSON.stringify(await read(ownerId))))
    expect(again.hubs).toEqual([
      {
        ...hub!,
        hub_id: hubId,
        digest: again.hubs[0]!.digest,
        stock: hub!.stock.map((row) => ({ ...row, quantity: 0 })),
        hardware: { ...hub!.hardware, hubId },
      },
    ])
  })

  test('an interrupted import continues when it is repeated, and a finished hub stays as it is', async () => {
    const { context, db, file, importIt } = await exportedHub(open)
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

  test('a later export of an imported hub is refused until that hub is retired, and then makes another hub', async () => {
    const { context, db, file, importIt } = await exportedHub(open)
    const { ownerId, hubs } = await importIt(file)
    const [hub] = file.hubs
    const later = { ...file, hubs: [{ ...hub!, people: [] }] }
    const { hubId } = hubs[0]!
    await expect(importIt(later)).rejects.toThrow(
      `hub 1 is here already as hub ${hubId}, from another export: larder hubs retire ${hubId} first`,
    )
    await db.transact((tx) => retireHub(tx, context, { hubId, force: false, actor: 'command line' }))
    const again = await importIt(later, ownerId)
    expect(again.hubs).toMatchObject([{ formerId: 1, hasMoved: false }])
    expect(again.hubs[0]!.hubId).not.toBe(hubId)
  })

  test('two imports of a hub at the same time create it once', async () => {
    const { context, db, file } = await exportedHub(open)
    let owners = 0
    let meet = () => {}
    const both = new Promise<void>((resolve) => (meet = resolve))
    const once = () =>
      importOwner(context, file, {
        actor: 'command line',
        async createOwner(tx) {
          const name = `Elsewhere ${(owners += 1)}`
          const { id } = await tx.q
            .insertInto('owners')
            .values({ name })
            .returning('id')
            .executeTakeFirstOrThrow()
          if (owners === 2) meet()
          // SQLite has one writer at a time.
          if (tx.kind === 'postgres') await both
          return id
        },
      })
    const done = await Promise.allSettled([once(), once()])
    const created = await db.kysely.selectFrom('hubs').select('id').where('id', '>', 2).execute()
    expect(created).toHaveLength(1)
    if (db.kind === 'postgres')
      expect(done.map((each) => (each.status === 'rejected' ? String(each.reason) : ''))).toContainEqual(
        expect.stringContaining('another command imports hub 1 now'),
      )
  })

  test('a file with counted units of an unknown product, of another row, or with a hub twice is refused before anything is written', async () => {
    const { read } = await exportedHub(open)
    const file = await read()
    const [hub] = file.hubs
    const problems = (hubs: unknown) =>
      OwnerFile.safeParse({ ...file, hubs }).error?.issues.map((issue) => issue.message)
    const stock = (changes: object) => problems([{ ...hub!, stock: [{ ...hub!.stock[0]!, ...changes }] }])
    const unknown = [expect.stringContaining('the products of the file have no UPC') as string]
    expect(problems([hub])).toBeUndefined()
    expect(stock({ upc: '012345678905' })).toEqual(unknown)
    expect(stock({ row: 39 })).toEqual(unknown)
    expect(problems([hub, hub])).toEqual(['a hub is there twice'])
  })

  test('another currency, an owner of the same name, and a hub of the same name are refused', async () => {
    const { db, file, importIt } = await exportedHub(open)
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
