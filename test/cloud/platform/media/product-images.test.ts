import { expect, test } from 'vitest'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { productHandlers } from '../../../../cloud/commerce/catalogue/products.ts'
import { inventoryHandlers } from '../../../../cloud/commerce/catalogue/inventory.ts'
import { drawProducts } from '../../../../cloud/demo/pictures.ts'
import { seedDemo } from '../../../../cloud/demo/seed-database.ts'
import { JsonText } from '../../../../cloud/platform/store/json.ts'
import { fileHandlers } from '../../../../cloud/platform/http/file-handlers.ts'
import { imageUrl, jsonWithImages, mediaSigner } from '../../../../cloud/platform/media/addresses.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import { orderHandlers, ownerOrderHandlers } from '../../../../cloud/commerce/orders/handlers.ts'
import { openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { emptyFolder, filesIn, testMedia, testSigner } from '../../support/media.ts'

const addressOf = (key: string): string => `signed:${key}`

test('an external address and an absent one stay unchanged, and a stored file has its signed address', () => {
  const stored = ['', 'https://elsewhere.example/a.png', 'http://elsewhere.example/a.png', 'products/a.png']
  expect(stored.map((text) => imageUrl(addressOf, text))).toEqual([
    ...stored.slice(0, 3),
    'signed:products/a.png',
  ])
})

test('addresses of a former secret stay valid until they expire, and the first secret signs', () => {
  const runtime = virtualRuntime()
  const { clock } = runtime
  const signer = (secret: string | string[]) =>
    mediaSigner({ baseUrl: 'http://larder.test', secret, lifetimeMs: 40_000, kept: 10, clock })
  const check = (secret: string | string[], address: string) => {
    const { searchParams } = new URL(address)
    const [expires, signature] = [searchParams.get('expires')!, searchParams.get('signature')!]
    return signer(secret).check('a.png', { expires, signature }) !== null
  }
  const former = signer('former').addressOf('a.png')
  const fresh = signer(['new', 'former']).addressOf('a.png')
  expect(fresh).toBe(signer('new').addressOf('a.png'))
  expect([check(['new', 'former'], former), check(['new', 'former'], fresh)]).toEqual([true, true])
  expect([check('new', former), check('former', fresh)]).toEqual([false, false])
  runtime.clock.advance(60_000)
  expect(check(['new', 'former'], former)).toBe(false)
})

test('an address stays the same for a quarter of its lifetime for any cache size, and changes afterwards', () => {
  let now = 0
  const clock = { ...virtualRuntime().clock, now: () => now }
  const signerOf = (kept: number) =>
    mediaSigner({ baseUrl: 'http://larder.test', secret: 'secret', lifetimeMs: 40_000, kept, clock })
  const [keeping, forgetting] = [signerOf(100), signerOf(1)]
  const seen: string[] = []
  for (now of [0, 9999, 10_000]) {
    const [a, b] = [keeping.addressOf('a.png'), keeping.addressOf('b.png')]
    expect([forgetting.addressOf('a.png'), forgetting.addressOf('b.png')]).toEqual([a, b])
    seen.push(a)
  }
  expect(seen[1]).toBe(seen[0])
  expect(seen[2]).not.toBe(seen[1])
})

test('only the image field of database JSON gets an address, for any other names and values', () => {
  const body = {
    data: [
      { name: '"image_url":"products/no.png"', image_url: 'products/a.png' },
      { name: 'image_url', upc: '\\"image_url" : "products/no.png', image_url: '' },
      { image_url: null, name: 'x\\' },
      { image_url: 'products/"odd\\.png', name: '' },
    ],
  }
  const expected = structuredClone(body)
  expected.data[0]!.image_url = 'signed:products/a.png'
  expected.data[3]!.image_url = 'signed:products/"odd\\.png'
  for (const text of [JSON.stringify(body), JSON.stringify(body).replaceAll('":', '" : ')])
    expect(jsonWithImages(addressOf, new JsonText<typeof body>(text)).read()).toMatchObject({
      data: [
        { image_url: expected.data[0]!.image_url },
        { image_url: '' },
        { image_url: null },
        expected.data[3],
      ],
    })
  expect(jsonWithImages(addressOf, new JsonText<typeof body>(JSON.stringify(body))).read()).toEqual(expected)
})

onEachDatabase('images of products', (open) => {
  test('every view of a demo product returns an address that serves its picture', async () => {
    const folder = emptyFolder()
    const store = folderStore(folder)
    const app = await openCloud({
      db: await open(),
      mediaStore: store,
      handlersOf: (context, media) => {
        return {
          ...fileHandlers(context, media, testSigner(context)),
          ...productHandlers(context, media, 'http://larder.test'),
          ...inventoryHandlers(context, media),
          ...orderHandlers(context, media, () => 1),
          ...ownerOrderHandlers(context, media),
          ...analyticsHandlers(context, media),
        }
      },
    })
    const { db } = app.context
    // The demo creates its own owners and hubs.
    await db.kysely.deleteFrom('hubs').execute()
    await db.kysely.deleteFrom('owners').execute()
    await seedDemo(db, app.runtime, undefined, await drawProducts(testMedia(app.context, store)), 0.2)
    expect(filesIn(folder).length).toBeGreaterThan(5)
    const states = await db.kysely.selectFrom('media').select('state').distinct().execute()
    expect(states).toEqual([{ state: 'kept' }])

    const key = await app.key(['inventory:read', 'inventory:write', 'orders:read', 'analytics:read'])
    const token = await app.issuer.token({ sub: 'demo-customer-1' })
    const order = await db.kysely
      .selectFrom('orders')
      .select('id')
      .where('user_id', '=', 1)
      .executeTakeFirstOrThrow()
    const views: [string, string, object][] = [
      ['GET', '/hubs/1/products', {}],
      ['GET', '/hubs/1/products/1', {}],
      ['GET', '/api/v1/owners/hubs/product/?hub_id=1&cabinet=1&shelf=1&row=1', { key }],
      ['PUT', '/api/v1/owners/product/1/update_price', { key, body: { price: 250 } }],
      ['PUT', '/api/v1/owners/product/1/update_purchase_price', { key, body: { purchase_price: 50 } }],
      ['GET', '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1', { key }],
      ['GET', '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1&search=water', { key }],
      ['GET', '/api/v1/owners/top_products/?hub_id=1', { key }],
      ['GET', '/users/1/orders', { token }],
      [`GET`, `/users/1/orders/${order.id}?hub_id=1`, { token }],
    ]
    for (const [method, path, options] of views) {
      const answer = await app.call(method, path, options)
      expect([path, answer.status, answer.status === 200 ? '' : answer.json]).toEqual([path, 200, ''])
      const addresses =
        JSON.stringify(answer.json).match(/http:\/\/larder\.test\/files\/products\/[^"]+/g) ?? []
      const images = JSON.stringify(answer.json).match(/"image_url":/g)
      expect([path, addresses.length]).toEqual([path, images?.length ?? 10])
      const { pathname, search } = new URL(addresses[0]!)
      const file = await app.app.request(`${pathname}${search}`)
      expect([path, file.status, file.headers.get('Content-Type')]).toEqual([path, 200, 'image/png'])
      await file.arrayBuffer()
    }
  }, 120_000)
})
