import { copyFileSync, chownSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { storeProblem } from '../../cloud/platform/store/outage.ts'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { openShop } from '../world/shop.ts'
import { makeCertificateOfAuthority } from '../support/certificate.ts'
import { administrate } from '../support/postgres.ts'
import { service } from '../support/services.ts'
import { freePorts } from '../support/ports.ts'
import { startPostgres, type TestServer } from './chaos/postgres.ts'

const runtime = systemRuntime()
const hasIpv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === '::1'),
)
const { clock } = runtime

type Options = Omit<Parameters<typeof startPostgres>[0], 'folder' | 'port' | 'runtime'>

async function server(options: Options = {}): Promise<TestServer> {
  const [port] = (await freePorts(1)) as [number]
  const started = await startPostgres({ folder: programFolder(), port, runtime, ...options })
  onTestFinished(() => started.remove())
  return started
}

async function migrated(url: string): Promise<void> {
  const db = openDatabase({ url })
  await db.migrate()
  await openShop(db, { products: [{ price: 100, quantity: 1000 }] })
  await db.close()
}

async function customerAt(baseUrl: string, sub: string) {
  const json = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ sub, anonymous: true })
  const guest = await fetch(`${baseUrl}/demo/identity/token`, { method: 'POST', headers: json, body })
  const { access_token: token } = (await guest.json()) as { access_token: string }
  const headers = { ...json, Authorization: `Bearer ${token}` }
  await fetch(`${baseUrl}/users/user/bootstrap/guest`, { method: 'POST', headers })
  return { headers }
}

/** Statuses of a writing call, a reading call and `/readyz`. */
async function callsAt(baseUrl: string) {
  const { headers } = await customerAt(baseUrl, 'customer')
  return async () => {
    const answers = await Promise.all([
      fetch(`${baseUrl}/users/user/profile`, { method: 'PATCH', headers, body: '{"first_name":"A"}' }),
      fetch(`${baseUrl}/users/user`, { headers }),
      fetch(`${baseUrl}/readyz`),
    ])
    for (const answer of answers.slice(0, 2))
      if (answer.status === 503) expect(answer.headers.get('Retry-After')).not.toBeNull()
    return answers.map(({ status }) => status)
  }
}

/**
 * A customer who writes one name after another. `stop` returns the statuses of the writes, and whether an acknowledged
 * name was lost.
 */
async function writerAt(baseUrl: string, sub: string) {
  const { headers } = await customerAt(baseUrl, sub)
  const seen = new Set<number>()
  let [written, acknowledged] = [0, 0]
  const stopped = new AbortController()
  async function write(): Promise<void> {
    while (!stopped.signal.aborted) {
      written += 1
      const body = JSON.stringify({ first_name: `Name ${written}` })
      const { status } = await fetch(`${baseUrl}/users/user/profile`, { method: 'PATCH', headers, body })
      if (status === 200) acknowledged = written
      seen.add(status)
      await sleep(clock, 500)
    }
  }
  const writing = write()
  return async () => {
    stopped.abort()
    await writing
    const { first_name } = (await (await fetch(`${baseUrl}/users/user`, { headers })).json()) as {
      first_name: string
    }
    return {
      statuses: [...seen].toSorted((a, b) => a - b),
      lost: Number(first_name.replace('Name ', '')) < acknowledged,
    }
  }
}

const becomes = (statuses: () => Promise<number[]>, expected: number[]) =>
  holdsWithin(clock, 20_000, async () => JSON.stringify(await statuses()) === JSON.stringify(expected))

service('postgres')(
  'calls get 503 while PostgreSQL behind its Unix socket is stopped, and are served when it is back',
  async () => {
    const { url, data, ...its } = await server()
    const { pathname, port } = new URL(url)
    const socketUrl = `postgres://larder@localhost:${port}${pathname}?host=${data}`
    await migrated(socketUrl)
    const cloud = startCloud({ DATABASE_URL: socketUrl, NODE_ENV: 'test' })
    const statuses = await callsAt(`http://127.0.0.1:${await cloud.ready()}`)
    expect(await statuses()).toEqual([200, 200, 200])

    await its.stop()
    for (let time = 0; time < 10; time += 1) expect(await statuses()).toEqual([503, 503, 503])
    const second = startCloud({ DATABASE_URL: socketUrl })
    expect(await second.exited).toBe(1)
    expect(second.output()).toMatch(
      /^larder cloud: DATABASE_URL: \/\S+\/\.s\.PGSQL\.\d+ cannot be used: connect ENOENT [^\n]*\n$/,
    )
    await its.start()
    expect(await becomes(statuses, [200, 200, 200])).toBe(true)
    expect(cloud.output()).not.toContain('request failed')
  },
  60_000,
)

