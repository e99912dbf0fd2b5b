import { expect, test } from 'vitest'
import type { Mail } from '../../../../cloud/operations/alarms/mail.ts'
import { recordRestore } from '../../../../cloud/operations/backup/restore.ts'
import { unlinked } from '../../../../cloud/people/staff/invitations.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService, type Service } from '../../../world/service.ts'

const INVITATIONS = 'people/invitations'
const anna = { name: 'Anna', role: 'technician', hub_ids: [1] }

test.each([
  ['https://evil.example/a?b=c', 'https evil. example a b c'],
  ['Anna <a@evil.example>', 'Anna a evil. example'],
  ['www。evil。example', 'www evil example'],
  ['Dr. Anna-Maria O’Neill', 'Dr. Anna-Maria O’Neill'],
  ['山田 太郎', '山田 太郎'],
])('a mail shows the name %s as %s, which is no link', (name, shown) => {
  expect(unlinked(name)).toBe(shown)
})

onEachDatabase('invitations of staff', (open) => {
  const create = (service: Service, body: object = anna) => service.owner('POST', INVITATIONS, body)
  const idOf = async (service: Service) =>
    ((await service.owner('GET', INVITATIONS)).json as { data: { id: number }[] }).data[0]!.id

  test('the 51st open invitation of an owner is refused, also beside others, until one is withdrawn or expires', async () => {
    const service = await openService(open)
    const { kysely } = service.shop.context.db
    const now = service.shop.clock.now()
    const row = { name: 'Tom', role: 'technician', hubs: '[1]', created_at: now, expires_at: now + 1000 }
    await kysely
      .insertInto('invitations')
      .values(Array.from({ length: 48 }, (_, index) => ({ ...row, digest: `${index}` })))
      .execute()
    const statuses = (await Promise.all([1, 2, 3].map(() => create(service)))).map(({ status }) => status)
    expect(statuses.toSorted((one, other) => one - other)).toEqual([201, 201, 409])
    const error = { code: 'invitation_limit_reached', details: { limit: 50 } }
    expect(await create(service)).toMatchObject({ status: 409, json: { error } })
    expect((await service.owner('DELETE', `${INVITATIONS}/${await idOf(service)}`)).status).toBe(204)
    expect((await create(service)).status).toBe(201)
    expect((await create(service)).status).toBe(409)
    service.shop.clock.advance(1000)
    expect((await create(service)).status).toBe(201)
  })

  test('a name in a mail is one line without links', async () => {
    const mails: Mail[] = []
    const sendMail = (mail: Mail) => Promise.resolve(void mails.push(mail))
    const service = await openService(open, { sendMail })
    const name = 'Win at\r\nhttps://evil.example'
    expect((await create(service, { ...anna, name, email: 'a@example.org' })).status).toBe(201)
    expect(mails[0]!.to.name).toBe('Win at https evil. example')
    expect(mails[0]!.text).toContain('Hello Win at https evil. example,')
    expect(mails[0]!.text.match(/https?:/g)).toHaveLength(1)
  })

  test('of two withdrawals at once one finds no invitation, and the audit has one', async () => {
    const service = await openService(open)
    await create(service)
    const path = `${INVITATIONS}/${await idOf(service)}`
    const both = await Promise.all([1, 2].map(() => service.owner('DELETE', path)))
    expect(both.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([204, 404])
    const { json } = await service.owner('GET', 'audit?hub_id=1&action=invitations.revoke')
    const detail = { name: 'Anna', role: 'technician', hubs: [1] }
    expect((json as { data: unknown[] }).data).toEqual([expect.objectContaining({ hub_id: 1, detail })])
  })

  test('the audit of a hub has the roles that were given and taken there', async () => {
    const service = await openService(open)
    const body = { identity: 'tom', role: 'technician', hub_ids: [1] }
    const { json } = await service.owner('POST', 'people', body)
    await service.owner('DELETE', `people/${(json as { id: number }).id}`)
    const detail = { identity: 'tom', role: 'technician', hubs: [1] }
    expect((await service.owner('GET', 'audit?hub_id=1&action=roles.')).json).toMatchObject({
      data: [
        { action: 'roles.revoke', hub_id: 1, detail },
        { action: 'roles.grant', hub_id: 1, detail },
      ],
    })
  })

  test('a restored database has no invitations, because somebody may have accepted them since', async () => {
    const service = await openService(open)
    const { context } = service.shop
    await create(service)
    const at = '2026-01-01T00:00:00.000Z'
    const detail = { file: 'backup', created_at: at, restored_at: at }
    await recordRestore(context.db, { contextOf: () => context, actor: 'test' }, detail)
    expect((await service.owner('GET', INVITATIONS)).json).toEqual({ data: [] })
  })
})
