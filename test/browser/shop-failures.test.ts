import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { endSessionsOf } from '../../cloud/platform/credentials/sessions.ts'
import { droppedLines } from '../world/shop.ts'
import { PATIENCE_MS } from '../support/browser.ts'
import { addProduct, serveDemo, signInAtShop } from './served.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 180_000

describe('the shop when calls fail', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveDemo(['shopPage'], { isMoving: true }))

  const visit = async (): Promise<Page> => (await browser.open(`${served.base}/shop/1`, { width: 1400 })).page
  async function pay(shown: Page): Promise<void> {
    await addProduct(shown, 1)
    await shown.locator('[data-pay]').click()
  }
  async function buy(shown: Page): Promise<number> {
    await pay(shown)
    await shown.locator('[data-status="QUEUED"]').waitFor()
    return Number(await shown.locator('[data-order]').getAttribute('data-order'))
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
      await shown.goto(`${served.base}/shop/1/orders/${id}#receipt`)
      await lost.waitFor()
      await shown.unrouteAll()
      await shown.getByRole('heading', { name: /^Receipt/ }).waitFor()
      await shown.route(/\/orders\?.*order_processing_statuses=90/, (route) => route.abort())
      await shown.goto('about:blank')
      await shown.goto(`${served.base}/shop/1#orders`)
      await lost.waitFor()
      await shown.unrouteAll()
      await shown.getByRole('button', { name: `Order ${id}` }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a receipt that could not be read in the last state of an order is read later',
    async () => {
      await served.at.connectHub()
      const shown = await visit()
      await shown.route(/\/receipt$/, (route) => route.fulfill({ status: 500, json: broken }))
      const id = await buy(shown)
      await served.at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2] })
      const lines = droppedLines(await served.at.shop.items(id), { bin: 2 })
      await served.at.shop.report({ kind: 'order.ready', order_id: id, bins: [2], lines })
      await served.at.shop.report({ kind: 'order.collecting', order_id: id })
      await served.at.shop.report({ kind: 'order.completed', order_id: id })
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
      await served.at.connectHub()
      const shown = await visit()
      const id = await buy(shown)
      await shown.reload()
      await served.at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2, 3] })
      const lines = droppedLines(await served.at.shop.items(id), { bin: 2 })
      await served.at.shop.report({ kind: 'order.ready', order_id: id, bins: [2, 3], lines })
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
      await served.at.shop.report({ kind: 'order.collecting', order_id: id })
      await served.at.shop.report({ kind: 'order.completed', order_id: id })
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
      await signInAtShop(shown)
      await buy(shown)
      expect(await endSessionsOf(served.at.shop.context.db.kysely, 'demo-customer')).toBe(1)
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
      await signInAtShop(shown)
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
      const { kysely } = served.at.shop.context.db
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
      await shown.goto(`${served.base}/shop/1/orders/${id}`)
      await shown.getByText('You get back $1.23.').waitFor()
    },
    TEST_MS,
  )
})
