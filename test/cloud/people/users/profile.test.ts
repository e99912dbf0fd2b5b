import { expect, test } from 'vitest'
import { errorOf } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { filesIn, mediaFolder } from '../../support/media.ts'
import { openService } from '../../../world/service.ts'

const profile = '/users/user/profile'

async function ada(open: OpenDatabase) {
  const service = await openService(open)
  await service.customer('ada', 'POST', '/users/user/bootstrap', { first_name: 'Ada' })
  const patch = (body: object, path = profile) => service.customer('ada', 'PATCH', path, body)
  return { ...service, patch, read: async () => (await service.customer('ada', 'GET', profile)).json }
}

/** The problems of a body, by field. */
const complaints = (answer: Parameters<typeof errorOf>[0]) => {
  const { detail } = errorOf(answer)
  return Array.isArray(detail) ? detail.map(({ loc, type }) => `${loc.join('.')} ${type}`) : detail
}

onEachDatabase('a profile', (open) => {
  test('a profile keeps absent fields, and null clears a field', async () => {
    const { patch, read } = await ada(open)
    expect(await read()).toMatchObject({
      first_name: 'Ada',
      email: 'ada@example.org',
      date_of_birth: null,
      notifications: { push: true, email: true, sms: true },
    })
    const all = {
      first_name: ' Ada ',
      last_name: 'Lovelace',
      email: 'Ada@Lovelace.example',
      phone_number: '+442071234567',
      date_of_birth: '1815-12-10'.replace('1815', '1915'),
      locale: 'EN-gb',
      notifications: { sms: false },
    }
    const changed = await patch(all)
    expect([changed.status, changed.json]).toEqual([
      200,
      {
        user_id: 1,
        first_name: 'Ada',
        last_name: 'Lovelace',
        email: 'ada@lovelace.example',
        email_verified: false,
        phone_number: '+442071234567',
        phone_verified: false,
        date_of_birth: '1915-12-10',
        locale: 'en-GB',
        profile_image_url: null,
        notifications: { push: true, email: true, sms: false },
        updated_at: expect.any(String) as string,
      },
    ])
    await patch({ last_name: null, notifications: { push: false } }, '/users/user/me/profile')
    expect(await read()).toEqual({
      ...(changed.json as object),
      last_name: null,
      notifications: { push: false, email: true, sms: false },
    })
    await patch({ notifications: { push: null } })
    expect(await read()).toMatchObject({ notifications: { push: true, sms: false } })
    await patch({ notifications: null, email: null, date_of_birth: null, locale: null })
    expect(await read()).toMatchObject({
      email: null,
      date_of_birth: null,
      locale: null,
      phone_number: '+442071234567',
      notifications: { push: true, email: true, sms: true },
    })
    expect((await patch({})).json).toEqual(await read())
  })

  test('a profile refuses unknown fields and invalid values', async () => {
    const { patch, read } = await ada(open)
    const before = await read()
    for (const [body, complaint] of [
      [{ is_anonymous: true }, 'body.is_anonymous extra_forbidden'],
      [{ profile_image_url: 'http://elsewhere' }, 'body.profile_image_url extra_forbidden'],
      [{ notifications: { fax: true } }, 'body.notifications.fax extra_forbidden'],
      [{ notifications: { sms: 'no' } }, 'body.notifications.sms bool_parsing'],
      [{ phone_number: '020 7123 4567' }, 'body.phone_number string_pattern_mismatch'],
      [{ email: 'ada' }, 'body.email string_pattern_mismatch'],
      [{ first_name: ' ' }, 'body.first_name string_too_short'],
      [{ date_of_birth: '10.12.1990' }, 'body.date_of_birth string_pattern_mismatch'],
      [{ date_of_birth: '1990-02-30' }, 'body.date_of_birth string_pattern_mismatch'],
      [{ date_of_birth: '2999-01-01' }, 'body.date_of_birth value_error'],
      [{ date_of_birth: '1815-12-10' }, 'body.date_of_birth value_error'],
      [{ locale: 'english!' }, 'body.locale value_error'],
    ] as const) {
      const answer = await patch({ last_name: 'Changed', ...body })
      expect([answer.status, complaints(answer)]).toEqual([422, [complaint]])
    }
    expect(await read()).toEqual(before)
  })

  test('a locale is read in the notation of phones', async () => {
    const { patch, customer } = await ada(open)
    for (const [written, stored] of [
      ['en_US', 'en-US'],
      ['pt_BR', 'pt-BR'],
      ['sr_Latn_RS', 'sr-Latn-RS'],
      ['zh-Hans_CN', 'zh-Hans-CN'],
      ['en_US@calendar=gregorian', 'en-US'],
      ['de_CH.UTF-8', 'de-CH'],
      ['zh_TW_#Hant', 'zh-TW'],
      ['es_419', 'es-419'],
    ] as const) {
      const profile = await patch({ locale: written })
      expect([written, profile.status, profile.json]).toMatchObject([written, 200, { locale: stored }])
      const device = { device_id: 'phone', push_token: 'a secret', platform: 'android', locale: written }
      const registered = await customer('ada', 'POST', '/users/user/push-configs', device)
      expect([written, registered.status, registered.json]).toMatchObject([written, 200, { locale: stored }])
    }
  })

  test('a device is registered also if its locale is no language tag', async () => {
    const { customer } = await ada(open)
    for (const locale of ['', 'C', 'english!', 'x'.repeat(500)]) {
      const device = { device_id: 'phone', push_token: 'a secret', platform: 'ios', locale }
      const registered = await customer('ada', 'POST', '/users/user/push-configs', device)
      expect([registered.status, registered.json]).toMatchObject([200, { locale: null }])
    }
  })

  test('simultaneous changes of different fields are all stored', async () => {
    const { patch, read } = await ada(open)
    const changes = [
      { first_name: 'A' },
      { last_name: 'L' },
      { locale: 'en' },
      { phone_number: '+14155550100' },
      { notifications: { sms: false } },
      { notifications: { email: false } },
    ]
    await Promise.all(changes.map((change) => patch(change)))
    expect(await read()).toMatchObject({
      first_name: 'A',
      last_name: 'L',
      locale: 'en',
      phone_number: '+14155550100',
      notifications: { push: true, email: false, sms: false },
    })
  })

  test('a profile has one image, which can be read, replaced and removed', async () => {
    const { send, tokenOf, read, customer, cloud, shop } = await ada(open)
    const stored = () => filesIn(mediaFolder()).filter((path) => path.startsWith('profiles/')).length
    const before = stored()
    const headers = { Authorization: `Bearer ${await tokenOf('ada')}` }
    const upload = async (bytes: Buffer, name: string) => {
      const form = new FormData()
      form.append('file', new File([new Uint8Array(bytes)], name))
      const request = new Request(`http://larder.test${profile}/image`, {
        method: 'PATCH',
        headers,
        body: form,
      })
      const answer = await cloud.app.request(request)
      return { status: answer.status, headers: answer.headers, json: await answer.json() }
    }
    const gif = Buffer.from('R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64')
    const first = await upload(gif, 'me.png')
    expect([first.status, first.json]).toEqual([
      200,
      { profile_image_url: expect.any(String) as string, mime_type: 'image/gif', size: gif.length },
    ])
    const address = new URL((first.json as { profile_image_url: string }).profile_image_url)
    const fetched = await cloud.app.request(address)
    expect([fetched.status, fetched.headers.get('Content-Type')]).toEqual([200, 'image/gif'])
    expect(Buffer.from(await fetched.arrayBuffer()).equals(gif)).toBe(true)
    expect(await read()).toMatchObject({
      profile_image_url: expect.stringContaining(address.pathname) as string,
    })
    expect((await customer('ada', 'GET', '/users/user')).json).toMatchObject({
      profile_image_url: expect.stringContaining(address.pathname) as string,
    })

    const second = await upload(Buffer.concat([gif, Buffer.from('x')]), 'me.gif')
    expect(second.status).toBe(200)
    await expect.poll(stored).toBe(before + 1)
    expect((await cloud.app.request(address)).status).toBe(404)

    const refused = await upload(Buffer.from('<svg onload="alert(1)"/>'), 'me.png')
    expect([refused.status, errorOf(refused).error.code]).toEqual([415, 'unsupported_media_type'])
    const bomb = await upload(Buffer.concat([gif, Buffer.alloc(5 * 1024 * 1024)]), 'me.gif')
    expect([bomb.status, errorOf(bomb).error.code]).toEqual([413, 'payload_too_large'])
    await expect.poll(stored).toBe(before + 1)

    for (let count = 0; count < 2; count += 1)
      expect((await send('DELETE', `${profile}/image`, headers)).status).toBe(204)
    expect(await read()).toMatchObject({ profile_image_url: null })
    await expect.poll(stored).toBe(before)

    expect((await upload(gif, 'me.gif')).status).toBe(200)
    expect((await customer('ada', 'DELETE', '/users/user')).status).toBe(204)
    await expect.poll(stored).toBe(before)
    const left = () => shop.context.db.kysely.selectFrom('media').selectAll().execute()
    await expect.poll(left).toEqual([])
  })
})

