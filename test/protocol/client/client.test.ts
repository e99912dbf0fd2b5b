import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { cloudSettings } from '../../../cloud/platform/settings/config.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { deadlineOf } from '../../../protocol/model/hub-commands.ts'
import { readSettings } from '../../../protocol/model/program-settings.ts'
import { isActive, OrderStatus } from '../../../protocol/model/order-status.ts'
import { createClient, LarderError, unwrap, verifyWebhook } from '../../../protocol/client/client.ts'
import { isRepeatable, pauseAfter, standardRetry, takesKey, timeoutOf } from '../../../protocol/client/retry.ts'
import { messagesOf } from '../../../protocol/client/stream.ts'
import { surroundings } from '../../../protocol/client/system.ts'

interface Asked {
  url: string
  method: string
  headers: Record<string, string>
  body: unknown
}
type Answer = Response | Error

/** A client over a network with scripted answers; returns its pauses and its requests too. */
function scripted(answers: (Answer | ((asked: Asked) => Answer))[], options = {}) {
  const asked: Asked[] = []
  const pauses: number[] = []
  let keys = 0
  const client = createClient({
    baseUrl: 'https://larder.example/',
    token: () => Promise.resolve('t'),
    system: {
      fetch: (url, { method, headers, body }) => {
        const request = { url, method: method!, headers: headers as Record<string, string>, body }
        asked.push(request)
        const next = answers.shift()
        const answer = typeof next === 'function' ? next(request) : next
        return answer instanceof Response
          ? Promise.resolve(answer)
          : Promise.reject(answer ?? new Error('no more'))
      },
      sleep: (ms, signal) => {
        // The idle timer of a stream is not a pause between attempts.
        if (ms === 45_000) return new Promise<void>(() => {})
        pauses.push(ms)
        return signal?.aborted ? Promise.reject(new Error('aborted')) : Promise.resolve()
      },
      random: () => 0.5,
      now: () => 1_000_000,
      newKey: () => `key-${++keys}`,
    },
    ...options,
  })
  return { client, asked, pauses }
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })
const refused = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  json({ error: { code, message: 'No.' }, detail: 'No.', request_id: 'req_1' }, status, headers)
const lost = () => new TypeError('fetch failed')
const payment = { body: { order_id: 1, payment_method_id: 'pm_card_visa' } }

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

test('the client retries a lost answer, 503 and 429 under one idempotency key, with longer pauses', async () => {
  const inUse = refused(409, 'idempotency_key_in_use')
  const { client, asked, pauses } = scripted([
    lost(),
    inUse,
    refused(503, 'processor_unavailable', { 'Retry-After': '5' }),
    refused(429, 'rate_limit_exceeded', { 'Retry-After': new Date(1_000_000 + 9000).toUTCString() }),
    json({ order_id: 1 }),
  ])
  expect((await client.call('POST /users/payments/pay', payment)).ok).toBe(true)
  expect(asked.map(({ headers }) => headers['Idempotency-Key'])).toEqual(Array(5).fill('key-1'))
  expect(pauses).toEqual([187.5, 187.5, 5000, 9000])
})

/** A service that takes a payment's first try, loses its answer, and works for `workMs` of the pauses. */
function busyService(workMs: number, options = {}) {
  let now = -1
  const keys: (string | undefined)[] = []
  const client = createClient({
    baseUrl: 'https://larder.example',
    system: {
      fetch: (_, { headers }) => {
        keys.push((headers as Record<string, string>)['Idempotency-Key'])
        if (now < 0) {
          now = 0
          return Promise.reject(lost())
        }
        return Promise.resolve(now < workMs ? refused(409, 'idempotency_key_in_use') : json({ order_id: 1 }))
      },
      sleep: (ms) => {
        now += ms
        return Promise.resolve()
      },
    },
    ...options,
  })
  return { client, keys, waitedMs: () => now }
}

test('a payment whose connection breaks is answered, even if the service needs another minute for it', async () => {
  for (const tries of [2, 3, 5]) {
    const { client, keys } = busyService(60_000, { retry: { tries } })
    expect(await client.call('POST /users/payments/pay', payment)).toMatchObject({ ok: true })
    expect(new Set(keys).size).toBe(1)
    // Few enough for the rate limit of the route.
    expect(keys.length).toBeLessThan(30)
  }
})

