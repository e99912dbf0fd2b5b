import type { Locator, Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { PATIENCE_MS } from '../support/browser.ts'
import { addProduct, serveDemo } from './served.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 180_000

describe('the shop by keyboard', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveDemo(['shopPage'], { isMoving: true }))

  async function visit(width = 390): Promise<Page> {
    const { page } = await browser.open(`${served.base}/shop/1`, { width })
    return page
  }

  const enter = (control: Locator): Promise<void> => control.press('Enter')

  const focusIs = (page: Page, element: string): Promise<void> =>
    expect
      .poll(
        () =>
          page.evaluate<string>("document.activeElement.tagName + ' ' + document.activeElement.textContent"),
        { timeout: PATIENCE_MS },
      )
      .toBe(element)

  const orderNumber = async (page: Page): Promise<number> =>
    Number(await page.locator('[data-order]').getAttribute('data-order'))

  browserTest(
    'the heading of a new view has the focus if the control that led there is gone',
    async () => {
      const page = await visit()
      await addProduct(page, 1)
      await enter(page.locator('[data-show-cart]'))
      await focusIs(page, 'H2 Cart')
      await enter(page.locator('[data-pay]'))
      await page.locator('[data-order]').waitFor()
      await focusIs(page, `H1 Order ${await orderNumber(page)}`)
      await enter(page.getByRole('button', { name: 'Buy more' }))
      await focusIs(page, 'H1 Products')
    },
    TEST_MS,
  )

  browserTest(
    'the heading of the nearest part has the focus if the last unit, the unpaid order or the button of a bin is gone',
    async () => {
      await served.at.connectHub()
      const page = await visit(1400)
      const product = page.locator('[data-product="1"]')
      await addProduct(page, 1)
      await enter(product.getByRole('button', { name: /^Remove one/ }))
      await focusIs(page, `H2 ${await product.getByRole('heading').textContent()}`)
      await addProduct(page, 1)
      await page.getByLabel('Test card: the bank asks its holder').check()
      await enter(page.locator('[data-pay]'))
      await page.getByRole('button', { name: 'Confirm the payment' }).waitFor()
      await enter(page.locator('aside').getByRole('button', { name: 'Cancel the order' }))
      await focusIs(page, 'H2 Cart')
      await addProduct(page, 1)
      await page.getByLabel('Test card: pays').check()
      await enter(page.locator('[data-pay]'))
      await page.locator('[data-order]').waitFor()
      const id = await orderNumber(page)
      await served.at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2] })
      await served.at.shop.report({ kind: 'order.ready', order_id: id, bins: [2], lines: [] })
      await enter(page.getByRole('button', { name: 'Open bin 2' }))
      await served.at.shop.report({ kind: 'order.collecting', order_id: id })
      await page.locator('[data-status="COLLECTING"]').waitFor()
      await focusIs(page, `H1 Order ${id}`)
    },
    TEST_MS,
  )
})