service('postgres')(
  'a standby is not ready, and with both hosts in DATABASE_URL the cloud follows the primary after a failover under load and loses no acknowledged write',
  async () => {
    const primary = await server({ settings: ['wal_level=replica', 'max_wal_senders=4', 'hot_standby=on'] })
    await migrated(primary.url)
    const standby = await server({ standbyOf: primary, settings: ['hot_standby=on'] })
    const [first, second] = [new URL(primary.url), new URL(standby.url)]

    const alone = startCloud({ DATABASE_URL: standby.url })
    expect(await alone.exited).toBe(1)
    expect(alone.output()).toMatch(
      /^larder cloud: DATABASE_URL: \S+ cannot be used: \S+ accepts no writes: it is a standby/,
    )

    // The standby is first in the list.
    const both = `postgres://larder@${second.host},${first.host}${first.pathname}?target_session_attrs=read-write`
    const cloud = startCloud({ DATABASE_URL: both, NODE_ENV: 'test' })
    const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
    const statuses = await callsAt(baseUrl)
    expect(await statuses()).toEqual([200, 200, 200])
    // From now on each commit waits for the standby.
    await administrate(primary.url, "alter system set synchronous_standby_names = '*'")
    await administrate(primary.url, 'select pg_reload_conf()')
    const writers = await Promise.all(Array.from({ length: 16 }, (_, n) => writerAt(baseUrl, `writer-${n}`)))
    await sleep(clock, 1000)

    await primary.stop()
    for (let time = 0; time < 3; time += 1) expect(await statuses()).toEqual([503, 503, 503])
    await administrate(standby.url, 'select pg_promote()')
    expect(await becomes(statuses, [200, 200, 200])).toBe(true)
    await sleep(clock, 1000)
    const results = await Promise.all(writers.map((stop) => stop()))
    // A write that came just before or after the failover is answered with 200 only.
    for (const { statuses: seen, lost } of results) {
      expect(seen.filter((status) => status !== 200 && status !== 503)).toEqual([])
      expect(lost).toBe(false)
    }
    expect(cloud.output()).not.toContain('request failed')
  },
  90_000,
)

service('postgres')(
  'sslmode has the meaning of libpq, for a server with a certificate of a private authority',
  async () => {
    const certificate = makeCertificateOfAuthority()
    onTestFinished(() => certificate.remove())
    const other = makeCertificateOfAuthority()
    onTestFinished(() => other.remove())
    const { url } = await server({
      settings: ['ssl=on', 'listen_addresses=127.0.0.1,127.0.0.2,::1'],
      prepare(data) {
        const { uid, gid } = statSync(data)
        for (const [from, to] of [
          [certificate.certPath, 'server.crt'],
          [certificate.keyPath, 'server.key'],
        ] as const) {
          copyFileSync(from, join(data, to))
          chownSync(join(data, to), uid, gid)
        }
        const hba = join(data, 'pg_hba.conf')
        const text = readFileSync(hba, 'utf8').replaceAll(/^host /gm, 'hostssl ')
        writeFileSync(hba, text.replaceAll('127.0.0.1/32', '127.0.0.0/8'))
      },
    })
    const { port, pathname } = new URL(url)
    /** Whether a session is encrypted, or the error. */
    const tried = async (host: string, query: string): Promise<boolean | string> => {
      const address = `postgres://larder@${host}:${port}${pathname}?${query}`
      const db = openDatabase({ url: address })
      try {
        const found = sql<{ ssl: boolean }>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`
        return (await found.execute(db.kysely)).rows[0]!.ssl
      } catch (error) {
        return storeProblem(error, address) ?? 'a fault of ours'
      } finally {
        await db.close()
      }
    }
    const { authorityPath: ca } = certificate
    for (const [host, query, expected] of [
      ['127.0.0.1', '', true],
      ['127.0.0.1', 'sslmode=allow', true],
      ['127.0.0.1', 'sslmode=prefer', true],
      ['127.0.0.1', 'sslmode=require', true],
      ['127.0.0.1', 'sslmode=disable', /no pg_hba\.conf entry .*no encryption/],
      ['127.0.0.1', `sslmode=require&sslrootcert=${ca}`, true],
      ['127.0.0.1', `sslmode=require&sslrootcert=${other.authorityPath}`, /certificate/],
      ['127.0.0.1', `sslmode=verify-ca&sslrootcert=${ca}`, true],
      // The certificate names only localhost and 127.0.0.1.
      ['127.0.0.2', `sslmode=verify-ca&sslrootcert=${ca}`, true],
      ['127.0.0.2', `sslmode=verify-full&sslrootcert=${ca}`, /127\.0\.0\.2/],
      ['127.0.0.1', `sslmode=verify-full&sslrootcert=${ca}`, true],
      ...(hasIpv6 ? ([['[::1]', `sslmode=verify-ca&sslrootcert=${ca}`, true]] as const) : []),
      ['localhost', `sslmode=verify-full&sslrootcert=${ca}`, true],
      ['127.0.0.1', 'sslmode=verify-full', /certificate/],
      ['127.0.0.1', 'sslmode=verify-full&sslrootcert=system', /certificate/],
      [
        '127.0.0.1',
        'sslmode=verify-full&sslrootcert=/missing.pem',
        /sslrootcert \/missing\.pem cannot be read: there is no such file \(ENOENT\)/,
      ],
    ] as const) {
      const found = await tried(host, query)
      if (expected === true) expect([query, found]).toEqual([query, true])
      else expect(`${query}: ${found}`).toMatch(expected)
    }
  },
  60_000,
)
