import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished } from 'vitest'
import { openStripeBank } from '../cloud/support/bank.ts'
import { startStripeServer } from '../cloud/support/stripe/server.ts'
import { deliver } from '../cloud/support/webhooks.ts'
import { overflowOf, PATIENCE_MS, picture, seriousProblems } from '../support/browser.ts'
import type { Service } from '../world/service.ts'
import { addProduct, serveDemo, type Served, signInAtShop } from './served.ts'
import { browserTest, useBrowser } from './set-up.ts'

const TEST_MS = 180_000

/** Numbers that the stand-in of Stripe's form takes, and the test cards that they are. */
const cards: Readonly<Record<string, string>> = {
  '4242': 'pm_card_visa',
  '3184': 'pm_card_authenticationRequired',
}

/** Does what the page needs of Stripe's script: a form in a frame of Stripe, and calls of Stripe's API. */
const script = `globalThis.Stripe = (key) => {
  if (!key.startsWith('pk_')) throw new Error('not a publishable key')
  let card = ''
  addEventListener('message', ({ data }) => { card = data.card ?? card })
  const call = async (path, body) => {
    const answer = await fetch('https://api.stripe.com/v1/' + path, { method: 'POST', body })
    return answer.ok ? { paymentMethod: await answer.json() } : { error: { message: 'Your bank refused.' } }
  }
  return {
    elements({ mode, amount, currency, paymentMethodCreation }) {
      if (mode !== 'payment' || paymentMethodCreation !== 'manual' || currency !== 'usd') throw new Error('options')
      const frame = document.createElement('iframe')
      return {
        create: () => ({
          mount(at) {
            if (at.childNodes.length > 0) throw new Error('the element is not empty')
            Object.assign(frame, { src: 'https://js.stripe.com/form', title: 'Card', height: 120 })
            frame.dataset.amount = amount
            at.append(frame)
          },
          destroy: () => frame.remove(),
        }),
        update: (changed) => { frame.dataset.amount = changed.amount },
        submit: async () => (card === '' ? { error: { message: 'Your card number is incomplete.' } } : {}),
      }
    },
    createPaymentMethod: () => call('payment_methods', card),
    handleNextAction: ({ clientSecret }) => call('authenticate', clientSecret),
  }
}`
const form = `<!doctype html><title>Card</title>
  <input aria-label="Card number" oninput="parent.postMessage({ card: this.value }, '*')">`

/** Answers Stripe's addresses in the browser, so that no call leaves this machine. Returns the asked addresses. */
async function standInForStripe(shown: Page, { shop }: Service): Promise<string[]> {
  const asked: string[] = []
  await shown.route(/^https:\/\/(js|api)\.stripe\.com\//, async (route) => {
    const url = new URL(route.request().url())
    asked.push(`${url.host}${url.pathname}`)
    const headers = { 'Access-Control-Allow-Origin': '*' }
    const body = route.request().postData() ?? ''
    if (url.pathname === '/v3/') return route.fulfill({ contentType: 'text/javascript', body: script })
    if (url.pathname === '/form') return route.fulfill({ contentType: 'text/html', body: form })
    if (url.pathname === '/v1/payment_methods') return route.fulfill({ headers, json: { id: cards[body] } })
    await shop.bank.approve(body.replace(/_secret.*/, ''))
    return route.fulfill({ headers, json: {} })
  })
  return asked
}