test('a call with the key of an earlier call waits for the answer of the earlier call', async () => {
  const { client, waitedMs } = busyService(30_000, { retry: { tries: 1 } })
  const again = { ...payment, idempotencyKey: 'my-key' }
  expect(await client.call('POST /users/payments/pay', again)).toMatchObject({ ok: false })
  expect(await client.call('POST /users/payments/pay', again)).toMatchObject({ ok: true })
  expect(waitedMs()).toBeGreaterThanOrEqual(30_000)
})

test('the client stops waiting for an earlier try after the time for which the service holds a key', async () => {
  const { client, waitedMs } = busyService(600_000)
  const result = await client.call('POST /users/payments/pay', payment)
  expect(result).toMatchObject({ ok: false, error: { code: 'idempotency_key_in_use' } })
  expect(waitedMs()).toBeGreaterThan(60_000)
  expect(waitedMs()).toBeLessThan(100_000)
})

test('the timeout of a slow control is longer than the service may need, also if the caller prefers a short one', () => {
  const longest = { MANAGEMENT_CONNECT_TIMEOUT_MS: '15000', MANAGEMENT_COMMAND_TIMEOUT_MS: '40000' }
  const read = readSettings(cloudSettings, longest)
  if (!read.ok) throw new Error(read.problems.join())
  const { managementConnectMs, managementCommandMs, commandTimeoutMs } = read.settings.limits.rules
  const overSsh = managementConnectMs + managementCommandMs
  const { path: enable } = routes['owner.controls.enable_bin_ssh']
  const { path: disable } = routes['owner.controls.disable_bin_ssh']
  const { path: cycle } = routes['owner.controls.cycle_bin']
  for (const path of [enable, disable]) expect(timeoutOf(path, 20_000)).toBeGreaterThan(overSsh + 5000)
  const cycles = deadlineOf({ name: 'cycle_bin', bin: 1, cycles: 10 })
  expect(timeoutOf(cycle, 20_000)).toBeGreaterThan(cycles * commandTimeoutMs)
  expect(timeoutOf('/owners/controls/open_bin', 20_000)).toBe(20_000)
  expect(timeoutOf(enable, 300_000)).toBe(300_000)
})

test('the client treats an answer that breaks off as lost', async () => {
  const broken = new ReadableStream({
    start: (controller) => controller.error(new TypeError('terminated')),
  })
  const { client } = scripted([
    new Response(broken),
    new Response('{"half"', { headers: { 'Content-Type': 'application/json' } }),
    json([]),
  ])
  expect((await client.call('GET /owners/hubs')).ok).toBe(true)
})

test('the client does not retry a call that was refused or may have moved hardware', async () => {
  for (const answer of [
    refused(504, 'hardware_error'),
    refused(502, 'hardware_error'),
    refused(500, 'internal_error'),
    refused(409, 'insufficient_stock'),
    refused(409, 'idempotency_key_in_use'),
  ]) {
    const { client, asked } = scripted([answer])
    const query = { hub: 1, bin: 1 }
    expect((await client.call('POST /owners/controls/open_bin', { query })).ok).toBe(false)
    expect(asked).toHaveLength(1)
  }
})

test('the client does not resend a POST without an idempotency key when its answer is lost', async () => {
  const { client, asked } = scripted([lost()])
  const params = { alarm_id: 'alm_1' }
  const result = await client.call('POST /owners/alarms/{alarm_id}/acknowledge', { params })
  expect(result).toMatchObject({ ok: false, error: { code: 'network_error', status: 0 } })
  expect(asked).toHaveLength(1)
})

test('the client creates a webhook once when the first answer is lost: both attempts carry one key', async () => {
  const body = { url: 'https://shop.example/hook', event_types: ['*' as const] }
  const { client, asked } = scripted([lost(), refused(422, 'invalid_webhook')])
  await client.call('POST /owners/webhooks', { body })
  const keys = asked.map(({ headers }) => headers['Idempotency-Key'])
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toBeTruthy()
})

