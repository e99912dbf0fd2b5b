import { describe, expect, test } from 'vitest'
import { scopes } from '../../../../protocol/model/scopes.ts'
import { publish } from '../../../../cloud/events/publish.ts'
import { moveHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { issueApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'
import { url } from '../../events/support/endpoint.ts'
import { StreamReader } from '../../events/support/reader.ts'
import { finish, type Newcomer, newcomers } from './support/owned-hub.ts'

/** The whole service. `move` gives hub 1 to owner 2 and returns the credential of its key, or of its person at the hub. */
async function openMoving(open: OpenDatabase, newcomer: Newcomer) {
  const service = await openService(open)
  const { shop, send } = service
  const { context } = shop
  const { db, runtime } = context
  await db.kysely.insertInto('owners').values({ id: 2, name: 'Owner 2', created_at: 0 }).execute()
  const keyOf = async (ownerId: number, hubs: '*' | number[] = '*') => {
    // With `diag:read` a key reads the audit records of all owners.
    const granted = scopes.filter((scope) => !scope.startsWith('diag:'))
    const request = { name: 'test', ownerId, scopes: granted, hubs, expiresAt: null }
    return { 'X-API-Key': (await issueApiKey(db.kysely, runtime, request)).key }
  }
  return {
    ...service,
    keyOf,
    db,
    sell: async (): Promise<number> => {
      const { id } = await shop.paidOrder({ 1: 1 })
      await finish(shop, id)
      return id
    },
    move: async (): Promise<Record<string, string>> => {
      shop.clock.advance(1000)
      await db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner: 2 }))
      shop.clock.advance(1000)
      if (newcomer === 'key') return keyOf(2)
      await grantRole(db.kysely, runtime, { identity: 'nina', role: 'owner', hubs: [1] })
      return { Authorization: `Bearer ${await service.tokenOf('nina')}` }
    },
    call: (headers: Record<string, string>, method: string, path: string, body?: object) =>
      send(
        method,
        `/api/v1/owners/${path}`,
        { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
        body && JSON.stringify(body),
      ),
  }
}

