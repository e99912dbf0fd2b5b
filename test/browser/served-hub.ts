import { getRequestListener } from '@hono/node-server'
import type { AddressInfo } from 'node:net'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Page } from 'playwright-core'
import { createLocalApi, type LocalCore } from '../../edge/local-api/local-api.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { type Browser, builtPage, openBrowser, type Visit } from '../support/browser.ts'
import { demoHub } from '../support/demo-hub.ts'
import { openAccess } from '../edge/support/open-access.ts'
import { scriptedHub } from './scripted-hub.ts'
import { eachTime, once } from './set-up.ts'
import { TOKEN } from '../world/local-core.ts'

export { TOKEN }

/** The page of a scripted hub, served as the hub serves it, and a browser that shows it. */
export interface ServedHub {
  browser: Browser
  url: string
  /** Folder of the built page. */
  folder: string
  /** The hub behind the routes; a test may replace it. */
  hub: ReturnType<typeof scriptedHub>
  /** How often the page restarted the service. */
  restarted: number
  /** Opens the page by the link with the token, and waits until the hub is drawn. */
  visit(about?: Partial<Visit>): ReturnType<Browser['open']>
  close(): Promise<void>
}

/** The page of a hub for all tests of a file. Each test has its own scripted hub. */
export function useHub(): { served: ServedHub; hub: ServedHub['hub'] } {
  const served = once(
    () => serveHub(),
    (present) => present.close(),
  )
  return { served, hub: eachTime(() => (served.hub = scriptedHub())) }
}

/** `tls`: PEM of a certificate and its key; the page then uses https. */
export async function serveHub(tls?: { cert: string; key: string }, hubId = 1): Promise<ServedHub> {
  const built = await builtPage('edge')
  const runtime = systemRuntime()
  const api = createLocalApi({
    ...openAccess,
    runtime,
    hubId,
    core: new Proxy({} as LocalCore, { get: (_, name) => served.hub.core[name as keyof LocalCore] }),
    sync: {
      state: () => ({
        phase: 'waiting',
        session: null,
        receivedMsAgo: 60_000,
        ledger: { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 },
      }),
    },
    links: () =>
      demoHub.controllers.map(({ id, port }) => ({
        controller: id,
        port,
        up: true,
        firmware: 'larder-sim-1',
        protocol: 3,
        reason: null,
      })),
    recent: () => ({
      log: [{ at: 1000, level: 'warn', message: 'alarm', fields: { code: 'bin_fault' } }],
      wire: [{ at: 2000, controller: 'bins', direction: 'out', line: '~0001 PING t=5*465a' }],
    }),
    hardware: { ...demoHub, hubId },
    software: 'larder-edge test',
    page: built.assets,
    liveMs: 50,
    restart: () => void served.restarted++,
    token: TOKEN,
    isAllowedHost: () => true,
    clock: runtime.clock,
    log: silentLog,
    motionTimeoutMs: 5000,
    addressOf: () => '127.0.0.1',
  })
  const answer = getRequestListener((request) => api.fetch(request))
  const listener: RequestListener = (request, response) => void answer(request, response)
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const browser = await openBrowser()
  const served: ServedHub = {
    browser,
    url,
    folder: built.folder,
    hub: scriptedHub(),
    restarted: 0,
    async visit(about = { width: 390 }) {
      const opened = await browser.open(`${url}#token=${TOKEN}`, about)
      await opened.page.waitForSelector('[data-device="bin-1"]')
      return opened
    },
    async close() {
      await browser.close()
      server.closeAllConnections()
      server.close()
    },
  }
  return served
}

/** Clicks the name of a device, not one of its rows. */
export const select = (page: Page, device: string): Promise<void> =>
  page.click(`[data-device="${device}"]`, { position: { x: 12, y: 8 } })
export const press = (page: Page, what: string): Promise<void> =>
  page.click(`#device button:text-is("${what}")`)
/** Presses and holds the button of an irreversible action. */
export const hold = (page: Page, what: string, within = '#device'): Promise<void> =>
  page.click(`${within} button.hold:has-text("${what}")`, { delay: 1300 })