onEachDatabase('the hub of a user', (open) => {
  test('the hub of a user is the selected one, or else the default one', async () => {
    const { customer } = await ada(open)
    const current = async () => (await customer('ada', 'GET', '/users/user')).json
    expect((await customer('ada', 'POST', '/users/user/default-hub', { hub_id: 1 })).json).toMatchObject({
      user_id: 1,
      current_hub: { id: 1, hub_status: 'active' },
      default_hub_id: 1,
    })
    expect((await customer('ada', 'POST', '/users/user/hub/1')).json).toMatchObject({
      current_hub: { id: 1 },
    })
    expect((await customer('ada', 'POST', '/users/user/default-hub', { hub_id: null })).json).toMatchObject({
      current_hub: { id: 1 },
      default_hub_id: null,
    })
    for (let count = 0; count < 2; count += 1)
      expect((await customer('ada', 'DELETE', '/users/user/hub/1')).status).toBe(204)
    expect(await current()).toMatchObject({ hub: null, selected_hub_id: null, default_hub_id: null })
    const unknown = await customer('ada', 'POST', '/users/user/hub/99')
    expect([unknown.status, errorOf(unknown).error.code]).toEqual([404, 'hub_not_found'])
    const missing = await customer('ada', 'POST', '/users/user/default-hub', {})
    expect([missing.status, complaints(missing)]).toEqual([422, ['body.hub_id missing']])
  })
})

