import { expect, test } from 'vitest'
import { noteErased, revokeHub, shutOut } from '../../../../cloud/enrolment/enrol.ts'
import { maySpeak } from '../../../../cloud/gateway/draining.ts'
import { eraseOrder, movesToOrder } from '../../../../cloud/gateway/moves.ts'
import { acknowledgeAlarm, clearAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import {
  leavingWork,
  moveFailure,
  noteMoved,
  orderMove,
  withdrawMove,
} from '../../../../cloud/operations/ownership/next-cell.ts'
import { noteExported } from '../../../../cloud/operations/ownership/owner-file.ts'
import { listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { DAY_MS } from '../../../../protocol/model/times.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { lockWaits } from '../../../world/lock-waits.ts'
import { movingHub, next } from './support/moving-hub.ts'

onEachDatabase('a hub that moves to another cell', (open) => {
  test('the cloud does not order a hub to move that sells, has an unfinished order, an unconfirmed count, an untried configuration, or a board that cannot move', async () => {
    const { db, shop, send, set, setSession, shown, desired_version } = await movingHub(open)
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
    await refused('was not exported')
    await setSession({ applied_version: desired_version - 1 })
    await refused('does not use its settings and hardware description of the cloud (apply_state: pending)')
    await setSession({ failed_version: desired_version, apply_error: 'no such controller' })
    await refused('(apply_state: rolled_back)')
    await setSession({ can_move: null })
    await refused('its version is too old, or its own configuration has MQTT_PASSWORD or MQTT_URL')
    await db.kysely.deleteFrom('hub_sessions').execute()
    await refused('no board has ever been hub 1')
  })

  test('an order retires nothing; only the answer of a hub that is enrolled there does, and the claim code is then gone', async () => {
    const { context, db, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    await exportIt()
    await send()
    expect(JSON.stringify(await db.kysely.selectFrom('hub_moves').selectAll().execute())).not.toContain(
      next.code,
    )
    expect(await movesToOrder(context)).toMatchObject([{ hubId: 1, next: { code: next.code } }])
    expect([await isRetired(), await shown()]).toEqual([
      false,
      { address: next.cloud, hub_id: next.hub_id, state: 'ordered', error: null },
    ])
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([true, { state: 'leaving', error: null }])
    const rows = await db.kysely.selectFrom('hub_moves').select('code').execute()
    expect(rows).toEqual([{ code: null }])
    expect(await eraseOrder(db.kysely, 1)).toEqual({ next: next.hub_id })
    await answer()
    await noteErased(context, 1)
    await expect(send()).rejects.toThrow('is retired')
    expect(await listAudit(db.kysely, { action: 'hubs.leave', limit: 10 })).toMatchObject([
      { actor: 'hub-1', result: 'executed', detail: { to: next.cloud, as: next.hub_id } },
    ])
  })

  test('a failed move leaves the hub in service, ends the order with its reason, and the operator can repeat it', async () => {
    const { db, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    await exportIt()
    await send()
    const error = 'bin 2 is not known to be empty, closed and without fault'
    await answer(error)
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'failed', error }])
    expect(await db.kysely.selectFrom('hub_moves').select('code').execute()).toEqual([{ code: null }])
    expect(await listAudit(db.kysely, { action: 'hubs.leave', limit: 10 })).toMatchObject([
      { result: 'failed', detail: { error } },
    ])
    const alarms = () =>
      db.kysely
        .selectFrom('alarms')
        .select(['message', 'cleared_at'])
        .where('kind', '=', 'move_failed')
        .execute()
    expect(await alarms()).toMatchObject([
      { message: expect.stringContaining(error) as string, cleared_at: null },
    ])
    await answer()
    expect(await isRetired()).toBe(false)
    await send()
    expect(await alarms()).toMatchObject([{ cleared_at: expect.any(Number) as number }])
    expect(await shown()).toMatchObject({ state: 'ordered', error: null })
    await answer()
    expect(await isRetired()).toBe(true)
  })

  test('each order to move has a higher number than the former one, also if the clock stands still or steps back', async () => {
    const { context, shop, exportIt, send, answer } = await movingHub(open)
    await exportIt()
    const numbers: number[] = []
    for (const step of [0, 0, -10 * DAY_MS]) {
      shop.clock.shiftWall(step)
      await send()
      numbers.push((await movesToOrder(context))[0]!.next.order)
      await answer('the broker does not answer')
    }
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
  })

  test('a hub is not ordered to move with an import of a former export, and is not exported while it has an order', async () => {
    const { db, exportIt, read, digest, send, shown } = await movingHub(open)
    await exportIt()
    const first = await digest()
    const file = await read()
    await db.kysely.updateTable('products').set({ original_price: 300 }).execute()
    await exportIt()
    await expect(send({ digest: first })).rejects.toThrow('--export is not the last export of hub 1')
    expect(await shown()).toBeNull()
    await send()
    const withdraw = 'first withdraw it with larder hubs send 1 --withdraw'
    await expect(read()).rejects.toThrow(withdraw)
    // Another operator has begun an export before the order.
    await expect(db.transact((tx) => noteExported(tx, file))).rejects.toThrow(withdraw)
  })

  test('an enrolled hub stays in service if it takes orders again, or if the order to move was withdrawn', async () => {
    const { context, db, set, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    await exportIt()
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

  test('a hub that has changed since its export is not ordered to move, and stays in service after its answer, until it is exported again', async () => {
    const { db, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    const changed = 'hub 1 has changed since its export: export and import again'
    const setPrice = (original_price: number) =>
      db.kysely.updateTable('products').set({ original_price }).execute()
    await exportIt()
    await setPrice(300)
    await expect(send()).rejects.toThrow(changed)
    await setPrice(250)
    await send()
    await db.kysely.deleteFrom('hub_people').execute()
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'failed', error: changed }])
    await db.kysely
      .updateTable('facings')
      .set((eb) => ({ quantity: eb('quantity', '-', 1) }))
      .execute()
    await expect(send()).rejects.toThrow(changed)
    await exportIt()
    await send()
    await answer()
    expect(await isRetired()).toBe(true)
  })

  test('a withdrawal and an answer of the hub at the same time: only the first one counts', async () => {
    const { db, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    await exportIt()
    await send()
    const { answered } = await db.transact(async (tx) => {
      expect(await withdrawMove(tx, 1)).toBe(true)
      const after = answer()
      await lockWaits(db)
      return { answered: after }
    })
    await answered
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'failed', error: 'withdrawn' }])
  })

  test('an answer of a revoked board, or with another number than the order, changes nothing', async () => {
    const { set, exportIt, send, isRetired, shown, answer } = await movingHub(open)
    await exportIt()
    await send()
    await answer(undefined, next.hub_id + 1)
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'ordered' }])
    await set({ revoked_at: 1 })
    await answer()
    expect([await isRetired(), await shown()]).toMatchObject([false, { state: 'ordered' }])
  })

  test('a hub with an order to move is neither retired nor given to another owner, and the revocation of its board ends the order with its code', async () => {
    const { context, db, exportIt, send, retire, move, isRetired, shown } = await movingHub(open)
    await exportIt()
    await send()
    const withdraw = 'first withdraw it with larder hubs send 1 --withdraw'
    await expect(retire(true)).rejects.toThrow(withdraw)
    await expect(move(2)).rejects.toThrow(withdraw)
    const { random } = context.runtime
    await db.transact((tx) => shutOut(tx, random, 1, 5))
    expect([await isRetired(), await shown()]).toMatchObject([
      false,
      { state: 'failed', error: 'the board was revoked' },
    ])
    expect(await movesToOrder(context)).toEqual([])
    await retire()
    expect(await isRetired()).toBe(true)
  })

  test('a hub that has moved keeps its login until it has left, years after HUB_DRAIN_MS', async () => {
    const { context, db, shop, exportIt, send, shown, answer } = await movingHub(open)
    await exportIt()
    await send()
    await answer()
    shop.clock.advance(5 * 365 * DAY_MS)
    const now = context.runtime.clock.now()
    const speaks = () =>
      db.kysely
        .selectFrom('hubs')
        .select('id')
        .where('id', '=', 1)
        .where((eb) => maySpeak(eb, now))
        .execute()
    expect(await speaks()).toHaveLength(1)
    await noteErased(context, 1)
    expect([await speaks(), await shown()]).toMatchObject([[], { state: 'moved' }])
  })

  /** The alarms of hub 1, which is retired and has not left. */
  async function leavingHub() {
    const hub = await movingHub(open)
    const { context, db, exportIt, send, answer } = hub
    await exportIt()
    await send()
    await answer()
    const { 'hub.leaving': work } = leavingWork(context)
    const alarms = () =>
      db.kysely
        .selectFrom('alarms')
        .select(['owner_id', 'message', 'cleared_at'])
        .where('kind', '=', 'move_failed')
        .execute()
    return {
      ...hub,
      alarms,
      look: () => work!.run({ kind: 'hub.leaving', subject: '1', attempts: 0 }),
      erased: () => noteErased(context, 1, (tx) => clearAlarm(tx, context, moveFailure(1))),
    }
  }

  test('a retired hub that waits to leave has the alarm move_failed with its present reason after 10 minutes, until it has left', async () => {
    const { db, answer, shown, look, alarms, erased, shop } = await leavingHub()
    await answer('bin 2 is open')
    expect(await shown()).toMatchObject({ state: 'leaving', error: 'bin 2 is open' })
    expect(await alarms()).toEqual([])
    const due = await db.kysely
      .selectFrom('due_work')
      .select('due_at')
      .where('kind', '=', 'hub.leaving')
      .executeTakeFirstOrThrow()
    expect(Number(due.due_at) - shop.clock.now()).toBe(600_000)
    await look()
    const open = (reason: string) => ({
      owner_id: 1,
      message: expect.stringMatching(`closed in both .*${reason}`) as string,
      cleared_at: null,
    })
    expect(await alarms()).toEqual([open('bin 2 is open')])
    await answer('fridge 1 is not proven to be cold')
    expect(await alarms()).toEqual([open('fridge 1 is not proven to be cold')])
    await erased()
    expect(await alarms()).toMatchObject([{ cleared_at: expect.any(Number) as number }])
    await look()
    await answer('late')
    expect([await shown(), (await alarms()).length]).toMatchObject([{ state: 'moved', error: null }, 1])
  })

  test('the alarm of a retired hub that reports nothing names its connection, and a person who acknowledges it ends it', async () => {
    const { context, db, answer, look, alarms } = await leavingHub()
    await look()
    expect(await alarms()).toMatchObject([
      { message: expect.stringContaining('has not reported why') as string, cleared_at: null },
    ])
    const { id } = await db.kysely.selectFrom('alarms').select('id').executeTakeFirstOrThrow()
    await db.transact((tx) => acknowledgeAlarm(tx, context, id, 'Ann'))
    await answer('bin 2 is open')
    expect(await alarms()).toMatchObject([{ cleared_at: expect.any(Number) as number }])
  })

  test('a retired hub that waits to leave gets the claim code of another hub of the other cell: then it leaves only with that number', async () => {
    const { context, db, shown, answer } = await leavingHub()
    const order = (hub_id: number) =>
      db.transact((tx) => orderMove(tx, context, 1, { ...next, hub_id, digest: '' }))
    await expect(order(1)).rejects.toThrow('--as is the number in the other cell, not 1')
    await order(100_000_002)
    expect(await eraseOrder(db.kysely, 1)).toEqual({ next: 100_000_002 })
    await answer('of the former number', next.hub_id)
    expect(await shown()).toMatchObject({ state: 'leaving', hub_id: 100_000_002, error: null })
    await answer(undefined, 100_000_002)
    expect(await movesToOrder(context)).toEqual([])
  })

  test('the withdrawal for a retired hub that waits to leave ends its claim code, and keeps the reason why it waits', async () => {
    const { context, db, send, shown, answer } = await leavingHub()
    await send()
    await noteMoved(context, 1, { order: 0, hub_id: next.hub_id, error: 'bin 2 is open' })
    expect(await db.transact((tx) => withdrawMove(tx, 1))).toBe(true)
    expect([await movesToOrder(context), await shown()]).toMatchObject([
      [],
      { state: 'leaving', error: 'bin 2 is open' },
    ])
    await answer()
    expect(await shown()).toMatchObject({ state: 'leaving', error: null })
  })

  test('the revocation of a board that waits to leave needs no valid certificate, and ends its alarm', async () => {
    const { context, db, look, alarms } = await leavingHub()
    await look()
    expect(await alarms()).toMatchObject([{ cleared_at: null }])
    const revoke = () => db.transact((tx) => revokeHub(tx, context.runtime, 1))
    expect(await revoke()).toEqual([])
    const due = await db.kysely
      .selectFrom('due_work')
      .select('due_at')
      .where('kind', '=', 'hub.leaving')
      .executeTakeFirstOrThrow()
    expect(Number(due.due_at)).toBe(context.runtime.clock.now())
    await look()
    expect(await alarms()).toMatchObject([{ cleared_at: expect.any(Number) as number }])
    await expect(revoke()).rejects.toThrow('has no valid certificate')
  })

  test('a retired hub that waits to leave gets a further claim code of its number in the other cell', async () => {
    const { context, db, send, shown, answer, isRetired } = await leavingHub()
    await send()
    expect(await movesToOrder(context)).toMatchObject([{ hubId: 1, next: { code: next.code } }])
    expect(await eraseOrder(db.kysely, 1)).toEqual({ next: next.hub_id })
    await answer()
    expect([await movesToOrder(context), await shown(), await isRetired()]).toMatchObject([
      [],
      { state: 'leaving', error: null },
      true,
    ])
  })

  test('a board that is revoked while it waits to leave has not moved', async () => {
    const { set, shown, erased } = await leavingHub()
    await set({ revoked_at: 1 })
    const revoked = { state: 'failed', error: 'the board was revoked' }
    expect(await shown()).toMatchObject(revoked)
    await erased()
    expect(await shown()).toMatchObject(revoked)
  })
})
