import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { missing, needs } from '../support/services.ts'
import { openShop } from '../world/shop.ts'
import { startPostgres } from './chaos/postgres.ts'

const runtime = systemRuntime()

/**
 * Folders with the programs of newer PostgreSQL, as in `17=/opt/pg17/bin 18=/opt/pg18/bin`. Empty: this machine has none, and
 * no test is needed.
 */
const PROGRAMS = process.env['TEST_POSTGRES_PROGRAMS']
const newerPrograms = (PROGRAMS ?? '17=').split(' ').filter((text) => text !== '')

const absence = (programs: string) => (): string | undefined =>
  missing('pgDump') ?? (programs === '' ? 'TEST_POSTGRES_PROGRAMS names no folder' : undefined)

async function server(programs?: string) {
  const [port] = (await freePorts(1)) as [number]
  const started = await startPostgres({
    folder: programFolder(),
    port,
    runtime,
    ...(programs !== undefined && { programs }),
  })
  onTestFinished(() => started.remove())
  return started
}

for (const [version = '', programs = ''] of newerPrograms.map((text) => text.split('=')))
  needs(`PostgreSQL ${version}`, absence(programs))(
    `a backup of the installed PostgreSQL is restored on PostgreSQL ${version}, and the cloud serves it`,
    async () => {
      const [former, newer] = [await server(), await server(programs)]
      const db = openDatabase({ url: former.url })
      await db.migrate()
      await openShop(db, { products: [{ price: 100, quantity: 1000 }] })
      await db.close()
      const folder = programFolder()
      const backup = (url: string, ...words: string[]): Record<string, unknown> => {
        const [node, ...main] = commandOf('cloud/cli/main')
        const { status, stdout, stderr } = spawnSync(node, [...main, 'backup', ...words], {
          encoding: 'utf8',
          env: { PATH: process.env['PATH'], DATA_DIR: folder, DATABASE_URL: url },
        })
        expect([status, stderr]).toEqual([0, expect.any(String)])
        return JSON.parse(stdout) as Record<string, unknown>
      }
      const { file } = backup(former.url, 'create')
      backup(newer.url, 'restore', String(file))
      const restored = openDatabase({ url: newer.url })
      onTestFinished(() => restored.close())
      expect(await restored.kysely.selectFrom('products').select('id').execute()).toHaveLength(1)
      const cloud = startCloud({ DATA_DIR: folder, DATABASE_URL: newer.url, NODE_ENV: 'test' })
      const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
      expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
      const guest = await fetch(`${baseUrl}/demo/identity/token`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"sub":"customer","anonymous":true}',
      })
      const { access_token: token } = (await guest.json()) as { access_token: string }
      const headers = { Authorization: `Bearer ${token}` }
      const made = await fetch(`${baseUrl}/users/user/bootstrap/guest`, { method: 'POST', headers })
      expect(made.status).toBe(201)
    },
    240_000,
  )

if (newerPrograms.length === 0)
  test('a backup is restored on a newer PostgreSQL [left out: TEST_POSTGRES_PROGRAMS is empty]', (context) => {
    context.skip('TEST_POSTGRES_PROGRAMS is empty')
  })
