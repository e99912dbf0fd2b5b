import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildClient } from '../../cloud/packaging/client-package.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { listen } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import type * as Larder from '../../protocol/client/client.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { emptySqlite } from '../world/database.ts'
import { openService } from '../world/service.ts'
import { inChromium } from '../support/chromium.ts'
import { recordingProxy } from '../support/recording-proxy.ts'
import { service } from '../support/services.ts'

const root = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'larder-client-test-'))
const made = join(folder, 'package')
const scratch = join(folder, 'scratch')
const examples = join(scratch, 'examples')
/** Size of the code that a page loads, and of the whole package, which consists mostly of types. */
const CODE_BYTES = 10_000
const PACKED_BYTES = 30_000

/** The samples of the client's README, as a developer pastes them. */
const readme = readFileSync(join(root, 'protocol/client/README.md'), 'utf8')
const samples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text]) => text!)

const run = (program: string, args: string[], cwd: string): string =>
  execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** The sample in a project that has installed the package. */
const inScratch = (text: string): string => text.replaceAll("'../client.ts'", "'@larder/client'")

beforeAll(() => {
  buildClient(root, made)
  const [packed] = JSON.parse(run('npm', ['pack', '--json'], made)) as { filename: string }[]
  mkdirSync(examples, { recursive: true })
  writeFileSync(join(scratch, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  const tarball = join(made, packed!.filename)
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], scratch)
  const source = join(root, 'protocol/client/examples')
  for (const name of readdirSync(source)) {
    const text = readFileSync(join(source, name), 'utf8')
    writeFileSync(join(examples, name), inScratch(text))
  }
  for (const [index, sample] of samples.entries())
    writeFileSync(join(examples, `readme-${index + 1}.ts`), sample)
}, 120_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const installed = join(scratch, 'node_modules/@larder/client')

test('the client package is small, has a description, and has no dependency', () => {
  const files = readdirSync(installed)
  const code = files.filter((name) => name.endsWith('.js')).map((name) => readFileSync(join(installed, name)))
  expect(gzipSync(Buffer.concat(code)).length).toBeLessThanOrEqual(CODE_BYTES)
  const [tarball] = readdirSync(made).filter((name) => name.endsWith('.tgz'))
  expect(statSync(join(made, tarball!)).size).toBeLessThanOrEqual(PACKED_BYTES)
  expect(files).toEqual(
    expect.arrayContaining(['README.md', 'LICENSE', 'package.json', 'client.js', 'client.d.ts']),
  )
  expect(readdirSync(join(scratch, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    '@larder',
  ])
  for (const text of code) expect(text.toString()).not.toMatch(/from '[^.]/)
})

const wrongUse = `
import { createClient } from '../client.ts'
const client = createClient({ baseUrl: 'https://api.example' })
// @ts-expect-error no such endpoint
await client.call('GET /users/walet/balance')
// @ts-expect-error a parameter of the path is missing
await client.call('GET /hubs/{hub_id}/products')
// @ts-expect-error a field of the body has another type
await client.call('POST /users/payments/pay', { body: { order_id: '7', payment_method_id: 'x' } })
// @ts-expect-error this list has no pages
client.items('GET /owners/hubs')
const result = await client.call('GET /hubs/{hub_id}/products', { params: { hub_id: 1 } })
// @ts-expect-error what went wrong has no products
result.data
if (result.ok) result.data[0]!.name satisfies string
for await (const { order_id } of client.items('GET /users/{user_id}/orders', { params: { user_id: 1 } }))
  order_id satisfies number
for await (const { type, data } of client.live('GET /owners/events/stream'))
  if (type === 'order.paid') data.order_id satisfies number
`

test('in a strict project the examples compile, and wrong calls do not', () => {
  writeFileSync(join(examples, 'wrong-use.ts'), inScratch(wrongUse))
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: [],
    module: 'nodenext',
    rootDir: 'examples',
    outDir: 'compiled',
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
  }
  writeFileSync(join(scratch, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['examples'] }))
  run(join(root, 'node_modules/.bin/tsc'), ['--project', '.'], scratch)
  expect(readdirSync(join(scratch, 'compiled'))).toEqual(
    expect.arrayContaining(['till.js', ...samples.map((_, index) => `readme-${index + 1}.js`)]),
  )
}, 60_000)

test('the samples of the README run against a service, and each call returns the status in the sample', async () => {
  expect(samples.length).toBeGreaterThan(1)
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const { cloud, shop, tokenOf } = await openService(() => Promise.resolve(db))
  const request = { name: 'readme', ownerId: 1, scopes, hubs: '*', expiresAt: null } as const
  const { key } = await issueApiKey(shop.context.db.kysely, shop.context.runtime, request)
  const token = await tokenOf('ada')
  const address = { host: '127.0.0.1', port: 0, runtime: systemRuntime(), bounds: defaultLimits.http }
  const server = await listen(cloud.app, address)
  const proxy = await recordingProxy(`http://127.0.0.1:${server.port}`)
  try {
    for (const index of samples.keys()) {
      const file = join(scratch, 'compiled', `readme-${index + 1}.js`)
      const text = readFileSync(file, 'utf8')
      const filled = text.replaceAll('https://api.example', proxy.url).replaceAll('lk_…', key)
      writeFileSync(file, filled.replaceAll('eyJ…', token))
      await promisify(execFile)(process.execPath, [file])
      const stated = /Expected status: ([\d, or]+)\./.exec(samples[index]!)?.[1]?.match(/\d{3}/g) ?? []
      const statuses = proxy.take().map(({ status }) => String(status))
      expect([index, [...new Set(statuses)].toSorted()]).toEqual([index, stated.toSorted()])
    }
  } finally {
    await proxy.close()
    await server.close(0)
    await cloud.stop()
  }
}, 60_000)

const shopPage = `<!doctype html><title>A shop</title><link rel="icon" href="data:,">
<script type="module">import * as larder from '/client.js'; globalThis.larder = larder</script>`

service('chromium')(
  'the client package runs in a browser: a page of another origin lists products and follows an order',
  async () => {
    const page = createServer((request, answer) => {
      const name = request.url === '/' ? undefined : request.url!.slice(1)
      answer.setHeader('Content-Type', name === undefined ? 'text/html' : 'text/javascript')
      answer.end(name === undefined ? shopPage : readFileSync(join(installed, name)))
    })
    await new Promise<void>((done) => page.listen(0, '127.0.0.1', done))
    const origin = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const { cloud, tokenOf } = await openService(() => Promise.resolve(db), { corsOrigins: [origin] })
    cloud.start()
    const runtime = systemRuntime()
    const address = { host: '127.0.0.1', port: 0, runtime, bounds: defaultLimits.http }
    const server = await listen(cloud.app, address)
    const given = { baseUrl: `http://127.0.0.1:${server.port}`, token: await tokenOf('ada') }
    try {
      await inChromium(async (browser) => {
        const tab = await browser.newPage()
        await tab.goto(origin)
        await tab.waitForFunction(() => 'larder' in globalThis)
        const seen = await tab.evaluate(async (options) => {
          const { createClient, unwrap } = (globalThis as unknown as { larder: typeof Larder }).larder
          const client = createClient(options)
          const { user_id } = unwrap(await client.call('POST /users/user/bootstrap', { body: {} }))
          const params = { hub_id: 1 }
          const names: string[] = []
          for await (const product of client.items('GET /hubs/{hub_id}/products', {
            params,
            query: { size: 1 },
          }))
            names.push(product.name)
          const order = unwrap(
            await client.call('POST /users/{user_id}/orders', { params: { user_id }, query: { hub_id: 1 } }),
          )
          const states: string[] = []
          for await (const now of client.followOrder({ userId: user_id, orderId: order.order_id })) {
            states.push(now.processing_status_name)
            break
          }
          const refused = await client.call('GET /owners/hubs')
          return [names, states, refused.ok ? 'served' : refused.error.code]
        }, given)
        expect(seen).toEqual([['Product 1', 'Product 2'], ['NEW'], 'scope_missing'])
      })
    } finally {
      await cloud.endStreams()
      await server.close(0)
      await cloud.stop()
      await new Promise((done) => page.close(done))
    }
  },
  60_000,
)
