import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished } from 'vitest'
import { endSessionsOf } from '../../cloud/platform/credentials/sessions.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { type Browser, builtPage, openBrowser } from '../support/browser.ts'
import { missing, service } from '../support/services.ts'
import type { Service } from '../world/service.ts'
import { droppedLines } from '../world/shop.ts'
import { PATIENCE_MS, serveDemo } from './served.ts'

const browserTest = service('chromium')
const TEST_MS = 180_000

describe('the shop when calls fail', () => {
  let browser: Browser
  let shopPage: PageAssets
  beforeAll(async () => {
    if (missing('chromium')) return
    shopPage = (await builtPage('cloud', 'shop')).assets
    browser = await openBrowser()
  }, TEST_MS)
  afterAll(() => browser?.close())

  let at: Service
  let base = ''
  beforeEach(async () => {
    if (missing('chromium')) return
    ;({ at, base } = await serveDemo({ shopPage }))
    const moving = setInterval(() => at.shop.clock.advance(200), 200)
    onTestFinished(() => clearInterval(moving))
  })

  async function visit(): Promise<Page> {
    const { page } = await browser.open('about:blank', { width: 1400 })
    page.setDefaultTimeout(PATIENCE_MS)
    await page.goto(`${base}/shop/1`)
    return page
  }
  async function pay(shown: Page): Promise<void> {
    await shown
      .locator('[data-product="1"]')
      .getByRole('button', { name: /^Add one/ })
      .click()
    await shown.locator('[data-product="1"] [aria-live]').waitFor()
    await shown.locator('[data-pay]').click()
  }
  async function buy(shown: Page): Promise<number> {
    await pay(shown)
    await shown.locator('[data-status="QUEUED"]').waitFor()
    return Number(await shown.locator('[data-order]').getAttribute('data-order'))
  }
  async function signIn(shown: Page): Promise<void> {
    await shown.getByRole('link', { name: 'Sign in' }).click()
    await shown.getByRole('button', { name: 'Customer' }).click()
    await shown.getByText('Signed in as').waitFor()
  }
  const broken = { error: { code: 'internal_error', message: 'x' }, detail: 'x', request_id: 'r' }

  browserTest(
    'an order whose stream the service refuses for a time is followed later, and the page reports the failure',
    async () => {
      const shown = await visit()
      let refused = 0
      await shown.route(/\/orders\/\d+\/events$/, (route) =>
        refused++ < 2 ? route.fulfill({ status: 500, json: broken }) : route.continue(),
      )
      await pay(shown)
      await shown.getByText('That did not work. Try again.').waitFor()
      await shown.locator('[data-status="QUEUED"]').waitFor()
      expect(await shown.locator('[data-notice]').count()).toBe(1)
    },
    TEST_MS,
  )

  browserTest(
    'a receipt and the list of orders are read when the connection is back',
    async () => {
      const shown = await visit()
      const id = await buy(shown)
      const lost = shown.getByText('The connection is lost. Try again.').first()
      await shown.route(/\/receipt$/, (route) => route.abort())
      await shown.goto('about:blank')
      await shown.goto(`${base}/shop/1/orders/${id}#receipt`)
      await lost.waitFor()
      await shown.unrouteAll()
      await shown.getByRole('heading', { name: /^Receipt/ }).waitFor()
      await shown.route(/\/orders\?.*order_processing_statuses=90/, (route) => route.abort())
      await shown.goto('about:blank')
      await shown.goto(`${base}/shop/1#orders`)
      await lost.waitFor()
      await shown.unrouteAll()
      await shown.getByRole('button', { name: `Order ${id}` }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a receipt that could not be read in the last state of an order is read later',
    async () => {
      await at.connectHub()
      const shown = await visit()
      await shown.route(/\/receipt$/, (route) => route.fulfill({ status: 500, json: broken }))
      const id = await buy(shown)
      await at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2] })
      const lines = droppedLines(await at.shop.items(id), { bin: 2 })
      await at.shop.report({ kind: 'order.ready', order_id: id, bins: [2], lines })
      await at.shop.report({ kind: 'order.collecting', order_id: id })
      await at.shop.report({ kind: 'order.completed', order_id: id })
      await shown.locator('[data-status="COMPLETED"]').waitFor()
      await shown.getByText('That did not work. Try again.').first().waitFor()
      expect(await shown.getByRole('link', { name: 'Show the receipt' }).count()).toBe(0)
      await shown.unrouteAll()
      await shown.getByRole('link', { name: 'Show the receipt' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a call about the session without an answer does not stop the readings of the hub, and the page reports it',
    async () => {
      const shown = await visit()
      await shown.locator('[data-product="1"]').waitFor()
      let reads = 0
      await shown.route(/\/session$/, () => {})
      await shown.route(/\/hubs\/1$/, (route) => {
        reads += 1
        return route.continue()
      })
      await shown.reload()
      await expect.poll(() => reads, { timeout: PATIENCE_MS }).toBeGreaterThan(1)
      expect(await shown.locator('[data-away]').count()).toBe(1)
    },
    TEST_MS,
  )

  browserTest(
    'the page names a bin that did not open, and an order that is collected is not under way',
    async () => {
      await at.connectHub()
      const shown = await visit()
      const id = await buy(shown)
      await shown.reload()
      await at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2, 3] })
      const lines = droppedLines(await at.shop.items(id), { bin: 2 })
      await at.shop.report({ kind: 'order.ready', order_id: id, bins: [2, 3], lines })
      await shown.locator('[data-status="READY"]').waitFor()
      const results = [
        { bin_number: 2, success: true, error: null },
        { bin_number: 3, success: false, error: 'fault' },
      ]
      await shown.route(/open-delivery/, (route) =>
        route.fulfill({ json: { success: false, order_id: id, results } }),
      )
      await shown.getByRole('button', { name: /^Open bin/ }).click()
      await shown.getByText('Bin 3 did not open. Try again.').waitFor()
      await at.shop.report({ kind: 'order.collecting', order_id: id })
      await at.shop.report({ kind: 'order.completed', order_id: id })
      await shown.locator('[data-status="COMPLETED"]').waitFor()
      await shown.getByRole('button', { name: 'Buy more' }).click()
      await shown.getByRole('link', { name: 'Sign in' }).waitFor()
      expect(await shown.getByText(/is under way/).count()).toBe(0)
    },
    TEST_MS,
  )

  browserTest(
    'a customer whose session ends while the order is prepared is asked to sign in, and sees the order again',
    async () => {
      const shown = await visit()
      await signIn(shown)
      await buy(shown)
      expect(await endSessionsOf(at.shop.context.db.kysely, 'demo-customer')).toBe(1)
      await shown.getByText('Sign in to see your orders.').waitFor()
      await shown.getByRole('link', { name: 'Sign in' }).click()
      await shown.getByRole('button', { name: 'Customer' }).click()
      await shown.locator('[data-status="QUEUED"]').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a sign-out that the service refuses, or that gets no answer, is reported',
    async () => {
      const shown = await visit()
      await signIn(shown)
      const signOut = shown.getByRole('button', { name: 'Sign out' })
      let isLost = false
      await shown.route(/\/session$/, (route) => {
        if (route.request().method() !== 'DELETE') return route.continue()
        return isLost ? route.abort() : route.fulfill({ status: 502, body: '<html>Bad Gateway</html>' })
      })
      await signOut.click()
      await shown.getByText('You may still be signed in. The service does not answer.').waitFor()
      isLost = true
      await signOut.click()
      await shown.getByText('You may still be signed in. The connection is lost.').waitFor()
      await shown.unrouteAll()
      await signOut.click()
      await shown.getByRole('link', { name: 'Sign in' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a late receipt of one order does not show its refunds in another order',
    async () => {
      const shown = await visit()
      const { kysely } = at.shop.context.db
      const late: (() => void)[] = []
      let isLate = true
      let first: string | undefined
      await shown.route(/\/receipt$/, async (route) => {
        first ??= route.request().url()
        if (route.request().url() !== first) return route.continue()
        // The service refuses a cookie without this header of browsers.
        const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
        const answer = await route.fetch({ headers })
        const refunds = [{ amount: 123, status: 'succeeded', created_at: new Date().toISOString() }]
        const json = { ...((await answer.json()) as object), refunds }
        if (isLate) await new Promise<void>((resolve) => late.push(resolve))
        return route.fulfill({ response: answer, json }).catch(() => {})
      })
      const id = await buy(shown)
      const { id: _, ...order } = await kysely
        .selectFrom('orders')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      await kysely
        .insertInto('orders')
        .values({ ...order, uuid: randomUUID(), processing_status: 60 })
        .execute()
      await expect.poll(() => late.length, { timeout: PATIENCE_MS }).toBeGreaterThan(0)
      await shown.getByRole('link', { name: 'My orders' }).click()
      await shown
        .getByRole('button', { name: /^Order \d+$/ })
        .first()
        .click()
      await shown.locator('[data-status="COMPLETED"]').waitFor()
      isLate = false
      for (const answer of late) answer()
      await shown.waitForTimeout(1000)
      expect(await shown.getByText('You get back').count()).toBe(0)
      await shown.goto(`${base}/shop/1/orders/${id}`)
      await shown.getByText('You get back $1.23.').waitFor()
    },
    TEST_MS,
  )
})
