import { describe, expect } from 'vitest'
import type { Mail } from '../../cloud/operations/alarms/mail.ts'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import { overflowOf, PATIENCE_MS, picture, seriousProblems } from '../support/browser.ts'
import { answerLogs } from '../world/hub-log.ts'
import { serveConsole, signInAt } from './served-console.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

const TEST_MS = 400_000

describe('people, mails and logs in the owner’s console', () => {
  const browser = useBrowser()
  let sent: Mail[] = []
  const served = eachTime(() => serveConsole((sent = [])))

  browserTest(
    'the page of API keys names the time zone of its times, and rights have plain names',
    async () => {
      const { kysely } = served.at.shop.context.db
      await kysely.updateTable('hubs').set({ timezone: 'America/Chicago' }).execute()
      const page = await signInAt(browser, served, { as: 'Owner', how: { width: 1400 }, where: '/keys' })
      const form = page.locator('[data-card="new"]')
      await form.getByLabel('Name').fill('till')
      await form.getByLabel('Read hubs and their state hubs:read').waitFor()
      await form.getByRole('button', { name: 'Issue the key' }).click()
      const key = page.locator('[data-key]', { hasText: 'till' })
      await key.getByText('Rights:').click()
      await key.getByText('Read orders and payments').waitFor()
      await picture(page, 'owner-keys-rights-1400-light')
      await page.setViewportSize({ width: 390, height: 844 })
      await picture(page, 'owner-keys-rights-390-light')
      expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])
      await page.locator('[data-zone]', { hasText: 'America/Chicago' }).waitFor()
    },
    TEST_MS,
  )

  browserTest(
    'an owner reads the log of a hub by level, and switches the morning mail of a person on, who agrees by the link',
    async () => {
      await served.at.connectHub()
      const { context } = served.at.shop
      const line = (level: string, message: string, more = {}) => ({
        at: new Date(served.at.shop.clock.now()).toISOString(),
        level,
        message,
        ...more,
      })
      answerLogs(context, [
        line('info', 'order 17 is ready'),
        line('warn', 'a controller answers late', { controller: 'bins' }),
      ])
      const page = await signInAt(browser, served, { as: 'Owner', where: '/hubs/1' })
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
      await mails.getByText('has not agreed yet', { exact: false }).waitFor()
      await picture(page, 'owner-people-mails-390-light')

      const link = new URL(/http\S+#\w+/.exec(sent[0]!.text)![0])
      await page.goto(served.base + link.pathname + link.hash)
      await page.getByRole('button', { name: 'I want these mails' }).press('Enter')
      await page.getByText('anna@example.org gets the mails from now on.').waitFor()
      expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])
      await picture(page, 'owner-contact-answer-390-light')
      await page.goto(`${served.base}/console/people`)
      await mails.locator('[data-contact]').getByText('warnings and critical alarms').waitFor()
      expect(await mails.getByText('has not agreed yet', { exact: false }).count()).toBe(0)
    },
    TEST_MS,
  )

  browserTest(
    'an owner invites a technician by a link, who creates a passkey, sees only the own hubs, adds a second passkey, and signs in with it',
    async () => {
      const { kysely } = served.at.shop.context.db
      const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
      await kysely
        .insertInto('hubs')
        .values({ ...hub, name: 'Second hub' })
        .execute()
      await grantRole(kysely, served.at.shop.context.runtime, {
        identity: 'demo-owner',
        role: 'owner',
        hubs: [2],
      })
      const owner = await signInAt(browser, served, { as: 'Owner', how: { width: 1400 }, where: '/people' })
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
      await page.getByRole('heading', { name: 'There is no such hub' }).waitFor()
      await page.goto(`${here}/console/sales`)
      await page.getByText('Your role does not include this page.', { exact: false }).waitFor()
      await page.goto(`${here}/console/maintenance`)
      await page.getByText('File a report').click()
      await page.getByLabel('Title').fill('New belt')
      await page.getByRole('button', { name: 'File the report for hub 1' }).press('Enter')
      await page.getByText(', by Anna, ').waitFor()
      // The lost device is replaced by another one.
      await page.goto(`${here}/console/account`)
      const passkeys = page.locator('[data-passkey]')
      await passkeys.first().waitFor()
      expect(await page.getByRole('button', { name: /^Remove Chrome/ }).count()).toBe(0)
      await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
      await addDevice()
      await page.getByRole('button', { name: 'Add a passkey' }).press('Enter')
      await passkeys.nth(1).waitFor()
      await picture(page, 'owner-account-390-light')
      expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])
      const first = passkeys.first()
      await first.getByText(/^Chrome on Linux, /).waitFor()
      await first.getByRole('button', { name: 'Rename' }).press('Enter')
      await first.getByLabel('Name of the device').fill('Lost telephone')
      await first.getByRole('button', { name: 'Save' }).press('Enter')
      await page.getByRole('button', { name: 'Remove Lost telephone' }).press('Enter')
      await page.locator('[data-hold="asked"]').press('Enter')
      await expect.poll(() => passkeys.count(), { timeout: PATIENCE_MS }).toBe(1)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('button', { name: 'Sign in with a passkey' }).press('Enter')
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      await page.goto(here + link.pathname + link.hash)
      await page.getByText('The invitation is unknown, was accepted before', { exact: false }).waitFor()
      expect(problems.filter((text) => !/403|404/.test(text))).toEqual([])

      const audit = await signInAt(browser, served, { as: 'Owner', how: { width: 1400 }, where: '/audit' })
      await audit.getByRole('button', { name: 'Only acts of Anna' }).first().press('Enter')
      const actor = () => audit.getByLabel('Who').inputValue()
      await expect.poll(actor, { timeout: PATIENCE_MS }).toMatch(/^identity:staff-/)
      await audit.getByText('invitations accept').first().waitFor()
      await picture(audit, 'owner-audit-names-1400-light')
      await audit.setViewportSize({ width: 390, height: 844 })
      await picture(audit, 'owner-audit-names-390-light')
      expect([await overflowOf(audit), await seriousProblems(audit)]).toEqual([0, []])
    },
    TEST_MS,
  )
})