test('the client knows from the route table which POSTs take a key and which are repeatable', () => {
  for (const { method, path, interface: side, ...route } of Object.values(routes)) {
    if (side === 'root') continue
    expect([path, takesKey(method, path)]).toEqual([path, 'idempotent' in route])
  }
  const once = Object.values(routes)
    .filter(({ method, path, interface: side }) => side !== 'root' && !isRepeatable(method, path))
    .map(({ path }) => path)
  for (const path of once) expect(path).toMatch(/^\/(owners\/(alarms|people|contacts|keys)|diag)/)
})

test('retries stop after the maximum number of attempts, or if the service asks for a long pause', () => {
  const failure = { code: 'service_unavailable', message: '', status: 503 }
  const attempt = { number: standardRetry.tries, failure, isRepeatable: true }
  expect(pauseAfter(attempt, standardRetry, () => 0)).toBe(null)
  const asked = { ...attempt, number: 1, failure: { ...failure, retryAfterMs: 61_000 } }
  expect(pauseAfter(asked, standardRetry, () => 0)).toBe(null)
  const late = { ...attempt, number: 4 }
  const { firstMs, ...others } = standardRetry
  const pauses = [0, 0.999].map((random) => pauseAfter(late, { ...others, firstMs }, () => random)!)
  expect(pauses[0]).toBe(firstMs * 4)
  expect(pauses[1]).toBeLessThanOrEqual(firstMs * 8)
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

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

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

const streamOf = (...texts: string[]): Response =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const text of texts) controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      },
    }),
    { headers: { 'Content-Type': 'text/event-stream' } },
  )

test('a live stream resumes after its last message, and ends when the service refuses it', async () => {
  const { client, asked } = scripted([
    streamOf('id: evt_1\ndata: {"id":"evt_1"}\n\n', ': still here\n\n'),
    lost(),
    streamOf('id: evt_2\ndata: {"id":"evt_2"}\n\n'),
    refused(401, 'token_expired'),
  ])
  const seen: string[] = []
  const reading = (async () => {
    for await (const { id } of client.live('GET /owners/events/stream', { after: 'evt_0' })) seen.push(id)
  })()
  await expect(reading).rejects.toThrow('token_expired')
  expect(seen).toEqual(['evt_1', 'evt_2'])
  expect(asked.map(({ headers }) => headers['Last-Event-ID'])).toEqual(['evt_0', 'evt_1', 'evt_1', 'evt_2'])
})

test('the client follows an order to its final state and no further', async () => {
  const order = (status: number) => `id: ${status}\ndata: {"processing_status":${status}}\n\n`
  const { client, asked } = scripted([streamOf(order(20)), streamOf(order(30), order(60), order(70))])
  const seen = await all(client.followOrder({ userId: 1, orderId: 2 }))
  expect(seen.map(({ processing_status }) => processing_status)).toEqual([20, 30, 60])
  expect(asked).toHaveLength(2)
  for (const status of Object.values(OrderStatus))
    expect([status, isActive(status)]).toEqual([status, status < 60])
})

test('the client reopens a stream that is silent', async () => {
  const silent = new Response(new ReadableStream({ start() {} }))
  const answers = [silent, streamOf('data: {"processing_status":60}\n\n')]
  const client = createClient({
    baseUrl: 'https://larder.example',
    system: { fetch: () => Promise.resolve(answers.shift()!), sleep: () => Promise.resolve() },
  })
  expect(await all(client.followOrder({ userId: 1, orderId: 2 }))).toHaveLength(1)
})

test('the client closes the connection of a stream that its reader leaves', async () => {
  let wasCancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('data: {"id":"evt_1"}\n\n')),
    cancel: () => void (wasCancelled = true),
  })
  const { client } = scripted([new Response(endless)])
  for await (const _ of client.live('GET /owners/events/stream')) break
  expect(wasCancelled).toBe(true)
})

test('the client parses server-sent events for any division into chunks', async () => {
  const text = ': hello\r\nid: 1\r\ndata: {"a":\r\ndata: "é"}\r\n\r\nretry: 5\n\nid:2\rdata:x\r\rdata: lost'
  const bytes = new TextEncoder().encode(text)
  for (let size = 1; size < bytes.length; size++) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size))
        controller.close()
      },
    })
    expect([size, await all(messagesOf(body))]).toEqual([
      size,
      [
        { id: '1', data: '{"a":\n"é"}' },
        { id: '2', data: 'x' },
      ],
    ])
  }
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