describe('the customer’s cards', () => {
  const browser = useBrowser()

  const open = (options: Parameters<typeof serveDemo>[1] = {}): Promise<Served> =>
    serveDemo(['shopPage'], { isMoving: true, ...options })
  const blankPage = async (): Promise<Page> => (await browser.open('about:blank', { width: 390 })).page
  async function openCart(shown: Page): Promise<void> {
    await addProduct(shown, 1)
    await shown.locator('[data-show-cart]').click()
  }

  browserTest(
    'a customer pays with the form of a stand-in for Stripe, whose script is loaded with the cart, and confirms for the bank',
    async () => {
      const stripe = await startStripeServer()
      onTestFinished(() => stripe.close())
      const { at, base } = await open({ openBank: openStripeBank(stripe), publishableKey: 'pk_test_1' })
      const shown = await blankPage()
      const asked = await standInForStripe(shown, at)
      await shown.goto(`${base}/shop/1`)
      await shown
        .locator('[data-product="1"]')
        .getByRole('button', { name: /^Add one/ })
        .click()
      await shown.locator('[data-show-cart]').waitFor()
      expect(asked).toEqual([])
      await shown.locator('[data-show-cart]').click()
      const frame = shown.locator('[data-card-form] iframe')
      await frame.waitFor()
      await shown.locator('[data-pay]').click()
      await shown.getByText('Your card number is incomplete.').waitFor()
      const before = await frame.getAttribute('data-amount')
      await shown
        .locator('aside')
        .getByRole('button', { name: /^Add one/ })
        .click()
      await expect.poll(() => frame.getAttribute('data-amount'), { timeout: PATIENCE_MS }).not.toBe(before)
      await shown.frameLocator('[data-card-form] iframe').getByLabel('Card number').fill('3184')
      await picture(shown, 'shop-stripe-390-light')
      await shown.locator('[data-pay]').click()
      await shown.getByRole('button', { name: 'Confirm the payment' }).click()
      await shown.locator('[data-status="QUEUED"]').waitFor()
      expect(asked).toEqual([
        'js.stripe.com/v3/',
        'js.stripe.com/form',
        'api.stripe.com/v1/payment_methods',
        'api.stripe.com/v1/authenticate',
      ])
    },
    TEST_MS,
  )

  browserTest(
    'a signed-in customer saves a card while paying, adds money to the wallet with it, pays from the wallet and removes the card',
    async () => {
      const { at, base } = await open()
      const shown = await blankPage()
      await shown.goto(`${base}/shop/1`)
      await shown.getByRole('link', { name: 'Wallet and cards' }).click()
      await shown.getByText('Sign in to see your wallet and your cards.').waitFor()
      await signInAtShop(shown)
      await openCart(shown)
      await shown.getByLabel('Save this card').check()
      await shown.locator('[data-pay]').click()
      await shown.locator('[data-status="QUEUED"]').waitFor()

      await deliver(at.shop)
      await shown.getByRole('button', { name: 'Buy more' }).click()
      await shown.getByRole('link', { name: 'Wallet and cards' }).click()
      await shown.getByLabel('Visa ending in 4242', { exact: true }).check()
      await shown.getByLabel('Add money').selectOption('$20.00')
      await shown.locator('[data-deposit]').click()
      await shown.getByText('$20.00 more is on its way.').waitFor()
      await deliver(at.shop)
      await shown.getByText('There is $20.00 in your wallet.').waitFor()
      await shown.locator('[data-moves]').getByText('Money added').waitFor()
      await shown.getByLabel('Test card: pays', { exact: true }).check()
      await shown.getByLabel('Save this card').check()
      await shown.locator('[data-deposit]').click()
      await shown.getByText('$20.00 more is on its way.').waitFor()
      await deliver(at.shop)
      await shown.getByText('There is $40.00 in your wallet.').waitFor()
      await picture(shown, 'shop-account-390-light')
      expect([await overflowOf(shown), await seriousProblems(shown)]).toEqual([0, []])
      shown.on('dialog', (question) => void question.accept())
      const remove = shown.getByRole('button', { name: 'Remove Visa ending in 4242' })
      await remove.nth(1).click()
      await expect.poll(() => remove.count(), { timeout: PATIENCE_MS }).toBe(1)
      await remove.click()
      await shown.getByText('You have saved no card.').waitFor()

      await at.shop.context.db.kysely.updateTable('orders').set({ processing_status: 60 }).execute()
      await shown.getByRole('button', { name: 'Show the products' }).click()
      await shown.reload()
      await openCart(shown)
      await shown.getByLabel('Wallet ($40.00)').check()
      await shown.locator('[data-pay]').click()
      await shown.locator('[data-status="QUEUED"]').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'the first deposit of a person is charged once, although its answer was lost and the page was loaded again',
    async () => {
      const { at, base } = await open()
      const shown = await blankPage()
      await shown.goto(`${base}/shop/1`)
      await signInAtShop(shown)
      await shown.getByRole('link', { name: 'Wallet and cards' }).click()
      await shown.route(/\/wallet\/deposit$/, async (route) => {
        const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
        await route.fetch({ headers })
        return route.abort('connectionreset')
      })
      await shown.locator('[data-deposit]').click()
      await shown.getByText('It is not known whether you paid. Add $10.00 with the same card again').waitFor()
      await picture(shown, 'shop-deposit-open-390-light')
      await shown.unrouteAll()
      await shown.reload()
      await shown.locator('[data-deposit]').click()
      await shown.getByText('This try and the earlier one are one payment of $10.00.').waitFor()
      expect(await shown.getByText('$10.00 is on its way').count()).toBe(0)
      const { kysely } = at.shop.context.db
      const entries = await kysely.selectFrom('ledger_entries').select(['type', 'amount']).execute()
      expect(entries).toEqual([{ type: 'deposit', amount: 1000 }])
    },
    TEST_MS,
  )

  browserTest(
    'a customer who confirms after the time for the payment is over reads that nothing was paid, and pays again',
    async () => {
      const { at, base } = await open()
      const shown = await blankPage()
      await shown.goto(`${base}/shop/1`)
      await openCart(shown)
      await shown.getByLabel('Test card: the bank asks its holder').check()
      await shown.locator('[data-pay]').click()
      const confirm = shown.getByRole('button', { name: 'Confirm the payment' })
      await confirm.waitFor()
      // The page does not read the cart again before the customer confirms.
      await shown.route(/\/users\/\d+\/orders\?/, (route) => route.abort())
      at.shop.clock.advance(17 * 60_000)
      const order = () => at.shop.context.db.kysely.selectFrom('orders').select('processing_status')
      await expect
        .poll(async () => (await order().executeTakeFirstOrThrow()).processing_status, {
          timeout: PATIENCE_MS,
        })
        .toBe(0)
      await shown.unrouteAll()
      // A service that was silent meanwhile is a hub that sells nothing.
      await at.shop.hear()
      await confirm.click()
      await shown.getByText('The time for the payment is over. You paid nothing.').waitFor()
      await confirm.waitFor({ state: 'detached' })
      await shown.getByLabel('Test card: pays', { exact: true }).check()
      await shown.locator('[data-pay]:not([disabled])').click()
      await shown.locator('[data-status="QUEUED"]').waitFor()
    },
    TEST_MS,
  )
})
