import { expect, test } from 'vitest'
import { errorOf } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'

const path = '/users/user/identity-id'
const ada = { email: 'ada@example.org' }

async function service(open: OpenDatabase) {
  const opened = await openService(open)
  const { customer } = opened
  for (const name of ['ada', 'eve']) await customer(name, 'POST', '/users/user/bootstrap')
  return {
    ...opened,
    q: opened.shop.context.db.kysely,
    put: async (by: string, contact: object, token: string) =>
      customer(by, 'PUT', path, { ...contact, identity_token: token }),
    who: async (name: string) => {
      const { status, json } = await customer(name, 'GET', '/users/user')
      return status === 200 ? (json as { user_id: number }).user_id : null
    },
  }
}

onEachDatabase("a user's identity", (open) => {
  test('a user with a new identity can only be reached by the new one', async () => {
    const { put, who, tokenOf } = await service(open)
    const changed = await put('ada', ada, await tokenOf('ada-of-the-new-provider'))
    expect([changed.status, changed.json]).toEqual([200, { message: expect.any(String) as string }])
    expect([await who('ada-of-the-new-provider'), await who('ada')]).toEqual([1, null])
  })

  test('an unchanged identity stays', async () => {
    const { put, who, tokenOf } = await service(open)
    expect((await put('ada', { email: 'ADA@example.org' }, await tokenOf('ada'))).status).toBe(200)
    expect(await who('ada')).toBe(1)
  })

  test('only the caller’s own identity can be changed', async () => {
    const { put, who, tokenOf } = await service(open)
    const code = async (by: string, contact: object, token: string) => {
      const answer = await put(by, contact, token)
      return [answer.status, errorOf(answer).error.code]
    }
    const fresh = await tokenOf('fresh')
    expect(await code('eve', ada, fresh)).toEqual([403, 'forbidden'])
    expect(await code('stranger', ada, fresh)).toEqual([403, 'forbidden'])
    expect(await code('ada', { email: 'nobody@example.org' }, fresh)).toEqual([404, 'user_not_found'])
    expect(await code('ada', { phone_number: '+14155550100' }, fresh)).toEqual([404, 'user_not_found'])
    expect(await code('ada', ada, await tokenOf('eve'))).toEqual([403, 'forbidden'])
    expect(await code('ada', ada, await tokenOf('guest-1'))).toEqual([403, 'forbidden'])
    expect([await who('ada'), await who('eve')]).toEqual([1, 2])
  })

  test('a change of identity needs a genuine token that has not expired', async () => {
    const { put, issuer, shop } = await service(open)
    const past = Math.floor(shop.clock.now() / 1000) - 600
    for (const [token, code] of [
      ['a.b.c', 'invalid_token'],
      [await issuer.token({ sub: 'fresh', aud: 'elsewhere' }), 'invalid_token'],
      [await issuer.token({ sub: 'fresh', iat: past - 60, exp: past }), 'token_expired'],
    ] as const) {
      const answer = await put('ada', ada, token)
      expect([answer.status, errorOf(answer).error.code]).toEqual([401, code])
    }
  })

  test('a change of identity needs exactly one contact that identifies the user', async () => {
    const { put, tokenOf } = await service(open)
    const token = await tokenOf('fresh')
    for (const contact of [{}, { ...ada, phone_number: '+14155550100' }]) {
      const answer = await put('ada', contact, token)
      expect([answer.status, errorOf(answer).detail]).toEqual([
        422,
        [expect.objectContaining({ loc: ['body'], type: 'value_error' })],
      ])
    }
  })

  test('a user without an identity can be claimed by the owner of the verified contact', async () => {
    const { put, who, q, issuer, send, tokenOf } = await service(open)
    await q
      .insertInto('users')
      .values({
        identity: null,
        is_anonymous: 0,
        email: 'old@example.org',
        phone_number: '+14155550111',
        created_at: 0,
        updated_at: 0,
      } as never)
      .execute()
    const old = { email: 'old@example.org' }
    expect((await put('eve', old, await tokenOf('eve-too'))).status).toBe(403)
    const by = async (claims: object) =>
      send(
        'PUT',
        path,
        {
          Authorization: `Bearer ${await issuer.token({ sub: 'claimant', ...claims })}`,
          'Content-Type': 'application/json',
        },
        JSON.stringify({ ...old, identity_token: await issuer.token({ sub: 'claimant' }) }),
      )
    expect((await by({ email: 'old@example.org', email_verified: false })).status).toBe(403)
    expect((await by({ email: 'old@example.org', email_verified: true })).status).toBe(200)
    expect(await who('claimant')).toBe(3)
  })

  test('an identity belongs to one user: one of two simultaneous changes succeeds', async () => {
    const { put, tokenOf, who } = await service(open)
    const token = await tokenOf('wanted')
    const answers = await Promise.all([
      put('ada', ada, token),
      put('eve', { email: 'eve@example.org' }, token),
    ])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403])
    expect(await who('wanted')).not.toBeNull()
  })
})
