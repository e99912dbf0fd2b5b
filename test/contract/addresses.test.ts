import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createEmbeddedIssuer, type SigningKey } from '../../cloud/platform/identity/open-issuer.ts'
import { serviceSettings } from '../../cloud/platform/settings/settings.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { openApiDocument } from '../../cloud/platform/http/openapi.ts'
import { errorHelp } from '../../protocol/contract/error-help.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { alarmKinds } from '../../protocol/model/alarms.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import { emptySqlite } from '../world/database.ts'
import { png } from '../cloud/support/media-samples.ts'
import { testIssuer } from '../cloud/support/tokens.ts'
import { openService } from '../world/service.ts'

const root = resolve(import.meta.dirname, '../..')

/** Every form of `PUBLIC_URL` that the setting allows. */
const forms = [
  'http://larder.test',
  'https://shop.example/larder',
  'https://shop.example:8443/a/b',
  'http://[::1]:8080',
  'https://shop.example/',
  'https://shop.example/larder/',
]

test.each(forms)(
  'with PUBLIC_URL %s every address in an answer leads to the right resource',
  async (publicUrl) => {
    const baseUrl = String(serviceSettings.PUBLIC_URL.schema.parse(publicUrl))
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const { cloud, shop } = await openService(() => Promise.resolve(db), {
      baseUrl,
      isDemo: true,
    })
    const mount = new URL(baseUrl).pathname.replace(/\/$/, '')
    /** Follows an address as a caller does, through a proxy that removes the mount. */
    const follow = async (address: string, from: string): Promise<Response> => {
      const url = new URL(address, from)
      expect([address, url.origin]).toEqual([address, new URL(baseUrl).origin])
      expect(url.pathname.slice(0, mount.length + 1)).toBe(`${mount}/`)
      return cloud.app.request(url.pathname.slice(mount.length) + url.search)
    }
    const asked = (path: string): string => `${baseUrl}${path}`

    const form = new FormData()
    form.set('name', 'Spring')
    form.set('order_by', '1')
    form.set('file', new Blob([new Uint8Array(png)]), 'spring.png')
    const { context } = shop
    const request = { name: 'reader', ownerId: 1, scopes, hubs: '*', expiresAt: null } as const
    const { key } = await issueApiKey(context.db.kysely, context.runtime, request)
    const created = await cloud.app.request('/api/v1/owners/owner/banners?hub_id=1', {
      method: 'POST',
      headers: { 'X-API-Key': key },
      body: form,
    })
    const banner = (await created.json()) as { image_url: string }
    expect((await follow(banner.image_url, asked('/api/v1/owners/owner/banners'))).status).toBe(200)

    for (const path of ['/hubs/1/products?size=1', '/api/v1/hubs/1/products?size=1']) {
      const link = (await cloud.app.request(path)).headers.get('Link')!
      const [, next] = /<([^>]+)>; rel="next"/.exec(link)!
      expect((await follow(next!, asked(path))).status).toBe(200)
    }

    const document = (await (await cloud.app.request('/openapi.json')).json()) as {
      servers: { url: string }[]
    }
    for (const { url } of document.servers) {
      expect((await follow(`${url}/`, asked('/openapi.json'))).status).toBe(200)
      expect((await follow(`${url}/api/v1/hubs/1/products`, asked('/'))).status).toBe(200)
    }

    const missing = await cloud.app.request('/owners/hubs', { headers: { 'X-API-Key': key } })
    expect(missing.status).toBe(404)
    const [, named] = /(\/api\/v1\/[\w/]+)/.exec(await missing.text())!
    expect((await cloud.app.request(named!, { headers: { 'X-API-Key': key } })).status).toBe(200)

    const { privateKey, publicJwk } = await testIssuer(context.runtime)
    const issuer = createEmbeddedIssuer({
      issuer: baseUrl,
      audience: 'larder',
      key: { privateKey, publicJwk } as SigningKey,
      runtime: context.runtime,
    })
    const discovery = (await issuer.handlers['demo.identity.configuration']({} as never)) as Record<
      string,
      string
    >
    expect((await follow(discovery['jwks_uri']!, asked('/'))).status).toBe(200)
    expect((await follow(discovery['token_endpoint']!, asked('/'))).status).toBe(405)
  },
)

test.each([
  'shop.example',
  'https://a:b@shop.example',
  'https://shop.example/?a=1',
  'https://shop.example/#a',
])('the setting PUBLIC_URL %s is refused, because no address can be built from it', (publicUrl) => {
  expect(serviceSettings.PUBLIC_URL.schema.safeParse(publicUrl).success).toBe(false)
})

const document = openApiDocument('http://larder.test', routes)
const served = new Set(
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${plain(path)}`),
  ),
)

/** A path without query and trailing slash; its parameters and numbers are replaced by one sign. */
function plain(path: string): string {
  return path
    .replace(/\?.*$/, '')
    .replaceAll(/\{\w+\}|(?<=\/)\d+(?=\/|$)/g, '{}')
    .replace(/(?<=.)\/$/, '')
}

/** Endpoints in a text, as a reader would type them. Samples of the client use the client's notation. */
function endpointsIn(text: string): string[] {
  const prose = text.replaceAll(/^```(?:js|ts)[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/\b(GET|POST|PUT|PATCH|DELETE)(?:\*\*)?[ `]+(\/[\w{}/.?=&%-]*)/g)].map(
    ([, method, path]) => `${method} ${plain(path!)}`,
  )
}

/** Endpoints that the description omits: of supervisors, of hubs and of the simulator. */
const elsewhere =
  /^[A-Z]+ \/(healthz|readyz|metrics|health|live|session|api\/(hubs|runs|steps|recordings|scenarios))\b/

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pagesIn = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)

test('every endpoint in a guide, a README, an error, an alarm or the description is served under that spelling', () => {
  const texts: [string, string][] = [
    ...[
      ...pagesIn('cloud/docs/guides'),
      ...pagesIn('cloud/docs/operating'),

      'README.md',
      'cloud/README.md',
      'protocol/contract/CHANGELOG.md',
    ].map((path): [string, string] => [path, read(path)]),
    ...Object.entries(errorHelp).map(([code, { cause, cure }]): [string, string] => [
      code,
      `${cause} ${cure}`,
    ]),
    ...Object.entries(alarmKinds).map(([kind, { remedy }]): [string, string] => [kind, remedy]),
    ['the OpenAPI document', JSON.stringify(document)],
  ]
  const wrong = texts.flatMap(([name, text]) =>
    endpointsIn(text)
      .filter((endpoint) => !served.has(endpoint) && !elsewhere.test(endpoint))
      .map((endpoint) => `${name}: ${endpoint}`),
  )
  expect(wrong).toEqual([])
  expect(texts.flatMap(([, text]) => endpointsIn(text)).length).toBeGreaterThan(50)
})