onEachDatabase('push configurations', (open) => {
  const path = '/users/user/push-configs'
  const phone = { device_id: 'phone', push_token: 'a secret', platform: 'ios' }

  test('each device has one push configuration, and no answer contains its token', async () => {
    const { customer, shop } = await ada(open)
    const first = await customer('ada', 'POST', path, { ...phone, app_version: '1.0', locale: 'en-us' })
    expect([first.status, first.json]).toEqual([
      200,
      {
        id: 1,
        device_id: 'phone',
        platform: 'ios',
        app_version: '1.0',
        locale: 'en-US',
        enabled: true,
        created_at: expect.any(String) as string,
        updated_at: expect.any(String) as string,
      },
    ])
    const again = await Promise.all(
      [1, 2, 3].map((n) => customer('ada', 'POST', path, { ...phone, push_token: `secret ${n}` })),
    )
    for (const { status, json } of again) {
      expect([status, json]).toEqual([200, expect.objectContaining({ id: 1, app_version: null })])
      expect(JSON.stringify(json)).not.toContain('secret')
    }
    expect(await shop.context.db.kysely.selectFrom('push_configs').selectAll().execute()).toHaveLength(1)
    expect((await customer('ada', 'DELETE', `${path}?device_id=phone`)).json).toEqual({ deleted: true })
    expect((await customer('ada', 'DELETE', `${path}?device_id=phone`)).json).toEqual({ deleted: false })
  })

  test('a device receives notices of one user at a time', async () => {
    const { customer, shop } = await ada(open)
    await customer('eve', 'POST', '/users/user/bootstrap')
    const register = (name: string, device_id = 'phone') =>
      customer(name, 'POST', path, { ...phone, device_id })
    const rows = () =>
      shop.context.db.kysely.selectFrom('push_configs').select(['user_id', 'device_id']).execute()
    await register('ada')
    await register('eve')
    expect(await rows()).toEqual([{ user_id: 2, device_id: 'phone' }])
    await register('eve', 'the same phone, installed anew')
    expect(await rows()).toEqual([{ user_id: 2, device_id: 'the same phone, installed anew' }])
    const both = await Promise.all(['ada', 'eve', 'ada', 'eve'].map((name) => register(name)))
    expect(both.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await rows()).toHaveLength(1)
    expect((await customer('eve', 'DELETE', `${path}?device_id=nothing`)).json).toEqual({ deleted: false })
  })

  test('the device that was silent longest is removed if a user has too many', async () => {
    const { customer, shop } = await ada(open)
    for (let n = 1; n <= 22; n += 1) {
      shop.clock.advance(1000)
      await customer('ada', 'POST', path, { ...phone, device_id: `device ${n}`, push_token: `token ${n}` })
    }
    const rows = await shop.context.db.kysely.selectFrom('push_configs').select('device_id').execute()
    expect(rows).toHaveLength(20)
    expect(rows.map(({ device_id }) => device_id)).not.toContain('device 2')
    const none = await customer('ada', 'POST', path, { ...phone, push_token: '' })
    expect(none.status).toBe(422)
  })
})
