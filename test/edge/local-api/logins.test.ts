import { scryptSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { sessionFile } from '../../../edge/local-api/access-files.ts'
import { LocalError } from '../../../edge/local-api/local-error.ts'
import { loginRoutes, type LocalApp, type LoginOptions } from '../../../edge/local-api/login-routes.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { pinDigestOf } from '../../../protocol/model/pin.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { openAccess } from '../support/open-access.ts'

const TOKEN = 'the-shared-token-of-this-hub'
const HOUR = 3_600_000
const SECURE = 'https://hub1.local'

/** A digest of the first version: its check takes a quarter of the processor time of a new one. */
function cheapDigestOf(pin: string): string {
  const salt = Buffer.alloc(16)
  return `${salt.toString('hex')}.${scryptSync(pin, salt, 32, { N: 2 ** 14, p: 1 }).toString('hex')}`
}

/** The logins of a hub on a virtual clock, with browsers and programs. */
function logins(changes: Partial<LoginOptions> = {}) {
  const runtime = virtualRuntime()
  const logged: object[] = []
  let address = '192.0.2.9'
  const app: LocalApp = new Hono()
  app.onError((error, c) => {
    if (!(error instanceof LocalError)) throw error
    return c.json(error.body(), error.status)
  })
  loginRoutes(app, {
    token: TOKEN,
    ...openAccess,
    runtime,
    log: { ...silentLog, info: (fields) => void logged.push(fields) },
    addressOf: () => address,
    ...changes,
  })
  app.get('/api/who', (c) => c.json({ person: c.get('actor').person ?? 'shared token' }))
  const cookieOf = (answer: Response): string => answer.headers.get('set-cookie')!.split(';')[0]!
  return {
    clock: runtime.clock,
    logged,
    app,
    cookieOf,
    from: (next: string) => void (address = next),
    login: async (token = TOKEN, body: object = {}, base = '') =>
      app.request(`${base}/api/login`, { method: 'POST', body: JSON.stringify({ token, ...body }) }),
    loginPerson: async (name: string, pin: string) =>
      app.request('/api/login', { method: 'POST', body: JSON.stringify({ name, pin }) }),
    logout: async (cookie: string, headers: Record<string, string> = {}) =>
      app.request('/api/logout', { method: 'POST', headers: { cookie, ...headers } }),
    who: async (headers: Record<string, string>, base = '') => {
      const answer = await app.request(`${base}/api/who`, { headers })
      return answer.status === 200 ? ((await answer.json()) as { person: string }).person : answer.status
    },
  }
}

test('a logout ends the session at the hub: its cookie is refused, and other sessions continue', async () => {
  const { login, logout, who, cookieOf } = logins()
  const [first, second] = [cookieOf(await login()), cookieOf(await login())]
  expect(first).not.toBe(second)
  await logout(first, { origin: 'https://evil.example', host: 'hub1.local' })
  expect(await who({ cookie: first })).toBe('shared token')
  await logout(first)
  expect([await who({ cookie: first }), await who({ cookie: second })]).toEqual([401, 'shared token'])
})

test('a session ends after its time, and its cookie contains no token', async () => {
  const { login, who, cookieOf, clock } = logins()
  const answer = await login()
  expect(answer.headers.get('set-cookie')).toMatch(/Max-Age=43200; HttpOnly; SameSite=Strict$/)
  expect(answer.headers.get('set-cookie')).not.toContain(TOKEN)
  clock.advance(12 * HOUR - 1)
  expect(await who({ cookie: cookieOf(answer) })).toBe('shared token')
  clock.advance(1)
  expect(await who({ cookie: cookieOf(answer) })).toBe(401)
})

test('the page of another site can neither log in nor use the cookie', async () => {
  const { login, who, app, cookieOf } = logins()
  const body = JSON.stringify({ token: TOKEN })
  const foreign = { 'sec-fetch-site': 'cross-site' }
  expect((await app.request('/api/login', { method: 'POST', headers: foreign, body })).status).toBe(401)
  const cookie = cookieOf(await login())
  const host = 'hub1.local'
  expect(await who({ cookie, host, origin: 'http://hub1.local' })).toBe('shared token')
  for (const headers of [{ host, origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }])
    expect(await who({ cookie, ...headers })).toBe(401)
  expect(await who({ cookie: `${cookie}x` })).toBe(401)
})

test('a session that began while the clock was ahead by more than an hour ends with the correction of the clock', async () => {
  const { clock, login, who, cookieOf } = logins()
  const early = cookieOf(await login())
  clock.shiftWall(-1000)
  expect(await who({ cookie: early })).toBe('shared token')
  clock.shiftWall(50 * 8760 * HOUR)
  const cookie = cookieOf(await login())
  clock.shiftWall(-50 * 8760 * HOUR)
  expect(await who({ cookie })).toBe(401)
  clock.advance(30 * 24 * HOUR)
  expect(await who({ cookie })).toBe(401)
})

test('the cookie over TLS has the prefix __Host-, and a cookie without it is refused', async () => {
  const { login, who, cookieOf } = logins()
  const answer = await login(TOKEN, {}, SECURE)
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-larder_hub=[\w-]{43}; Path=\/; .*; Secure$/)
  const cookie = cookieOf(answer)
  expect(await who({ cookie }, SECURE)).toBe('shared token')
  expect(await who({ cookie: cookie.replace('__Host-', '') }, SECURE)).toBe(401)
})

