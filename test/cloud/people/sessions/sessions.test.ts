import { expect, test } from 'vitest'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { endSessionsOf } from '../../../../cloud/platform/credentials/sessions.ts'
import { demoPeople } from '../../../../cloud/platform/identity/demo-sign-in.ts'
import { openService, type Service } from '../../../world/service.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { onEachDatabase } from '../../../world/database.ts'

const SESSION = '__Host-larder'
const SIGN_IN = '__Host-larder-sign-in'
const OWNERS = '/api/v1/owners'

onEachDatabase('sessions of browsers', (open) => {
  async function begin(): Promise<{ service: Service; browser: TestBrowser }> {
    const service = await openService(open, { isDemo: true })
    for (const role of ['owner', 'technician', 'analyst'] as const)
      await grantRole(service.shop.context.db.kysely, service.shop.context.runtime, {
        identity: `demo-${role}`,
        role,
        hubs: [1],
      })
    return { service, browser: new TestBrowser(service.cloud.app) }
  }
  const q = ({ shop }: Service) => shop.context.db.kysely

  test('a browser becomes one guest, who fills a cart with the cookie alone', async () => {
    const { service, browser } = await begin()
    expect(await browser.session()).toMatchObject({
      kind: 'none',
      csrf: null,
      user_id: null,
      can_sign_in: true,
    })
    const userId = await browser.becomeGuest()
    expect(await browser.becomeGuest()).toBe(userId)
    expect(await browser.session()).toMatchObject({ kind: 'guest', user_id: userId, roles: [] })
    const cart = await browser.call('POST', `/api/v1/users/${userId}/orders?hub_id=1`)
    expect([cart.status, cart.json]).toEqual([200, expect.objectContaining({ user_id: userId })])
    expect(await q(service).selectFrom('users').select('is_anonymous').execute()).toEqual([
      { is_anonymous: 1 },
    ])
  })

  test('the cookie is HttpOnly, Secure, Lax and of one host, and the database contains only its digest', async () => {
    const { service, browser } = await begin()
    const { headers } = await browser.call('POST', '/session/guest')
    const [cookie] = headers.getSetCookie()
    expect(cookie).toMatch(/^__Host-larder=\w{43}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    const rows = await q(service).selectFrom('sessions').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(browser.cookies.get(SESSION))
    expect(rows).toMatchObject([{ digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string }])
  })

  test('each cell behind one host has its own cookie, so a browser has a session in each', async () => {
    const { service, browser } = await begin()
    service.shop.context.settings.cell = 3
    const { headers } = await browser.call('POST', '/session/guest')
    expect(headers.getSetCookie()[0]).toMatch(/^__Host-larder-3=\w{43};/)
    browser.cookies.set(SESSION, 'of another cell')
    expect(await browser.session()).toMatchObject({ kind: 'guest' })
  })

  test('a page of another origin cannot use the cookie', async () => {
    const { browser } = await begin()
    const userId = await browser.becomeGuest()
    const path = `/api/v1/users/${userId}/orders`
    expect((await browser.call('GET', path)).status).toBe(200)
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect((await browser.call('GET', path, { site })).status).toBe(401)
      expect((await browser.call('POST', `${path}?hub_id=1`, { site })).status).toBe(401)
      expect((await browser.call('GET', '/session', { site })).status).toBe(403)
      expect((await browser.call('POST', '/session/guest', { site })).status).toBe(403)
      expect((await browser.call('DELETE', '/session', { site })).status).toBe(403)
    }
    expect((await browser.open('GET', path, {})).status).toBe(401)
  })

  test('a write needs the CSRF token of its own session', async () => {
    const { service, browser } = await begin()
    const userId = await browser.becomeGuest()
    const other = new TestBrowser(service.cloud.app)
    await other.becomeGuest()
    for (const token of ['', 'é', other.csrf!]) {
      const headers = { 'X-CSRF-Token': token }
      const path = `/api/v1/users/${userId}/orders?hub_id=1`
      expect(await browser.call('POST', path, { headers })).toMatchObject({
        status: 403,
        json: { error: { code: 'forbidden' } },
      })
      expect((await browser.call('DELETE', '/session', { headers })).status).toBe(403)
    }
    expect(await browser.session()).toMatchObject({ kind: 'guest' })
  })

  test('a sign-in replaces the cookie, and the former cookie gives no access', async () => {
    const { service, browser } = await begin()
    const guest = await browser.becomeGuest()
    const planted = browser.cookies.get(SESSION)!
    expect(await browser.signIn('Customer', '/shop/1')).toBe('/shop/1')
    expect(browser.cookies.get(SESSION)).not.toBe(planted)
    expect(browser.cookies.has(SIGN_IN)).toBe(true)
    expect(await browser.session()).toMatchObject({
      kind: 'person',
      email: 'customer@example.org',
      user_id: guest,
    })
    const thief = new TestBrowser(service.cloud.app)
    thief.cookies.set(SESSION, planted)
    expect(await thief.session()).toMatchObject({ kind: 'none' })
    expect((await thief.call('GET', `/api/v1/users/${guest}/orders`)).status).toBe(401)
  })

  test('a guest who signs in keeps the cart, also into an account that exists', async () => {
    const { service, browser } = await begin()
    await browser.signIn('Customer')
    const { user_id: account } = (await browser.call('POST', '/api/v1/users/user/bootstrap')).json as {
      user_id: number
    }
    const phone = new TestBrowser(service.cloud.app)
    const guest = await phone.becomeGuest()
    const { json } = await phone.call('POST', `/api/v1/users/${guest}/orders?hub_id=1`)
    const { order_id } = json as { order_id: number }
    await phone.call('PUT', `/api/v1/users/${guest}/orders/${order_id}/order_item?hub_id=1`, {
      body: { product_id: 1, quantity: 2 },
    })
    await phone.signIn('Customer')
    const cart = await phone.call('GET', `/api/v1/users/${account}/orders/${order_id}?hub_id=1`)
    expect(cart.json).toMatchObject({ user_id: account, items: [{ product_id: 1, qty: 2 }] })
  })

  test.each([
    ['Owner', [200, 200, 200, 422]],
    ['Technician', [200, 403, 403, 403]],
    ['Analyst', [200, 200, 200, 403]],
    ['Customer', [403, 403, 403, 403]],
  ])('the session of the person %s has the rights of the same person with a token', async (as, expected) => {
    const { service, browser } = await begin()
    await browser.signIn(as)
    const calls = [
      ['GET', `${OWNERS}/hubs/get_hub_info?hub_id=1`],
      ['GET', `${OWNERS}/sales`],
      ['GET', `${OWNERS}/hubs/all_orders_paginated?hub_id=1`],
      ['POST', `${OWNERS}/orders/1/refund`],
      ['GET', '/api/v1/users/user'],
      ['POST', '/api/v1/users/user/bootstrap'],
      ['GET', '/api/v1/diag/sysinfo'],
    ] as const
    const token = await service.issuer.token({
      sub: `demo-${as.toLowerCase()}`,
      email: `${as.toLowerCase()}@example.org`,
      email_verified: true,
    })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    await service.send('POST', '/api/v1/users/user/bootstrap', headers)
    const byToken: number[] = []
    const bySession: number[] = []
    for (const [method, path] of calls) {
      const body = path.endsWith('refund') ? { body: { amount: 'much' } } : {}
      bySession.push((await browser.call(method, path, body)).status)
      byToken.push((await service.send(method, path, headers, body.body && JSON.stringify(body.body))).status)
    }
    expect(bySession.slice(0, 4)).toEqual(expected)
    expect(bySession).toEqual(byToken)
  })

  test('a revoked session ends its calls and its stream within 5 s', async () => {
    const { service, browser } = await begin()
    const { clock } = service.shop
    service.cloud.start()
    await browser.signIn('Owner')
    const stream = await browser.open('GET', `${OWNERS}/events/stream`, { 'Sec-Fetch-Site': 'same-origin' })
    expect(stream.status).toBe(200)
    const reader = stream.body!.getReader()
    let hasEnded = false
    const reading = (async () => {
      while (!(await reader.read()).done);
      hasEnded = true
    })()
    expect(await endSessionsOf(q(service), 'demo-owner')).toBe(1)
    const revokedAt = clock.now()
    await expect
      .poll(() => {
        if (!hasEnded) clock.advance(100)
        return hasEnded
      })
      .toBe(true)
    await reading
    expect(clock.now() - revokedAt).toBeLessThanOrEqual(5000)
    expect((await browser.call('GET', `${OWNERS}/sales`)).status).toBe(401)
    expect(await browser.session()).toMatchObject({ kind: 'none' })
  })

  test('a session ends after its idle time, after its maximum time, and at a sign-out', async () => {
    const { service, browser } = await begin()
    const { clock } = service.shop
    const { sessionIdleMs, sessionMs } = service.shop.context.settings
    const isIn = async () => (await browser.call('GET', `${OWNERS}/sales`)).status === 200
    await browser.signIn('Owner')
    const step = sessionIdleMs / 2
    const beganAt = clock.now()
    for (const end = beganAt + sessionMs - step; clock.now() < end; clock.advance(step)) {
      expect(await isIn()).toBe(true)
      await expect
        .poll(
          async () => (await q(service).selectFrom('sessions').select('expires_at').execute())[0]!.expires_at,
        )
        .toBe(Math.min(beganAt + sessionMs, clock.now() + sessionIdleMs))
    }
    clock.advance(beganAt + sessionMs - clock.now() - 1)
    expect(await isIn()).toBe(true)
    clock.advance(1)
    expect(await isIn()).toBe(false)
    await browser.signIn('Owner')
    clock.advance(sessionIdleMs + 1)
    expect(await isIn()).toBe(false)
    await browser.signIn('Owner')
    const cookie = browser.cookies.get(SESSION)!
    expect((await browser.call('DELETE', '/session')).status).toBe(204)
    expect(browser.cookies.has(SESSION)).toBe(false)
    browser.cookies.set(SESSION, cookie)
    clock.advance(2000)
    expect(await isIn()).toBe(false)
  })

  test('the deletion of an account ends its sessions', async () => {
    const { service, browser } = await begin()
    await browser.signIn('Customer')
    await browser.call('POST', '/api/v1/users/user/bootstrap')
    expect((await browser.call('DELETE', '/api/v1/users/user')).status).toBe(204)
    expect(await q(service).selectFrom('sessions').selectAll().execute()).toEqual([])
  })

  test('a sign-in with another state, a used code or in another browser is refused', async () => {
    const { service, browser } = await begin()
    const answer = await browser.open('GET', '/session/sign-in?return_to=/console/today', {})
    const authorize = new URL(answer.headers.get('Location')!)
    expect(Object.fromEntries(authorize.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: 'http://127.0.0.1:8080/session/callback',
    })
    authorize.searchParams.set('as', 'Owner')
    const callback = (await browser.open('GET', authorize.href, {})).headers.get('Location')!
    const changed = new URL(callback)
    changed.searchParams.set('state', 'another')
    const failed = await browser.open('GET', changed.href, {})
    expect([failed.status, failed.headers.get('Content-Type')]).toEqual([401, 'text/html; charset=utf-8'])
    const page = await failed.text()
    expect(page).toContain('The answer does not belong to this sign-in.')
    expect(page).toContain('href="/session/sign-in?return_to=%2Fconsole%2Ftoday"')
    expect(page).toContain('href="/console/today"')
    expect((await new TestBrowser(service.cloud.app).open('GET', callback, {})).status).toBe(401)
    expect((await browser.open('GET', callback, {})).headers.get('Location')).toBe('/console/today')
    expect((await browser.open('GET', callback, {})).status).toBe(401)
  })

  test('a sign-in returns to a path of this service only', async () => {
    const { browser } = await begin()
    for (const to of [
      '//evil.example/a',
      'https://evil.example/',
      '/\\evil.example',
      '/..//evil.example/a',
      '/.//evil.example',
      'javascript:alert(1)',
      '',
    ])
      expect(await browser.signIn('Owner', to)).toBe('/console')
    expect(await browser.signIn('Owner', '/shop/1?a=1')).toBe('/shop/1?a=1')
  })

  test('the demo’s issuer gives codes to its own service only', async () => {
    const { browser } = await begin()
    const query = (uri: string) => `/demo/identity/authorize?as=Owner&redirect_uri=${encodeURIComponent(uri)}`
    for (const uri of ['https://evil.example/session/callback', 'http://127.0.0.1:8080/shop/1', 'nonsense'])
      expect((await browser.open('GET', query(uri), {})).status).toBe(403)
    const own = query('http://127.0.0.1:8080/session/callback')
    expect((await browser.open('GET', own, { Host: 'evil.example' })).status).toBe(403)
    const page = await browser.open('GET', own.replace('as=Owner&', ''), {})
    const text = await page.text()
    for (const person of demoPeople) expect(text).toContain(`>${person}</a>`)
    expect(page.headers.get('Content-Security-Policy')).toContain("frame-ancestors 'none'")
  })

  test('a network makes at most 20 guests and 20 sign-ins a minute', async () => {
    const { service } = await begin()
    const statuses = async (call: (browser: TestBrowser) => Promise<{ status: number }>) => {
      const all = []
      for (let made = 0; made < 21; made += 1)
        all.push((await call(new TestBrowser(service.cloud.app))).status)
      return [new Set(all.slice(0, 20)), all[20]]
    }
    expect(await statuses((one) => one.call('POST', '/session/guest'))).toEqual([new Set([200]), 429])
    expect(await statuses((one) => one.open('GET', '/session/sign-in', {}))).toEqual([new Set([303]), 429])
  })
})
