import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { peopleIn, sessionFile, runPeople } from '../../../edge/local-api/access-files.ts'
import { liveState } from '../../../edge/local-api/local-api.ts'
import { LocalError } from '../../../edge/local-api/local-error.ts'
import { loginRoutes, type LocalApp, type LoginOptions } from '../../../edge/local-api/login-routes.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { openAccess } from '../support/open-access.ts'

const TOKEN = 'the-shared-token-of-this-hub'
const HOUR = 3_600_000
const SECURE = 'https://hub1.local'

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
  const { clock } = runtime
  app.get('/api/live', (c) => liveState(c, { clock, liveMs: 200, isAllowed: c.get('isAllowed') }, () => ({})))
  const cookieOf = (answer: Response): string => answer.headers.get('set-cookie')!.split(';')[0]!
  return {
    clock,
    logged,
    app,
    cookieOf,
    from: (next: string) => void (address = next),
    login: async (token = TOKEN, body: object = {}, base = '') =>
      app.request(`${base}/api/login`, { method: 'POST', body: JSON.stringify({ token, ...body }) }),
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

test('the cookie over TLS has the prefix __Host-, and a cookie without it is refused', async () => {
  const { login, who, cookieOf } = logins()
  const answer = await login(TOKEN, {}, SECURE)
  expect(answer.headers.get('set-cookie')).toMatch(/^__Host-larder_hub=[\w-]{43}; Path=\/; .*; Secure$/)
  const cookie = cookieOf(answer)
  expect(await who({ cookie }, SECURE)).toBe('shared token')
  expect(await who({ cookie: cookie.replace('__Host-', '') }, SECURE)).toBe(401)
})

test('the log names the person who logged in: the typed name, the token’s owner, or the shared token', async () => {
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

test('a live stream ends when its login ends', async () => {
  const { login, logout, app, cookieOf, clock } = logins()
  const cookie = cookieOf(await login())
  const answer = await app.request('/api/live', { headers: { cookie } })
  const reader = answer.body!.getReader()
  expect((await reader.read()).done).toBe(false)
  await logout(cookie)
  const rest = reader.read()
  const turns = async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      clock.advance(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await turns()
  expect((await rest).done).toBe(true)
})

/** A folder with the files of a hub's journal, and the command that changes the list of people. */
function folderOfPeople() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-people-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  const runtime = virtualRuntime()
  const run = (...args: string[]) => runPeople([...args, '--store', store], () => '', runtime)
  const add = (name: string, ...args: string[]) =>
    (JSON.parse(run('add', name, ...args).stdout) as { token: string }).token
  return { store, runtime, run, add }
}

test('a person’s token ends with its expiry or its removal, and so do the person’s sessions', async () => {
  const { store, run, add } = folderOfPeople()
  const runtime = virtualRuntime()
  const people = peopleIn(`${store}.people`, { everyMs: 1000, clock: runtime.clock, log: silentLog })
  const { login, who, cookieOf } = logins({ runtime, people })
  const [ada, bob] = [add('Ada'), add('Bob', '--days', '1')]
  runtime.clock.advance(1000)
  const cookies = [cookieOf(await login(ada, { name: 'Eve' })), cookieOf(await login(bob))]
  expect([await who({ cookie: cookies[0]! }), await who({ cookie: cookies[1]! })]).toEqual(['Ada', 'Bob'])
  expect(await who({ authorization: `Bearer ${ada}` })).toBe('Ada')
  expect(readFileSync(`${store}.people`, 'utf8')).not.toContain(ada)
  expect(statSync(`${store}.people`).mode & 0o777).toBe(0o600)
  run('remove', 'Ada')
  runtime.clock.advance(1000)
  expect([await who({ cookie: cookies[0]! }), await who({ authorization: `Bearer ${ada}` })]).toEqual([
    401, 401,
  ])
  expect((await login(ada)).status).toBe(401)
  runtime.clock.advance(11 * HOUR)
  const late = cookieOf(await login(bob))
  runtime.clock.advance(11 * HOUR)
  expect(await who({ cookie: late })).toBe('Bob')
  runtime.clock.advance(3 * HOUR)
  expect([await who({ cookie: late }), (await login(bob)).status]).toEqual([401, 401])
})

test('the command for people lists people without their tokens, and refuses unknown names and options', () => {
  const { run, add, store } = folderOfPeople()
  const token = add('Ada Lovelace', '--days', '7')
  const listed = run('list')
  expect(JSON.parse(listed.stdout)).toEqual([
    { name: 'Ada Lovelace', created_at: expect.any(String), expires_at: expect.any(String) },
  ])
  expect(listed.stdout).not.toContain(token)
  expect(run('add', 'Ada Lovelace')).toMatchObject({ exitCode: 1 })
  expect(run('remove', 'Eve')).toMatchObject({ exitCode: 1, stderr: 'error: no such person: Eve\n' })
  for (const wrong of [[], ['add'], ['list', 'x'], ['add', ''], ['add', 'a\nb'], ['add', 'X', '--days', '0']])
    expect([wrong, run(...wrong).exitCode]).toEqual([wrong, 2])
  expect(existsSync(`${store}.people.new`)).toBe(false)
})

test('the command for people refuses an empty option and an option that is given twice', () => {
  const listed = (...args: string[]) =>
    runPeople(['list', ...args], () => '/nowhere/journal', virtualRuntime())
  expect(listed()).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  for (const option of ['config', 'store', 'days']) {
    for (const empty of ['', ' '])
      expect(listed(`--${option}`, empty)).toMatchObject({
        exitCode: 2,
        stderr: `error: --${option} needs a value\n`,
      })
    expect(listed(`--${option}=1`, `--${option}=2`)).toMatchObject({
      exitCode: 2,
      stderr: `error: --${option} is given twice\n`,
    })
  }
})

test('sessions survive a restart of the service, and a damaged file ends them', async () => {
  const { store } = folderOfPeople()
  const file = sessionFile(`${store}.sessions`, silentLog)
  const runtime = virtualRuntime()
  const before = logins({ runtime, sessionFile: file })
  const cookie = before.cookieOf(await before.login(TOKEN, { name: 'Ada' }))
  expect(await logins({ runtime, sessionFile: file }).who({ cookie })).toBe('Ada')
  expect(readFileSync(`${store}.sessions`, 'utf8')).not.toContain(cookie.split('=')[1])
  expect(await logins({ runtime, sessionFile: file, token: 'another-shared-token' }).who({ cookie })).toBe(
    401,
  )
  const damaged = { read: () => '{"half', write: () => {} }
  expect(await logins({ runtime, sessionFile: damaged }).who({ cookie })).toBe(401)
})
