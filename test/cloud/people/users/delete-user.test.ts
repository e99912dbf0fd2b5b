import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { deleteUser } from '../../../../cloud/people/users/delete-user.ts'
import { profileHandlers } from '../../../../cloud/people/users/profile.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { deposits, deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { begin } from '../../../../cloud/commerce/money/operations.ts'
import { insertEntry } from '../../../../cloud/commerce/ledger/ledger.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { errorOf } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { testMedia } from '../../support/media.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { raiseAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { appendAudit } from '../../../../cloud/platform/audit/audit.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { tables } from '../../../../cloud/platform/store/schema.ts'
import { setIdentity } from '../../../../cloud/people/users/handlers.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'
import { openService } from '../../../world/service.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const user = '/users/user'

async function ada(open: OpenDatabase) {
  const service = await openService(open)
  const { customer, shop } = service
  await customer('ada', 'POST', `${user}/bootstrap`, {
    first_name: 'Ada',
    last_name: 'Lovelace',
    phone_number: '+14155550100',
    default_hub_id: 1,
    device_uuid: 'phone',
  })
  await customer('ada', 'PATCH', `${user}/profile`, { date_of_birth: '1990-12-10', locale: 'en' })
  await customer('ada', 'POST', `${user}/hub/1`)
  const q = shop.context.db.kysely
  return {
    ...service,
    q,
    /** Creates a cart with a unit of product 1, and pays it if a method is given. */
    order: async (method?: string): Promise<number> => {
      const { json } = await customer('ada', 'POST', '/users/1/orders?hub_id=1')
      const { order_id } = json as { order_id: number }
      await customer('ada', 'PUT', `/users/1/orders/${order_id}/order_item?hub_id=1`, {
        product_id: 1,
        quantity: 1,
      })
      if (method !== undefined)
        await customer('ada', 'POST', '/users/payments/pay', { order_id, payment_method_id: method })
      return order_id
    },
    remove: () => customer('ada', 'DELETE', user),
    rows: () => q.selectFrom('users').selectAll().orderBy('id').execute(),
  }
}

/** Every column of every table that contains a text, as `table.column`. */
async function columnsWith({ context }: Shop, text: string): Promise<string[]> {
  const found: string[] = []
  for (const table of Object.keys(tables)) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(
      context.db.kysely,
    )
    for (const row of rows)
      for (const [column, value] of Object.entries(row))
        if (String(value).includes(text)) found.push(`${table}.${column}`)
  }
  return [...new Set(found)]
}

