import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { commandOf } from '../support/programs.ts'
import { service } from '../support/services.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

type Environment = Record<string, string>

interface Run {
  status: number | null
  output: Record<string, unknown> & { file?: string }
  stderr: string
}

/** Runs a command of the cloud. Its output is JSON. */
function larder(environment: Environment, ...words: string[]): Run {
  const [node, ...main] = commandOf('cloud/cli/main')
  const env = { PATH: process.env['PATH'], ...environment }
  const { status, stdout, stderr } = spawnSync(node, [...main, ...words], { encoding: 'utf8', env })
  return { status, output: JSON.parse(stdout || '{}') as Run['output'], stderr }
}

const seed = (environment: Environment): void => {
  const [node, ...main] = commandOf('cloud/demo/seed')
  const { status, stderr } = spawnSync(node, main, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...environment },
  })
  expect([status, stderr]).toEqual([0, ''])
}

/** A customer of a running cloud who pays into a wallet. */
async function customerAt(port: number) {
  const call = async (method: string, path: string, bearer: string, body?: object) => {
    const headers = {
      'Content-Type': 'application/json',
      ...(bearer && { Authorization: `Bearer ${bearer}` }),
    }
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    expect([path, answer.status]).toEqual([path, expect.toSatisfy((status: number) => status < 300)])
    return (await answer.json()) as Record<string, unknown>
  }
  const identity = { sub: 'saver', email: 'saver@example.org' }
  const { access_token: token } = await call('POST', '/demo/identity/token', '', identity)
  const bearer = String(token)
  await call('POST', '/users/user/bootstrap', bearer, {})
  const balance = async () => Number((await call('GET', '/users/wallet/balance', bearer))['balance_cents'])
  return {
    balance,
    async pay(cents: number): Promise<void> {
      const before = await balance()
      await call('POST', '/users/wallet/deposit', bearer, {
        amount_cents: cents,
        payment_method_id: 'pm_card_visa',
      })
      await expect.poll(balance, { timeout: 30_000 }).toBe(before + cents)
    },
  }
}

/** Flips a byte in the middle of a copy, or cuts a copy. The record is not copied. */
function damaged(file: string, kind: 'flipped' | 'cut', folder: string): string {
  const copy = join(folder, kind)
  copyFileSync(file, copy)
  const bytes = readFileSync(copy)
  const middle = Math.floor(bytes.length / 2)
  if (kind === 'cut') truncateSync(copy, middle)
  else writeFileSync(copy, bytes.fill(bytes[middle]! ^ 0xff, middle, middle + 1))
  return copy
}

/** Backs a running cloud up, restores it into the empty place, and looks at the cloud that starts there. */
async function backUpAndRestore(source: Environment, empty: Environment): Promise<void> {
  const folder = programFolder()
  const passphrase = join(folder, 'passphrase')
  writeFileSync(passphrase, 'a random text that nobody guesses\n')
  const encrypted = { BACKUP_PASSPHRASE_FILE: passphrase }
  const to = join(folder, 'backups')
  seed(source)
  const first = startCloud(source)
  const customer = await customerAt(await first.ready())
  await customer.pay(1000)
  const paying = customer.pay(500)
  const made = larder({ ...source, ...encrypted }, 'backup', 'create', '--to', to)
  await paying
  expect(made).toMatchObject({ status: 0, output: { encrypted: true, media: 'included' } })
  const file = made.output.file!
  const created = String(made.output['created_at'])
  expect(larder(source, 'backup', 'list', '--to', to).output).toEqual([made.output])
  await customer.pay(700)
  const late = await customer.balance()

  const verify = (path: string, more: Environment = encrypted) =>
    larder({ ...source, ...more }, 'backup', 'verify', path)
  const whole = verify(file)
  expect([whole.status, whole.output]).toEqual([0, expect.objectContaining({ file, ok: true })])
  for (const path of [damaged(file, 'flipped', folder), damaged(file, 'cut', folder)])
    expect(verify(path)).toMatchObject({ status: 1, output: { ok: false } })
  writeFileSync(join(folder, 'other'), 'another text')
  expect(verify(file, { BACKUP_PASSPHRASE_FILE: join(folder, 'other') })).toMatchObject({ status: 1 })
  expect(verify(file, {})).toMatchObject({ status: 1 })

  const restore = (environment: Environment, ...more: string[]) =>
    larder({ ...environment, ...encrypted }, 'backup', 'restore', file, ...more)
  expect(restore(source, '--force')).toMatchObject({ status: 1, stderr: expect.stringContaining('in use') })
  first.child.kill('SIGTERM')
  await first.exited
  expect(restore(source)).toMatchObject({ status: 1, stderr: expect.stringContaining('--force') })
  const restored = restore(empty)
  expect([restored.stderr, restored.status]).toEqual([expect.stringContaining('restored-cloud.json'), 0])
  expect(restored.output).toMatchObject({ file, created_at: created, missing_media: 0 })

  const second = startCloud(empty)
  const again = await customerAt(await second.ready())
  expect([1000, 1500]).toContain(await again.balance())
  expect(await again.balance()).toBeLessThan(late)
  await again.pay(600)
  const alarms = larder(empty, 'alarms', 'list').output as unknown as {
    kind: string
    details: { from: string }
  }[]
  const told = alarms.filter(({ kind }) => kind === 'database_restored')
  expect(told.map(({ details }) => details.from)).toEqual([created, created])
  // The processor knows the payments after the backup, the restored books do not.
  expect(restore(source, '--force')).toMatchObject({ status: 0 })
  const third = startCloud(source)
  await third.ready()
  const orphaned = () => larder(source, 'payments', 'orphaned').output as unknown as { amount: number }[]
  await expect
    .poll(() => orphaned().map(({ amount }) => amount), { timeout: 60_000, interval: 1000 })
    .toContain(700)
  second.child.kill('SIGTERM')
  await second.exited
  expect(restore(empty, '--force')).toMatchObject({ status: 0 })
}

test('a backup of a running cloud on SQLite restores into an empty folder, and damaged backups are refused', async () => {
  const [source, empty] = [programFolder(), programFolder()]
  const at = (folder: string) => ({
    DATA_DIR: folder,
    DATABASE_URL: `sqlite:${join(folder, 'larder.sqlite')}`,
  })
  await backUpAndRestore(at(source), at(empty))
}, 240_000)

service('pgDump')(
  'a backup of a running cloud on PostgreSQL restores into an empty database, and damaged backups are refused',
  async () => {
    const server = process.env['TEST_POSTGRES_URL']!
    const databases = await Promise.all([1, 2].map(() => createPostgresDatabase(server, systemRuntime())))
    try {
      const [source, empty] = databases.map(({ url }) => ({ DATA_DIR: programFolder(), DATABASE_URL: url }))
      await backUpAndRestore(source!, empty!)
    } finally {
      for (const database of databases) await database.remove()
    }
  },
  240_000,
)

test('a service with BACKUP_SCHEDULE makes a backup at its first start, and lists it', async () => {
  const folder = programFolder()
  mkdirSync(join(folder, 'to'))
  const environment = { DATA_DIR: folder, BACKUP_TO: join(folder, 'to'), BACKUP_SCHEDULE: '03:00' }
  const { ready } = startCloud(environment)
  await ready()
  const listed = () => larder(environment, 'backup', 'list').output as unknown as unknown[]
  await expect.poll(() => listed().length, { timeout: 60_000, interval: 1000 }).toBe(1)
}, 120_000)
