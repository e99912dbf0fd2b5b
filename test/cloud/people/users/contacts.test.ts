import { expect, test } from 'vitest'
import { recognise } from '../../../../cloud/commerce/deals/customers.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openCloud } from '../../../world/cloud.ts'

const PHONE = '+14155550100'
const EMAIL = 'ada@example.org'
const proof = { email: EMAIL, email_verified: true, phone_number: PHONE }

async function people(open: OpenDatabase) {
  const { call, issuer, runtime, context } = await openCloud({ db: await open() })
  const as = async (sub: string, claims: object, method: string, path: string, body?: object) =>
    call(method, `/users/user${path}`, { token: await issuer.token({ sub, ...claims }), body })
  return {
    bootstrap: (sub: string, claims: object, body: object = {}) =>
      as(sub, claims, 'POST', '/bootstrap', body),
    patch: (sub: string, claims: object, body: object) => as(sub, claims, 'PATCH', '/profile', body),
    shown: async (sub: string) => {
      const { json } = await as(sub, {}, 'GET', '/profile')
      const { email, email_verified, phone_number, phone_verified } = json as Record<string, unknown>
      return [email, email_verified, phone_number, phone_verified]
    },
    sameCustomers: async (userId: number) => {
      const shopper = { userId, deviceUuid: null, takesUp: true }
      const { userIds } = await recognise(context.db.kysely, context, shopper)
      return userIds.toSorted((a, b) => a - b)
    },
    exists: async () => {
      runtime.clock.advance(60_000)
      const asked = [
        `/exists/phone?phone_number=${encodeURIComponent(PHONE)}`,
        `/exists/email?email=${EMAIL}`,
      ]
      const answers = await Promise.all(asked.map((path) => call('GET', `/users/user${path}`)))
      return answers.map(({ json }) => (json as { exists: boolean }).exists)
    },
  }
}

onEachDatabase('contacts', (open) => {
  test('a contact without proof by a token is stored as unverified, and does not count for exists', async () => {
    const { bootstrap, patch, shown, exists } = await people(open)
    const named = await bootstrap('eve', {}, { email: EMAIL, phone_number: PHONE })
    expect([named.status, named.json]).toMatchObject([201, { email_verified: false, phone_verified: false }])
    await bootstrap('mallory', {}, { email: 'mallory@example.org' })
    expect((await patch('mallory', {}, { email: EMAIL, phone_number: PHONE })).status).toBe(200)
    expect(await shown('mallory')).toEqual([EMAIL, false, PHONE, false])
    expect(await exists()).toEqual([false, false])
  })

  test('a contact that a token proves is verified until the user changes it', async () => {
    const { bootstrap, patch, shown, exists } = await people(open)
    await bootstrap('ada', proof)
    expect(await shown('ada')).toEqual([EMAIL, true, PHONE, true])
    expect(await exists()).toEqual([true, true])
    await patch('ada', {}, { email: 'Ada@Example.org', first_name: 'Ada' })
    expect(await shown('ada')).toEqual([EMAIL, true, PHONE, true])
    await patch('ada', {}, { email: 'lovelace@example.org' })
    expect(await shown('ada')).toEqual(['lovelace@example.org', false, PHONE, true])
    await patch('ada', proof, { email: EMAIL, phone_number: null })
    expect(await shown('ada')).toEqual([EMAIL, true, null, false])
    expect(await exists()).toEqual([false, true])
  })

  test('a contact that the user entered is verified when a later token proves it', async () => {
    const { bootstrap, shown, exists } = await people(open)
    await bootstrap('ada', {}, { email: EMAIL, phone_number: PHONE })
    await bootstrap('ada', { email: EMAIL, email_verified: true })
    expect(await shown('ada')).toEqual([EMAIL, true, PHONE, false])
    expect(await exists()).toEqual([false, true])
  })

  test('a verified contact belongs to the user who proved it last', async () => {
    const { bootstrap, shown } = await people(open)
    await bootstrap('ada', proof)
    await bootstrap('eve', {}, { email: EMAIL, phone_number: PHONE })
    expect(await shown('ada')).toEqual([EMAIL, true, PHONE, true])
    await bootstrap('heir', { phone_number: PHONE })
    expect(await shown('ada')).toEqual([EMAIL, true, PHONE, false])
    expect(await shown('heir')).toEqual([null, false, PHONE, true])
  })

  test('a contact that several users prove at once belongs to one of them', async () => {
    const { bootstrap, shown } = await people(open)
    const names = ['one', 'two', 'three', 'four']
    const answers = await Promise.all(names.map((name) => bootstrap(name, proof)))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    const states = await Promise.all(names.map(shown))
    expect(states.filter(([, email, , phone]) => email === true && phone === true)).toHaveLength(1)
    expect(states.filter(([, email, , phone]) => email === false && phone === false)).toHaveLength(3)
  })

  test('a contact that the profile has proved recognises its customer also after another user has taken it', async () => {
    const { bootstrap, patch, sameCustomers } = await people(open)
    await bootstrap('one', { email: 'one@example.org', email_verified: true })
    await patch('one', { phone_number: PHONE }, { phone_number: PHONE })
    await bootstrap('two', { phone_number: PHONE })
    expect(await sameCustomers(2)).toEqual([1, 2])
  })
})
