import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import { html, png } from '../cloud/support/media-samples.ts'
import {
  builtPage,
  overflowOf,
  PATIENCE_MS,
  picture,
  seriousProblems,
  tabTo,
  touchLong,
  type Visit,
  weightOf,
} from '../support/browser.ts'
import { hubRow } from '../world/seeds.ts'
import { serveConsole, signInAt } from './served-console.ts'
import { browserTest, eachTime, screens, useBrowser } from './set-up.ts'

const TEST_MS = 400_000
const DAY_MS = 86_400_000

describe('the owner’s console', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveConsole())

  const signIn = (as: string, how: Partial<Visit> = {}, where = '/today'): Promise<Page> =>
    signInAt(browser, served, { as, how, where })
  const hold = (page: Page, name: string): Promise<void> =>
    page.getByRole('button', { name }).click({ delay: 1300 })
  const figure = (page: Page, name: string): Promise<string | null> =>
    page.locator(`[data-figure="${name}"]`).textContent()

  /** An order of 2 units of product 1, ready in bin 1. */
  async function readyOrder(): Promise<number> {
    const { shop } = served.at
    await shop.hear()
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    const lines = (await shop.items(order_id)).map(({ id, qty }) => ({
      line_id: id,
      dropped: qty,
      doubtful: 0,
      bins: [1],
    }))
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines })
    return order_id
  }

  browserTest(
    'an owner finds yesterday, refills by the list, refunds one unit and opens a bin for a customer on the telephone',
    async () => {
      await served.at.shop.paidOrder({ 1: 3 })
      served.at.shop.clock.advance(DAY_MS)
      const order = await readyOrder()
      await served.at.connectHub()
      const page = await signIn('Owner')
      const { data } = (
        await served.at.owner(
          'GET',
          `sales?from=${dayOf(served.at.shop.clock.now() - DAY_MS)}&to=${dayOf(served.at.shop.clock.now() - DAY_MS)}`,
        )
      ).json as { data: { gross_revenue: number }[] }
      expect(data[0]!.gross_revenue).toBe(750)
      await expect.poll(() => figure(page, 'yesterday'), { timeout: PATIENCE_MS }).toContain('$7.50')

      await page.getByRole('link', { name: /^Refill by the list/ }).click()
      const row = page.locator('[data-place="1/1/1"]')
      await row.getByLabel(/^Units of/).fill('6')
      await row.getByRole('button', { name: /^Save count/ }).click()
      await row.getByText(/^6 of \d+$/).waitFor()
      await page.goto(`${served.base}/console/planogram/1`)
      await row.getByRole('button', { name: 'Change row' }).click()
      await row.getByRole('button', { name: 'Block row 1/1/1' }).click()
      await page.getByText('Block row 1/1/1: done.').waitFor()
      await picture(page, 'owner-planogram-blocked-390-light')

      await page.goto(`${served.base}/console/orders/${order}`)
      await page
        .locator('[data-summary]')
        .getByText(/^paid [\d.]+, 2 dispensed, seen by the sensor, 0 owed$/)
        .waitFor()
      await hold(page, 'Refund 1 unit of')
      await page
        .locator('[data-summary]')
        .getByText(/2 dispensed.*refunded [\d.]+, 0 owed$/)
        .waitFor()
      const [line] = await served.at.shop.items(order)
      expect(line).toMatchObject({ qty: 2, refunded_quantity: 1 })

      await hold(page, 'Open bin 1')
      await page.getByText('Open bin 1: done.').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'an owner goes from the alarm of a failed refund to its order and records that the customer got cash',
    async () => {
      const { shop } = served.at
      await shop.hear()
      const { id: order } = await shop.paidOrder({ 1: 1 }, 'pm_card_refundFail')
      await served.at.owner('POST', `orders/${order}/refund`, { amount: 100 })
      await shop.work.drain()
      const page = await signIn('Owner')
      const problem = page.locator('[data-alarm="refund_failed"]')
      await problem.getByRole('link', { name: `Order ${order}` }).click()
      await page.locator('[data-failed]').getByText('lost or stolen card').waitFor()
      await page.getByLabel(/^How the customer was paid/).fill('Cash')
      await picture(page, 'owner-order-failed-refund-390-light')
      await hold(page, 'Record $1.00 as paid')
      await page.locator('[data-evidence="refunded"]').getByText('paid in another way').waitFor()
      expect(await page.locator('[data-failed]').count()).toBe(0)
      await page.goto(`${served.base}/console/today`)
      await page.locator('[data-card="hubs"]').waitFor()
      expect(await problem.count()).toBe(0)
    },
    TEST_MS,
  )

  browserTest(
    'an owner goes from the alarm of a stuck refund to its order',
    async () => {
      const { shop } = served.at
      await shop.hear()
      const { settings } = shop.context
      const { refundStuckMs } = settings
      settings.refundStuckMs = 1
      const { id: order } = await shop.paidOrder({ 1: 1 }, 'pm_card_pendingRefund')
      await served.at.owner('POST', `orders/${order}/refund`, { amount: 100 })
      shop.clock.advance(settings.paymentRecheckMs)
      await shop.work.drain()
      settings.refundStuckMs = refundStuckMs
      const page = await signIn('Owner')
      const problem = page.locator('[data-alarm="payment_stuck"]')
      await problem.getByText(`its customer waits for the money (order ${order})`).first().waitFor()
      await problem.getByRole('link', { name: `Order ${order}` }).click()
      await page.waitForURL(`**/orders/${order}`)
    },
    TEST_MS,
  )

  browserTest(
    'amounts have their currency, and a page reads the list of hubs once and the sales of a day once for all hubs',
    async () => {
      const { shop } = served.at
      await shop.paidOrder({ 1: 1 })
      const { db, runtime } = shop.context
      // Hub 1 has the time zone UTC.
      await db.kysely
        .insertInto('hubs')
        .values({ ...hubRow({ id: 2 }), timezone: 'UTC' })
        .execute()
      await grantRole(db.kysely, runtime, { identity: 'demo-owner', role: 'owner', hubs: [2] })
      const page = await signIn('Owner', { width: 1400 }, '/keys')
      const asked: string[] = []
      page.on('request', (request) => asked.push(new URL(request.url()).pathname))
      const counted = (path: string): number => asked.filter((one) => one === `/api/v1${path}`).length
      await page.goto(`${served.base}/console/today`)
      await page.locator('[data-hub="2"]').waitFor()
      // Yesterday, and the same days of the week before. Today is in the list of hubs.
      expect(counted('/owners/sales')).toBe(3)

      await page.goto(`${served.base}/console/deals`)
      const form = page.locator('[data-card="new"]')
      await form.getByLabel('Name').fill('Spring')
      await form.getByLabel('Percent off').fill('10')
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText('$0.00 given').waitFor()
      await page.goto(`${served.base}/console/planogram/1`)
      await page
        .locator('[data-place="1/1/1"]')
        .getByText(/row 1\/1\/1, \$\d+\.\d\d/)
        .waitFor()
      await page.goto(`${served.base}/console/orders`)
      await page
        .locator('[data-card="orders"]')
        .getByText(/^\$\d+\.\d\d$/)
        .waitFor()

      asked.length = 0
      await page.goto(`${served.base}/console/audit`)
      await page.locator('[data-zone]').waitFor()
      expect(counted('/owners/hubs')).toBe(1)
    },
    TEST_MS,
  )

  browserTest(
    'an owner adds a banner with a picture, reads why another file is refused, and removes the banner',
    async () => {
      const page = await signIn('Owner', {}, '/deals')
      const card = page.locator('[data-card="banners"]')
      const banner = card.locator('[data-banner]')
      await expect.poll(() => banner.count(), { timeout: PATIENCE_MS }).toBe(3)
      const add = async (name: string, buffer: Buffer): Promise<void> => {
        await card.getByLabel('Name of the banner').fill('Spring')
        await card.getByLabel('Picture').setInputFiles({ name, mimeType: 'image/png', buffer })
        await card.getByRole('button', { name: 'Add banner' }).press('Enter')
      }
      await add('page.png', html)
      await page.getByText('Add the banner: file must be one of png, jpg, gif, webp').waitFor()
      await add('large.png', Buffer.alloc(5 * 1024 * 1024 + 1))
      await page.getByText('Add the banner: The picture has more than 5 MiB.').waitFor()
      await add('spring.png', png)
      const added = banner.filter({ hasText: 'Spring position 4' })
      const image = added.getByRole('img', { name: 'Banner Spring' })
      await image.scrollIntoViewIfNeeded()
      const width = (): Promise<unknown> =>
        page.evaluate(`document.querySelector('img[alt="Banner Spring"]').naturalWidth`)
      await expect.poll(width, { timeout: PATIENCE_MS }).toBe(8)

      await added.getByRole('button', { name: 'Remove banner Spring' }).press('Enter')
      await added.locator('[data-hold="asked"]').press('Enter')
      await added.waitFor({ state: 'detached' })
      expect(await banner.count()).toBe(3)
    },
    TEST_MS,
  )

  browserTest(
    'a technician sees hubs and controls but neither sales nor refunds, and an analyst changes nothing',
    async () => {
      const order = await readyOrder()
      const technician = await signIn('Technician')
      await technician.locator('[data-card="hubs"]').waitFor()
      expect(await technician.locator('[data-figure="yesterday"]').count()).toBe(0)
      await technician.goto(`${served.base}/console/sales`)
      await technician.getByText('Your role does not include this page.', { exact: false }).waitFor()
      await technician.goto(`${served.base}/console/hubs/1`)
      await technician.getByRole('button', { name: /^Stop new orders/ }).waitFor()

      const analyst = await signIn('Analyst', {}, `/orders/${order}`)
      await analyst.locator('[data-summary]').waitFor()
      expect(await analyst.getByRole('button', { name: /Refund|Open bin/ }).count()).toBe(0)
      await analyst.goto(`${served.base}/console/planogram/1`)
      await analyst.locator('[data-place="1/1/1"]').waitFor()
      expect(await analyst.getByRole('button', { name: 'Change row' }).count()).toBe(0)
    },
    TEST_MS,
  )

  browserTest(
    'an owner signs in, finds an order and refunds a unit with the keyboard alone',
    async () => {
      const order = await readyOrder()
      const { page, problems } = await browser.open('about:blank', { width: 1400 })
      page.setDefaultTimeout(PATIENCE_MS)
      await page.clock.setFixedTime(served.at.shop.clock.now())
      const press = async (name: RegExp): Promise<void> => {
        await tabTo(page, name)
        await page.keyboard.press('Enter')
      }
      await page.goto(`${served.base}/console/today`)
      await page.getByRole('link', { name: 'Sign in' }).waitFor()
      await press(/^Sign in$/)
      await page.getByRole('button', { name: 'Owner' }).waitFor()
      await press(/^Owner/)
      await page.locator('[data-card="hubs"]').waitFor()
      await press(/^Orders$/)
      await page.getByRole('link', { name: String(order), exact: true }).waitFor()
      await press(new RegExp(`^${order}$`))
      await page.locator('[data-summary]').waitFor()
      await press(/^Refund 1 unit/)
      await page.locator('[data-hold="asked"]').waitFor()
      await page.keyboard.press('Enter')
      await page
        .locator('[data-summary]')
        .getByText(/refunded [\d.]+, 0 owed$/)
        .waitFor()
      expect(await served.at.shop.items(order)).toMatchObject([{ refunded_quantity: 1 }])
      expect(problems).toEqual([])
    },
    TEST_MS,
  )

  browserTest(
    'an owner opens a bin by touch alone: a short touch moves nothing',
    async () => {
      await served.at.shop.hear()
      await served.at.connectHub()
      const page = await signIn('Owner', { hasTouch: true })
      await page.getByLabel('Menu').tap()
      await page.getByRole('link', { name: 'Hubs' }).tap()
      await page.locator('[data-device="bin-1"]').tap()
      const open = page.getByRole('button', { name: 'Open the door: bin 1' })
      await open.tap()
      await touchLong(page, open)
      await page.getByText('Open the door: bin 1: done.').waitFor()
      const acts = () =>
        served.at.shop.context.db.kysely
          .selectFrom('audit_log')
          .select('action')
          .where('action', '=', 'controls.open_bin')
          .execute()
      await expect.poll(acts, { timeout: PATIENCE_MS }).toHaveLength(1)
    },
    TEST_MS,
  )

  for (const { width, colorScheme } of screens)
    browserTest(
      `at ${width} pixels, ${colorScheme}, no page of the console scrolls sideways, and axe finds no serious problem`,
      async () => {
        const order = await readyOrder()
        await served.at.connectHub()
        const page = await signIn('Owner', { width, colorScheme })
        const places = ['today', 'hubs/1', 'planogram/1', 'orders', `orders/${order}`, 'sales', 'deals']
        const found: unknown[] = []
        for (const place of [
          ...places,
          'maintenance',
          'webhooks',
          'people',
          'keys',
          'audit',
          'account',
          'nothing',
        ]) {
          await page.goto(`${served.base}/console/${place}`)
          await page.locator('main h1').waitFor()
          await expect.poll(() => page.locator('p[aria-busy=true]').count(), { timeout: PATIENCE_MS }).toBe(0)
          await picture(page, `owner-${place.replace('/', '-')}-${width}-${colorScheme}`)
          found.push([place, await overflowOf(page), await seriousProblems(page)])
        }
        expect(found).toEqual(found.map((each) => [(each as string[])[0], 0, []]))
        expect(weightOf((await builtPage('cloud', 'console')).folder)).toBeLessThan(200_000)
      },
      TEST_MS,
    )

  browserTest(
    'the page shows that the service is away, and recovers without a reload; a sign-out leads to the sign-in',
    async () => {
      const page = await signIn('Owner')
      await page.locator('[data-card="hubs"]').waitFor()
      await served.leave()
      await page.locator('[data-connected="false"]').waitFor()
      await served.comeBack()
      await page.locator('[data-connected="true"]').waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('link', { name: 'Sign in' }).waitFor()
    },
    TEST_MS,
  )
})

/** The day at the hub of the tests. */
const dayOf = (ms: number): string => new Date(ms).toLocaleDateString('en-CA', { timeZone: 'UTC' })
