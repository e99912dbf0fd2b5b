import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { migrate } from '../../cloud/platform/store/migrate.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { seedHubs } from '../world/seeds.ts'
import { programFolder, startCloud } from './support/program.ts'

async function takenPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('the cloud serves, and ends gracefully on SIGTERM', { timeout: 60_000 }, async () => {
  const { child, exited, ready } = startCloud({})
  const port = await ready()
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  expect(await answer.json()).toMatchObject({ service: 'larder', status: 'ok' })
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})

test(
  'with DRAIN_MS the cloud is not ready and still serves before it stops',
  { timeout: 60_000 },
  async () => {
    const { child, exited, ready } = startCloud({ DRAIN_MS: '1500', DOCS: 'off' })
    const port = await ready()
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
    expect(await Promise.all(['/readyz', '/', '/docs', '/docs/x.js', '/openapi.json'].map(status))).toEqual([
      200, 200, 404, 404, 404,
    ])
    const begun = performance.now()
    child.kill('SIGTERM')
    await expect.poll(() => status('/readyz')).toBe(503)
    expect([await status('/'), await status('/healthz')]).toEqual([200, 200])
    expect(await exited).toBe(0)
    expect(performance.now() - begun).toBeGreaterThan(1500)
  },
)

test('live streams end on SIGTERM, and do not delay the exit', { timeout: 60_000 }, async () => {
  const folder = programFolder()
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  await db.migrate()
  await seedHubs(db)
  const request = { name: 'test', ownerId: 1, scopes: ['events:read'], hubs: '*', expiresAt: null } as const
  const { key } = await issueApiKey(db.kysely, systemRuntime(), request)
  await db.close()
  const { child, exited, ready } = startCloud({ DATA_DIR: folder })
  const url = `http://127.0.0.1:${await ready()}/api/v1/owners/events/stream`
  const answer = await fetch(url, { headers: { 'X-API-Key': key } })
  const reader = answer.body!.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(': ok\n\n')
  const startedAt = performance.now()
  child.kill('SIGTERM')
  expect((await reader.read()).done).toBe(true)
  expect(await exited).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(4000)
})

test('the cloud’s files are unreadable for other users, with any umask', { timeout: 60_000 }, async () => {
  const folder = join(programFolder(), 'data')
  const umask = process.umask(0o022)
  const { ready } = startCloud({
    DATA_DIR: folder,
    DATABASE_URL: `sqlite:${join(folder, 'db', 'larder.sqlite')}`,
  })
  process.umask(umask)
  await ready()
  const open = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => ({ name, mode: statSync(join(folder, name)).mode }))
    .filter(({ mode }) => (mode & 0o077) !== 0)
  expect(open).toEqual([])
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(readdirSync(join(folder, 'logs')).length).toBeGreaterThan(0)
})

test('a port in use is reported with its setting', { timeout: 60_000 }, async () => {
  const port = await takenPort()
  const settings = ['PORT', 'MQTT_PORT']
  const starts = settings.map((setting) => startCloud({ [setting]: String(port) }))
  for (const [index, { exited, output }] of starts.entries()) {
    expect(await exited).toBe(1)
    expect(output()).toBe(
      `larder cloud: port ${port} of 127.0.0.1 is in use: set ${settings[index]} to another one\n`,
    )
  }
})

test('the cloud reports invalid settings and does not start', { timeout: 60_000 }, async () => {
  const wrong = startCloud({ PORT: 'http' })
  const production = startCloud({ NODE_ENV: 'production' })
  const absent = startCloud({}, '--config', '/nowhere.json')
  for (const { exited } of [wrong, production, absent]) expect(await exited).toBe(1)
  expect(wrong.output()).toContain('larder cloud: PORT (environment): must be a whole number')
  expect(production.output()).toMatch(/PAYMENTS_URL: .*refused[^]*IDENTITY_ISSUER: .*refused/)
  expect(absent.output()).toContain('/nowhere.json')
})

test(
  'a damaged database is reported in a sentence, with its file and the remedy',
  { timeout: 60_000 },
  async () => {
    const folder = programFolder()
    writeFileSync(join(folder, 'larder.sqlite'), 'no database, but some random bytes '.repeat(200))
    const { exited, output } = startCloud({ DATA_DIR: folder })
    expect(await exited).toBe(1)
    expect(output()).toMatch(
      /^larder cloud: DATABASE_URL: \/\S+\/larder\.sqlite is damaged \(.*\): put a backup[^\n]*\n$/,
    )
  },
)

test(
  'a list of revoked rights that cannot be read stops the start with its file',
  { timeout: 60_000 },
  async () => {
    const starts = ['revoked-certificates', 'ended-rights'].map((name) => {
      const folder = programFolder()
      const file = join(folder, `${name}.json`)
      // Root may read every file, but no folder as a file.
      mkdirSync(file)
      return { file, program: startCloud({ DATA_DIR: folder }) }
    })
    for (const { file, program } of starts) {
      expect(await program.exited).toBe(1)
      expect(program.output()).toContain(`larder cloud: DATA_DIR: ${file} cannot be read: `)
    }
  },
)

