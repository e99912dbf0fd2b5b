import { expect, test } from 'vitest'
import { issueApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
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
    expect((await service.owner('GET', 'contacts')).json).toEqual({ data: [off.json] })
    const { id } = json as { id: number }
    expect((await service.owner('DELETE', `contacts/${id}`)).status).toBe(204)
    expect((await service.owner('GET', 'contacts')).json).toEqual({ data: [] })
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
    expect((await service.send('GET', path, headers)).json).toEqual({ data: [] })
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
})
