import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { endSessionsOf } from '../../cloud/platform/credentials/sessions.ts'
import { serveConsole, signInAt } from './served-console.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 400_000
const SLOW_MS = 4000
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC',
  'base64',
)

describe('acts in the owner’s console', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveConsole())

  // These tests break connections and answers.
  const signIn = (where = '/today'): Promise<Page> =>
    signInAt(browser, served, { as: 'Owner', where, how: { width: 1400 }, expected: /./ })
  const refundsOf = async (id: number): Promise<number> => (await served.at.shop.refunds(id)).length

  /** A collected order of units of product 1. */
  async function collected(units: number): Promise<number> {
    const { shop } = served.at
    await shop.hear()
    const { id: order_id } = await shop.paidOrder({ 1: units })
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    const lines = (await shop.items(order_id)).map(({ id, qty }) => ({
      line_id: id,
      dropped: qty,
      doubtful: 0,
      bins: [1],
    }))
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines })
    await shop.report({ kind: 'order.collecting', order_id })
    await shop.report({ kind: 'order.completed', order_id })
    return order_id
  }

  /** Holds Enter for two seconds. The keyboard repeats the key. */
  async function holdEnter(page: Page): Promise<void> {
    for (let count = 0; count < 20; count += 1) {
      await page.keyboard.down('Enter')
      await page.waitForTimeout(100)
    }
    await page.keyboard.up('Enter')
  }

  browserTest(
    'a button that must be held is not pressed twice by Enter that is held down',
    async () => {
      const id = await collected(5)
      const page = await signIn(`/orders/${id}`)
      const button = page.getByRole('button', { name: 'Refund 1 unit of' })
      await button.focus()
      await holdEnter(page)
      expect(await button.or(page.locator('[data-hold="asked"]')).first().textContent()).toContain('Refund')
      expect(await refundsOf(id)).toBe(0)
      await page.keyboard.press('Enter')
      await page.getByText('1 refunded').waitFor()
      expect(await refundsOf(id)).toBe(1)
    },
    TEST_MS,
  )

  browserTest(
    'Enter that is held down in the refill list counts one row',
    async () => {
      const counts: string[] = []
      const page = await signIn('/planogram/1?show=refill')
      await page.route(/\/owners\/hubs\/facings/, async (route) => {
        if (route.request().method() === 'PUT') counts.push(route.request().postData()!)
        await route.continue()
      })
      await page.locator('input[name=count]').first().focus()
      await holdEnter(page)
      await page.getByText('counted: done').waitFor()
      expect(counts).toHaveLength(1)
    },
    TEST_MS,
  )

  browserTest(
    'a refund that a person holds twice, because the answer is slow, is one refund',
    async () => {
      const id = await collected(3)
      const page = await signIn(`/orders/${id}`)
      let sent = 0
      await page.route(/\/items\/\d+\/refund$/, async (route) => {
        sent += 1
        await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
        await route.continue()
      })
      const button = page.getByRole('button', { name: 'Refund 1 unit of' })
      await button.click({ delay: 1300 })
      expect(await button.getAttribute('aria-busy')).toBe('true')
      await button.click({ delay: 1300 })
      await page.getByText('1 refunded').waitFor()
      expect([sent, await refundsOf(id)]).toEqual([1, 1])
      await button.click({ delay: 1300 })
      await page.getByText('2 refunded').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a refund of one unit is executed once, also if the person holds the button again after a lost answer',
    async () => {
      const id = await collected(3)
      const page = await signIn(`/orders/${id}`)
      const origin = { 'sec-fetch-site': 'same-origin' }
      let lost = 0
      await page.route(/\/items\/\d+\/refund$/, async (route) => {
        if (lost === 2) return route.continue()
        lost += 1
        await route.fetch({ headers: { ...(await route.request().allHeaders()), ...origin } })
        await route.abort('connectionreset')
      })
      const button = page.getByRole('button', { name: 'Refund 1 unit of' })
      await button.click({ delay: 1300 })
      await page.getByText('It is not known whether it is done. Try again: it is done once.').waitFor()
      await button.click({ delay: 1300 })
      await page.getByText('An earlier try had no answer. Both tries together are done once.').waitFor()
      await page.getByText(': done.').waitFor()
      expect([lost, await refundsOf(id)]).toEqual([2, 1])
    },
    TEST_MS,
  )

  browserTest(
    'a sign-out that the service refuses does not look like a sign-out',
    async () => {
      const page = await signIn()
      await page.route(/\/session$/, (route) => route.fulfill({ status: 503, body: 'away' }))
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByText('You are still signed in: The service answers 503.').waitFor()
      await page.unroute(/\/session$/)
      await page.route(/\/session$/, (route) => route.abort())
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByText('You are still signed in: The service does not answer.').waitFor()
      await page.unroute(/\/session$/)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Larder console' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'a person who signs in again after the session has ended finds what was typed, and another person does not',
    async () => {
      const page = await signIn('/deals')
      const card = page.locator('[data-card="new"]')
      await card.getByLabel('Name').fill('Winter week')
      const signInAgain = async (as: string): Promise<void> => {
        await endSessionsOf(served.at.shop.context.db.kysely, 'demo-owner')
        await page.getByText('Your session has ended.').waitFor()
        const opened = page.context().waitForEvent('page')
        await page.getByRole('link', { name: 'Sign in' }).click()
        const tab = await opened
        await tab.getByRole('button', { name: as }).click()
        await tab.locator('main h1').waitFor()
        await tab.close()
        await page.getByRole('heading', { name: 'Deals' }).waitFor()
      }
      await signInAgain('Owner')
      expect(await card.getByLabel('Name').inputValue()).toBe('Winter week')
      await card.getByLabel('Percent off').fill('15')
      await card.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Create “Winter week”: done.').waitFor()

      await card.getByLabel('Name').fill('Secret plan')
      await signInAgain('Analyst')
      expect(await page.getByText('Winter week').count()).toBe(1)
      expect(await card.getByLabel('Name').count()).toBe(0)
    },
    TEST_MS,
  )

  browserTest(
    'the console reads the use of the deals in the window, also of the last of 150 deals, and no more than once while events come',
    async () => {
      const { kysely } = served.at.shop.context.db
      const none = { description: null, display_text: null, image_key: null, start_day: null, end_day: null }
      const stored = { hub_id: 1, priority: 0, need: '', created_at: 0, updated_at: 0, deleted_at: null }
      const names = Array.from({ length: 150 }, (_, index) => `Deal ${index}`)
      const deals = names.map((name) => ({ ...stored, ...none, name, is_active: 1 as const }))
      await kysely.insertInto('deals').values(deals).execute()
      const page = await signIn()
      let calls = 0
      page.on('request', (request) => (calls += request.url().includes('/redemptions') ? 1 : 0))
      await page.goto(`${served.base}/console/deals`)
      const cards = page.locator('[data-card^="deal-"]', { hasText: 'Deal ' })
      await cards.getByText('used 0 times').first().waitFor()
      for (let event = 0; event < 3; event += 1) {
        await served.at.shop.paidOrder({ 1: 1 })
        await page.waitForTimeout(1500)
      }
      expect(calls).toBeLessThan(30)
      await cards.last().scrollIntoViewIfNeeded()
      await cards.last().getByText('used 0 times').waitFor()
      expect(calls).toBeLessThan(60)
    },
    TEST_MS,
  )

  browserTest(
    'data that cannot be read again is marked as old, until it is read',
    async () => {
      const page = await signIn()
      await page.locator('[data-card="hubs"]').waitFor()
      const error = { code: 'internal_error', message: 'Broken.' }
      await page.route(/\/owners\/fleet/, (route) =>
        route.fulfill({ status: 500, json: { error, detail: 'Broken.', request_id: 'r' } }),
      )
      await page.locator('[data-old]', { hasText: 'Broken.' }).first().waitFor()
      expect(await page.locator('[data-connected]').getAttribute('data-connected')).toBe('true')
      expect(await page.locator('[data-card="hubs"]').count()).toBe(1)
      await page.unroute(/\/owners\/fleet/)
      await page.locator('[data-old]').first().waitFor({ state: 'detached' })
    },
    TEST_MS,
  )

  browserTest(
    'the page shows what it has read while events come every second and a reading takes two seconds',
    async () => {
      const page = await signIn()
      await page.locator('[data-card="hubs"]').waitFor()
      let events = 0
      await page.route(/\/owners\/events\/stream/, (route) => {
        const id = `evt_${++events}`
        const data = JSON.stringify({ id, type: 'bin.status_changed' })
        return route.fulfill({ contentType: 'text/event-stream', body: `id: ${id}\ndata: ${data}\n\n` })
      })
      await page.route(/\/owners\/fleet/, async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 2000))
        await route.continue().catch(() => {})
      })
      await page.reload()
      await page.locator('[data-card="hubs"]').waitFor()
      const { kysely } = served.at.shop.context.db
      await kysely.updateTable('hubs').set({ name: 'A new name' }).where('id', '=', 1).execute()
      await page.locator('[data-card="hubs"]').getByText('A new name').waitFor({ timeout: 15_000 })
      expect(events).toBeGreaterThan(1)
    },
    TEST_MS,
  )

  browserTest(
    'a report with a photograph of 3 MB arrives over a line of 100 KB/s',
    async () => {
      const page = await signIn('/maintenance')
      const devtools = await page.context().newCDPSession(page)
      await devtools.send('Network.enable')
      await devtools.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 20,
        downloadThroughput: -1,
        uploadThroughput: 100 * 1024,
      })
      await page.getByText('File a report').click()
      await page.getByLabel('Title').fill('Fan')
      const buffer = Buffer.concat([PNG, Buffer.alloc(3_000_000, 7)])
      const media = page.getByLabel('Photographs and videos')
      await media.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer })
      await page.getByRole('button', { name: /^File the report/ }).click()
      await page.getByText('File the report: done.').waitFor({ timeout: 120_000 })
    },
    TEST_MS,
  )
})
