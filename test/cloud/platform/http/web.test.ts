import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { readCloudConfig } from '../../../../cloud/platform/settings/config.ts'
import { mountsOf, type Route } from '../../../../protocol/contract/route.ts'
import { routes } from '../../../../protocol/contract/routes.ts'
import { openCloud, type TestCloud, type CloudOptions } from '../../../world/cloud.ts'

const SHOP = 'https://shop.example'
const hubs = '/api/v1/owners/hubs'

const product = {
  id: 1,
  name: 'Water',
  upc: '012345678905',
  description: 'x'.repeat(2000),
  category_id: 1,
  category: 'Drinks',
  subcategory_id: null,
  subcategory: null,
  original_price: 250,
  discounted_price: 250,
  quantity: 3,
  in_stock: true,
  cabinet: 1,
  shelf: 1,
  row: 1,
  image_url: '',
  is_bestseller: false,
}
const withProducts = (products = [product]): CloudOptions => ({
  handlers: { 'consumer.products.list': () => Promise.resolve(products) },
})

const preflight = ({ app }: TestCloud, origin: string, path = hubs) =>
  app.request(path, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'x-api-key,idempotency-key',
    },
  })

test('a page of an allowed origin may send its credential, and read the answers', async () => {
  const app = await openCloud({ corsOrigins: [SHOP] })
  const asked = await preflight(app, SHOP)
  expect(asked.status).toBe(204)
  expect(asked.headers.get('Access-Control-Allow-Origin')).toBe(SHOP)
  expect(asked.headers.get('Access-Control-Allow-Methods')).toContain('PUT')
  expect(asked.headers.get('Access-Control-Allow-Headers')).toMatch(/X-API-Key.*Idempotency-Key/)
  expect(asked.headers.get('Access-Control-Max-Age')).toBe('600')
  for (const path of [hubs, '/no/such/thing'])
    for (const options of [{ key: await app.key(['hubs:read']) }, {}]) {
      const { headers } = await app.call('GET', path, { ...options, headers: { Origin: SHOP } })
      expect(headers.get('Access-Control-Allow-Origin')).toBe(SHOP)
      expect(headers.get('Access-Control-Expose-Headers')).toMatch(/X-Request-Id.*Retry-After/)
      expect(headers.get('Access-Control-Allow-Credentials')).toBe(null)
      expect(headers.get('Vary')).toContain('Origin')
      expect(headers.get('X-Request-Id')).toMatch(/^req_/)
    }
})

test('a page of another origin may not call, and no page may if no origin is allowed', async () => {
  for (const corsOrigins of [[SHOP], []]) {
    const app = await openCloud({ corsOrigins })
    for (const origin of ['https://evil.example', 'null', `${SHOP}.evil.example`, 'http://shop.example']) {
      expect((await preflight(app, origin)).headers.get('Access-Control-Allow-Origin')).toBe(null)
      const { headers } = await app.call('GET', hubs, { headers: { Origin: origin } })
      expect(headers.get('Access-Control-Allow-Origin')).toBe(null)
    }
  }
})

test('an OPTIONS request that is no preflight is answered as usual', async () => {
  const { call } = await openCloud({ corsOrigins: [SHOP] })
  const answer = await call('OPTIONS', hubs)
  expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'GET'])
})

test('CORS_ORIGINS are origins, or * for any origin', async () => {
  const read = (text: string) => {
    const result = readCloudConfig({ CORS_ORIGINS: text })
    return result.ok ? result.config.CORS_ORIGINS : result.problems
  }
  expect(read('https://shop.example, http://127.0.0.1:3000')).toEqual([
    'https://shop.example',
    'http://127.0.0.1:3000',
  ])
  expect(read('*')).toEqual(['*'])
  for (const wrong of ['shop.example', 'https://shop.example/', 'https://a.example https://b.example'])
    expect(read(wrong)).toEqual([
      expect.stringMatching(/^CORS_ORIGINS \(environment\): must be origins without a path/) as string,
    ])
  const { headers } = await (
    await openCloud({ corsOrigins: ['*'] })
  ).call('GET', hubs, { headers: { Origin: SHOP } })
  expect(headers.get('Access-Control-Allow-Origin')).toBe('*')
})

test('a caller that already has the products gets 304 until one of them changes', async () => {
  const products = [product]
  const { call } = await openCloud(withProducts(products))
  const path = '/hubs/1/products'
  const first = await call('GET', path)
  expect([first.status, first.headers.get('Cache-Control')]).toEqual([200, 'public, no-cache'])
  const tag = first.headers.get('ETag')!
  for (const known of [tag, `"other", ${tag}`, '*', tag.slice(2)]) {
    const again = await call('GET', path, { headers: { 'If-None-Match': known } })
    expect([again.status, again.json, again.headers.get('ETag')]).toEqual([304, '', tag])
    for (const name of ['Cache-Control', 'Vary'])
      expect(again.headers.get(name)).toBe(first.headers.get(name))
    expect(again.headers.get('Vary')).toBe('Accept-Encoding')
  }
  products[0] = { ...product, quantity: 2 }
  const changed = await call('GET', path, { headers: { 'If-None-Match': tag } })
  expect(changed.status).toBe(200)
  expect(changed.headers.get('ETag')).not.toBe(tag)
})

