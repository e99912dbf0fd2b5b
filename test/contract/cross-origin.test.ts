import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import { listen } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { emptySqlite } from '../world/database.ts'
import { inChromium } from '../support/chromium.ts'
import { service } from '../support/services.ts'
import { openService } from '../world/service.ts'

/** A shop's page on its own origin. */
async function openShopFront() {
  const server = createServer((_request, answer) => {
    answer.setHeader('Content-Type', 'text/html')
    answer.end('<!doctype html><title>A shop</title>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

service('chromium')(
  'in a browser a page of an allowed origin can sell, and a page of another origin can read nothing',
  async () => {
    const [allowed, other] = [await openShopFront(), await openShopFront()]
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const { cloud, tokenOf } = await openService(() => Promise.resolve(db), {
      corsOrigins: [allowed.origin],
    })
    const runtime = systemRuntime()
    const bounds = defaultLimits.http
    const server = await listen(cloud.app, { host: '127.0.0.1', port: 0, runtime, bounds })
    const given = { base: `http://127.0.0.1:${server.port}`, token: await tokenOf('ada') }
    try {
      await inChromium(async (browser) => {
        const page = await browser.newPage()
        const call = () =>
          page.evaluate(async ({ base, token }) => {
            const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
            const seen: unknown[] = []
            try {
              const products = await fetch(`${base}/hubs/1/products`)
              const list = (await products.json()) as unknown[]
              seen.push(list.length > 0, products.headers.get('X-Total-Count'))
              const user = await fetch(`${base}/users/user/bootstrap`, {
                method: 'POST',
                headers,
                body: '{}',
              })
              const { user_id: id } = (await user.json()) as { user_id: number }
              const order = await fetch(`${base}/users/${id}/orders?hub_id=1`, {
                method: 'POST',
                headers: { ...headers, 'Idempotency-Key': 'one' },
              })
              seen.push(user.status, order.status, order.headers.get('X-Request-Id') !== null)
              const refused = await fetch(`${base}/users/user`, { headers: { Authorization: 'Bearer x' } })
              seen.push(refused.status)
            } catch (error) {
              seen.push((error as Error).name)
            }
            return seen
          }, given)
        await page.goto(other.origin)
        expect(await call()).toEqual(['TypeError'])
        await page.goto(allowed.origin)
        expect(await call()).toEqual([true, expect.stringMatching(/^\d+$/) as string, 201, 200, true, 401])
      })
    } finally {
      await server.close(0)
      await Promise.all([allowed.close(), other.close()])
    }
  },
  60_000,
)
