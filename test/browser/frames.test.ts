import { serve } from '@hono/node-server'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { Fleet } from '../../simulator/fleet.ts'
import { SimulatedHub } from '../../simulator/simulated-hub.ts'
import { memoryStorage } from '../world/memory-storage.ts'
import { testConsole } from '../simulator/support/console.ts'
import { builtPage } from '../support/browser.ts'
import { service } from '../support/services.ts'
import { PATIENCE_MS, serveDemo } from './served.ts'
import { serveHub } from './served-hub.ts'

const browserTest = service('chromium')
const runtime = systemRuntime()

async function addressOf(server: Server): Promise<string> {
  if (!server.listening) await new Promise((resolve) => void server.once('listening', resolve))
  onTestFinished(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

async function simulatorConsole(): Promise<string> {
  const fleet = new Fleet({
    clock: runtime.clock,
    wireKept: 10,
    storageOf: () => memoryStorage(),
    worlds: { names: () => [], read: () => undefined, write() {} },
    make: (hardware, storage) => new SimulatedHub({ hardware, storage, runtime, log: silentLog }),
    mount: async () => async () => {},
  })
  const page = (await builtPage('simulator')).assets
  const { app } = testConsole({ fleet, page, clock: runtime.clock, random: runtime.random })
  return addressOf(serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }) as Server)
}

browserTest(
  'a page of another origin cannot show console, shop, documentation, hub’s page or simulator’s console in a frame',
  async () => {
    const [console, shopPage, docs] = [
      (await builtPage('cloud', 'console')).assets,
      (await builtPage('cloud', 'shop')).assets,
      (await builtPage('cloud')).assets,
    ]
    const { base } = await serveDemo({ console, shopPage, docs })
    const hub = await serveHub()
    onTestFinished(() => hub.close())
    const pages = [
      `${base}/console/today`,
      `${base}/shop/1`,
      `${base}/docs`,
      hub.url,
      await simulatorConsole(),
    ]
    const html = (of: readonly string[]) => of.map((src) => `<iframe src="${src}"></iframe>`).join('')
    const foreign = createServer((request, response) => {
      response.setHeader('Content-Type', 'text/html')
      response.end(request.url === '/plain' ? 'a page without a policy' : html(['/plain', ...pages]))
    })
    foreign.listen(0, '127.0.0.1')
    const { page, problems } = await hub.browser.open(await addressOf(foreign))
    const [, plain, ...framed] = page.frames()
    expect(await plain!.locator('body').textContent()).toBe('a page without a policy')
    const refused = (): boolean[] =>
      pages.map((address) =>
        problems.some((text) => text.includes(new URL(address).origin) && text.includes('frame-ancestors')),
      )
    await expect.poll(refused, { timeout: PATIENCE_MS }).toEqual(pages.map(() => true))
    expect(framed).toHaveLength(pages.length)
    for (const frame of framed)
      await expect.poll(() => frame.url(), { timeout: PATIENCE_MS }).toBe('chrome-error://chromewebdata/')
  },
  400_000,
)
