import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished } from 'vitest'
import { insertLayout } from '../../cloud/demo/hub-data.ts'
import { seedBanners } from '../../cloud/demo/pictures.ts'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { testMedia } from '../cloud/support/media.ts'
import { html, png } from '../cloud/support/media-samples.ts'
import {
  type Browser,
  builtPage,
  openBrowser,
  overflowOf,
  picture,
  seriousProblems,
  tabTo,
  touchLong,
  type Visit,
  weightOf,
} from '../support/browser.ts'
import { missing, service } from '../support/services.ts'
import type { Service } from '../world/service.ts'
import { answerLogs } from '../world/hub-log.ts'
import { PATIENCE_MS, serveDemo, type Served } from './served.ts'

const browserTest = service('chromium')
const TEST_MS = 400_000
const DAY_MS = 86_400_000

describe('the owner’s console', () => {
  let browser: Browser
  let built: { folder: string; assets: PageAssets }
  beforeAll(async () => {
    if (missing('chromium')) return
    built = await builtPage('cloud', 'console')
    browser = await openBrowser()
  }, TEST_MS)
  afterAll(() => browser?.close())

  let served: Served
  let at: Service
  beforeEach(async () => {
    if (missing('chromium')) return
    served = await serveDemo({ console: built.assets })
    ;({ at } = served)
    const { context, clock } = at.shop
    const { db } = context
    for (const role of ['owner', 'technician', 'analyst'] as const)
      await grantRole(db.kysely, context.runtime, { identity: `demo-${role}`, role, hubs: [1] })
    await db.transact((tx) => insertLayout(tx, 1, undefined))
    await seedBanners(context, testMedia(context), 1)
    // The service works by a clock of its own, which moves with the real one.
    const moving = setInterval(() => clock.advance(200), 200)
    return () => clearInterval(moving)
  })

  /** A page of a person who signs in. The page has the time of the service. */
  async function signIn(as: string, how: Partial<Visit> = {}, where = '/today'): Promise<Page> {
    const { page, problems } = await browser.open('about:blank', { width: 390, ...how })
    page.setDefaultTimeout(PATIENCE_MS)
    await page.clock.setFixedTime(at.shop.clock.now())
    await page.goto(`${served.base}/console${where}`)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: as }).click()
    await page.locator('main h1').waitFor()
    // A test may stop the service, or send a file that the service refuses.
    onTestFinished(() => expect(problems.filter((text) => !/ERR_CONNECTION|415/.test(text))).toEqual([]))
    return page
  }
  const hold = (page: Page, name: string): Promise<void> =>
    page.getByRole('button', { name }).click({ delay: 1300 })
  const figure = (page: Page, name: string): Promise<string | null> =>
    page.locator(`[data-figure="${name}"]`).textContent()

  /** An order of 2 units of product 1, ready in bin 1. */
  async function readyOrder(): Promise<number> {
    const { shop } = at
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
      await at.shop.paidOrder({ 1: 3 })
      at.shop.clock.advance(DAY_MS)
      const order = await readyOrder()
      await at.connectHub()
      const page = await signIn('Owner')
      const { data } = (
        await at.owner(
          'GET',
          `sales?from=${dayOf(at.shop.clock.now() - DAY_MS)}&to=${dayOf(at.shop.clock.now() - DAY_MS)}`,
        )
      ).json as { data: { gross_revenue: number }[] }
      const yesterday = `$${(data[0]!.gross_revenue / 100).toFixed(2)}`
      await expect.poll(() => figure(page, 'yesterday'), { timeout: PATIENCE_MS }).toContain(yesterday)

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
      const [line] = await at.shop.items(order)
      expect(line).toMatchObject({ qty: 2, refunded_quantity: 1 })

      await hold(page, 'Open bin 1')
      await page.getByText('Open bin 1: done.').waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'an owner reads the log of a hub by level, and switches the morning mail of a person on',
    async () => {
      await at.connectHub()
      const { context } = at.shop
      const line = (level: string, message: string, more = {}) => ({
        at: new Date(at.shop.clock.now()).toISOString(),
        level,
        message,
        ...more,
      })
      answerLogs(context, [
        line('info', 'order 17 is ready'),
        line('warn', 'a controller answers late', { controller: 'bins' }),
      ])
      const page = await signIn('Owner', {}, '/hubs/1')
      const card = page.locator('[data-card="log"]')
      await card.getByRole('button', { name: 'Read the log' }).press('Enter')
      await card.getByText('Order 17 is ready').waitFor()
      await picture(page, 'owner-hub-log-390-light')
      await card.getByLabel('Level').selectOption('Warnings and errors')
      await card.getByText('Order 17 is ready').waitFor({ state: 'detached' })
      await card.getByText('A controller answers late', { exact: true }).waitFor()
      expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])

      await page.goto(`${served.base}/console/people`)
      const mails = page.locator('[data-card="contacts"]')
      await mails.getByLabel('Mail address').fill('anna@example.org')
      await mails.getByLabel('Morning mail', { exact: true }).uncheck()
      await mails.getByRole('button', { name: 'Add' }).press('Enter')
      const morning = mails.getByLabel('Morning mail for anna@example.org')
      await morning.press('Space')
      const switched = () =>
        context.db.kysely.selectFrom('alarm_contacts').select(['email', 'morning_mail']).execute()
      const wanted = [{ email: 'anna@example.org', morning_mail: 1 }]
      await expect.poll(switched, { timeout: PATIENCE_MS }).toEqual(wanted)
      await expect.poll(() => morning.isChecked(), { timeout: PATIENCE_MS }).toBe(true)
      await picture(page, 'owner-people-mails-390-light')
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
    'an owner invites a technician by a link, who creates a passkey, sees only the own hubs, adds a second passkey, and signs in with it',
    async () => {
      const { kysely } = at.shop.context.db
      const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
      await kysely
        .insertInto('hubs')
        .values({ ...hub, name: 'Second hub' })
        .execute()
      await grantRole(kysely, at.shop.context.runtime, { identity: 'demo-owner', role: 'owner', hubs: [2] })
      const owner = await signIn('Owner', { width: 1400 }, '/people')
      const form = owner.locator('[data-card="invite"]')
      await form.getByLabel('Name').fill('Anna')
      await form.getByLabel('Second hub').uncheck()
      await form.getByRole('button', { name: 'Invite' }).click()
      const link = new URL((await form.locator('[data-secret] code').textContent())!)
      await owner.locator('[data-invitation]').getByText('Anna').waitFor()

      const { page, problems } = await browser.open('about:blank', { width: 390 })
      page.setDefaultTimeout(PATIENCE_MS)
      const devtools = await page.context().newCDPSession(page)
      await devtools.send('WebAuthn.enable')
      const addDevice = () =>
        devtools.send('WebAuthn.addVirtualAuthenticator', {
          options: {
            protocol: 'ctap2',
            transport: 'internal',
            hasResidentKey: true,
            hasUserVerification: true,
            isUserVerified: true,
            automaticPresenceSimulation: true,
          },
        })
      const { authenticatorId } = await addDevice()
      // Browsers accept passkeys for names only.
      const here = served.base.replace('127.0.0.1', 'localhost')
      await page.goto(here + link.pathname + link.hash)
      const create = page.getByRole('button', { name: 'Create a passkey' })
      await create.waitFor()
      await picture(page, 'owner-invitation-390-light')
      expect(await seriousProblems(page)).toEqual([])
      await create.press('Enter')
      await page.locator('[data-hub="1"]').waitFor()
      expect(await page.locator('[data-hub]').count()).toBe(1)
      await page.goto(`${here}/console/hubs/2`)
      await page.getByText('The credential has no access to this hub.').first().waitFor()
      await page.goto(`${here}/console/sales`)
      await page.getByText('Your role does not include this page.', { exact: false }).waitFor()
      // The lost device is replaced by another one.
      await page.goto(`${here}/console/account`)
      const passkeys = page.locator('[data-passkey]')
      await passkeys.first().waitFor()
      expect(await page.getByRole('button', { name: /^Remove passkey/ }).count()).toBe(0)
      await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
      await addDevice()
      await page.getByRole('button', { name: 'Add a passkey' }).press('Enter')
      await passkeys.nth(1).waitFor()
      await picture(page, 'owner-account-390-light')
      expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])
      await page.getByRole('button', { name: 'Remove passkey 1' }).press('Enter')
      await page.locator('[data-hold="asked"]').press('Enter')
      await expect.poll(() => passkeys.count(), { timeout: PATIENCE_MS }).toBe(1)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('button', { name: 'Sign in with a passkey' }).press('Enter')
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      await page.goto(here + link.pathname + link.hash)
      await page.getByText('The invitation is unknown, was accepted before', { exact: false }).waitFor()
      expect(problems.filter((text) => !/403|404/.test(text))).toEqual([])
    },
    TEST_MS,
  )

  browserTest(
    'an owner signs in, finds an order and refunds a unit with the keyboard alone',
    async () => {
      const order = await readyOrder()
      const { page, problems } = await browser.open('about:blank', { width: 1400 })
      page.setDefaultTimeout(PATIENCE_MS)
      await page.clock.setFixedTime(at.shop.clock.now())
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
      expect(await at.shop.items(order)).toMatchObject([{ refunded_quantity: 1 }])
      expect(problems).toEqual([])
    },
    TEST_MS,
  )

  browserTest(
    'an owner opens a bin by touch alone: a short touch moves nothing',
    async () => {
      await at.shop.hear()
      await at.connectHub()
      const page = await signIn('Owner', { hasTouch: true })
      await page.getByLabel('Menu').tap()
      await page.getByRole('link', { name: 'Hubs' }).tap()
      await page.locator('[data-device="bin-1"]').tap()
      const open = page.getByRole('button', { name: 'Open the door: bin 1' })
      await open.tap()
      await touchLong(page, open)
      await page.getByText('Open the door: bin 1: done.').waitFor()
      const acts = () =>
        at.shop.context.db.kysely
          .selectFrom('audit_log')
          .select('action')
          .where('action', '=', 'controls.open_bin')
          .execute()
      await expect.poll(acts, { timeout: PATIENCE_MS }).toHaveLength(1)
    },
    TEST_MS,
  )

  const schemes = ['light', 'dark'] as const
  for (const [width, colorScheme] of [390, 768, 1400].flatMap((width) =>
    schemes.map((scheme) => [width, scheme] as const),
  ))
    browserTest(
      `at ${width} pixels, ${colorScheme}, no page of the console scrolls sideways, and axe finds no serious problem`,
      async () => {
        const order = await readyOrder()
        await at.connectHub()
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
        expect(weightOf(built.folder)).toBeLessThan(200_000)
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
const dayOf = (ms: number): string =>
  new Date(ms).toLocaleDateString('en-CA', { timeZone: 'America/Chicago' })
