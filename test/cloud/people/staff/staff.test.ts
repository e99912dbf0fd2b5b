import { expect, test } from 'vitest'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'

onEachDatabase('people and keys', (open) => {
  test('an owner gives technicians roles and programs keys only for the owner’s hubs', async () => {
    const service = await openService(open, { isDemo: true })
    const { kysely } = service.shop.context.db
    await grantRole(kysely, service.shop.context.runtime, {
      identity: 'demo-owner',
      role: 'owner',
      hubs: [1],
    })
    const owner = new TestBrowser(service.cloud.app)
    await owner.signIn('Owner')
    const technician = new TestBrowser(service.cloud.app)
    await technician.signIn('Technician')
    const people = '/api/v1/owners/people'
    expect((await technician.call('GET', people)).status).toBe(403)
    const body = { identity: 'demo-technician', role: 'technician', hub_ids: [1] }
    expect(await owner.call('POST', people, { body })).toMatchObject({ status: 201, json: { hubs: [1] } })
    expect((await owner.call('POST', people, { body: { ...body, hub_ids: [2] } })).status).toBe(403)
    const seen = await technician.call('GET', '/api/v1/owners/hub_ids')
    expect([seen.status, seen.json]).toEqual([200, [1]])
    expect((await technician.call('POST', people, { body: { ...body, role: 'owner' } })).status).toBe(403)

    const key = { name: 'Till', scopes: ['orders:read'], hub_ids: [1] }
    const made = await owner.call('POST', '/api/v1/owners/keys', { body: key })
    const { api_key, prefix } = made.json as { api_key: string; prefix: string }
    const headers = { 'X-API-Key': api_key }
    const payments = '/api/v1/owners/payments'
    expect((await service.send('GET', payments, headers)).status).toBe(200)
    const diag = { ...key, scopes: ['diag:read'] }
    expect((await owner.call('POST', '/api/v1/owners/keys', { body: diag })).status).toBe(422)
    for (const _ of ['first', 'second'])
      expect((await owner.call('DELETE', `/api/v1/owners/keys/${prefix}`)).status).toBe(204)
    const revocations = kysely.selectFrom('audit_log').select('object').where('action', '=', 'keys.revoke')
    expect(await revocations.execute()).toEqual([{ object: `key-${prefix}` }])
    service.shop.clock.advance(6_000)
    expect((await service.send('GET', payments, headers)).status).toBe(401)
  })

  test('an owner has a limited number of valid keys and of roles, and sees only its own', async () => {
    const { owner, shop } = await openService(open)
    Object.assign(shop.context.settings, { keysPerOwner: 3, rolesPerOwner: 2 })
    const key = (name: string) => owner('POST', 'keys', { name, scopes: ['orders:read'], hub_ids: [1] })
    const role = (identity: string) => owner('POST', 'people', { identity, role: 'analyst', hub_ids: [1] })
    const statuses = async (ask: (name: string) => Promise<{ status: number }>, names: string[]) => {
      const answers: number[] = []
      for (const name of names) answers.push((await ask(name)).status)
      return answers
    }
    // The test's own key is the first.
    expect(await statuses(key, ['a', 'b', 'c'])).toEqual([201, 201, 422])
    expect(await statuses(role, ['a', 'b', 'b', 'c'])).toEqual([201, 201, 201, 422])
    const invitation = { name: 'Ann', role: 'analyst', hub_ids: [1] }
    expect((await owner('POST', 'people/invitations', invitation)).status).toBe(422)
    const { data: keys } = (await owner('GET', 'keys')).json as { data: { name: string; prefix: string }[] }
    const { data: roles } = (await owner('GET', 'people')).json as { data: { id: number }[] }
    expect((await owner('DELETE', `keys/${keys.find(({ name }) => name === 'a')!.prefix}`)).status).toBe(204)
    expect((await owner('DELETE', `people/${roles[0]!.id}`)).status).toBe(204)
    expect([await statuses(key, ['d', 'e']), await statuses(role, ['d', 'e'])]).toEqual([
      [201, 422],
      [201, 422],
    ])
    const { kysely } = shop.context.db
    await grantRole(kysely, shop.context.runtime, { identity: 'other', role: 'owner', hubs: [2] })
    await grantRole(kysely, shop.context.runtime, { identity: 'operator', role: 'owner', hubs: '*' })
    const people = (await owner('GET', 'people')).json as { data: { identity: string }[] }
    expect(people.data.map(({ identity }) => identity)).toEqual(['b', 'd'])
  })

  test('a pasted identity with white space around it gets the role, and a blank identity is refused', async () => {
    const { owner } = await openService(open)
    const role = (identity: string) => owner('POST', 'people', { identity, role: 'analyst', hub_ids: [1] })
    expect(await role(' demo-analyst\n')).toMatchObject({ status: 201, json: { identity: 'demo-analyst' } })
    expect((await role(' ')).status).toBe(422)
  })

  test('a key gives people and other keys only scopes that it has itself', async () => {
    const service = await openService(open, { isDemo: true })
    const owner = new TestBrowser(service.cloud.app)
    await grantRole(service.shop.context.db.kysely, service.shop.context.runtime, {
      identity: 'demo-owner',
      role: 'owner',
      hubs: [1],
    })
    await owner.signIn('Owner')
    const keys = '/api/v1/owners/keys'
    const wanted = { name: 'Staff', scopes: ['people:write', 'orders:read'], hub_ids: [1] }
    const { json } = await owner.call('POST', keys, { body: wanted })
    const headers = {
      'X-API-Key': (json as { api_key: string }).api_key,
      'Content-Type': 'application/json',
    }
    const post = async (path: string, body: object) => {
      const answer = await service.send('POST', path, headers, JSON.stringify(body))
      const { error } = answer.json as { error?: { details: { required_scope: string } } }
      return [answer.status, error?.details.required_scope]
    }
    expect(await post(keys, { ...wanted, scopes: ['orders:read'] })).toEqual([201, undefined])
    expect(await post(keys, { ...wanted, scopes: ['orders:read', 'orders:write'] })).toEqual([
      403,
      'orders:write',
    ])
    const person = { identity: 'eve', role: 'owner', hub_ids: [1] }
    expect(await post('/api/v1/owners/people', person)).toEqual([403, 'inventory:read'])
  })
})
