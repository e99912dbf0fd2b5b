import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { PATIENCE_MS } from '../support/browser.ts'
import { serveDemo } from './served.ts'
import { serveHub } from './served-hub.ts'
import { serveSimulator } from './served-simulator.ts'
import { browserTest } from './set-up.ts'

async function addressOf(server: Server): Promise<string> {
  if (!server.listening) await new Promise((resolve) => void server.once('listening', resolve))
  onTestFinished(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

browserTest(
  'a page of another origin cannot show console, shop, documentation, hub’s page or simulator’s console in a frame',
  async () => {
    const { base } = await serveDemo(['console', 'shopPage', 'docs'])
    const hub = await serveHub()
    onTestFinished(() => hub.close())
    const simulator = await serveSimulator()
    onTestFinished(() => simulator.close())
    const pages = [`${base}/console/today`, `${base}/shop/1`, `${base}/docs`, hub.url, simulator.url]
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
