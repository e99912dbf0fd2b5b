import { expect, test } from 'vitest'
import type { Mail } from '../../../../cloud/operations/alarms/mail.ts'
import { moveHub } from '../../../../cloud/operations/ownership/hand-over.ts'
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

  const passkeys = async (browser: TestBrowser) =>
    ((await browser.call('GET', '/session/passkeys')).json as { data: { id: string }[] }).data.map(
      ({ id }) => id,
    )
  async function add(browser: TestBrowser, key = new Authenticator()): Promise<Authenticator> {
    const { options } = await start(browser, { add: true })
    expect(await finish(browser, key.register(options, ORIGIN))).toBe(200)
    return key
  }

  test('a person adds a second passkey, removes the lost one with its sessions, and keeps the last one', async () => {
    const service = await begin()
    const [browser, phone] = [browserAt(service), browserAt(service)]
    const lost = await register(service, browser)
    expect(await signIn(phone, lost)).toBe(200)
    await browser.session()
    const remove = async ({ id }: Authenticator) =>
      (await browser.call('DELETE', `/session/passkeys/${id}`)).status
    expect(await remove(lost)).toBe(403)
    const second = await add(browser)
    expect(await passkeys(browser)).toEqual([lost.id, second.id])
    expect(await remove(lost)).toBe(204)
    expect(await phone.session()).toMatchObject({ kind: 'none' })
    expect(await signIn(phone, lost)).toBe(401)
    expect(await signIn(phone, second)).toBe(200)
    expect(await phone.session()).toMatchObject({ kind: 'person', name: 'Anna' })
    expect([await remove(second), await remove(lost)]).toEqual([403, 404])
    expect(await passkeys(browser)).toEqual([second.id])
    expect((await service.owner('GET', 'audit?hub_id=1&action=passkeys.')).json).toMatchObject({
      data: [
        { action: 'passkeys.remove', detail: { name: 'Anna' } },
        { action: 'passkeys.add', actor: expect.stringMatching(/^identity:staff-/) as string },
      ],
    })
  })

  test('a passkey has the label of its device, and its person changes it', async () => {
    const service = await begin()
    const [browser, other] = [browserAt(service), browserAt(service)]
    const first = await register(service, browser)
    await register(service, other)
    await browser.session()
    await other.session()
    const { options } = await start(browser, { add: true })
    const second = new Authenticator().register(options, ORIGIN)
    expect(await finish(browser, { ...second, label: 'Firefox on Android, 1 Mar 2026' })).toBe(200)
    const labels = async () => {
      const { json } = await browser.call('GET', '/session/passkeys')
      return (json as { data: { label: string | null }[] }).data.map(({ label }) => label)
    }
    expect(await labels()).toEqual([null, 'Firefox on Android, 1 Mar 2026'])
    const rename = async (by: TestBrowser, label: string, headers = {}) =>
      (await by.call('PATCH', `/session/passkeys/${first.id}`, { body: { label }, headers })).status
    expect(await rename(browser, ' Key on   the ring\n')).toBe(204)
    expect(await rename(other, 'stolen')).toBe(404)
    expect(await rename(browser, 'no token', { 'X-CSRF-Token': '' })).toBe(403)
    expect([await rename(browser, ''), await rename(browser, 'x'.repeat(61))]).toEqual([401, 401])
    expect(await labels()).toEqual(['Key on the ring', 'Firefox on Android, 1 Mar 2026'])
    const { json } = await service.owner('GET', 'audit?hub_id=1&action=passkeys.')
    expect(json).toMatchObject({ data: [{ action: 'passkeys.label' }, { action: 'passkeys.add' }] })
  })

  test('a passkey is added only soon after a sign-in, with the CSRF token, by a person who has one', async () => {
    const service = await begin()
    const browser = browserAt(service)
    await register(service, browser)
    const other = browserAt(service)
    await register(service, other)
    await browser.session()
    // A page of another site neither knows the token nor is the service's own.
    const headers = { 'X-CSRF-Token': '' }
    for (const refused of [{ headers }, { site: 'cross-site' }])
      expect(
        (await browser.call('POST', '/session/passkey/begin', { body: { add: true }, ...refused })).status,
      ).toBe(403)
    // Another person's browser cannot finish it.
    const { options } = await start(browser, { add: true })
    await other.session()
    const own = other.cookies.get(SESSION)!
    for (const [name, value] of browser.cookies) other.cookies.set(name, value)
    other.cookies.set(SESSION, own)
    expect(await finish(other, new Authenticator().register(options, ORIGIN))).toBe(401)
    service.shop.clock.advance(600_000)
    expect(await finish(browser, new Authenticator().register(options, ORIGIN))).toBe(401)
    expect((await start(browser, { add: true })).status).toBe(403)
    expect(await passkeys(browser)).toHaveLength(1)
    const provider = browserAt(service)
    await provider.signIn('Owner')
    expect((await start(provider, { add: true })).status).toBe(403)
    expect((await start(browserAt(service), { add: true })).status).toBe(401)
    expect(await passkeys(browserAt(service))).toEqual([])
  })

  test('a passkey is removed only soon after a sign-in, so that a stolen session locks nobody out', async () => {
    const service = await begin()
    const browser = browserAt(service)
    const first = await register(service, browser)
    await browser.session()
    await add(browser)
    service.shop.clock.advance(600_000)
    expect((await browser.call('DELETE', `/session/passkeys/${first.id}`)).status).toBe(403)
    expect(await passkeys(browser)).toHaveLength(2)
  })

  test('a person has at most 20 passkeys', async () => {
    const service = await begin()
    const browser = browserAt(service)
    await register(service, browser)
    await browser.session()
    const { kysely } = service.shop.context.db
    const known = await kysely.selectFrom('passkeys').selectAll().executeTakeFirstOrThrow()
    const more = Array.from({ length: 19 }, (_, index) => ({ ...known, id: `passkey-${index}` }))
    await kysely.insertInto('passkeys').values(more).execute()
    const { options } = await start(browser, { add: true })
    expect(await finish(browser, new Authenticator().register(options, ORIGIN))).toBe(403)
    expect(await passkeys(browser)).toHaveLength(20)
  })

  /** Hub 2 of the same owner, and a second owner. */
  async function addHubAndOwner({ shop }: Service): Promise<number> {
    const { kysely } = shop.context.db
    const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    await kysely
      .insertInto('hubs')
      .values({ ...hub, name: 'Second hub' })
      .execute()
    const other = await kysely
      .insertInto('owners')
      .values({ name: 'Other' })
      .returning('id')
      .executeTakeFirstOrThrow()
    return other.id
  }
  const hubsOfRoles = async ({ shop }: Service) =>
    (await shop.context.db.kysely.selectFrom('roles').select('hubs').execute()).map(({ hubs }) => hubs)

  test('an invitation loses a hub that moves, and ends if it has no other', async () => {
    const service = await begin()
    const { context } = service.shop
    const newOwner = await addHubAndOwner(service)
    const [one, both] = [await invite(service), await invite(service, { ...anna, hub_ids: [1, 2] })]
    const browser = browserAt(service)
    const { options } = await start(browser, { invitation: both })
    await context.db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner }))
    expect((await start(browserAt(service), { invitation: one })).status).toBe(404)
    expect((await service.owner('GET', INVITATIONS)).json).toMatchObject({ data: [{ hubs: [2] }] })
    expect(await finish(browser, new Authenticator().register(options, ORIGIN))).toBe(200)
    expect(await hubsOfRoles(service)).toEqual(['[2]'])
  })

  test('acceptance leaves out retired hubs and hubs of another owner, also if the invitation still names them', async () => {
    const service = await begin()
    const { kysely } = service.shop.context.db
    const newOwner = await addHubAndOwner(service)
    const [one, both] = [await invite(service), await invite(service, { ...anna, hub_ids: [1, 2] })]
    const [first, second] = [browserAt(service), browserAt(service)]
    const [begunOne, begunBoth] = [
      await start(first, { invitation: one }),
      await start(second, { invitation: both }),
    ]
    service.shop.clock.advance(1000)
    const moved = { owner_id: newOwner, owned_since: service.shop.clock.now() }
    await kysely.updateTable('hubs').set(moved).where('id', '=', 1).execute()
    expect(await finish(first, new Authenticator().register(begunOne.options, ORIGIN))).toBe(404)
    expect(await finish(second, new Authenticator().register(begunBoth.options, ORIGIN))).toBe(200)
    expect(await hubsOfRoles(service)).toEqual(['[2]'])

    const late = await invite(service, { ...anna, hub_ids: [2] })
    await kysely
      .updateTable('hubs')
      .set({ retired_at: service.shop.clock.now() })
      .where('id', '=', 2)
      .execute()
    expect((await start(browserAt(service), { invitation: late })).status).toBe(404)
    await kysely.updateTable('hubs').set({ owner_id: 1 }).where('id', '=', 1).execute()
    const again = await service.owner('POST', 'people/invitations', { ...anna, hub_ids: [1, 2] })
    expect(again.status).toBe(201)
    const none = await service.owner('POST', 'people/invitations', { ...anna, hub_ids: [2] })
    expect(none).toMatchObject({ status: 409, json: { error: { code: 'hub_not_accepting_orders' } } })
  })

  test('a person who loses the last role because a hub moves loses the session and the passkey', async () => {
    const service = await begin()
    const { context, clock } = service.shop
    const newOwner = await addHubAndOwner(service)
    const browser = browserAt(service)
    const key = await register(service, browser)
    await context.db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner }))
    clock.advance(5_000)
    expect(await browser.session()).toMatchObject({ kind: 'none' })
    expect(await signIn(browser, key)).toBe(401)
  })

  test('the audit of each hub has who invited whom, and who accepted', async () => {
    const service = await begin()
    await addHubAndOwner(service)
    const email = 'anna@example.org'
    const secret = await invite(service, { ...anna, email, hub_ids: [2, 1] })
    const browser = browserAt(service)
    const { options } = await start(browser, { invitation: secret })
    expect(await finish(browser, new Authenticator().register(options, ORIGIN))).toBe(200)
    for (const hub_id of [1, 2]) {
      const { json } = await service.owner('GET', `audit?hub_id=${hub_id}&action=invitations.`)
      const detail = { name: 'Anna', email, role: 'technician', hubs: [1, 2] }
      expect(json).toMatchObject({
        data: [
          {
            action: 'invitations.accept',
            actor: expect.stringMatching(/^identity:staff-/) as string,
            hub_id,
            detail,
          },
          { action: 'invitations.create', actor: expect.stringMatching(/^key:/) as string, hub_id, detail },
        ],
      })
    }
  })
})
