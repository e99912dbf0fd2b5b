import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { runCommandLine } from '../../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../../cloud/cli/hubs.ts'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { isOutage, outageText, storeProblem } from '../../../../cloud/platform/store/outage.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { randomHex } from '../../../../protocol/model/ids.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../../process/chaos/postgres.ts'
import { administrate, databaseAt } from '../../../support/postgres.ts'
import { missing, service } from '../../../support/services.ts'

const runtime = systemRuntime()
const serverUrl = process.env['TEST_POSTGRES_URL'] ?? ''

/** A database on the shared server, with its own settings. */
async function databaseWith(...settings: string[]): Promise<string> {
  const database = await createPostgresDatabase(serverUrl, runtime)
  onTestFinished(() => database.remove())
  await alter(database.url, ...settings)
  return database.url
}

async function alter(url: string, ...settings: string[]): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  for (const setting of settings) await administrate(serverUrl, `alter database ${name} set ${setting}`)
}

function opened(url: string): CloudDatabase {
  const db = openDatabase({ url })
  onTestFinished(() => db.close())
  return db
}

const problemOf = (url: string): Promise<string | undefined> =>
  opened(url)
    .migrate()
    .then(
      () => undefined,
      (error: unknown) => storeProblem(error, url),
    )

service('postgres')(
  'a search_path without an existing schema is refused by the service and by commands, in a sentence that names DATABASE_URL',
  async () => {
    const inUrl = `${await databaseWith()}?options=-c%20search_path%3Dabsent`
    const inDatabase = await databaseWith('search_path = absent')
    for (const url of [inUrl, inDatabase]) {
      const sentence =
        /DATABASE_URL: \S+ cannot be used: no schema of the search_path "absent" exists in the database "\w+": create the schema/
      expect(await problemOf(url)).toMatch(sentence)
      const outcome = await runCommandLine(hubCommands, runtime, ['list'], { DATABASE_URL: url })
      expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
      expect(outcome.stderr).toMatch(sentence)
    }
    await administrate(inDatabase, 'create schema absent')
    expect(await problemOf(inDatabase)).toBeUndefined()
  },
)

service('postgres')('a session depends on no default of the server, the database or the role', async () => {
  const url = await databaseWith(
    `default_transaction_isolation = 'serializable'`,
    `datestyle = 'German, DMY'`,
    `timezone = 'Asia/Kolkata'`,
    `bytea_output = 'escape'`,
    'extra_float_digits = -10',
    'standard_conforming_strings = off',
    `client_encoding = 'LATIN1'`,
    'lock_timeout = 1',
    'statement_timeout = 300',
    'idle_in_transaction_session_timeout = 50',
    'synchronous_commit = off',
  )
  const db = opened(url)
  await db.migrate()
  const { reads } = defaultLimits.database
  const names = [
    ['transaction_isolation', 'read committed'],
    ['datestyle', 'ISO, MDY'],
    ['timezone', 'UTC'],
    ['bytea_output', 'hex'],
    ['extra_float_digits', '1'],
    ['standard_conforming_strings', 'on'],
    ['client_encoding', 'UTF8'],
    ['lock_timeout', `${reads.lockMs / 1000}s`],
    ['statement_timeout', `${reads.statementMs / 1000}s`],
    ['idle_in_transaction_session_timeout', `${(2 * reads.statementMs + 10_000) / 1000}s`],
    ['synchronous_commit', 'on'],
  ] as const
  for (const [name, value] of names) {
    const { rows } = await sql<{ value: string }>`select current_setting(${name}) as value`.execute(db.kysely)
    expect([name, rows[0]!.value]).toEqual([name, value])
  }
  const text = 'Łukasz 日本 \\ \u{1F36B}'
  await db.kysely.insertInto('owners').values({ name: text }).execute()
  expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: text }])
})

