import { expect, test } from 'vitest'
import { cloudSettings } from '../../../cloud/platform/settings/config.ts'
import { createClient } from '../../../protocol/client/client.ts'
import {
  isRepeatable,
  pauseAfter,
  standardRetry,
  takesKey,
  timeoutOf,
} from '../../../protocol/client/retry.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { CANCELLED, deleted } from '../../../protocol/client/deletion.ts'
import { deadlineOf } from '../../../protocol/model/hub-commands.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { readSettings } from '../../../protocol/model/program-settings.ts'
import { json, lost, neverAnswered, payment, refused, scripted } from './scripted.ts'

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

test('a payment is answered after a broken connection, even if the service needs another minute for it', async () => {
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

test('an error of a proxy has a code and a message, also in JSON, and is retried as an unreadable answer', async () => {
  const bodies = [JSON.stringify({ message: 'Timed out' }), 'null', '{"error":"Timed out"}', '<html>']
  for (const body of bodies) {
    const { client, asked } = scripted([new Response(body, { status: 504 }), json([])])
    expect(await client.call('GET /owners/hubs')).toMatchObject({ ok: true })
    expect(asked).toHaveLength(2)
    const once = scripted([new Response(body, { status: 504 })], { retry: { tries: 1 } })
    const error = { code: 'unreadable_answer', message: 'HTTP 504', status: 504 }
    expect(await once.client.call('GET /owners/hubs')).toEqual({ ok: false, error })
  }
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

test('an upload has no time limit, because a slow line may need any time; other calls have one', async () => {
  const slowly = (_: string, { signal }: RequestInit): Promise<Response> =>
    Promise.race([
      neverAnswered(signal),
      new Promise<Response>((resolve) => void setTimeout(resolve, 100, json([]))),
    ])
  const options = { timeoutMs: 10, retry: { tries: 1 }, system: { fetch: slowly } }
  const client = createClient({ baseUrl: 'https://larder.example', ...options })
  const form = new FormData()
  expect(await client.call('PATCH /users/user/profile/image', { form })).toMatchObject({ ok: true })
  expect(await client.call('GET /owners/hubs')).toMatchObject({ ok: false, error: { code: 'timeout' } })
})

const webhook = { params: { webhook_id: 'we_1' } }
const order = { params: { user_id: 1, order_id: 2 } }

test('a deletion is a success if its first answer was lost and the thing does not exist any more', async () => {
  const { client } = scripted([lost(), refused(404, 'webhook_not_found')])
  expect(await client.call('DELETE /owners/webhooks/{webhook_id}', webhook)).toMatchObject({ ok: true })
})

test('a deletion of a missing thing is refused if no earlier try can have deleted it', async () => {
  const missing = () => refused(404, 'webhook_not_found')
  const proxy = () => new Response('no such host', { status: 404 })
  const limited = () => refused(429, 'rate_limit_exceeded')
  for (const answers of [
    [missing()],
    [limited(), missing()],
    [lost(), ...Array.from({ length: 4 }, proxy)],
  ]) {
    const { client } = scripted(answers)
    const result = await client.call('DELETE /owners/webhooks/{webhook_id}', webhook)
    expect(result).toMatchObject({ ok: false, error: { status: 404 } })
  }
})

test('a repeated cancellation of a paid order is a success only if the order is cancelled', async () => {
  for (const { status, isDone } of [
    { status: OrderStatus.CANCELLED, isDone: true },
    { status: OrderStatus.PREPARING, isDone: false },
  ]) {
    const { client, asked } = scripted([
      lost(),
      refused(409, 'order_not_deletable'),
      json({ processing_status: status }),
    ])
    const result = await client.call('DELETE /users/{user_id}/orders/{order_id}', order)
    expect(result.ok).toBe(isDone)
    expect(asked.map(({ method }) => method)).toEqual(['DELETE', 'DELETE', 'GET'])
  }
  const first = scripted([refused(409, 'order_not_deletable')])
  const again = await first.client.call('DELETE /users/{user_id}/orders/{order_id}', order)
  expect(again).toMatchObject({ ok: false, error: { code: 'order_not_deletable' } })
  expect(CANCELLED).toBe(OrderStatus.CANCELLED)
})

test('the answer to a deletion that an earlier try has done has the fields of every route', () => {
  const params = { order_id: 2, payment_method_id: 'pm_1' }
  const result = deleted({ params })
  const bodies = Object.values(routes).filter(
    ({ method, ...route }) => method === 'DELETE' && !('status' in route && route.status === 204),
  )
  expect(bodies.length).toBeGreaterThan(2)
  for (const { path, response } of bodies)
    expect([path, response.safeParse('data' in result && result.data).success]).toEqual([path, true])
})