test(
  'a damaged list of revoked rights stops the start with its file and the remedy',
  { timeout: 60_000 },
  async () => {
    const folder = programFolder()
    const file = join(folder, 'revoked-certificates.json')
    writeFileSync(file, '[{"serial":')
    const { exited, output } = startCloud({ DATA_DIR: folder })
    expect(await exited).toBe(1)
    expect(output()).toContain(
      `larder cloud: DATA_DIR: ${file} is damaged. Put back an undamaged copy, or move`,
    )
  },
)

test('a database of newer software is refused in a sentence with its file', { timeout: 60_000 }, async () => {
  const folder = programFolder()
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  await migrate(db.kysely, db.kind, { numbered: [{ name: '9999-next', statements: () => [] }] })
  await db.close()
  const { exited, output } = startCloud({ DATA_DIR: folder })
  expect(await exited).toBe(1)
  expect(output()).toMatch(
    /^larder cloud: DATABASE_URL: \/\S+\/larder\.sqlite cannot be used: its schema is 9999-next, this software knows \d{4}-[a-z-]+: newer software has written it\. Install that version again, or put back a backup from before the upgrade\n$/,
  )
})

test(
  'a database without hubs is reported in a sentence, with its file and the remedy, because it may be a lost one',
  { timeout: 60_000 },
  async () => {
    const folder = programFolder()
    const lost = startCloud({ DATA_DIR: folder })
    await lost.ready()
    const [line] = lost
      .output()
      .split('\n')
      .filter((each) => each.includes('has no hubs'))
      .map((each) => JSON.parse(each) as { level: number; msg: string })
    expect(line).toMatchObject({ level: 40 })
    expect(line!.msg).toMatch(
      /^DATABASE_URL: \/\S+\/larder\.sqlite has no hubs\. .* put a backup in its place/,
    )
    lost.child.kill('SIGTERM')
    await lost.exited
    const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
    await seedHubs(db)
    await db.close()
    const found = startCloud({ DATA_DIR: folder })
    await found.ready()
    expect(found.output()).not.toContain('has no hubs')
  },
)

test(
  'an unusable store is reported in a sentence, with its setting and place',
  { timeout: 60_000 },
  async () => {
    const file = fileURLToPath(import.meta.url)
    const starts = [
      startCloud({ DATABASE_URL: 'postgres://larder:secret@127.0.0.1:1/larder' }),
      startCloud({ DATA_DIR: join(file, 'data'), LOG_DIR: tmpdir() }),
      startCloud({ LOG_DIR: join(file, 'logs') }),
      startCloud({}, '--config', '/nowhere.json'),
    ]
    for (const { exited } of starts) expect(await exited).toBe(1)
    expect(starts.map(({ output }) => output())).toEqual([
      expect.stringMatching(/larder cloud: DATABASE_URL: 127.0.0.1:1 cannot be used: .*ECONNREFUSED/),
      expect.stringMatching(
        /^larder cloud: DATA_DIR: .+\/data cannot be used: a part of the path is no folder \(ENOTDIR\)\n$/,
      ),
      expect.stringMatching(
        /^larder cloud: LOG_DIR: .+\/logs cannot be used: a part of the path is no folder \(ENOTDIR\)\n$/,
      ),
      'larder cloud: --config: /nowhere.json cannot be read: there is no such file (ENOENT)\n',
    ])
  },
)

test('every program prints its version, and reports a build without git', { timeout: 60_000 }, async () => {
  const { exited, output } = startCloud({}, '--version')
  expect(await exited).toBe(0)
  const isInGit = spawnSync('git', ['rev-parse', 'HEAD']).status === 0
  expect(output()).toMatch(
    isInGit
      ? /^larder \d{4}\.\d{1,2}\.\d{1,2}\+[0-9a-f]{7,} \(Node [\d.]+\)\n$/
      : /^larder 0\.0\.0\+unknown \(built without git, Node [\d.]+\)\n$/,
  )
})

test(
  'an issuer without keys is logged at the start, and named by readiness',
  { timeout: 60_000 },
  async () => {
    const { output } = startCloud({ IDENTITY_ISSUER: 'http://127.0.0.1:1' })
    await expect.poll(output, { timeout: 45_000 }).toContain('not ready: IDENTITY_ISSUER: no keys')
    expect(output()).not.toContain('cloud is ready')
    const line = output()
      .split('\n')
      .find((each) => each.includes('not ready: IDENTITY_ISSUER'))!
    const { port } = JSON.parse(line) as { port: number }
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { status: 'not ready', failing: ['identity'] },
    ])
  },
)