service('postgres')(
  'many transactions on the same rows succeed, even if serializable is the default',
  async () => {
    const url = await databaseWith(`default_transaction_isolation = 'serializable'`)
    const db = opened(url)
    await db.migrate()
    const [{ id }] = (await db.kysely
      .insertInto('owners')
      .values({ name: '0' })
      .returning('id')
      .execute()) as [{ id: number }]
    const increase = () =>
      db.transact(async (tx) => {
        const row = await tx
          .forUpdate(tx.q.selectFrom('owners').select('name').where('id', '=', id))
          .executeTakeFirstOrThrow()
        await tx.q
          .updateTable('owners')
          .set({ name: String(Number(row.name) + 1) })
          .where('id', '=', id)
          .execute()
      })
    await Promise.all(Array.from({ length: 40 }, increase))
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: '40' }])
  },
)

service('postgres')(
  'a server that starts to refuse writes is not ready, and is used again when it accepts them',
  async () => {
    const url = await databaseWith()
    const db = opened(url)
    await db.migrate()
    await db.ping()
    const write = () => db.kysely.insertInto('owners').values({ name: 'A' }).execute()
    await alter(url, 'default_transaction_read_only = on')
    // Open sessions keep their setting. The server ends them, as it does when it becomes a standby.
    const end = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(url).pathname.slice(1)}'`
    await administrate(serverUrl, end)
    // The connections opened before end first.
    await Promise.allSettled([db.ping(), write()])
    const failures = await Promise.all(
      [db.ping(), write()].map((work) => work.catch((error: unknown) => error)),
    )
    for (const error of failures) {
      expect(isOutage(error)).toBe(true)
      expect(outageText(error)?.sentence).toContain('accepts no writes')
    }
    expect(await problemOf(url)).toMatch(
      /^DATABASE_URL: \S+ cannot be used: \S+ accepts no writes: it is a standby/,
    )
    await alter(url, 'default_transaction_read_only = off')
    await db.ping()
    await write()
  },
)

service('postgres')(
  'the health check notices a database that refuses writes in new sessions, although its own session may write',
  async () => {
    const url = await databaseWith()
    const db = opened(url)
    await db.ping()
    await alter(url, 'default_transaction_read_only = on')
    const refused = () =>
      db.ping().then(
        () => '',
        (error: unknown) => String(outageText(error)?.sentence),
      )
    await vi.waitFor(async () => expect(await refused()).toContain('accepts no writes'), {
      timeout: 8000,
      interval: 300,
    })
  },
)

service('postgres')('a session that becomes read-only is dropped at its first refused write', async () => {
  const url = await databaseWith()
  const db = opened(url).for('background')
  await db.migrate()
  await sql`set default_transaction_read_only = on`.execute(db.kysely)
  const write = () => db.kysely.insertInto('owners').values({ name: 'A' }).execute()
  const refused = await write().catch((error: unknown) => error)
  expect(isOutage(refused)).toBe(true)
  await write()
})

service('postgres')('the server that accepts writes is used at any position in the list', async () => {
  const writable = new URL(await databaseWith())
  // One name on one server with three addresses: the second refuses connections, the third is read-only by
  // its options.
  const list = `postgres://${writable.username}@127.0.0.1:1,${writable.host}${writable.pathname}?target_session_attrs=read-write`
  const db = opened(list)
  await db.migrate()
  for (const use of ['requests', 'gateway', 'background'] as const)
    await db.for(use).kysely.insertInto('owners').values({ name: use }).execute()
  await db.ping()
  expect(await problemOf(`postgres://u@127.0.0.1:1,127.0.0.1:2/larder`)).toMatch(
    /^DATABASE_URL: 127\.0\.0\.1:1, 127\.0\.0\.1:2 cannot be used: .*127\.0\.0\.1:1.*; .*127\.0\.0\.1:2/,
  )
})

