import { expect, test } from 'vitest'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'

onEachDatabase('people and keys', (open) => {
  test('an owner gives a technician a role and a program a key, within the own hubs only', async () => {
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
    expect((await owner.call('DELETE', `/api/v1/owners/keys/${prefix}`)).status).toBe(204)
    service.shop.clock.advance(6_000)
    expect((await service.send('GET', payments, headers)).status).toBe(401)
  })
})
