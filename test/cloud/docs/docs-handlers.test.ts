import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { docsHandlers } from '../../../cloud/docs/docs-handlers.ts'
import type { Description } from '../../../cloud/docs/description.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { openCloud } from '../../world/cloud.ts'

const built: Record<string, string> = {
  'index.html':
    '<!doctype html><html><head><script type="module" src="./main-1a2b.js"></script></head></html>',
  'reference.html':
    '<!doctype html><html><head><script type="module" src="./show-3c4d.js"></script></head></html>',
  'guides.json': JSON.stringify([{ group: 'Guides', title: 'First sale', html: '<p>{{base_url}}</p>' }]),
  'main-1a2b.js': 'show()',
  'main-1a2b.js.br': 'compressed',
}
const assetsOf = (files: Record<string, string>) =>
  pageAssets(
    {
      readdirSync: () => Object.keys(files),
      readFileSync: (path) => new TextEncoder().encode(files[path.slice('/docs/'.length)]),
    },
    '/docs',
  )
const description: Description = {
  info: { title: 'Larder', version: '1', description: '' },
  servers: [],
  tags: [],
  paths: {
    '/orders': {
      get: {
        operationId: 'orders',
        tags: ['Owner API', 'Orders'],
        summary: 'List orders',
      } as Description['paths'][string][string],
    },
  },
}
const appOf = (files = built) =>
  openCloud({
    handlersOf: ({ runtime }) => docsHandlers(runtime.random, assetsOf(files), () => description),
  })

test('the page finds its files with and without a slash at the end of its address', async () => {
  const { app } = await appOf()
  for (const [address, file] of [
    ['/docs', './docs/main-1a2b.js'],
    ['/docs/', './main-1a2b.js'],
  ] as const) {
    const answer = await app.request(address)
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.stringContaining(`src="${file}"`) as string,
    ])
  }
})

test('a plain page is cached with an ETag, and no page loads resources from elsewhere', async () => {
  const { app } = await appOf()
  for (const address of ['/docs', '/docs/', '/docs/guide-first-sale', '/docs/search.json']) {
    const answer = await app.request(address)
    expect([address, answer.status]).toEqual([address, 200])
    expect(answer.headers.get('Cache-Control')).toMatch(/^public, max-age=[1-9]/)
    const etag = answer.headers.get('ETag')!
    const again = await app.request(address, { headers: { 'If-None-Match': etag } })
    expect([address, again.status, await again.text()]).toEqual([address, 304, ''])
    if (address.endsWith('.json')) continue
    const policy = answer.headers.get('Content-Security-Policy')!
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
    expect(policy).not.toMatch(/unsafe|nonce|https?:|\*/)
  }
})

test('styles of the reference need a nonce, which differs in each answer', async () => {
  const { app } = await appOf()
  const seen = new Set<string>()
  for (let time = 0; time < 2; time += 1) {
    const answer = await app.request('/docs/reference-orders')
    const policy = answer.headers.get('Content-Security-Policy')!
    const [, nonce] = /style-src 'self' 'nonce-([0-9a-f]{32})'/.exec(policy)!
    expect(await answer.text()).toContain(`<meta name="style-nonce" nonce="${nonce}"`)
    seen.add(nonce!)
    // An attribute styles only its own element.
    expect(policy.replace("; style-src-attr 'unsafe-inline'", '')).not.toMatch(/unsafe|https?:|\*/)
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
  }
  expect(seen.size).toBe(2)
})

test('a page is compressed for callers that accept it', async () => {
  const { app } = await appOf()
  const plain = await (await app.request('/docs/guide-first-sale')).text()
  const small = await app.request('/docs/guide-first-sale', { headers: { 'Accept-Encoding': 'gzip, br' } })
  expect(small.headers.get('Content-Encoding')).toBe('gzip')
  expect(gunzipSync(Buffer.from(await small.arrayBuffer())).toString()).toBe(plain)
})

test('files of a page are cached without expiry and compressed on request, and an unknown file is not found', async () => {
  const { app } = await appOf()
  const plain = await app.request('/docs/main-1a2b.js')
  expect([plain.status, plain.headers.get('Content-Type'), await plain.text()]).toEqual([
    200,
    'text/javascript; charset=utf-8',
    'show()',
  ])
  expect(plain.headers.get('Cache-Control')).toContain('immutable')
  const small = await app.request('/docs/main-1a2b.js', { headers: { 'Accept-Encoding': 'br, gzip' } })
  expect([small.headers.get('Content-Encoding'), await small.text()]).toEqual(['br', 'compressed'])
  for (const name of ['none.js', 'index.html', '../main.ts', 'made-of.txt', 'guides.json', 'reference.html'])
    expect((await app.request(`/docs/${encodeURIComponent(name)}`)).status).toBe(404)
})

test('a build without its page explains how to build it', async () => {
  const { app } = await appOf({})
  const answer = await app.request('/docs')
  expect([answer.status, await answer.text()]).toEqual([
    503,
    expect.stringContaining('npm run build') as string,
  ])
})