test.each([
  [
    'a unix socket that is absent',
    'postgres://u@/db?host=/nowhere',
    /\/nowhere\/\.s\.PGSQL\.5432 cannot be used: .*ENOENT/,
  ],
  ['a name that does not exist', 'postgres://u@nowhere.invalid/db', /nowhere\.invalid:5432 cannot be used: /],
  [
    'an authority that cannot be read',
    'postgres://u@127.0.0.1:1/db?sslmode=verify-ca&sslrootcert=/missing',
    /its sslrootcert \/missing cannot be read: there is no such file \(ENOENT\)/,
  ],
  [
    'a malformed address',
    'postgres://u:p@ss@h/db',
    /^DATABASE_URL: user and password must be percent-encoded/,
  ],
])(
  'the start ends because of %s, with one sentence that names DATABASE_URL',
  async (_what, url, sentence) => {
    const problem = await Promise.resolve()
      .then(() => problemOf(url))
      .catch((error: unknown) => storeProblem(error, url))
    expect(problem).toMatch(sentence)
    expect(problem).toMatch(/^DATABASE_URL: /)
    expect(problem).not.toContain('\n')
  },
)

service('postgres')(
  'a missing database, a wrong role and missing rights end the start with one sentence',
  async () => {
    const role = `larder_role_${randomHex(runtime.random, 6)}`
    const url = new URL(await databaseWith())
    await administrate(serverUrl, `create role ${role} login`)
    onTestFinished(() => administrate(serverUrl, `drop role ${role}`))
    expect(await problemOf(databaseAt(serverUrl, 'absent'))).toMatch(
      /^DATABASE_URL: .*database "absent" does not exist$/,
    )
    const stranger = new URL(url)
    stranger.username = 'nobody_here'
    expect(await problemOf(stranger.href)).toMatch(/^DATABASE_URL: .*role "nobody_here" does not exist$/)
    // Since PostgreSQL 15 only the owner of a database creates tables in it.
    await administrate(url.href, 'revoke create on schema public from public')
    stranger.username = role
    expect(await problemOf(stranger.href)).toMatch(/^DATABASE_URL: .*permission denied for schema public$/)
  },
)

service('postgres')('a reading command creates no tables in an empty database', async () => {
  const url = await databaseWith()
  const read = () => runCommandLine(hubCommands, runtime, ['list'], { DATABASE_URL: url })
  expect(await read()).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  const db = opened(url)
  const tables = sql<{
    count: number
  }>`select count(*) from pg_class where relnamespace = 'public'::regnamespace`
  expect((await tables.execute(db.kysely)).rows).toEqual([{ count: 0 }])
})

describe.skipIf(missing('postgres') !== undefined)('databases of another encoding', () => {
  const names = ['LATIN1', 'SQL_ASCII', 'EUC_JP'].map((encoding) => ({
    encoding,
    name: `larder_${encoding.toLowerCase()}_${randomHex(runtime.random, 6)}`,
  }))
  beforeAll(async () => {
    for (const { encoding, name } of names)
      await administrate(
        serverUrl,
        `create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`,
      )
  })
  afterAll(async () => {
    for (const { name } of names) await administrate(serverUrl, `drop database ${name} with (force)`)
  })
  test.each(names)(
    'a database with the encoding $encoding is refused by name',
    async ({ encoding, name }) => {
      expect(await problemOf(databaseAt(serverUrl, name))).toMatch(
        new RegExp(`^DATABASE_URL: .* has the encoding ${encoding}, and the service needs UTF8`),
      )
    },
  )
})

test.each([
  'ENOENT',
  'EACCES',
  'EMFILE',
  'ENFILE',
  'ECONNABORTED',
  'ENOTCONN',
  'EADDRNOTAVAIL',
  'EAI_FAIL',
  'ENOBUFS',
])('the system error %s of a connection is an outage', (code) => {
  expect(isOutage(Object.assign(new Error(`connect ${code}`), { code }))).toBe(true)
})

test.each([
  ['40001', 'could not serialize access', 'fail against each other'],
  ['40P01', 'deadlock detected', 'fail against each other'],
  ['25006', 'cannot execute INSERT in a read-only transaction', 'accepts no writes'],
  ['26000', 'prepared statement "s2" does not exist', 'out of reach'],
  ['28P01', 'password authentication failed', 'out of reach'],
  ['25P03', 'terminating connection due to idle-in-transaction timeout', 'out of reach'],
])('a persistent error %s is an outage: calls get 503', (code, message, sentence) => {
  expect(outageText(Object.assign(new Error(message), { code }))?.sentence).toContain(sentence)
})
