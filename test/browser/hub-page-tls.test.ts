import { createPublicKey, hash } from 'node:crypto'
import type { BrowserContext, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { makeAuthority } from '../support/certificate.ts'
import { inChromium } from '../support/chromium.ts'
import { serveHub, type ServedHub, TOKEN } from './served-hub.ts'
import { browserTest } from './set-up.ts'

const NAME = 'hub-1.test'
const SLOWLY = { timeout: 30_000 }

/** The hub's page at the name of a board, with a certificate of an authority that the browser trusts. */
async function atBoard(work: (context: BrowserContext, hub: ServedHub, url: string) => Promise<void>) {
  const authority = makeAuthority({ fromDay: -1, toDay: 9 })
  onTestFinished(() => authority.remove())
  const { cert, key } = authority.issue('hub', `DNS:${NAME}`, { fromDay: -1, toDay: 8 })
  const hub = await serveHub({ cert, key })
  onTestFinished(() => hub.close())
  const spki = createPublicKey(cert).export({ type: 'spki', format: 'der' })
  const flags = [
    `--host-resolver-rules=MAP ${NAME} 127.0.0.1`,
    `--ignore-certificate-errors-spki-list=${hash('sha256', spki, 'base64')}`,
  ]
  const url = `https://${NAME}:${new URL(hub.url).port}/`
  await inChromium((context) => work(context, hub, url), { flags, width: 390 })
}

/** Opens the page, and waits until its files are stored in the browser. */
async function open(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${url}#token=${TOKEN}`)
  await page.waitForSelector('[data-device="bin-1"]')
  await page.evaluate('navigator.serviceWorker.ready.then(() => undefined)')
  const stored = () => page.evaluate('caches.open("page").then((c) => c.keys()).then((k) => k.length)')
  await expect.poll(stored, SLOWLY).toBeGreaterThan(2)
  return page
}

browserTest(
  'with a certificate of its own authority the page reloads without network, with the typed counts, and sends them later',
  () =>
    atBoard(async (context, { hub }, url) => {
      const page = await open(context, url)
      const row = page.locator('[data-row="2/1/1"]')
      const openRow = () => page.locator('[data-device="cabinet-2"] [data-picture-row="1/1"]').click()
      await openRow()
      await context.setOffline(true)
      await row.getByLabel('units').fill('7')
      await row.getByLabel('units').press('Enter')
      await page.getByLabel('Row 2/1/2: units').fill('4')
      await row.getByText('Not sent yet: counted 7').waitFor()
      await page.reload()
      await page.waitForSelector('[data-connected=false]:has-text("away since")')
      await openRow()
      await row.getByText('Not sent yet: counted 7').waitFor()
      await expect.poll(() => page.getByLabel('Row 2/1/2: units').inputValue(), SLOWLY).toBe('4')
      await context.setOffline(false)
      const counted = [['count', { cabinet: 2, shelf: 1, row: 1 }, 7]]
      await expect.poll(() => hub.asked, SLOWLY).toEqual(counted)
      const [cookie] = await context.cookies()
      expect(cookie).toMatchObject({ name: '__Host-larder_hub', secure: true, httpOnly: true })
    }),
  120_000,
)

browserTest(
  'a telephone whose browser shows only notifications of a service worker notifies its holder of a new alarm',
  () =>
    atBoard(async (context, { hub }, url) => {
      hub.state.alarms = []
      await context.addInitScript(`
        globalThis.Notification = class {
          static permission = 'granted'
          constructor() { throw new TypeError('Illegal constructor') }
        }
        globalThis.shown = []
        ServiceWorkerRegistration.prototype.showNotification = async (title) => void shown.push(title)
      `)
      const page = await open(context, url)
      // The page is behind another one.
      await page.evaluate(`Object.defineProperty(document, 'hidden', { get: () => true })`)
      hub.state.alarms = [
        { code: 'door_forced', subject: 'door main', detail: 'test', raised_at: Date.UTC(2026, 2, 1) },
      ]
      await expect
        .poll(() => page.evaluate<string[]>('shown'), SLOWLY)
        .toEqual([expect.stringMatching(/^Hub 1: Door main/)])
    }),
  120_000,
)