onEachDatabase('deleting a user', (open) => {
  test('a person who returns during the deletion is a new user, and nothing is written to the deleted one', async () => {
    const { customer, shop, q, rows } = await ada(open)
    const { db } = shop.context
    await q.updateTable('users').set({ is_anonymous: 1 }).where('id', '=', 1).execute()
    let mayEnd = () => {}
    const waits = new Promise<void>((resolve) => (mayEnd = resolve))
    let removal: Promise<void> | undefined
    await new Promise<void>((erased) => {
      removal = db.transact(async (tx) => {
        const gone = { identity: null, email: null, first_name: null, deleted_at: 1 }
        await tx.q.updateTable('users').set(gone).where('id', '=', 1).execute()
        erased()
        await waits
      })
    })
    const back = customer('ada', 'POST', `${user}/bootstrap`, { first_name: 'Ada' })
    await lockWaits(db)
    mayEnd()
    await removal
    expect([(await back).status, (await back).json]).toEqual([201, expect.objectContaining({ user_id: 2 })])
    expect((await rows())[0]).toMatchObject({ identity: null, email: null, first_name: null })
  })

  test('the deletion of a user erases all personal data, keeps the books, and frees the identity', async () => {
    const { customer, order, remove, rows, q, shop } = await ada(open)
    await customer('ada', 'POST', `${user}/push-configs`, {
      device_id: 'd',
      push_token: 't',
      platform: 'web',
    })
    const orderId = await order('pm_card_visa')
    await shop.report({ kind: 'order.failed', order_id: orderId, bins: [], lines: [], reason: 'jam' })
    await shop.work.drain()
    expect((await remove()).status).toBe(204)

    const { id, created_at, updated_at, deleted_at, ...rest } = (await rows())[0]!
    expect([id, created_at <= updated_at, deleted_at === updated_at]).toEqual([1, true, true])
    for (const [column, value] of Object.entries(rest))
      expect([column, /^(notify|is_anonymous)|_verified$/.test(column) ? 0 : null]).toEqual([column, value])
    expect(await q.selectFrom('push_configs').selectAll().execute()).toEqual([])
    expect(await shop.order(orderId)).toMatchObject({ user_id: 1, payment_status: 'refunded' })
    expect(await shop.payments(orderId)).toMatchObject([{ user_id: 1, status: 'completed' }])

    expect((await customer('ada', 'GET', user)).status).toBe(404)
    expect((await customer('ada', 'GET', `${user}/exists?phone_number=%2B14155550100`)).json).toEqual({
      exists: false,
    })
    const anew = await customer('ada', 'POST', `${user}/bootstrap`)
    expect([anew.status, anew.json]).toEqual([201, expect.objectContaining({ user_id: 2, first_name: null })])
    expect((await customer('ada', 'GET', '/users/1/orders')).status).toBe(403)
    expect((await customer('ada', 'GET', '/users/2/orders')).json).toMatchObject({ items: [], total: 0 })
  })

  test('no column of the database contains the identity or a contact of a user after the deletion', async () => {
    const sub = 'auth0|c0ffee-1234'
    const { customer, owner, connectHub, shop } = await openService(open)
    const q = shop.context.db.kysely
    const person = { email: `${sub}@example.org`, phone: '+14155550177' }
    await connectHub()
    await customer(sub, 'POST', `${user}/bootstrap`, { phone_number: person.phone, device_uuid: 'device-77' })
    await customer(sub, 'POST', `${user}/push-configs`, { device_id: 'd', push_token: 't', platform: 'web' })
    const { json } = await customer(sub, 'POST', '/users/1/orders?hub_id=1')
    const { order_id } = json as { order_id: number }
    const line = { product_id: 1, quantity: 1 }
    await customer(sub, 'PUT', `/users/1/orders/${order_id}/order_item?hub_id=1`, line)
    await customer(sub, 'POST', '/users/payments/pay', { order_id, payment_method_id: 'pm_card_visa' })
    const lines = droppedLines(await shop.items(order_id))
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines })
    const opened = await customer(sub, 'POST', `/users/1/orders/${order_id}/open-delivery?hub_id=1&bin_num=1`)
    expect(opened.status).toBe(200)
    await shop.report({ kind: 'order.collecting', order_id })
    await shop.report({ kind: 'order.completed', order_id })
    // The same person works at the hub: acts on hardware and money, and acknowledges an alarm.
    await grantRole(q, shop.context.runtime, { identity: sub, role: 'owner', hubs: '*' })
    const works = (method: string, path: string, body?: object) =>
      customer(sub, method, `/api/v1/owners/${path}`, body)
    expect((await works('POST', 'controls/raise_bin?hub=1&bin=2')).status).toBe(200)
    expect((await works('POST', `orders/${order_id}/refund`, { amount: 10 })).status).toBe(200)
    await shop.context.db.transact((tx) =>
      raiseAlarm(tx, shop.context, { hubId: 1, kind: 'bin_fault', subject: 'bin 3' }),
    )
    const { id: alarm } = await q.selectFrom('alarms').select('id').executeTakeFirstOrThrow()
    expect((await works('POST', `alarms/${alarm}/acknowledge`)).status).toBe(200)
    await q.deleteFrom('roles').execute()
    expect(await columnsWith(shop, sub)).not.toEqual([])

    expect((await customer(sub, 'DELETE', user)).status).toBe(204)
    const { json: alarms } = await owner('GET', 'alarms')
    expect(alarms).toMatchObject({ data: [{ acknowledged_by: 'user:1' }] })
    const actsOf = async (actor: string) =>
      (await q.selectFrom('audit_log').select('action').where('actor', '=', actor).execute()).map(
        ({ action }) => action,
      )
    // Results of commands are recorded later.
    shop.clock.advance(60_000)
    await vi.waitFor(async () =>
      expect(await actsOf('user:1')).toEqual(
        expect.arrayContaining(['controls.open_delivery', 'controls.raise_bin', 'orders.refund']),
      ),
    )
    for (const text of [sub, person.email, person.phone, 'device-77'])
      expect([text, await columnsWith(shop, text)]).toEqual([text, []])
  })

  test('the former identity of a user is replaced too if the user has another one', async () => {
    const { shop, q } = await ada(open)
    await appendAudit(q, shop.context.runtime, {
      actor: 'identity:ada',
      action: 'controls.open_delivery',
      hubId: 1,
      object: 'order-1',
      result: 'executed',
    })
    const verify = () =>
      Promise.resolve({ identity: 'ada-2', claims: { anonymous: false } as never, expiresAt: Infinity })
    const caller = { kind: 'identity', actor: 'identity:ada', identity: 'ada', claims: {} }
    await setIdentity(shop.context, verify, caller as never, {
      contact: { phone_number: '+14155550100' },
      token: 'any',
    })
    const actors = await q.selectFrom('audit_log').select('actor').execute()
    expect(actors).toContainEqual({ actor: 'user:1' })
    expect(actors).not.toContainEqual({ actor: 'identity:ada' })
  })

  test('the deletion of a user is refused while a paid order has not ended, and changes nothing', async () => {
    const { order, remove, rows, shop } = await ada(open)
    const id = await order('pm_card_visa')
    const before = await rows()
    const stations = [
      { kind: 'order.preparing', order_id: id, bins: [1] },
      { kind: 'order.ready', order_id: id, bins: [1], lines: [] },
      { kind: 'order.collecting', order_id: id },
    ] as const
    for (const next of [undefined, ...stations]) {
      if (next) await shop.report(next as never)
      const refused = await remove()
      expect([refused.status, errorOf(refused).error]).toEqual([
        409,
        expect.objectContaining({ code: 'order_in_progress', details: { order_ids: [id] } }),
      ])
    }
    expect(await rows()).toEqual(before)
    await shop.report({ kind: 'order.completed', order_id: id })
    expect((await remove()).status).toBe(204)
  })

  test('the deletion of a user deletes the cart, and cancels a pending payment', async () => {
    const { order, remove, q, shop } = await ada(open)
    const cart = await order()
    await order('pm_card_authenticationRequired')
    expect((await shop.order(cart)).processing_status).toBe(S.PENDING_PAYMENT)
    expect((await remove()).status).toBe(204)
    expect((await shop.order(cart)).processing_status).toBe(S.CANCELLED)
    expect(await q.selectFrom('sandbox_intents').select('status').execute()).toEqual([{ status: 'canceled' }])
    expect(await shop.product(1)).toMatchObject({ reserved: 0 })
  })

  test('the stored answer of a deleted user is not returned to the new user', async () => {
    const { customer, remove, send, tokenOf } = await ada(open)
    const ask = async (id: number) =>
      send('POST', `/users/${id}/orders?hub_id=1`, {
        Authorization: `Bearer ${await tokenOf('ada')}`,
        'Idempotency-Key': 'the first',
      })
    expect((await ask(1)).json).toMatchObject({ user_id: 1 })
    expect((await remove()).status).toBe(204)
    await customer('ada', 'POST', `${user}/bootstrap`)
    expect((await ask(2)).json).toMatchObject({ user_id: 2 })
  })

  test('the deletion of a user with money in the wallet, or with a pending deposit, requires a confirmation', async () => {
    const { customer, remove, shop } = await ada(open)
    const body = { amount_cents: 2500, payment_method_id: 'pm_card_visa' }
    await customer('ada', 'POST', '/users/wallet/deposit', body)
    const refused = await remove()
    expect([refused.status, errorOf(refused).error]).toMatchObject([
      409,
      { code: 'wallet_not_empty', details: { balance_cents: 0, pending_cents: 2500 } },
    ])
    await deliver(shop)
    expect(errorOf(await remove()).error).toMatchObject({
      code: 'wallet_not_empty',
      details: { balance_cents: 2500, pending_cents: 0 },
    })
    expect((await customer('ada', 'DELETE', `${user}?forfeit=true`)).status).toBe(204)
    await customer('ada', 'POST', `${user}/bootstrap`)
    expect((await customer('ada', 'GET', '/users/wallet/balance')).json).toMatchObject({ balance_cents: 0 })
  })

  test('the deletion of a user requires the confirmation also for a deposit that is credited at the same moment', async () => {
    const { remove, shop } = await ada(open)
    const { context } = shop
    const { db } = context
    // A transaction on SQLite sees one state.
    if (db.kind === 'sqlite') return
    const { removing, crediting } = await db.transact(async (tx) => {
      await tx.forUpdate(tx.q.selectFrom('users').select('id').where('id', '=', 1)).execute()
      const removed = remove()
      await lockWaits(db)
      const begun = { user_id: 1, account: 'wallet', type: 'deposit', amount: 2500 } as const
      const row = await insertEntry(tx, context, { ...begun, processor: 'sandbox' })
      const operation = { kind: 'deposit', subject: row.id, processor: 'sandbox', started_at: 0 } as const
      await begin(tx, context, operation)
      const booked = db.transact(async (other) => {
        await sql`lock table ledger_entries in access exclusive mode`.execute(other.q)
        await lockWaits(db)
        await deposits.apply(other, context, row, operation, { outcome: 'succeeded', ref: 'pi_1' })
      })
      await lockWaits(db, 2)
      return { removing: removed, crediting: booked }
    })
    await crediting
    expect(errorOf(await removing).error).toMatchObject({ code: 'wallet_not_empty' })
  })

  test('the deletion of a user requires the confirmation for a failed deposit that another card can still complete', async () => {
    const { customer, remove, shop } = await ada(open)
    const body = { amount_cents: 2500, payment_method_id: 'pm_card_authenticationRequired' }
    const begun = await customer('ada', 'POST', '/users/wallet/deposit', body)
    const { payment_intent_id: id } = begun.json as { payment_intent_id: string }
    const event = { id: 'evt_failed', type: 'payment_intent.payment_failed', object: { id } }
    await sendEvent(shop, { ...event, object: { id, metadata: { deposit_id: '1.0' } } })
    expect(errorOf(await remove()).error).toMatchObject({
      code: 'wallet_not_empty',
      details: { balance_cents: 0, pending_cents: 2500 },
    })
    shop.clock.advance(20 * 60_000)
    await shop.work.drain()
    expect((await remove()).status).toBe(204)
  })

  test('the deletion of a user ignores a deposit that was declined at once, because it cannot be completed', async () => {
    const { customer, remove } = await ada(open)
    const body = { amount_cents: 2500, payment_method_id: 'pm_card_chargeDeclined' }
    expect((await customer('ada', 'POST', '/users/wallet/deposit', body)).status).toBe(402)
    expect((await remove()).status).toBe(204)
  })

  test('the deletion of a user ends deposits: a deposit requested just before takes no money', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
    const caller = { kind: 'user', id: 'x', actor: 'x', identity: 'x', claims, userId } as const
    await deleteUser(shop.services, testMedia(shop.context), caller, { forfeit: false })
    const late = deposit(shop.services, { userId, amountCents: 2500, method: 'pm_card_visa' })
    await expect(late).rejects.toMatchObject({ code: 'user_not_found' })
    expect(await shop.bank.intents()).toEqual([])
  })

  test('a request in flight leaves no personal data after the deletion of its user', async () => {
    const shop = await openShop(await open())
    const { context } = shop
    const media = testMedia(context)
    const userId = await shop.customer()
    const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
    const caller = { kind: 'user', id: 'x', actor: 'x', identity: 'x', claims, userId } as const
    await deleteUser(shop.services, media, caller, { forfeit: false })
    const q = context.db.kysely
    const erased = await q.selectFrom('users').selectAll().execute()
    const late = profileHandlers(context, media)
    const file = { key: 'k', name: 'me.png', mime_type: 'image/png', size: 1 }
    const push = { device_id: 'd', push_token: 't', platform: 'web' }
    const requests: (() => Promise<unknown>)[] = [
      () => late['consumer.profile.patch']({ credential: caller, body: { first_name: 'Ada' } } as never),
      () => late['consumer.profile.set_image']({ credential: caller, form: { files: [file] } } as never),
      () => late['consumer.profile.register_push']({ credential: caller, body: push } as never),
    ]
    for (const request of requests) await expect(request()).rejects.toMatchObject({ code: 'user_not_found' })
    expect(await q.selectFrom('users').selectAll().execute()).toEqual(erased)
    expect(await q.selectFrom('push_configs').selectAll().execute()).toEqual([])
  })

  test('the deletion of a user waits for an unreachable processor', async () => {
    let isUp = true
    const shop = await openShop(await open(), {
      wrapProcessor: (sandbox) => ({
        ...sandbox,
        cancelIntent: (ref) =>
          isUp ? sandbox.cancelIntent(ref) : Promise.reject(new ProcessorUnavailable()),
      }),
    })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, {
      userId,
      orderId,
      method: 'pm_card_authenticationRequired',
    })
    const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
    const caller = { kind: 'user', id: 'x', actor: 'x', identity: 'x', claims, userId } as const
    const remove = () => deleteUser(shop.services, testMedia(shop.context), caller, { forfeit: false })
    isUp = false
    await expect(remove()).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect((await shop.order(orderId)).processing_status).toBe(S.PENDING_PAYMENT)
    isUp = true
    await remove()
    const row = await shop.context.db.kysely.selectFrom('users').select('deleted_at').executeTakeFirst()
    expect(row?.deleted_at).not.toBeNull()
  })
})
