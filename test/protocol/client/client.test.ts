import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { LarderError, unwrap, verifyWebhook } from '../../../protocol/client/client.ts'
import { surroundings } from '../../../protocol/client/system.ts'
import { all, json, lost, payment, refused, scripted } from './scripted.ts'

test('a call sends the documented method and path, below /api/v1, with its credential', async () => {
  const { client, asked } = scripted([json([])])
  const query = { order_processing_statuses: [20, 30] as (20 | 30)[], page: 2 }
  expect(await client.call('GET /users/{user_id}/orders', { params: { user_id: 7 }, query })).toMatchObject({
    ok: true,
    data: [],
  })
  expect(asked).toEqual([
    {
      url: 'https://larder.example/api/v1/users/7/orders?order_processing_statuses=20&order_processing_statuses=30&page=2',
      method: 'GET',
      headers: { Authorization: 'Bearer t' },
      body: undefined,
    },
  ])
})

test('a failed call returns an error value with code, invalid fields and request id', async () => {
  const detail = [{ loc: ['body', 'order_id'], msg: 'Field required', type: 'missing' }]
  const error = { code: 'validation_error', message: 'order_id: Field required.' }
  const { client } = scripted([json({ error, detail, request_id: 'req_9' }, 422)])
  const result = await client.call('POST /users/payments/pay', payment)
  const failure = { ...error, status: 422, problems: detail, requestId: 'req_9' }
  expect(result).toEqual({ ok: false, error: failure })
  expect(() => unwrap(result)).toThrow(LarderError)
})

test('an aborted call ends at once, also during a pause', async () => {
  const stop = new AbortController()
  const { client } = scripted([
    () => {
      stop.abort()
      return lost()
    },
  ])
  expect(await client.call('GET /owners/hubs', { signal: stop.signal })).toMatchObject({
    ok: false,
    error: { code: 'aborted' },
  })
  const pause = surroundings.sleep(60_000, stop.signal)
  await expect(pause).rejects.toThrow()
})

test('the client reads a list page by page, for each kind of pagination', async () => {
  const byCursor = scripted([
    json({ data: [{ order_id: 3 }], next_cursor: 3, has_more: true }),
    json({ data: [{ order_id: 2 }], next_cursor: null, has_more: false }),
  ])
  const path = 'GET /owners/hubs/all_orders_paginated/'
  expect(await all(byCursor.client.items(path, { query: { hub_id: 1 } }))).toHaveLength(2)
  expect(byCursor.asked[1]!.url).toContain('cursor=3')

  const events = scripted([
    json({ data: [{ id: 'evt_1' }], next_cursor: 'evt_1', has_more: true }),
    json({ data: [{ id: 'evt_2' }], next_cursor: 'evt_2', has_more: false }),
  ])
  expect(await all(events.client.items('GET /owners/events'))).toHaveLength(2)
  expect(events.asked[1]!.url).toContain('after=evt_1')

  const byLink = scripted([
    json([{ id: 1 }], 200, {
      Link: '</hubs/1/products?page=1&size=1>; rel="first", </hubs/1/products?page=2&size=1>; rel="next"',
    }),
    json([{ id: 2 }], 200, { Link: '</hubs/1/products?page=1&size=1>; rel="prev"' }),
  ])
  const products = byLink.client.items('GET /hubs/{hub_id}/products', {
    params: { hub_id: 1 },
    query: { size: 1 },
  })
  expect(await all(products)).toEqual([{ id: 1 }, { id: 2 }])
  expect(byLink.asked[1]!.url).toContain('page=2')

  const byNumber = scripted([
    json({ items: [1, 2], total: 3, page: 1, size: 2, pages: 2 }),
    json({ items: [3], total: 3, page: 2, size: 2, pages: 2 }),
  ])
  const orders = byNumber.client.items('GET /users/{user_id}/orders', { params: { user_id: 1 } })
  expect(await all(orders)).toEqual([1, 2, 3])

  const byOffset = scripted([json([{ id: 1 }, { id: 2 }]), json([{ id: 3 }])])
  expect(
    await all(byOffset.client.items('GET /users/wallet/transactions', { query: { limit: 2 } })),
  ).toHaveLength(3)
  expect(byOffset.asked[1]!.url).toContain('offset=2')
})

test('the client requests no further page when the reader stops; a failed page throws', async () => {
  const { client, asked } = scripted([json({ data: [{ id: 1 }, { id: 2 }], next_cursor: 2, has_more: true })])
  for await (const _ of client.items('GET /owners/webhooks')) break
  expect(asked).toHaveLength(1)
  const failing = scripted([refused(403, 'scope_missing')])
  await expect(all(failing.client.items('GET /owners/webhooks'))).rejects.toThrow('scope_missing')
})

test('the client verifies a webhook delivery according to Standard Webhooks', async () => {
  const secret = `whsec_${Buffer.from('a secret of twenty-four').toString('base64')}`
  const other = `whsec_${Buffer.from('another secret entirely').toString('base64')}`
  const at = new Date(1_700_000_000_000)
  const body = JSON.stringify({ type: 'order.paid', timestamp: at.toISOString(), data: { order_id: 1 } })
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(at.getTime() / 1000),
    'webhook-signature': `v1,AAAA v1a,x ${new Webhook(secret).sign('evt_1', at, body)}`,
  }
  const now = () => at.getTime()
  const whole = { body, headers, secret, now }
  expect(await verifyWebhook(whole)).toEqual({
    ok: true,
    event: { id: 'evt_1', ...(JSON.parse(body) as object) },
  })
  expect((await verifyWebhook({ ...whole, headers: new Headers(headers) })).ok).toBe(true)
  expect((await verifyWebhook({ ...whole, secret: [other, secret] })).ok).toBe(true)
  const wrong = async (changes: object) => {
    const result = await verifyWebhook({ ...whole, ...changes })
    return result.ok ? 'verified' : result.error
  }
  expect(await wrong({ secret: other })).toBe('wrong_signature')
  expect(await wrong({ secret: 'whsec_*' })).toBe('wrong_signature')
  expect(await wrong({ body: `${body} ` })).toBe('wrong_signature')
  expect(await wrong({ headers: { ...headers, 'webhook-id': 'evt_2' } })).toBe('wrong_signature')
  expect(await wrong({ headers: { ...headers, 'webhook-signature': 'v1,!' } })).toBe('wrong_signature')
  expect(await wrong({ headers: {} })).toBe('missing_header')
  expect(await wrong({ now: () => at.getTime() + 301_000 })).toBe('too_old')
  expect(await wrong({ now: () => at.getTime() - 301_000 })).toBe('too_old')
  expect(await wrong({ headers: { ...headers, 'webhook-timestamp': 'soon' } })).toBe('too_old')
})
