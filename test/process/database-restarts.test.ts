import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { startCloud } from '../cloud/support/program.ts'
import { openShop } from '../world/shop.ts'
import { service } from '../support/services.ts'
import { freePorts } from '../support/ports.ts'
import { startPostgres } from './chaos/postgres.ts'

const runtime = systemRuntime()
const { clock } = runtime
const CUSTOMERS = 12
/** Each customer may call 360 times a minute. */
const PAUSE_MS = 170

service('postgres')(
  'ended connections, restarts and crashes of PostgreSQL under load fail calls with 503 and end no process',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-restarts-'))
    const [port] = (await freePorts(1)) as [number]
    const server = await startPostgres({ folder, port, runtime })
    onTestFinished(async () => {
      await server.remove()
      rmSync(folder, { recursive: true })
    })
    const db = openDatabase({ url: server.url })
    await db.migrate()
    await openShop(db, { products: [{ price: 100, quantity: 1_000_000 }] })
    await db.close()
    const cloud = startCloud({ DATABASE_URL: server.url, WORK_POLL_MS: '200', NODE_ENV: 'test' })
    const baseUrl = `http://127.0.0.1:${await cloud.ready()}`

    const seen = new Map<string, number>()
    const run = { isOver: false }
    async function call(method: string, path: string, token?: string, body?: object): Promise<Response> {
      const answer = await fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body && { 'Content-Type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      if (answer.status === 503) expect(answer.headers.get('Retry-After')).not.toBeNull()
      return answer
    }
    /** A customer who changes a name again and again; returns one answer for each call. */
    async function customer(number: number): Promise<void> {
      const who = { sub: `customer-${number}`, anonymous: true }
      const { access_token: token } = (await (
        await call('POST', '/demo/identity/token', undefined, who)
      ).json()) as { access_token: string }
      await call('POST', '/users/user/bootstrap/guest', token)
      for (let time = 1; !run.isOver; time += 1) {
        const body = { first_name: `Customer ${number}, time ${time}` }
        const { status } = await call('PATCH', '/users/user/profile', token, body)
        const when = `${mishap} ${status}`
        seen.set(when, (seen.get(when) ?? 0) + 1)
        await sleep(clock, PAUSE_MS)
      }
    }
    let mishap = 'none'
    const customers = Array.from({ length: CUSTOMERS }, (_, number) => customer(number))
    await holdsWithin(clock, 60_000, () => Promise.resolve((seen.get('none 200') ?? 0) > 3 * CUSTOMERS))

    mishap = 'ended'
    for (let time = 0; time < 10; time += 1) {
      const admin = new Client({ connectionString: server.url })
      await admin.connect()
      await admin.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      )
      await admin.end()
      await sleep(clock, 200)
    }
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      mishap = signal
      server.signal(signal)
      await sleep(clock, 1500)
    }
    mishap = 'over'
    await holdsWithin(clock, 30_000, () => Promise.resolve((seen.get('over 200') ?? 0) > 20))
    run.isOver = true
    await Promise.all(customers)

    expect(Object.fromEntries(seen)).toMatchObject({
      'none 200': expect.any(Number) as number,
      'over 200': expect.any(Number) as number,
    })
    const statuses = new Set([...seen.keys()].map((key) => key.split(' ')[1]))
    expect(statuses).toEqual(new Set(['200', '503']))
    expect(cloud.child.exitCode).toBeNull()
    expect(cloud.output()).not.toContain('Unhandled')
  },
  120_000,
)
