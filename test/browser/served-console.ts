import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { insertLayout } from '../../cloud/demo/hub-data.ts'
import { seedBanners } from '../../cloud/demo/pictures.ts'
import type { Mail } from '../../cloud/operations/alarms/mail.ts'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import { testMedia } from '../cloud/support/media.ts'
import type { Browser, Visit } from '../support/browser.ts'
import { serveDemo, type Served } from './served.ts'

/** A demo service with the console, three people, the layout of hub 1, and banners. `mails` gets its mails. Its clock moves with the real one. */
export async function serveConsole(
  mails: Mail[] = [],
  pages: ('console' | 'shopPage')[] = ['console'],
): Promise<Served> {
  const sendMail = (mail: Mail) => Promise.resolve(void mails.push(mail))
  const served = await serveDemo(pages, { sendMail, isMoving: true })
  const { context } = served.at.shop
  const { db } = context
  for (const role of ['owner', 'technician', 'analyst'] as const)
    await grantRole(db.kysely, context.runtime, { identity: `demo-${role}`, role, hubs: [1] })
  await db.transact((tx) => insertLayout(tx, 1, undefined))
  await seedBanners(context, testMedia(context), 1)
  return served
}

/** A page of a person who signs in. The page has the time of the service. */
export async function signInAt(
  browser: Browser,
  { at, base }: Served,
  {
    as,
    how = {},
    where = '/today',
    expected = /ERR_CONNECTION|404|415/,
  }: { as: string; how?: Partial<Visit>; where?: string; expected?: RegExp },
): Promise<Page> {
  const { page, problems } = await browser.open('about:blank', { width: 390, ...how })
  await page.clock.setFixedTime(at.shop.clock.now())
  await page.goto(`${base}/console${where}`)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: as }).click()
  await page.locator('main h1').waitFor()
  // A test may stop the service, send a file that it refuses, or open an unknown address.
  onTestFinished(() => expect(problems.filter((text) => !expected.test(text))).toEqual([]))
  return page
}
