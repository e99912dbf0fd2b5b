import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { overflowOf, PATIENCE_MS, picture, seriousProblems } from '../support/browser.ts'
import { serveDemo } from './served.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 180_000

describe('the shop', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveDemo(['shopPage'], { isMoving: true }))

  async function visit(language: string): Promise<Page> {
    const { page } = await browser.open('about:blank', { width: 390 })
    await page.context().setExtraHTTPHeaders({ 'Accept-Language': language })
    await page.goto(`${served.base}/shop/1`)
    return page
  }

  /** Fills the cart with one product, and opens it. */
  async function fill(page: Page): Promise<void> {
    await page.locator('[data-product="1"] button').click()
    await page.locator('[data-product="1"] [aria-live]').waitFor()
    await page.locator('[data-show-cart]').click()
  }

  browserTest(
    'a customer in Germany reads the reason of a declined card, the receipt, and the names of all buttons in German',
    async () => {
      const page = await visit('de-DE')
      await fill(page)
      await page.getByLabel('Testkarte: die Bank lehnt ab').check()
      await page.locator('[data-pay]').click()
      await page.getByText('Die Bank hat die Karte abgelehnt: sie nennt keinen Grund.').waitFor()
      await page.getByRole('button', { name: 'Meldung schließen' }).first().click()
      await page.getByRole('button', { name: 'Dunkle Farben' }).waitFor()
      await page.getByLabel('Testkarte: zahlt').check()
      await page.locator('[data-pay]').click()
      await page.locator('[data-status="QUEUED"]').waitFor()
      const [receipt] = await Promise.all([
        page.context().waitForEvent('page'),
        page.getByRole('link', { name: 'Beleg zeigen' }).click(),
      ])
      await receipt.getByRole('heading', { name: /^Beleg 1-\d+$/ }).waitFor()
      await receipt.getByText('Bezahlt:').waitFor()
      await receipt.getByRole('button', { name: 'Drucken' }).waitFor()
      await picture(receipt, 'shop-receipt-german-390-light')
      expect([await overflowOf(receipt), await seriousProblems(receipt)]).toEqual([0, []])
      await receipt.getByRole('button', { name: /^Bestellung \d+$/ }).press('Enter')
      await receipt.locator('[data-status="QUEUED"]').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'all products of a large hub are shown, and the history continues after its first page',
    async () => {
      const { kysely } = served.at.shop.context.db
      const { id: _, ...product } = await kysely
        .selectFrom('products')
        .selectAll()
        .where('id', '=', 1)
        .executeTakeFirstOrThrow()
      const further = Array.from({ length: 120 }, (__, index) => ({
        ...product,
        name: `Further ${index}`,
        upc: String(900_000_000_000 + index),
      }))
      await kysely.insertInto('products').values(further).execute()
      const page = await visit('en')
      await page.locator('[data-product]').first().waitFor()
      const shown = () => page.locator('[data-product]').count()
      const all = (await kysely.selectFrom('products').select('id').where('hub_id', '=', 1).execute()).length
      await expect.poll(shown, { timeout: PATIENCE_MS }).toBe(all)

      await fill(page)
      await page.locator('[data-pay]').click()
      await page.locator('[data-status="QUEUED"]').waitFor()
      const { id: first, ...order } = await kysely
        .selectFrom('orders')
        .selectAll()
        .where('processing_status', '=', 20)
        .executeTakeFirstOrThrow()
      const past = Array.from({ length: 25 }, () => ({
        ...order,
        uuid: randomUUID(),
        processing_status: 60 as const,
      }))
      await kysely.insertInto('orders').values(past).execute()
      await page.getByRole('link', { name: 'My orders' }).click()
      const orders = page.getByRole('button', { name: /^Order \d+$/ })
      await expect.poll(() => orders.count(), { timeout: PATIENCE_MS }).toBe(20)
      await page.getByRole('button', { name: 'Show more' }).click()
      await expect.poll(() => orders.count(), { timeout: PATIENCE_MS }).toBe(26)
      await page.getByRole('button', { name: `Order ${first}`, exact: true }).waitFor()
      await picture(page, 'shop-history-390-light')
    },
    TEST_MS,
  )
})
