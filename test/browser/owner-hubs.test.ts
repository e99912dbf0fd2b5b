import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { consolePlaces } from '../../protocol/model/console-places.ts'
import { overflowOf, PATIENCE_MS, picture, seriousProblems, tabTo } from '../support/browser.ts'
import { serveConsole, signInAt } from './served-console.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 400_000

describe('the pages of a hub in the owner’s console', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveConsole([], ['console', 'shopPage']))

  const hold = (page: Page, name: string): Promise<void> =>
    page.getByRole('button', { name, exact: true }).click({ delay: 1300 })
  /** No scrolling sideways, and no serious problem. */
  const judge = async (page: Page, name: string): Promise<void> => {
    await picture(page, name)
    expect([name, await overflowOf(page), await seriousProblems(page)]).toEqual([name, 0, []])
  }

  browserTest(
    'the address of an unknown hub, order or page leads back, and unknown hubs and pages have status 404',
    async () => {
      const statusOf = async (path: string) => (await fetch(`${served.base}/console/${path}`)).status
      const known = [...consolePlaces, '', 'hubs/1', 'planogram/1', 'orders/1']
      expect(await Promise.all(known.map(statusOf))).toEqual(known.map(() => 200))
      const unknown = ['hubs/99', 'planogram/99', 'nothing', 'sales/1', 'hubs/x', 'shop']
      expect(await Promise.all(unknown.map(statusOf))).toEqual(unknown.map(() => 404))

      const page = await signInAt(browser, served, { as: 'Owner', expected: /40[34]/ })
      const headings = {
        'hubs/99': 'There is no such hub',
        'planogram/99': 'There is no such hub',
        'orders/99': 'There is no such order',
        nothing: 'There is no such page',
      }
      for (const [path, name] of Object.entries(headings)) {
        await page.goto(`${served.base}/console/${path}`)
        await page.getByRole('heading', { name }).waitFor()
        await judge(page, `owner-missing-${path.replace('/', '-')}-390-light`)
      }
      await page.getByRole('link', { name: 'Show today' }).press('Enter')
      await page.locator('[data-card="hubs"]').waitFor()
      const focused = () => page.evaluate('document.activeElement.textContent')
      await expect.poll(focused, { timeout: PATIENCE_MS }).toBe('Today')
    },
    TEST_MS,
  )

  browserTest(
    'today compares the sales of each hub with those of the same weekday',
    async () => {
      const { clock } = served.at.shop
      const dayOf = (days: number): string =>
        new Date(clock.now() + days * 86_400_000).toLocaleDateString('en-CA', {
          timeZone: 'UTC',
        })
      const revenue = { [dayOf(-1)]: 1500, [dayOf(-7)]: 2250, [dayOf(-8)]: 1000 }
      const page = await signInAt(browser, served, { as: 'Owner', where: '/account' })
      await page.clock.setFixedTime(clock.now())
      await page.route('**/owners/sales?*', async (route) => {
        const answer = await route.fetch()
        const report = (await answer.json()) as { totals: object }
        const from = new URL(route.request().url()).searchParams.get('from')!
        const row = { ...report.totals, key: '1', name: 'hub', gross_revenue: revenue[from] }
        await route.fulfill({ json: { ...report, data: [row] } })
      })
      await page.goto(`${served.base}/console/today`)
      const weekday = (days: number): string =>
        new Date(clock.now() + days * 86_400_000).toLocaleDateString('en', {
          weekday: 'long',
          timeZone: 'UTC',
        })
      const sales = page.locator('[data-hub="1"] [data-sales]')
      await sales.getByText(`All of last ${weekday(-7)}: $22.50`).waitFor()
      await sales.getByText(`50 % more than on the ${weekday(-8)} before ($10.00)`).waitFor()
      for (const width of [390, 1400]) {
        await page.setViewportSize({ width, height: 900 })
        await judge(page, `owner-today-compared-${width}-light`)
      }
    },
    TEST_MS,
  )

  browserTest(
    'amounts in yen have no decimals: prices, an order, sales, and the shop',
    async () => {
      const { shop } = served.at
      Object.assign(shop.context.settings, { currency: 'JPY' })
      const { id } = await shop.paidOrder({ 1: 2 })
      const priceOf = async (): Promise<{ original_price: number; purchase_price: number }> =>
        shop.context.db.kysely
          .selectFrom('products')
          .select(['original_price', 'purchase_price'])
          .where('id', '=', 1)
          .executeTakeFirstOrThrow()
      const before = await priceOf()
      const page = await signInAt(browser, served, { as: 'Owner', where: '/planogram/1' })
      const row = page.locator('[data-place="1/1/1"]')
      await row.getByRole('button', { name: 'Change row' }).click()
      const price = row.getByLabel('Price (JPY)', { exact: true })
      expect(await price.inputValue()).toBe(String(before.original_price))
      await price.fill('1234')
      await row.getByRole('button', { name: 'Save prices' }).press('Enter')
      await row.getByText('¥1,234').waitFor()
      expect(await priceOf()).toEqual({ ...before, original_price: 1234 })
      await judge(page, 'owner-planogram-yen-390-light')

      await page.goto(`${served.base}/console/orders/${id}`)
      const total = (await shop.order(id)).total!
      await page.locator('[data-summary]').getByText(`paid ${total}, 0 dispensed, ${total} owed`).waitFor()
      await page.goto(`${served.base}/console/sales`)
      await page
        .locator('[data-figure="gross_revenue"]')
        .getByText(/^¥[\d,]+$/)
        .waitFor()
      await judge(page, 'owner-sales-yen-390-light')
      await page.goto(`${served.base}/shop/1`)
      await page.locator('[data-product="1"]').getByText('¥1,234').first().waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'an owner turns a row once and blocks it; a technician, who sees no stock, does the same by keyboard',
    async () => {
      await served.at.connectHub()
      const audited = async () =>
        (
          await served.at.shop.context.db.kysely
            .selectFrom('audit_log')
            .select(['actor', 'action'])
            .where('action', 'in', ['controls.test_dispense', 'controls.block_row'])
            .orderBy('id')
            .execute()
        ).map(({ actor, action }) => `${actor} ${action}`)
      const owner = await signInAt(browser, served, { as: 'Owner', where: '/hubs/1' })
      await owner.locator('[data-device="cabinet-1"]').press('Enter')
      await owner.locator('#device select').selectOption({ index: 1 })
      await hold(owner, 'Turn it once: row 1/1/2')
      await owner.getByText('1 unit fell into bin 2. A person must empty it.').waitFor()
      await hold(owner, 'Block: row 1/1/2')
      await owner.getByText('Block: row 1/1/2: done.').waitFor()
      await judge(owner, 'owner-hub-row-390-light')

      const technician = await signInAt(browser, served, {
        as: 'Technician',
        how: { width: 1400 },
        where: '/hubs/1',
      })
      await technician.locator('[data-device="cabinet-1"]').press('Enter')
      await tabTo(technician, /^Turn it once/)
      await technician.keyboard.press('Enter')
      await technician.locator('[data-hold="asked"]').waitFor()
      await technician.keyboard.press('Enter')
      await technician.getByText('1 unit fell into bin 2. A person must empty it.').waitFor()
      await judge(technician, 'technician-hub-row-1400-light')
      expect(await audited()).toEqual([
        'identity:demo-owner controls.test_dispense',
        'identity:demo-owner controls.block_row',
        'identity:demo-technician controls.test_dispense',
      ])
    },
    TEST_MS,
  )

  browserTest(
    'at an offline hub an owner takes a bin out of service over SSH, and a picture of another host keeps its address',
    async () => {
      const image = 'https://pictures.example/files/water.png'
      const { kysely } = served.at.shop.context.db
      await kysely.updateTable('products').set({ image_url: image }).where('id', '=', 1).execute()
      served.at.shop.clock.advance(600_000)
      const page = await signInAt(browser, served, { as: 'Owner', where: '/hubs/1' })
      await page.locator('[data-device="bin-1"]').press('Enter')
      await hold(page, 'Take out of service over SSH: bin 1')
      await page.getByText('Take out of service over SSH: bin 1: done.').waitFor()
      const { disabled_bins } = await kysely
        .selectFrom('hubs')
        .select('disabled_bins')
        .where('id', '=', 1)
        .executeTakeFirstOrThrow()
      expect(disabled_bins).toBe('[1]')
      await page.route('https://pictures.example/**', (route) =>
        route.fulfill({
          contentType: 'image/svg+xml',
          body: '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>',
        }),
      )
      await page.goto(`${served.base}/console/planogram/1`)
      const shown = page.locator('[data-place="1/1/1"] img')
      await shown.scrollIntoViewIfNeeded()
      expect(await shown.getAttribute('src')).toBe(image)
      const width = (): Promise<unknown> =>
        page.evaluate(`document.querySelector('[data-place="1/1/1"] img').naturalWidth`)
      await expect.poll(width, { timeout: PATIENCE_MS }).toBe(8)
    },
    TEST_MS,
  )
})
