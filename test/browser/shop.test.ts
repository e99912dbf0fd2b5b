import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished } from 'vitest'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import { endSessionsOf } from '../../cloud/platform/credentials/sessions.ts'
import {
  builtPage,
  overflowOf,
  PATIENCE_MS,
  picture,
  seriousProblems,
  tabTo,
  type Visit,
  weightOf,
} from '../support/browser.ts'
import { droppedLines } from '../world/shop.ts'
import { addProduct, serveDemo } from './served.ts'
import { browserTest, eachTime, screens, useBrowser } from './set-up.ts'

const TEST_MS = 180_000

describe('the shop', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveDemo(['shopPage']))

  const visit = (where = '/shop/1', how: Partial<Visit> = {}) =>
    browser.open(`${served.base}${where}`, { width: 390, ...how })

  /** The service works by a clock of its own, which moves while the page waits. */
  function moving<T>(waiting: Promise<T>): Promise<T> {
    const steps = setInterval(() => served.at.shop.clock.advance(500), 100)
    return waiting.finally(() => clearInterval(steps))
  }

  const addButton = (shown: Page, product: number) =>
    shown.locator(`[data-product="${product}"]`).getByRole('button', { name: /^Add one/ })

  /** Fills the cart and opens it. */
  async function fill(shown: Page, products: readonly number[]): Promise<void> {
    for (const product of products) await addProduct(shown, product)
    await shown.locator('[data-show-cart]').click()
  }

  /** Pays by the first test card. Returns the order. */
  async function buy(shown: Page, products: readonly number[]): Promise<number> {
    await fill(shown, products)
    await shown.locator('[data-pay]').click()
    const order = shown.locator('[data-order]')
    await order.waitFor()
    return Number(await order.getAttribute('data-order'))
  }

  const status = (shown: Page, name: string) => moving(shown.locator(`[data-status="${name}"]`).waitFor())

  browserTest(
    'a customer without an account buys two products, one jams, the refund is explained, and the bin opens',
    async () => {
      await served.at.connectHub()
      const { page: shown, problems } = await visit()
      const id = await buy(shown, [1, 2])
      await status(shown, 'QUEUED')
      await shown.getByText('Your order is next.').waitFor()
      await served.at.shop.report({ kind: 'order.preparing', order_id: id, bins: [2] })
      await status(shown, 'PREPARING')
      const items = await served.at.shop.items(id)
      const lines = droppedLines(items, { bin: 2 }).map((line, index) =>
        index === 0 ? line : { ...line, dropped: 0, bins: [] },
      )
      await served.at.shop.report({ kind: 'order.ready', order_id: id, bins: [2], lines })
      await status(shown, 'READY')
      const name = (await shown.locator('article li').nth(1).textContent())!.replace(/^1 × (.*?)\$.*/, '$1')
      await moving(shown.getByText(`1 × ${name} did not come out.`).waitFor())
      await moving(shown.getByText(/^You get back \$\d+\.\d\d\.$/).waitFor())
      await shown.getByRole('button', { name: 'Open bin 2' }).click()
      await served.at.shop.report({ kind: 'order.collecting', order_id: id })
      await moving(shown.getByText('Bin 2 is open. Take your products and close the door.').waitFor())
      await served.at.shop.report({ kind: 'order.completed', order_id: id })
      await status(shown, 'COMPLETED')
      const [receipt] = await Promise.all([
        shown.context().waitForEvent('page'),
        shown.getByRole('link', { name: 'Show the receipt' }).click(),
      ])
      await receipt.getByText(name).first().waitFor()
      await receipt.close()
      await shown.getByRole('link', { name: 'My orders' }).click()
      await shown.getByRole('button', { name: `Order ${id}` }).waitFor()
      expect(problems).toEqual([])
    },
    TEST_MS,
  )

  browserTest(
    'a declined card is explained until the next try and costs nothing, and a card that its bank asks for is confirmed',
    async () => {
      const { page: shown } = await visit()
      await fill(shown, [1])
      await shown.getByLabel('Test card: the bank declines').check()
      await shown.locator('[data-pay]').click()
      await moving(shown.getByText(/The bank declined the card: .* You paid nothing/).waitFor())
      const focused = () => shown.evaluate('document.activeElement.tagName')
      await expect.poll(focused, { timeout: PATIENCE_MS }).toBe('BUTTON')
      await shown.getByLabel('Test card: the bank asks its holder').check()
      await shown.locator('[data-pay]').click()
      await moving(shown.getByRole('button', { name: 'Confirm the payment' }).click())
      await status(shown, 'QUEUED')
      await expect.poll(focused, { timeout: PATIENCE_MS }).toBe('H1')
      expect(await shown.getByText('You paid nothing').count()).toBe(0)
    },
    TEST_MS,
  )

  const set = (columns: object) => served.at.shop.context.db.kysely.updateTable('hubs').set(columns).execute()
  const refusals: [state: string, prepare: () => Promise<unknown>, sentence: string][] = [
    ['offline', () => Promise.resolve(served.at.shop.clock.advance(600_000)), 'This shop is offline.'],
    ['paused', () => set({ accepting_orders: 0 }), 'This shop has paused.'],
    ['full', () => set({ disabled_bins: '[1,2,3,4]' }), 'All delivery bins are in use.'],
    [
      'sold out',
      () => served.at.shop.context.db.kysely.updateTable('products').set({ quantity: 0 }).execute(),
      'Everything is sold out.',
    ],
  ]
  for (const [state, prepare, sentence] of refusals)
    browserTest(
      `a hub that is ${state} says so before the customer fills a cart`,
      async () => {
        await prepare()
        const { page: shown } = await visit()
        await shown.getByText(sentence).waitFor()
        await shown.locator('[data-product]').first().waitFor()
        expect(await shown.getByRole('button', { name: /^Add one/, disabled: false }).count()).toBe(0)
      },
      TEST_MS,
    )

  browserTest(
    'a cabinet with a warm fridge sells nothing, and the page gives the reason',
    async () => {
      const state = { of: 'cabinet', cabinet: 1, withheld: 'shutoff', since: 0 } as const
      await served.at.shop.report({ kind: 'state', state })
      const { page: shown } = await visit()
      await shown.getByText('A fridge is too warm. Its products are not sold now.').waitFor()
      await shown.locator('[data-product="1"]').getByText('Not sold now').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'the address of a hub that does not exist is a page with status 404',
    async () => {
      for (const where of ['/shop/99', '/shop/abc', '/shop/99/orders/1']) {
        expect((await fetch(`${served.base}${where}`)).status).toBe(404)
        const { page: shown } = await visit(where)
        await shown.getByRole('heading', { name: 'There is no shop at this address.' }).waitFor()
      }
      const { page: shown } = await visit('/shop/1/orders/99')
      await shown.getByText('Sign in to see your orders.').waitFor()
      await shown.goto(`${served.base}/shop/1`)
      await fill(shown, [1])
      await shown.goto(`${served.base}/shop/1/orders/99`)
      await shown.getByRole('heading', { name: 'There is no such order of yours.' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'the page speaks the language of the browser, and another one after a choice',
    async () => {
      const { page: shown } = await visit()
      await shown.setExtraHTTPHeaders({ 'Accept-Language': 'fr-CH, de;q=0.9, en;q=0.8' })
      await shown.reload()
      await shown
        .getByRole('button', { name: /eins hinzufügen/ })
        .first()
        .waitFor()
      expect(await shown.getAttribute('html', 'lang')).toBe('de')
      await picture(shown, 'shop-products-german-390-light')
      await shown
        .locator('[data-product="1"]')
        .getByRole('button', { name: /eins hinzufügen/ })
        .click()
      await shown.locator('[data-product="1"] [aria-live]').waitFor()
      await shown.locator('[data-show-cart]').click()
      await shown.locator('[data-pay]').waitFor()
      await picture(shown, 'shop-cart-german-390-light')
      expect(await overflowOf(shown)).toBe(0)
      await shown.getByLabel('Sprache').selectOption('English')
      await shown.getByRole('heading', { name: 'Cart' }).waitFor()
      await shown.reload()
      await shown.getByRole('heading', { name: 'Cart' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'the page of an order and the products recover without a reload after the service was away',
    async () => {
      const { page: shown } = await visit()
      const id = await buy(shown, [1])
      await status(shown, 'QUEUED')
      await served.leave()
      await served.at.shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
      await shown.getByText('The connection is lost.').waitFor()
      await served.comeBack()
      await status(shown, 'PREPARING')
      await shown.getByText('The connection is lost.').waitFor({ state: 'hidden' })
    },
    TEST_MS,
  )

  browserTest(
    'a page of another origin reads nothing and changes nothing with the cookie of a guest',
    async () => {
      const { page: shown } = await visit()
      await fill(shown, [1])
      const foreign = createServer((_, response) => response.end('<!doctype html><title>Other</title>'))
      await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void foreign.close())
      const other = await shown.context().newPage()
      await other.goto(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`)
      const read = await other.evaluate(`(async (to) => {
        const own = { credentials: 'include' }
        const answers = await Promise.allSettled([
          fetch(to + '/session', own),
          fetch(to + '/api/v1/users/1/orders', own),
          fetch(to + '/api/v1/users/1/orders?hub_id=1', { ...own, method: 'POST', mode: 'no-cors' }),
          fetch(to + '/api/v1/users/1/orders/1?hub_id=1', { ...own, method: 'DELETE' }),
        ])
        return answers.filter(({ status }) => status === 'fulfilled').length
      })('${served.base}')`)
      expect(read).toBe(0)
      const orders = await served.at.shop.context.db.kysely.selectFrom('orders').select('id').execute()
      expect(orders).toHaveLength(1)
    },
    TEST_MS,
  )

  browserTest(
    'a customer signs in with the button of the demo’s issuer, keeps the cart, and is signed out when the session is revoked',
    async () => {
      await grantRole(served.at.shop.context.db.kysely, served.at.shop.context.runtime, {
        identity: 'demo-owner',
        role: 'owner',
        hubs: [1],
      })
      const { page: shown } = await visit()
      await fill(shown, [1])
      await shown.getByRole('link', { name: 'Sign in' }).click()
      await shown.getByRole('button', { name: 'Customer' }).click()
      await shown.getByText('Signed in as customer@example.org').waitFor()
      await shown.locator('[data-show-cart]').click()
      await shown.locator('[data-total]').waitFor()
      expect(await endSessionsOf(served.at.shop.context.db.kysely, 'demo-customer')).toBe(1)
      served.at.shop.clock.advance(5000)
      await shown.reload()
      await shown.getByRole('link', { name: 'Sign in' }).waitFor()
    },
    TEST_MS,
  )

  browserTest('the first load is 80 kB of code and styles at most', async () => {
    expect(weightOf((await builtPage('cloud', 'shop')).folder)).toBeLessThanOrEqual(80_000)
  })

  for (const { width, colorScheme } of screens)
    browserTest(
      `at ${width} pixels, ${colorScheme} no view scrolls sideways, targets are large enough, and axe finds no serious problem`,
      async () => {
        const { page: shown, problems } = await visit('/shop/1', { width, colorScheme })
        const judged = async (name: string): Promise<void> => {
          await picture(shown, `shop-${name}-${width}-${colorScheme}`)
          expect([name, await overflowOf(shown), await seriousProblems(shown)]).toEqual([name, 0, []])
          const small = await shown.evaluate(
            `[...document.querySelectorAll('button, select, input:not([type=radio]), main a')]
                .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.5)
                .map((each) => each.outerHTML.slice(0, 100))`,
          )
          if (width < 1024) expect([name, small]).toEqual([name, []])
        }
        await addButton(shown, 1).waitFor()
        await judged('products')
        await addButton(shown, 1).click()
        await shown.locator('[data-product="1"] [aria-live]').waitFor()
        if (width < 1024) await shown.locator('[data-show-cart]').click()
        await shown.locator('[data-pay]').waitFor()
        await judged('cart')
        await shown.locator('[data-pay]').click()
        await status(shown, 'QUEUED')
        await judged('order')
        expect(problems).toEqual([])
      },
      TEST_MS,
    )

  browserTest(
    'a customer buys by touch alone',
    async () => {
      const { page: shown } = await visit('/shop/1', { hasTouch: true })
      await addButton(shown, 1).tap()
      await shown.locator('[data-product="1"] [aria-live]').waitFor()
      await shown.locator('[data-show-cart]').tap()
      await shown.locator('[data-pay]').tap()
      await status(shown, 'QUEUED')
    },
    TEST_MS,
  )

  browserTest(
    'a customer buys with the keyboard alone',
    async () => {
      const { page: shown } = await visit('/shop/1', { width: 1400 })
      const press = async (name: RegExp): Promise<void> => {
        await tabTo(shown, name)
        await shown.keyboard.press('Enter')
      }
      await addButton(shown, 1).waitFor()
      await press(/^Add one/)
      await shown.locator('[data-pay]:not([disabled])').waitFor()
      await press(/^Pay \$/)
      await status(shown, 'QUEUED')
    },
    TEST_MS,
  )
})
