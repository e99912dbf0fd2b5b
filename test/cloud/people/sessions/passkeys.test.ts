import { expect, test } from 'vitest'
import type { Mail } from '../../../../cloud/operations/alarms/mail.ts'
import { Authenticator } from '../../../world/authenticator.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService, type Service } from '../../../world/service.ts'

const SESSION = '__Host-larder'
const ORIGIN = 'http://localhost:8080'
const OWNERS = '/api/v1/owners'
const INVITATIONS = 'people/invitations'
const anna = { name: 'Anna', role: 'technician', hub_ids: [1] }

onEachDatabase('passkeys of staff', (open) => {
  const begin = () => openService(open, { isDemo: true })
  const browserAt = ({ cloud }: Service) => new TestBrowser(cloud.app, ORIGIN)

  async function invite(service: Service, body: object = anna): Promise<string> {
    const { json } = await service.owner('POST', INVITATIONS, body)
    return new URL((json as { url: string }).url).hash.slice(1)
  }
  const start = async (browser: TestBrowser, body: object = {}) => {
    const { status, json } = await browser.call('POST', '/session/passkey/begin', { body })
    const { registration, authentication } = json as Record<string, { challenge: string }>
    return { status, json, options: (registration ?? authentication)! }
  }
  const finish = async (browser: TestBrowser, body: object) =>
    (await browser.call('POST', '/session/passkey/finish', { body })).status

  async function register(service: Service, browser = browserAt(service)): Promise<Authenticator> {
    const key = new Authenticator()
    const { options } = await start(browser, { invitation: await invite(service) })
    expect(await finish(browser, key.register(options, ORIGIN))).toBe(200)
    return key
  }
  async function signIn(browser: TestBrowser, key: Authenticator, origin = ORIGIN): Promise<number> {
    const { options } = await start(browser)
    return finish(browser, key.signIn(options, origin))
  }

  test('an invited person creates a passkey, has the role at the named hubs, and signs in again with it', async () => {
    const service = await begin()
    const browser = browserAt(service)
    const key = await register(service, browser)
    const session = { kind: 'person', name: 'Anna', roles: [{ role: 'technician', hubs: [1] }] }
    expect(await browser.session()).toMatchObject(session)
    const reach = await browser.call('GET', `${OWNERS}/hub_ids`)
    expect([reach.status, reach.json]).toEqual([200, [1]])
    expect((await browser.call('GET', `${OWNERS}/sales`)).status).toBe(403)
    expect((await service.owner('GET', 'people')).json).toMatchObject({
      data: [{ name: 'Anna', role: 'technician', identity: expect.stringMatching(/^staff-/) as string }],
    })
    const phone = browserAt(service)
    expect(await signIn(phone, key)).toBe(200)
    expect(await phone.session()).toMatchObject(session)
  })

  test('an invitation works once, until it expires or is withdrawn, and the database has only its digest', async () => {
    const service = await begin()
    const secret = await invite(service)
    const rows = await service.shop.context.db.kysely.selectFrom('invitations').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(secret)
    const [first, second] = [browserAt(service), browserAt(service)]
    const begun = await start(first, { invitation: secret })
    expect(begun.json).toMatchObject({ invited: { name: 'Anna', role: 'technician', hubs: [1] } })
    const other = await start(second, { invitation: secret })
    expect(await finish(first, new Authenticator().register(begun.options, ORIGIN))).toBe(200)
    expect(await finish(second, new Authenticator().register(other.options, ORIGIN))).toBe(404)
    expect((await start(second, { invitation: secret })).status).toBe(404)

    const withdrawn = await invite(service)
    const { json } = await service.owner('GET', INVITATIONS)
    const { data } = json as { data: { id: number }[] }
    expect(data).toMatchObject([{ name: 'Anna', email: null, hubs: [1] }])
    expect((await service.owner('DELETE', `${INVITATIONS}/${data[0]!.id}`)).status).toBe(204)
    expect((await start(second, { invitation: withdrawn })).status).toBe(404)

    const late = await invite(service)
    service.shop.clock.advance(service.shop.context.settings.invitationMs)
    expect((await start(second, { invitation: late })).status).toBe(404)
    expect((await service.owner('GET', INVITATIONS)).json).toEqual({ data: [] })
  })

  test('an invitation is mailed, and its link is shown if the mail server does not take it', async () => {
    const mails: Mail[] = []
    let isUp = true
    const sendMail = (mail: Mail) => {
      if (!isUp) return Promise.reject(new Error('the server is away'))
      mails.push(mail)
      return Promise.resolve()
    }
    const service = await openService(open, { isDemo: true, sendMail })
    const body = { ...anna, email: 'anna@example.org' }
    expect((await service.owner('POST', INVITATIONS, body)).json).toMatchObject({ url: null })
    expect(mails).toMatchObject([
      {
        to: { name: 'Anna', address: 'anna@example.org' },
        text: expect.stringContaining('http://larder.test/console/invitation#') as string,
      },
    ])
    isUp = false
    const link = { url: expect.stringContaining('/console/invitation#') as string }
    expect((await service.owner('POST', INVITATIONS, body)).json).toMatchObject(link)
  })

  test('a sign-in replaces the cookie from before it, which opens nothing afterwards', async () => {
    const service = await begin()
    const key = await register(service)
    const browser = browserAt(service)
    await browser.becomeGuest()
    const planted = browser.cookies.get(SESSION)!
    expect(await signIn(browser, key)).toBe(200)
    expect(browser.cookies.get(SESSION)).not.toBe(planted)
    const thief = browserAt(service)
    thief.cookies.set(SESSION, planted)
    expect(await thief.session()).toMatchObject({ kind: 'none' })
  })

  test('an answered challenge is refused a second time, and so is the challenge of another browser', async () => {
    const service = await begin()
    const key = await register(service)
    const browser = browserAt(service)
    const { options } = await start(browser)
    const begun = new Map(browser.cookies)
    const answer = key.signIn(options, ORIGIN)
    expect(await finish(browser, answer)).toBe(200)
    const thief = browserAt(service)
    for (const [name, value] of begun) thief.cookies.set(name, value)
    expect(await finish(thief, answer)).toBe(401)
    expect(await finish(thief, key.signIn(options, ORIGIN))).toBe(401)
    const other = await start(browserAt(service))
    await start(thief)
    expect(await finish(thief, key.signIn(other.options, ORIGIN))).toBe(401)
    expect(await thief.session()).toMatchObject({ kind: 'none' })
  })

  test('an answer for another origin, or of a foreign passkey, is refused', async () => {
    const service = await begin()
    const key = await register(service)
    const browser = browserAt(service)
    for (const origin of ['http://localhost:9090', 'https://localhost:8080', 'http://evil.example'])
      expect([origin, await signIn(browser, key, origin)]).toEqual([origin, 401])
    expect(await signIn(browser, new Authenticator())).toBe(401)
    const { options } = await start(browser, { invitation: await invite(service) })
    expect(await finish(browser, new Authenticator().register(options, 'http://evil.example'))).toBe(401)
    for (const path of ['begin', 'finish'])
      expect(
        (await browser.call('POST', `/session/passkey/${path}`, { body: {}, site: 'cross-site' })).status,
      ).toBe(403)
    expect(await finish(browser, {})).toBe(401)
    expect(await browser.session()).toMatchObject({ kind: 'none' })
  })

  test('the session of a removed person ends within 5 seconds, and the passkey no longer signs in', async () => {
    const service = await begin()
    const browser = browserAt(service)
    const key = await register(service, browser)
    const hubs = () => browser.call('GET', `${OWNERS}/hub_ids`)
    expect((await hubs()).status).toBe(200)
    const { json } = await service.owner('GET', 'people')
    const { data } = json as { data: { id: number }[] }
    expect((await service.owner('DELETE', `people/${data[0]!.id}`)).status).toBe(204)
    service.shop.clock.advance(5_000)
    expect((await hubs()).status).toBe(401)
    expect(await browser.session()).toMatchObject({ kind: 'none' })
    expect(await signIn(browser, key)).toBe(401)
  })
})
