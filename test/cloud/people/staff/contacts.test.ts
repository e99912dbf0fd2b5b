import { expect, test } from 'vitest'
import { raiseAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { publish } from '../../../../cloud/events/publish.ts'
import { MailUnconfirmed, type Mail } from '../../../../cloud/operations/alarms/mail.ts'
import { morningReaders } from '../../../../cloud/operations/reports/morning-mail.ts'
import { issueApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { scopes } from '../../../../protocol/model/scopes.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService, type Service } from '../../../world/service.ts'

const anna = { hub_id: 1, email: 'anna@example.org', name: 'Anna', morning_mail: true }

onEachDatabase('recipients of the mails of an owner', (open) => {
  const add = ({ owner }: Service, body: object) => owner('POST', 'contacts', body)

  test('an owner adds a person, switches the mail of the morning off, and removes the person', async () => {
    const service = await openService(open)
    const { json } = await add(service, anna)
    const shown = { email: anna.email, name: 'Anna', severity: 'warning', morning_mail: true }
    expect(json).toMatchObject(shown)
    const off = await add(service, { ...anna, severity: 'critical', morning_mail: false })
    expect(off.json).toMatchObject({ ...shown, severity: 'critical', morning_mail: false })
    expect((await service.owner('GET', 'contacts')).json).toMatchObject({ data: [off.json] })
    const { id } = json as { id: number }
    expect((await service.owner('DELETE', `contacts/${id}`)).status).toBe(204)
    expect((await service.owner('GET', 'contacts')).json).toMatchObject({ data: [] })
    expect((await service.owner('GET', 'audit?hub_id=1&action=contacts.')).json).toMatchObject({
      data: [
        { action: 'contacts.remove', object: `contact-${id}`, detail: { email: anna.email } },
        { action: 'contacts.add', detail: { morning_mail: 0 } },
        { action: 'contacts.add', detail: { morning_mail: 1 } },
      ],
    })
  })

  test('a key that does not reach all hubs of the owner neither reads nor adds contacts', async () => {
    const service = await openService(open)
    const { context } = service.shop
    const { kysely } = context.db
    await add(service, anna)
    const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    await kysely
      .insertInto('hubs')
      .values({ ...hub, name: 'Second hub' })
      .execute()
    const grant = { name: 'till', ownerId: 1, scopes: [...scopes], hubs: [1], expiresAt: null }
    const { key } = await issueApiKey(kysely, context.runtime, grant)
    const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
    const path = '/api/v1/owners/contacts'
    expect((await service.send('GET', path, headers)).json).toMatchObject({
      data: [],
      owners: [{ hub_ids: [1], reaches_all: false }],
    })
    const refused = await service.send('POST', path, headers, JSON.stringify(anna))
    expect(refused).toMatchObject({ status: 403, json: { error: { code: 'hub_access_denied' } } })
  })

  test('the 51st contact of an owner is refused, and a known address can still be changed', async () => {
    const service = await openService(open)
    const row = { owner_id: 1, name: null, severity: 'warning', created_at: 0, morning_mail: 0 } as const
    await service.shop.context.db.kysely
      .insertInto('alarm_contacts')
      .values(Array.from({ length: 50 }, (_, index) => ({ ...row, email: `${index}@example.org` })))
      .execute()
    const error = { code: 'contact_limit_reached', details: { limit: 50 } }
    expect(await add(service, anna)).toMatchObject({ status: 409, json: { error } })
    expect((await add(service, { ...anna, email: '7@example.org' })).status).toBe(201)
  })

  /** A service with a mail server, and its mails. */
  async function openWithMail() {
    const mails: Mail[] = []
    let isUp = true
    let failure = new Error('421 too busy')
    const sendMail = (mail: Mail) => {
      if (isUp || failure instanceof MailUnconfirmed) mails.push(mail)
      if (!isUp) return Promise.reject(failure)
      return Promise.resolve()
    }
    const service = await openService(open, { sendMail })
    const json = { 'Content-Type': 'application/json' }
    return {
      service,
      mails,
      setUp: (up: boolean, why = failure) => {
        isUp = up
        failure = why
      },
      /** Answers as the holder who has opened the link of a mail. */
      answer: (mail: Mail | undefined, accept: boolean) =>
        service.send(
          'POST',
          '/api/v1/owners/contacts/answer',
          json,
          JSON.stringify({ code: /#(\w+)/.exec(mail?.text ?? '')?.[1] ?? 'none', accept }),
        ),
      readers: async () =>
        (await morningReaders(service.shop.context.db.kysely, 1)).map(({ email }) => email),
    }
  }
  const ask = ({ owner }: Service, id: number) => owner('POST', `contacts/${id}/confirmation`)

  test('an address gets no mail about hubs before its holder has agreed by the link', async () => {
    const { service, mails, answer, readers } = await openWithMail()
    const { context } = service.shop
    const { json } = await add(service, anna)
    expect(json).toMatchObject({ confirmed: false, hub_ids: [1] })
    expect(mails).toEqual([expect.objectContaining({ to: { name: '', address: anna.email } })])
    const raise = (subject: string) =>
      context.db.transact((tx) => raiseAlarm(tx, context, { hubId: 1, kind: 'row_blocked', subject }))
    const waiting = async () => {
      await publish(context)
      return (await context.db.kysely.selectFrom('alarm_mails').selectAll().execute()).length
    }
    await raise('row 1/1/1')
    expect([await waiting(), await readers()]).toEqual([0, []])
    const yes = await answer(mails[0], true)
    expect(yes).toMatchObject({ status: 200, json: { email: anna.email, confirmed: true } })
    await raise('row 1/1/2')
    expect([await waiting(), await readers()]).toEqual([1, [anna.email]])
    expect((await service.owner('GET', 'contacts')).json).toMatchObject({
      data: [{ confirmed: true }],
      owners: [{ hub_ids: [1], reaches_all: true }],
      sends_mail: true,
    })
    expect((await service.owner('GET', 'audit?hub_id=1&action=contacts.')).json).toMatchObject({
      data: [{ action: 'contacts.confirm', actor: 'contact-1' }, { action: 'contacts.add' }],
    })
  })

  test('the mail that asks an address has no text of the owner of the hubs', async () => {
    const { service, mails } = await openWithMail()
    await add(service, { ...anna, name: 'Win a prize at evil.example' })
    expect(JSON.stringify(mails)).not.toContain('evil')
    expect(mails[0]!.text.match(/https?:/g)).toHaveLength(1)
  })

  test('the holder declines, or ends the mails later by the same link, and the contact is gone', async () => {
    const { service, mails, answer } = await openWithMail()
    await add(service, anna)
    await answer(mails[0], true)
    expect((await answer(mails[0], true)).json).toMatchObject({ confirmed: true })
    expect((await answer(mails[0], false)).json).toMatchObject({ confirmed: false })
    expect((await service.owner('GET', 'contacts')).json).toMatchObject({ data: [] })
    expect((await answer(mails[0], true)).status).toBe(404)
  })

  test('a link ends after its time, and when the address is asked again', async () => {
    const { service, mails, answer } = await openWithMail()
    const { id } = (await add(service, anna)).json as { id: number }
    expect((await ask(service, id)).status).toBe(200)
    expect((await answer(mails[0], true)).status).toBe(404)
    service.shop.clock.advance(service.shop.context.settings.invitationMs)
    expect((await answer(mails[1], true)).status).toBe(404)
    expect((await answer(undefined, true)).status).toBe(404)
  })

  test('the holder declines by the link also after its time', async () => {
    const { service, mails, answer } = await openWithMail()
    await add(service, anna)
    service.shop.clock.advance(service.shop.context.settings.invitationMs)
    expect((await answer(mails[0], false)).json).toMatchObject({ confirmed: false })
    expect((await service.owner('GET', 'contacts')).json).toMatchObject({ data: [] })
  })

  test('the link of an earlier mail works while the mail server takes no new one', async () => {
    const { service, mails, answer, setUp } = await openWithMail()
    const { id } = (await add(service, anna)).json as { id: number }
    setUp(false)
    expect((await ask(service, id)).status).toBe(503)
    expect((await answer(mails[0], true)).json).toMatchObject({ confirmed: true })
  })

  test('an address that has not agreed gets three mails a day, however it is added, asked or invited', async () => {
    const { service, mails } = await openWithMail()
    const { id } = (await add(service, anna)).json as { id: number }
    expect((await ask(service, id)).status).toBe(200)
    await add(service, { ...anna, morning_mail: false })
    expect(mails).toHaveLength(2)
    await service.owner('DELETE', `contacts/${id}`)
    const upper = { ...anna, email: 'Anna@Example.org' }
    const again = (await add(service, upper)).json as { id: number }
    expect(mails).toHaveLength(3)
    const error = {
      code: 'contact_limit_reached',
      message: expect.stringContaining('This address received 3 such mails') as unknown,
      details: { limit: 3 },
    }
    expect(await ask(service, again.id)).toMatchObject({ status: 409, json: { error } })
    const invited = { name: 'Anna', email: anna.email, role: 'analyst', hub_ids: [1] }
    expect((await service.owner('POST', 'people/invitations', invited)).json).toMatchObject({
      url: expect.stringContaining('/console/invitation#') as unknown,
    })
    expect(mails).toHaveLength(3)
    service.shop.clock.advance(86_400_000)
    expect((await ask(service, again.id)).status).toBe(200)
  })

  test('owners that ask one address at the same moment send it three mails a day together', async () => {
    const { service, mails } = await openWithMail()
    const { kysely } = service.shop.context.db
    const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    const others = Array.from({ length: 8 }, (__, index) => ({ name: `Owner ${index}` }))
    const owners = await kysely.insertInto('owners').values(others).returning('id').execute()
    const hubs = await kysely
      .insertInto('hubs')
      .values(owners.map(({ id }) => ({ ...hub, owner_id: id, name: `Hub of ${id}` })))
      .returning('id')
      .execute()
    const identity = { identity: 'eve', role: 'owner', hubs: hubs.map(({ id }) => id) } as const
    await grantRole(kysely, service.shop.context.runtime, identity)
    const headers = {
      Authorization: `Bearer ${await service.tokenOf('eve')}`,
      'Content-Type': 'application/json',
    }
    await Promise.all(
      hubs.map(({ id }) =>
        service.send('POST', '/api/v1/owners/contacts', headers, JSON.stringify({ ...anna, hub_id: id })),
      ),
    )
    expect(mails).toHaveLength(3)
  })

  test('mails that the mail server has not accepted do not count for an address, and an owner has 50 such tries an hour', async () => {
    const { service, mails, setUp } = await openWithMail()
    setUp(false)
    const { id } = (await add(service, anna)).json as { id: number }
    const invited = { name: 'Anna', email: anna.email, role: 'analyst', hub_ids: [1] }
    await service.owner('POST', 'people/invitations', invited)
    for (let tries = 2; tries < 50; tries += 1) {
      service.shop.clock.advance(60_000)
      expect((await ask(service, id)).status).toBe(503)
    }
    const limit = {
      code: 'contact_limit_reached',
      message: expect.stringContaining('The mail server has refused 50 mails') as unknown,
      details: { limit: 50 },
    }
    expect(await ask(service, id)).toMatchObject({ status: 409, json: { error: limit } })
    setUp(true)
    service.shop.clock.advance(3_600_000)
    for (const status of [200, 200, 200, 409]) expect((await ask(service, id)).status).toBe(status)
    expect(mails).toHaveLength(3)
  })

  test('a mail that the mail server may have accepted counts, and its link works', async () => {
    const { service, mails, answer, setUp } = await openWithMail()
    setUp(false, new MailUnconfirmed('the connection ended'))
    const { id } = (await add(service, anna)).json as { id: number }
    for (const status of [503, 503, 409]) expect((await ask(service, id)).status).toBe(status)
    expect((await answer(mails[2], true)).json).toMatchObject({ confirmed: true })
  })

  test('an owner sends a limited number of such mails a day to all addresses together', async () => {
    const { service, mails } = await openWithMail()
    const { context } = service.shop
    const sent_at = service.shop.clock.now()
    await context.db.kysely
      .insertInto('unasked_mails')
      .values(Array.from({ length: 49 }, (_, index) => ({ owner_id: 1, address: `${index}`, sent_at })))
      .execute()
    expect((await add(service, anna)).json).toMatchObject({
      confirmation_mailed_at: expect.any(String) as unknown,
    })
    const tom = await add(service, { ...anna, email: 'tom@example.org' })
    expect(tom.json).toMatchObject({ confirmed: false, confirmation_mailed_at: null })
    expect(mails).toHaveLength(1)
  })

  test('a question that the mail server refuses is sent again at request; without a mail server none is', async () => {
    const { service, mails, setUp } = await openWithMail()
    setUp(false)
    const { json } = await add(service, anna)
    expect(json).toMatchObject({ confirmation_mailed_at: null })
    const { id } = json as { id: number }
    const error = { code: 'service_unavailable' }
    expect(await ask(service, id)).toMatchObject({ status: 503, json: { error } })
    setUp(true)
    expect((await ask(service, id)).json).toMatchObject({
      confirmation_mailed_at: expect.any(String) as unknown,
    })
    expect(mails).toHaveLength(1)
    const without = await openService(open)
    const added = (await add(without, anna)).json as { id: number }
    expect(await ask(without, added.id)).toMatchObject({ status: 503, json: { error } })
    expect((await without.owner('GET', 'contacts')).json).toMatchObject({ sends_mail: false })
  })

  test('a person who works for two owners has the contacts of each apart', async () => {
    const { service } = await openWithMail()
    const { kysely } = service.shop.context.db
    await kysely.insertInto('owners').values({ name: 'Another' }).execute()
    const { id: _, ...hub } = await kysely.selectFrom('hubs').selectAll().executeTakeFirstOrThrow()
    await kysely
      .insertInto('hubs')
      .values([2, 2, 1].map((owner_id, index) => ({ ...hub, owner_id, name: `Hub ${index}` })))
      .execute()
    await grantRole(kysely, service.shop.context.runtime, { identity: 'eve', role: 'owner', hubs: [1, 2, 3] })
    const headers = {
      Authorization: `Bearer ${await service.tokenOf('eve')}`,
      'Content-Type': 'application/json',
    }
    const path = '/api/v1/owners/contacts'
    const body = JSON.stringify({ ...anna, hub_id: 3 })
    expect((await service.send('POST', path, headers, body)).json).toMatchObject({ hub_ids: [2, 3] })
    expect((await service.send('GET', path, headers)).json).toMatchObject({
      data: [{ email: anna.email, hub_ids: [2, 3] }],
      owners: [
        { hub_ids: [1], reaches_all: false },
        { name: 'Another', hub_ids: [2, 3], reaches_all: true },
      ],
    })
  })
})