onEachDatabase('the books of a former owner of a hub', (open) => {
  describe.each(newcomers)('as a %s of the new owner', (newcomer) => {
    test('the new owner of a hub neither reads nor refunds orders that the former owner sold', async () => {
      const { shop, sell, move, call } = await openMoving(open, newcomer)
      const id = await sell()
      const two = await move()
      expect((await call(two, 'GET', `orders/${id}`)).status).toBe(404)
      expect((await call(two, 'POST', `orders/${id}/refund`, { amount: 10 })).status).toBe(404)
      const [item] = await shop.items(id)
      const unit = { quantity: 1 }
      expect((await call(two, 'POST', `orders/${id}/items/${item!.product_id}/refund`, unit)).status).toBe(
        404,
      )
      const settled = { refund_ids: [1], amount: 1, reason: 'in cash' }
      expect((await call(two, 'POST', `orders/${id}/refunds/settle`, settled)).status).toBe(404)
      expect(await shop.refunds(id)).toEqual([])
      const own = await sell()
      expect((await call(two, 'GET', `orders/${own}`)).status).toBe(200)
      expect((await call(two, 'POST', `orders/${own}/refund`, { amount: 10 })).status).toBe(200)
    })

    test('the new owner of a hub gets no events of the former owner’s orders, in the list or by the stream', async () => {
      const { shop, cloud, sell, move, call, owner } = await openMoving(open, newcomer)
      cloud.start()
      const id = await sell()
      const two = await move()
      await publish(shop.context)
      const stream = await cloud.app.request('/api/v1/owners/events/stream', { headers: two })
      const reader = new StreamReader(stream)
      await reader.read()
      expect((await owner('POST', `orders/${id}/refund`, { amount: 10 })).status).toBe(200)
      await sell()
      const [first] = await reader.take(1)
      await reader.close()
      const { data } = (await call(two, 'GET', 'events?limit=100')).json as {
        data: { id: string; type: string }[]
      }
      expect(data.filter(({ type }) => type.startsWith('order.'))).toEqual(data)
      expect(data[0]).toEqual(first!.data)
      expect(data.map(({ type }) => type)).not.toContain('order.refunded')
      await cloud.stop()
    })

    test('the new owner of a hub neither sees nor changes webhooks of the former owner', async () => {
      const { keyOf, move, call } = await openMoving(open, newcomer)
      const hook = { url, event_types: ['*'] }
      const one = await keyOf(1, [1])
      const { id } = (await call(one, 'POST', 'webhooks', hook)).json as { id: string }
      const two = await move()
      const statuses = [
        await call(two, 'GET', `webhooks/${id}`),
        await call(two, 'PUT', `webhooks/${id}`, hook),
        await call(two, 'POST', `webhooks/${id}/rotate-secret`, { overlap_hours: 0 }),
        await call(two, 'POST', `webhooks/${id}/test`),
        await call(two, 'GET', `webhooks/${id}/deliveries`),
        await call(two, 'DELETE', `webhooks/${id}`),
      ].map(({ status }) => status)
      expect(statuses).toEqual([404, 404, 404, 404, 404, 404])
      expect((await call(two, 'GET', 'webhooks')).json).toMatchObject({ data: [] })
      const made = await call(two, 'POST', 'webhooks', { ...hook, hub_ids: [1] })
      const own = (made.json as { id: string }).id
      expect((await call(two, 'GET', 'webhooks')).json).toMatchObject({ data: [{ id: own }] })
      expect((await call(one, 'GET', 'webhooks')).json).toMatchObject({ data: [{ id }] })
    })

    test('the new owner of a hub sees operations that are unresolved or were resolved since the move, and no others', async () => {
      const { db, shop, move, call } = await openMoving(open, newcomer)
      const now = shop.clock.now()
      const idOf = (number: number) => `00000000-0000-7000-8000-00000000000${number}`
      const place = { hub_id: 1, device: 'cabinet-1', action: 'dispense', cabinet: 1, shelf: 1, row: 1 }
      const operation = (number: number, settled_at: number | null) => ({
        ...place,
        operation_id: idOf(number),
        reason: 'no answer',
        order_id: 77,
        item_id: null,
        product_id: null,
        started_at: now,
        at: now,
        settled_at,
        settled_by: settled_at === null ? null : ('person' as const),
        happened: settled_at === null ? null : (1 as const),
      })
      const operations = [operation(1, now), operation(2, null), operation(3, null)]
      await db.kysely.insertInto('unknown_operations').values(operations).execute()
      const two = await move()
      await db.kysely
        .updateTable('unknown_operations')
        .set({ settled_at: shop.clock.now(), settled_by: 'person', happened: 1 })
        .where('operation_id', '=', idOf(3))
        .execute()
      const { data } = (await call(two, 'GET', 'operations')).json as { data: { id: string }[] }
      expect(data.map(({ id }) => id)).toEqual([idOf(3), idOf(2)])
    })

    test('the new owner of a hub reads audit records of its own orders, not of orders that the former owner sold', async () => {
      const { sell, move, call, owner } = await openMoving(open, newcomer)
      const old = await sell()
      const two = await move()
      expect((await owner('POST', `orders/${old}/refund`, { amount: 10 })).status).toBe(200)
      const young = await sell()
      expect((await call(two, 'POST', `orders/${young}/refund`, { amount: 10 })).status).toBe(200)
      const { data } = (await call(two, 'GET', 'audit?action=orders.&limit=100')).json as {
        data: { object: string }[]
      }
      expect(data.map(({ object }) => object)).toEqual([`order-${young}`])
    })
  })

  test('a former owner of a hub does not read the name that the new owner gives it', async () => {
    const { db, sell, move, owner } = await openMoving(open, 'key')
    await sell()
    await move()
    await db.kysely.updateTable('hubs').set({ name: 'Secret project' }).where('id', '=', 1).execute()
    const { data } = (await owner('GET', 'sales?group_by=hub')).json as { data: object[] }
    expect(data).toMatchObject([{ key: '1', name: 'Hub 1' }])
  })
})
