import { expect, test } from 'vitest'
import { pageAssets } from '../../../../protocol/page-assets.ts'
import { policyWithPictures } from '../../../../cloud/shop-page.ts'
import { openService } from '../../../world/service.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { emptySqlite } from '../../../world/database.ts'

const files: Readonly<Record<string, string>> = {
  'index.html': '<script src="./main-1a2b.js"></script>',
  'main-1a2b.js': 'go()',
}
const assets = pageAssets(
  {
    readdirSync: () => Object.keys(files),
    readFileSync: (path) => new TextEncoder().encode(files[path.split('/').at(-1)!]),
  },
  '/assets',
)

async function open(): Promise<(path: string) => Promise<Response>> {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const baseUrl = 'https://larder.test/mount'
  const { cloud } = await openService(() => Promise.resolve(db), { console: assets, baseUrl })
  return async (path) => cloud.app.request(`http://larder.test${path}`)
}

test('every path below the console shows its page, with absolute links and a strict policy', async () => {
  const ask = await open()
  for (const path of ['/console', '/console/', '/console/today', '/console/orders/17']) {
    const answer = await ask(path)
    expect([answer.status, await answer.text()]).toEqual([
      200,
      '<script src="/mount/console/main-1a2b.js"></script>',
    ])
    expect(answer.headers.get('Content-Security-Policy')).toBe(policyWithPictures)
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
  }
})

test('a file of the console is cached without a limit of time, and an unknown file is 404', async () => {
  const ask = await open()
  const answer = await ask('/console/main-1a2b.js')
  expect([answer.status, await answer.text()]).toEqual([200, 'go()'])
  expect(answer.headers.get('Cache-Control')).toBe('max-age=31536000, immutable')
  expect((await ask('/console/other.js')).status).toBe(404)
})
