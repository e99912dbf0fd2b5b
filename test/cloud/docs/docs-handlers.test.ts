import { expect, test } from 'vitest'
import { docsHandlers } from '../../../cloud/docs/docs-handlers.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { testApp } from '../support/app.ts'

const built: Record<string, string> = {
  'index.html':
    '<!doctype html><html><head><script type="module" src="./main-1a2b.js"></script></head></html>',
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
const appOf = (files = built) =>
  testApp({ handlersOf: ({ runtime }) => docsHandlers(runtime.random, assetsOf(files)) })

test('the page finds its files with a slash at the end of its address and without', async () => {
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

test('the page loads from nowhere else; styles that it makes need a nonce, which no two answers share', async () => {
  const { app } = await appOf()
  const seen = new Set<string>()
  for (let time = 0; time < 2; time += 1) {
    const answer = await app.request('/docs')
    const policy = answer.headers.get('Content-Security-Policy')!
    const [, nonce] = /style-src 'self' 'nonce-([0-9a-f]{32})'/.exec(policy)!
    expect(await answer.text()).toContain(`<meta name="style-nonce" nonce="${nonce}"`)
    seen.add(nonce!)
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    // An attribute styles its element alone.
    expect(policy.replace("; style-src-attr 'unsafe-inline'", '')).not.toMatch(/unsafe|https?:|\*/)
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
  }
  expect(seen.size).toBe(2)
})

test('its files are kept for ever, compressed where that is taken; what is none is not found', async () => {
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
  for (const name of ['none.js', 'index.html', '../main.ts', 'made-of.txt'])
    expect((await app.request(`/docs/${encodeURIComponent(name)}`)).status).toBe(404)
})

test('a build without its page says how to make it', async () => {
  const { app } = await appOf({})
  const answer = await app.request('/docs')
  expect([answer.status, await answer.text()]).toEqual([
    503,
    expect.stringContaining('npm run build') as string,
  ])
})
