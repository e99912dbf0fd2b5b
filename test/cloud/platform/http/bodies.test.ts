import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { errorOf, openCloud } from '../../../world/cloud.ts'

async function open() {
  const app = await openCloud({
    handlers: {
      'root.webhooks.payments': () => Promise.resolve({ received: true as const }),
      'owner.orders.refund': ({ params, body }) =>
        Promise.resolve({
          success: true as const,
          order_id: params.order_id + (body.amount ?? 0),
          new_status: 'refunded' as const,
        }),
    },
  })
  const key = await app.key(['orders:write', 'inventory:write'])
  const refund = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    app.app.request('/api/v1/owners/orders/7/refund', {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json', ...headers },
      body,
    })
  return { ...app, refund }
}

test.each(['gzip', 'br', 'identity, gzip', 'x-custom'])(
  'a JSON body with Content-Encoding %s is refused with 415, even if its bytes are plain JSON',
  async (coding) => {
    const { refund } = await open()
    for (const body of ['{"amount":1}', new Uint8Array(gzipSync('{"amount":1}'))]) {
      const answer = await refund(body, { 'Content-Encoding': coding })
      expect([answer.status, await answer.json()]).toMatchObject([
        415,
        { error: { code: 'unsupported_media_type' } },
      ])
    }
  },
)

test.each(['identity', 'Identity', ''])(
  'a JSON body with Content-Encoding "%s" is accepted',
  async (coding) => {
    const { refund } = await open()
    expect((await refund('{"amount":1}', { 'Content-Encoding': coding })).status).toBe(200)
  },
)

test('a byte order mark before JSON is accepted', async () => {
  const { refund } = await open()
  const answer = await refund('\uFEFF{"amount":1}')
  expect([answer.status, await answer.json()]).toMatchObject([200, { order_id: 8 }])
})

test('a form with a Content-Encoding is refused with 415', async () => {
  const { app, key } = await openCloud({})
  const form = new FormData()
  form.append('media', new File([new Uint8Array(10)], 'x.png'))
  const answer = await app.request('/api/v1/owners/maintenance/reports', {
    method: 'POST',
    headers: { 'X-API-Key': await key(['maintenance:write']), 'Content-Encoding': 'gzip' },
    body: form,
  })
  expect(await answer.json()).toMatchObject({
    error: { code: 'unsupported_media_type', message: expect.stringContaining('Content-Encoding') as string },
  })
})

/** A body that records whether it is read. */
function watchedBody(bytes: number) {
  const state = { isRead: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(sender) {
        state.isRead = true
        sender.enqueue(new Uint8Array(bytes).fill(32))
        sender.close()
      },
    },
    { highWaterMark: 0 },
  )
  return { state, body }
}

test('the signed webhook reads no body if the signature is missing or its time is off by more than 300 s', async () => {
  const { app, runtime } = await open()
  const now = Math.floor(runtime.clock.now() / 1000)
  const send = async (signature: string | undefined, bytes = 10, name = 'Payment-Signature') => {
    const { state, body } = watchedBody(bytes)
    const headers = signature === undefined ? {} : { [name]: signature }
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    const answer = await app.request('/webhooks/payments', init)
    const { error } = (await answer.json()) as { error?: { code: string } }
    return [error?.code ?? answer.status, state.isRead]
  }
  const stale = [undefined, '', 'v1=00', 't=,v1=00', 't=1,v1=00', 't=x,v1=00', `t=-${now},v1=00`]
  for (const signature of [...stale, `t=${now - 301},v1=00`, `t=${now + 301},v1=00`, 't=1e9,v1=00'])
    expect([signature, ...(await send(signature))]).toEqual([signature, 'invalid_signature', false])
  for (const name of ['Payment-Signature', 'Stripe-Signature'])
    expect(await send(`t=${now - 299},v1=00`, 10, name)).toEqual([200, true])
  expect((await send(`t=${now},v1=00`, 64 * 1024))[0]).toBe(200)
  expect((await send(`t=${now},v1=00`, 64 * 1024 + 1))[0]).toBe('payload_too_large')
})

test('the signed webhook refuses a compressed body', async () => {
  const { call, runtime } = await open()
  const answer = await call('POST', '/webhooks/payments', {
    body: '{}',
    headers: {
      'Payment-Signature': `t=${Math.floor(runtime.clock.now() / 1000)},v1=00`,
      'Content-Encoding': 'gzip',
    },
  })
  expect(errorOf(answer).error.code).toBe('unsupported_media_type')
})

test('limits of an address count an IPv6 /64 as one network, and an IPv4-mapped address as IPv4', async () => {
  let address = ''
  const { call } = await openCloud({
    addressOf: () => address,
    handlers: { 'consumer.users.phone_exists': () => Promise.resolve({ exists: false }) },
  })
  const ask = async (from: string): Promise<number> => {
    address = from
    return (await call('GET', '/users/user/exists/phone?phone_number=%2B12025550123')).status
  }
  for (let n = 1; n <= 10; n += 1) expect(await ask(`2001:db8:1:2::${n}`)).toBe(200)
  expect(await ask('2001:0db8:1:2:ffff::1')).toBe(429)
  expect(await ask('2001:db8:1:3::1')).toBe(200)
  for (let n = 1; n <= 5; n += 1)
    for (const from of ['::ffff:192.0.2.1', '192.0.2.1']) expect(await ask(from)).toBe(200)
  expect(await ask('::ffff:c000:201')).toBe(429)
  expect(await ask('192.0.2.2')).toBe(200)
})
