import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import {
  openDatabase,
  type CloudDatabase,
  type Queries,
  type Tx,
} from '../../../../cloud/platform/store/database.ts'
import { enqueue } from '../../../../cloud/gateway/outbox.ts'
import { outageText } from '../../../../cloud/platform/store/outage.ts'
import type { PoolLimits } from '../../../../cloud/platform/settings/limits.ts'
import { isolated } from '../../../../cloud/platform/work/background.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../../process/chaos/postgres.ts'
import { service } from '../../../support/services.ts'
import { hubRow } from '../../../world/seeds.ts'
import { openCloud } from '../../../world/cloud.ts'
import { emptySqlite } from '../../../world/database.ts'

/** Limits that are short enough for a test. */
const short: PoolLimits = { connections: 2, waitMs: 1000, lockMs: 700, statementMs: 2000 }
const pools = { reads: short, writes: short, gateway: short, background: short }

async function onPostgres(): Promise<CloudDatabase> {
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, systemRuntime())
  const db = openDatabase({ url: database.url, pools })
  onTestFinished(async () => {
    await db.close()
    await database.remove()
  })
  return db
}

service('postgres')(
  'PostgreSQL: hanging connections of one use do not block other uses, and no call waits without end',
  async () => {
    const db = await onPostgres()
    const hang = (q: Queries) =>
      sql`select pg_sleep(60)`.execute(q).catch((error: unknown) => outageText(error)?.sentence)
    const [first, second, third] = await Promise.all([1, 2, 3].map(() => hang(db.kysely)))
    // Two calls have the read connections, and the third gets none in time.
    expect(first).toContain('does not answer in time')
    expect([second, third]).toEqual([first, first])
    expect(db.connections()['reads']).toMatchObject({ size: 2, waiting: 0, refused: 1 })

    const hanging = Promise.all([1, 2].map(() => hang(db.kysely)))
    for (const use of ['gateway', 'background'] as const) {
      const { rows } = await sql`select 1 as one`.execute(db.for(use).kysely)
      expect(rows).toEqual([{ one: 1 }])
    }
    expect(await db.transact(({ q }) => sql`select 1 as one`.execute(q))).toMatchObject({
      rows: [{ one: 1 }],
    })
    await db.ping()
    await hanging
    expect((await sql`select 1 as one`.execute(db.kysely)).rows).toEqual([{ one: 1 }])
  },
)

service('postgres')('PostgreSQL: a call waits for a lock no longer than the setting allows', async () => {
  const db = await onPostgres()
  await db.migrate()
  await db.kysely.insertInto('owners').values({ name: 'A' }).execute()
  const rename = (name: string) => (tx: Tx) => tx.q.updateTable('owners').set({ name }).execute()
  let outcome: unknown
  await db.transact(async (tx) => {
    await rename('B')(tx)
    outcome = await db
      .for('gateway')
      .transact(rename('C'))
      .catch((error: unknown) => outageText(error)?.sentence)
  })
  expect(outcome).toContain('locked')
  expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: 'B' }])
})

service('postgres')(
  'PostgreSQL: simultaneous statements of a transaction fail with the error of the first failed one',
  async () => {
    const db = await onPostgres()
    await db.migrate()
    await db.kysely.insertInto('owners').values({ name: 'A' }).execute()
    await db.kysely
      .insertInto('hubs')
      .values(hubRow({ name: 'Hub' }))
      .execute()
    const enqueueOne = (tx: Tx) => enqueue(tx, 1, { kind: 'order.cancelled', order_id: 'none' } as never)
    let outcome: unknown
    await db.transact(async (tx) => {
      await enqueueOne(tx)
      outcome = await db
        .for('gateway')
        .transact(async (other) => {
          const enqueued = enqueueOne(other)
          enqueued.catch(() => {})
          // The process is busy until the server has answered all statements.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * short.lockMs)
          await enqueued
        })
        .catch((error: unknown) => error)
    })
    expect(outcome).toMatchObject({ code: '55P03' })
  },
)

test.each([
  ['SQLITE_FULL', '', 'the disk of the database is full'],
  ['53100', 'could not extend file', 'the disk of the database is full'],
  ['SQLITE_CORRUPT', '', 'the database is damaged'],
  ['SQLITE_NOTADB', '', 'the database is damaged'],
  ['XX001', 'invalid page in block 0', 'the database is damaged'],
  ['SQLITE_BUSY', '', 'others keep the database locked'],
  ['55P03', 'canceling statement due to lock timeout', 'others keep the database locked'],
  ['57014', 'canceling statement due to statement timeout', 'the database does not answer in time'],
  [undefined, 'Query read timeout', 'the database does not answer in time'],
  [undefined, 'timeout exceeded when trying to connect', 'the database does not answer in time'],
  ['ECONNREFUSED', '', 'the database is out of reach'],
  ['57P01', 'terminating connection', 'the database is out of reach'],
  ['23505', 'duplicate key', undefined],
  [undefined, 'a fault of ours', undefined],
])('the database error %s "%s" has the description: %s', (code, message, sentence) => {
  const error = Object.assign(new Error(message), code !== undefined && { code })
  const words = outageText(error)
  if (sentence === undefined) expect(words).toBeUndefined()
  else expect(words).toEqual({ sentence: expect.stringContaining(sentence) as string, reason: message })
})

service('postgres')(
  'PostgreSQL: a transaction with a failed statement is never reported as done, even if the error was ignored',
  async () => {
    const db = await onPostgres()
    await sql`create table kept (n int)`.execute(db.kysely)
    const written = db.transact(async ({ q }) => {
      await sql`insert into kept values (1)`.execute(q)
      await sql`select 1 / 0`.execute(q).catch(() => {})
    })
    await expect(written).rejects.toMatchObject({ code: '22012' })
    expect((await sql`select n from kept`.execute(db.kysely)).rows).toEqual([])
  },
)

test('a full disk is described in one sentence to a writing call, and reading calls are served', async () => {
  const sqlite = await emptySqlite()
  const db = openDatabase({ url: 'sqlite::memory:', sqlite })
  const lines: unknown[] = []
  const log = { ...silentLog, error: (about: object, text: string) => void lines.push({ ...about, text }) }
  const fill = () =>
    db.transact(({ q }) =>
      q
        .insertInto('owners')
        .values({ name: 'x'.repeat(100_000) })
        .execute(),
    )
  const { call, key, issuer } = await openCloud({
    db,
    log,
    handlers: { 'owner.hubs.list': () => fill() as never },
  })
  const token = await issuer.token({ phone_number: '+12175550123' })
  await call('POST', '/users/user/bootstrap', { token, body: {} })
  const mine = await key(['hubs:read'])
  await call('GET', '/api/v1/owners/hub_ids', { key: mine })
  lines.length = 0
  sqlite.pragma(`max_page_count = ${String(sqlite.pragma('page_count', { simple: true }))}`)

  const answer = await call('GET', '/api/v1/owners/hubs', { key: mine })
  expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '5'])
  expect((await call('GET', '/users/user', { token })).status).toBe(200)
  await isolated({ log }, 'due work', fill)
  const text = 'the disk of the database is full: calls that write are answered 503 until there is room'
  const reason = 'database or disk is full'
  expect(lines).toEqual([
    { requestId: expect.any(String) as string, path: '/api/v1/owners/hubs', reason, text },
    { during: 'due work', reason, text },
  ])
})