test('only the caller itself may cache hubs, and refusals are not cached', async () => {
  const { call, key } = await openCloud()
  const options = { key: await key(['hubs:read']) }
  const { headers } = await call('GET', hubs, options)
  expect(headers.get('Cache-Control')).toBe('private, no-cache')
  expect(headers.get('Vary')).toBe('X-API-Key, Authorization, Accept-Encoding')
  const known = { 'If-None-Match': headers.get('ETag')! }
  expect((await call('GET', hubs, { ...options, headers: known })).status).toBe(304)
  const refused = await call('GET', hubs, { headers: known })
  expect([refused.status, refused.headers.get('Cache-Control'), refused.headers.get('ETag')]).toEqual([
    401,
    'no-store',
    null,
  ])
})

test('lists are compressed for callers that accept it, but short lists and errors are not', async () => {
  const { app } = await openCloud(withProducts())
  const get = (path: string, coding: string) => app.request(path, { headers: { 'Accept-Encoding': coding } })
  const plain = await get('/hubs/1/products', 'identity')
  const text = await plain.text()
  expect([plain.headers.get('Content-Encoding'), plain.headers.get('Vary')]).toEqual([
    null,
    'Accept-Encoding',
  ])
  for (const coding of ['gzip', 'br, gzip;q=0.8', 'gzip, deflate, br']) {
    const answer = await get('/hubs/1/products', coding)
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(answer.headers.get('Content-Encoding')).toBe('gzip')
    expect(answer.headers.get('ETag')).toBe(plain.headers.get('ETag'))
    expect(gunzipSync(bytes).toString()).toBe(text)
    expect(bytes.length).toBeLessThan(text.length / 4)
  }
  for (const coding of ['gzip;q=0', 'br'])
    expect((await get('/hubs/1/products', coding)).headers.get('Content-Encoding')).toBe(null)
  for (const path of ['/', '/no/such/thing', `${hubs}?x=${'a'.repeat(2000)}`])
    expect((await get(path, 'gzip')).headers.get('Content-Encoding')).toBe(null)
})

test('the answer of a POST is not compressed: it may contain a secret beside the caller’s text', async () => {
  const { app } = await openCloud({
    handlers: {
      'demo.identity.token': ({ body }) =>
        Promise.resolve({ access_token: body.sub.repeat(20), token_type: 'Bearer', expires_in: 60 }),
    },
  })
  const answer = await app.request('/demo/identity/token', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Accept-Encoding': 'gzip' },
    body: JSON.stringify({ sub: 'x'.repeat(255) }),
  })
  expect((await answer.text()).length).toBeGreaterThan(2000)
  expect([answer.status, answer.headers.get('Content-Encoding')]).toEqual([200, null])
})

test.each([true, false])(
  'every answer has its security headers; https (%s) has Strict-Transport-Security',
  async (isSecure) => {
    const { call } = await openCloud({ isSecure })
    // Refused, missing, or failed for lack of a handler: a browser may get such an answer too.
    const everywhere = Object.values<Route>(routes).map((route) => {
      const path = mountsOf(route)[0]!.replaceAll(/\{\w+\}/g, '1')
      return [route.method, path] as const
    })
    const beside = ['/healthz', '/readyz', '/no/such/thing'].map((path) => ['GET', path] as const)
    for (const [method, path] of [...everywhere, ...beside, ['PATCH', hubs] as const]) {
      const { headers } = await call(method, path)
      expect([method, path, headers.get('X-Content-Type-Options')]).toEqual([method, path, 'nosniff'])
      expect(headers.get('Content-Security-Policy')).toBe("default-src 'none'; frame-ancestors 'none'")
      expect(headers.get('Cross-Origin-Resource-Policy')).toBe('same-origin')
      expect(headers.get('Referrer-Policy')).toBe('no-referrer')
      expect(headers.get('Strict-Transport-Security')).toBe(isSecure ? 'max-age=31536000' : null)
    }
  },
)

test('answers about one caller and about money are not cached', async () => {
  const { call } = await openCloud()
  const personal = Object.values<Route>(routes).filter(
    ({ auth, validated }) => !['none', 'optional-identity'].includes(auth.kind) && validated === undefined,
  )
  expect(personal.length).toBeGreaterThan(60)
  for (const route of personal) {
    const { headers } = await call(route.method, mountsOf(route)[0]!.replaceAll(/\{\w+\}/g, '1'))
    expect([route.path, headers.get('Cache-Control')]).toEqual([route.path, 'no-store'])
  }
})

test('the description has an ETag, and is generated once', async () => {
  const { descriptionHandlers } = await import('../../../../cloud/platform/http/openapi.ts')
  const { openApiDocument } = await import('../../../../cloud/platform/http/openapi.ts')
  let written = 0
  const { app } = await openCloud({
    handlersOf: ({ runtime }) =>
      descriptionHandlers(runtime.clock, () => {
        written += 1
        return openApiDocument('http://larder.test', routes)
      }),
  })
  const first = await app.request('/openapi.json')
  const tag = first.headers.get('ETag')!
  expect([first.status, first.headers.get('Cache-Control')]).toEqual([200, 'public, no-cache'])
  const again = await app.request('/openapi.json', { headers: { 'If-None-Match': tag } })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect(written).toBe(1)
})

test('Strict-Transport-Security is sent only over https, and includes subdomains if HSTS_SUBDOMAINS is set', async () => {
  const hsts = async (isSecure: boolean) => {
    const { call } = await openCloud({ isSecure, hstsSubdomains: true })
    return (await call('GET', '/nothing')).headers.get('Strict-Transport-Security')
  }
  expect([await hsts(true), await hsts(false)]).toEqual(['max-age=31536000; includeSubDomains', null])
})