test('the log names the person who logged in: the typed name, or the shared token', async () => {
  const { login, who, logged, cookieOf } = logins()
  const cookie = cookieOf(await login(TOKEN, { name: ' Ada ' }))
  expect(await who({ cookie })).toBe('Ada')
  await login()
  expect(logged).toEqual([{ by: 'Ada' }, { by: 'shared token' }])
  for (const name of ['', ' ', 'x'.repeat(61), 7]) expect((await login(TOKEN, { name })).status).toBe(422)
})

test('after twenty wrong tokens a network waits, up to a minute, and other networks do not', async () => {
  const { login, who, from, clock } = logins()
  const statuses: number[] = []
  for (let guess = 0; guess < 300; guess += 1) statuses.push((await login(`guess-${guess}`)).status)
  expect(statuses.filter((status) => status === 401)).toHaveLength(20)
  const refused = await login()
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '1'])
  expect(await who({ authorization: `Bearer ${TOKEN}` })).toBe(429)
  from('192.0.2.10')
  expect((await login()).status).toBe(200)
  from('192.0.2.9')
  let checked = 0
  for (let second = 0; second < 600; second += 1) {
    clock.advance(1000)
    if ((await login(`again-${second}`)).status === 401) checked += 1
  }
  expect(checked).toBeLessThan(20)
  clock.advance(60_000)
  expect((await login()).status).toBe(200)
})

test('an IPv6 network shares its delay, and open sessions continue during a delay', async () => {
  const { login, who, from, cookieOf } = logins()
  from('2001:db8::1')
  const cookie = cookieOf(await login())
  for (let guess = 0; guess < 21; guess += 1) await login(`guess-${guess}`)
  from('2001:db8::ffff')
  expect((await login()).status).toBe(429)
  expect(await who({ cookie })).toBe('shared token')
})

test('a person logs in with name and PIN, and the session ends when the person is removed or gets another PIN', async () => {
  const runtime = virtualRuntime()
  const person = async (name: string, pin: string) => ({
    name,
    pin_digest: await pinDigestOf(pin, runtime.random),
  })
  let people = [await person('Ada', '2718'), await person('Bob', '31415')]
  const { loginPerson, who, cookieOf } = logins({ runtime, people: () => people })
  expect((await loginPerson('Ada', '31415')).status).toBe(401)
  expect((await loginPerson('Eve', '2718')).status).toBe(401)
  const [ada, bob] = [cookieOf(await loginPerson('ada', '2718')), cookieOf(await loginPerson('Bob', '31415'))]
  expect([await who({ cookie: ada }), await who({ cookie: bob })]).toEqual(['Ada', 'Bob'])
  expect(await who({ authorization: 'Bearer 2718' })).toBe(401)
  people = [people[1]!]
  expect([await who({ cookie: ada }), await who({ cookie: bob })]).toEqual([401, 'Bob'])
  expect((await loginPerson('Ada', '2718')).status).toBe(401)
  people = [await person('Bob', '1618')]
  expect(await who({ cookie: bob })).toBe(401)
})

test('wrong PINs of one name from several networks share a delay, which stops neither other names nor the token', async () => {
  const runtime = virtualRuntime()
  const people = [{ name: 'Ada', pin_digest: cheapDigestOf('2718') }]
  const { login, loginPerson, from } = logins({
    runtime,
    people: () => people,
    guesses: { ...openAccess.guesses, free: 3 },
  })
  for (const guess of [1, 2, 3]) {
    from(`192.0.2.${guess}`)
    expect((await loginPerson('ADA', `000${guess}`)).status).toBe(401)
  }
  from('192.0.2.9')
  expect((await loginPerson('Ada', '2718')).status).toBe(429)
  expect((await loginPerson('Bob', '2718')).status).toBe(401)
  expect((await login()).status).toBe(200)
  runtime.clock.advance(1000)
  expect((await loginPerson('Ada', '2718')).status).toBe(200)
})

