import { spawn } from 'node:child_process'
import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { storeProblem } from '../../cloud/platform/store/outage.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { startCloud } from '../cloud/support/program.ts'
import { openShop } from '../world/shop.ts'
import { onPath } from '../support/on-path.ts'
import { service } from '../support/services.ts'
import { freePorts } from '../support/ports.ts'
import { asPostgres, createPostgresDatabase, postgresFolder } from './chaos/postgres.ts'

/** The file that operators copy from the package's examples. */
const packaged = resolve(import.meta.dirname, '../../cloud/packaging/proxies/pgbouncer.ini')
const runtime = systemRuntime()

/** Starts PgBouncer with its packaged file; only addresses, paths and `changes` differ. */
async function startPgbouncer(...changes: (readonly [from: string, to: string])[]) {
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
  onTestFinished(() => database.remove())
  const { hostname, port: serverPort, pathname } = new URL(database.url)
  const [port] = (await freePorts(1)) as [number]
  const folder = postgresFolder()
  const userList = join(folder, 'userlist.txt')
  let text = readFileSync(packaged, 'utf8')
  for (const [from, to] of [
    [
      'host=127.0.0.1 port=5432 dbname=larder',
      `host=${hostname} port=${serverPort} dbname=${pathname.slice(1)}`,
    ],
    ['listen_port = 6432', `listen_port = ${port}\nunix_socket_dir =`],
    ['/etc/pgbouncer/userlist.txt', userList],
    ...changes,
  ] as const) {
    expect(text).toContain(from)
    text = text.replace(from, to)
  }
  const { uid, gid } = statSync(folder)
  for (const [path, content] of [
    [userList, '"larder" "secret"\n'],
    [join(folder, 'pgbouncer.ini'), text],
  ] as const) {
    writeFileSync(path, content)
    chownSync(path, uid, gid)
  }
  const [program, ...args] = [...asPostgres(), onPath('pgbouncer')!, join(folder, 'pgbouncer.ini')]
  const child = spawn(program, args, { stdio: 'ignore' })
  const exited = new Promise((done) => child.once('exit', done))
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const url = `postgres://larder:secret@127.0.0.1:${port}/larder`
  const db = openDatabase({ url })
  onTestFinished(() => db.close())
  await expect.poll(() => db.ping().then(() => true, String), { timeout: 10_000 }).toBe(true)
  return { url, direct: database.url, db }
}

const problemOf = (url: string): Promise<string | undefined> => {
  const db = openDatabase({ url })
  onTestFinished(() => db.close())
  return db.migrate().then(
    () => undefined,
    (error: unknown) => storeProblem(error, url),
  )
}

service('pgbouncer')(
  'the cloud serves behind PgBouncer with the packaged file, and its sessions have their limits',
  async () => {
    const { url, db } = await startPgbouncer()
    await db.migrate()
    await openShop(db, { products: [{ price: 100, quantity: 10 }] })
    // The hub of this test is silent; its last message is recent.
    await db.kysely.updateTable('hub_sessions').set({ last_heard_at: runtime.clock.now() }).execute()
    for (const [name, value] of [
      ['lock_timeout', '2s'],
      ['statement_timeout', '10s'],
      ['idle_in_transaction_session_timeout', '30s'],
      ['transaction_isolation', 'read committed'],
    ] as const) {
      const { rows } = await sql<{ value: string }>`select current_setting(${name}) as value`.execute(
        db.kysely,
      )
      expect([name, rows[0]!.value]).toEqual([name, value])
    }
    const cloud = startCloud({ DATABASE_URL: url, NODE_ENV: 'test', ONLINE_WITHIN_MS: '600000' })
    const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
    const call = async (method: string, path: string, token?: string, body?: object): Promise<unknown> => {
      const answer = await fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          'Content-Type': 'application/json',
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      expect([path, Math.floor(answer.status / 100)]).toEqual([path, 2])
      return answer.json()
    }
    // Twelve simultaneous customers: a named statement must run in the session that prepared it.
    await Promise.all(
      Array.from({ length: 12 }, async (_, number) => {
        const who = { sub: `customer-${number}`, anonymous: true }
        const { access_token: token } = (await call('POST', '/demo/identity/token', undefined, who)) as {
          access_token: string
        }
        const { user_id: id } = (await call('POST', '/users/user/bootstrap/guest', token)) as {
          user_id: number
        }
        for (let time = 0; time < 5; time += 1) {
          await call('PATCH', '/users/user/profile', token, { first_name: `Name ${time}` })
          await call('POST', `/users/${id}/orders?hub_id=1`, token)
        }
      }),
    )
    expect(cloud.output()).not.toMatch(/prepared statement|"level":50/)
  },
  60_000,
)

for (const [title, ...changes] of [
  ['in transaction mode', ['pool_mode = session', 'pool_mode = transaction']],
  [
    'in transaction mode that gives out its connections in turn',
    ['pool_mode = session', 'pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 3'],
  ],
  ['in transaction mode for this database', ['dbname=', 'pool_mode=transaction dbname=']],
  ['in statement mode', ['pool_mode = session', 'pool_mode = statement']],
] as const)
  service('pgbouncer')(
    `the cloud refuses to start behind PgBouncer ${title}, with one sentence`,
    async () => {
      const { url } = await startPgbouncer(...changes)
      for (let attempt = 0; attempt < 3; attempt += 1)
        expect(await problemOf(url)).toMatch(
          /^DATABASE_URL: \S+ cannot be used: a connection pooler stands between/,
        )
      if (title !== 'in transaction mode') return
      const cloud = startCloud({ DATABASE_URL: url })
      expect(await cloud.exited).toBe(1)
      expect(cloud.output()).toMatch(
        /^larder cloud: DATABASE_URL: \S+ cannot be used: a connection pooler stands between[^\n]*pool_mode = session[^\n]*\n$/,
      )
    },
  )