/** Sends wrong PINs concurrently, each from its network. Returns the number of checked, delayed and other attempts. */
async function concurrentGuesses(senders: { network: string; name: string }[], free: number) {
  const digest = cheapDigestOf('2718')
  const people = senders.map(({ name }) => ({ name, pin_digest: digest }))
  const { app } = logins({
    people: () => people,
    guesses: { ...openAccess.guesses, free },
    addressOf: (c) => c.req.header('x-network')!,
  })
  const answers = await Promise.all(
    senders.map(async ({ network, name }) =>
      app.request('/api/login', {
        method: 'POST',
        headers: { 'x-network': network },
        body: JSON.stringify({ name, pin: '0000' }),
      }),
    ),
  )
  const delayed = answers.filter(
    ({ status, headers }) => status === 429 && headers.get('Retry-After') === '1',
  )
  const checked = answers.filter(({ status }) => status === 401)
  return { checked: checked.length, delayed: delayed.length }
}
const sixty = Array.from({ length: 60 }, (_, index) => index)

test('of sixty concurrent wrong PINs of one network only the permitted ones are checked', async () => {
  const senders = sixty.map((index) => ({ network: '192.0.2.1', name: `Name ${index}` }))
  expect(await concurrentGuesses(senders, 3)).toEqual({ checked: 3, delayed: 57 })
})

test('at most 4 PINs of one network wait for their check, so that other networks have places', async () => {
  const one = sixty.map((index) => ({ network: '192.0.2.1', name: `Name ${index}` }))
  expect(await concurrentGuesses(one, 20)).toEqual({ checked: 4, delayed: 56 })
  const others = sixty.slice(0, 28).map((index) => ({ network: `192.0.3.${index}`, name: `Other ${index}` }))
  expect(await concurrentGuesses([...one, ...others], 20)).toEqual({ checked: 32, delayed: 56 })
})

test('of sixty concurrent wrong PINs of one name only the permitted ones are checked, from any network', async () => {
  const senders = sixty.map((index) => ({ network: `192.0.2.${index}`, name: 'Ada' }))
  expect(await concurrentGuesses(senders, 5)).toEqual({ checked: 5, delayed: 55 })
})

test('at most 32 PINs wait for their check, whatever their networks and names are', async () => {
  const senders = sixty.map((index) => ({ network: `192.0.2.${index}`, name: `Name ${index}` }))
  expect(await concurrentGuesses(senders, 20)).toEqual({ checked: 32, delayed: 28 })
})

test('a correct PIN does not count as an attempt', async () => {
  const people = [{ name: 'Ada', pin_digest: cheapDigestOf('2718') }]
  const guesses = { ...openAccess.guesses, free: 2 }
  const { loginPerson } = logins({ people: () => people, guesses })
  const pins = ['0000', '2718', '2718', '2718', '0000', '2718']
  const statuses: number[] = []
  for (const pin of pins) statuses.push((await loginPerson('Ada', pin)).status)
  expect(statuses).toEqual([401, 200, 200, 200, 401, 429])
})

test('wrong PINs from a foreign network do not keep a person out of the network of a former login', async () => {
  const people = [{ name: 'Ada', pin_digest: cheapDigestOf('2718') }]
  const guesses = { ...openAccess.guesses, free: 3 }
  const { loginPerson, from } = logins({ people: () => people, guesses })
  expect((await loginPerson('Ada', '2718')).status).toBe(200)
  from('192.0.2.66')
  for (let guess = 0; guess < 3; guess += 1) await loginPerson('ada', '0000')
  from('192.0.2.67')
  expect((await loginPerson('Ada', '2718')).status).toBe(429)
  from('192.0.2.9')
  expect((await loginPerson('ADA', '2718')).status).toBe(200)
  for (let guess = 0; guess < 3; guess += 1) expect((await loginPerson('Ada', '0000')).status).toBe(401)
  expect((await loginPerson('Ada', '2718')).status).toBe(429)
})

test('invented names do not delete the count of a network', async () => {
  const { loginPerson, login, from } = logins({ guesses: { ...openAccess.guesses, free: 3, networks: 3 } })
  for (let guess = 0; guess < 3; guess += 1) await login(`guess-${guess}`)
  from('192.0.2.66')
  for (const name of ['One', 'Two', 'Three']) expect((await loginPerson(name, '0000')).status).toBe(401)
  from('192.0.2.9')
  expect((await login()).status).toBe(429)
})

test('sessions survive a restart of the service, and a damaged file ends them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-sessions-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'hub.sqlite.sessions')
  const file = sessionFile(path, silentLog)
  const runtime = virtualRuntime()
  const before = logins({ runtime, sessionFile: file })
  const cookie = before.cookieOf(await before.login(TOKEN, { name: 'Ada' }))
  expect(await logins({ runtime, sessionFile: file }).who({ cookie })).toBe('Ada')
  expect(readFileSync(path, 'utf8')).not.toContain(cookie.split('=')[1])
  expect(await logins({ runtime, sessionFile: file, token: 'another-shared-token' }).who({ cookie })).toBe(
    401,
  )
  const damaged = { read: () => '{"half', write: () => {} }
  expect(await logins({ runtime, sessionFile: damaged }).who({ cookie })).toBe(401)
})
