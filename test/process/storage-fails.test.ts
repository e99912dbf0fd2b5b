import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'
import { startEdge, type EdgeProgram } from '../support/edge-program.ts'
import { missing, service } from '../support/services.ts'

const TOKEN = 'a-token-of-this-test'
const isMountable = missing('tmpfs') === undefined
let folder: string
let disk: string
let hub: EdgeProgram | undefined

const mount = (...how: string[]): unknown => execFileSync('mount', [...how, disk])

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-card-'))
  disk = join(folder, 'disk')
  mkdirSync(disk)
  if (isMountable) mount('-t', 'tmpfs', '-o', 'size=16m,nr_inodes=64', 'larder-test')
})
afterEach(async () => {
  await end()
  if (isMountable) execFileSync('umount', ['-l', disk])
  rmSync(folder, { recursive: true })
})

const store = (): string => join(disk, 'hub.sqlite')
const start = (): EdgeProgram => (hub = startEdge(folder, { STORE: store(), LOCAL_TOKEN: TOKEN }))
async function end(): Promise<void> {
  const ended = hub
  hub = undefined
  if (!ended || ended.child.exitCode !== null) return
  ended.child.kill('SIGKILL')
  await ended.exited
}

interface Health {
  status: string
  storage?: { reason: string; message: string }
}
async function health(): Promise<Health> {
  return (await (await fetch(`${await hub!.url}/health`)).json()) as Health
}
async function page(): Promise<{ alarms: { code: string }[]; health: { accepting_orders: boolean } }> {
  const answer = await fetch(`${await hub!.url}/api/state`, { headers: { authorization: `Bearer ${TOKEN}` } })
  return (await answer.json()) as Awaited<ReturnType<typeof page>>
}
const press = async (): Promise<number> =>
  (
    await fetch(`${await hub!.url}/api/bins/1/open`, {
      method: 'POST',
      body: '{}',
      headers: { authorization: `Bearer ${TOKEN}` },
    })
  ).status
const reason = async (): Promise<string | undefined> => (await health()).storage?.reason
const waits = { timeout: 40_000, interval: 200 }

service('tmpfs')(
  'a hub that starts on a read-only card stays up, explains the problem, and works when the card is writable again',
  async () => {
    start()
    await expect.poll(health, waits).toMatchObject({ status: 'ok' })
    await end()
    mount('-o', 'remount,ro')
    const { child, output } = start()
    await expect.poll(reason, waits).toBe('read_only')
    expect((await health()).storage?.message).toContain(
      `STORE: ${store()} is on a file system that is mounted read-only`,
    )
    expect(await page()).toMatchObject({
      alarms: [{ code: 'storage_failed' }],
      health: { accepting_orders: false },
    })
    expect(await press()).toBe(409)
    expect(
      output()
        .split('\n')
        .filter((line) => line.includes('read_only')),
    ).toHaveLength(1)
    mount('-o', 'remount,rw')
    await expect.poll(reason, waits).toBeUndefined()
    await expect.poll(async () => (await page()).alarms, waits).not.toContainEqual({ code: 'storage_failed' })
    expect(child.exitCode).toBeNull()
  },
  120_000,
)

service('tmpfs')(
  'a hub without a free inode starts with the inodes of its ballast, and reports the problem',
  async () => {
    start()
    await expect.poll(health, waits).toMatchObject({ status: 'ok' })
    // After a graceful end SQLite removes its files beside the journal.
    hub!.child.kill('SIGTERM')
    await hub!.exited
    const fill = (): number => {
      for (let file = 0; ; file += 1)
        try {
          execFileSync('touch', [join(disk, `waste-${file}`)], { stdio: 'ignore' })
        } catch {
          return file
        }
    }
    const files = fill()
    start()
    await expect.poll(reason, waits).toBe('no_inodes')
    expect((await page()).health.accepting_orders).toBe(false)
    for (let file = 0; file < files; file += 1) rmSync(join(disk, `waste-${file}`))
    await expect.poll(reason, waits).toBeUndefined()
  },
  120_000,
)

service('tmpfs')(
  'a foreign transaction on the journal stops sales until it ends, but does not stop the service',
  async () => {
    const { child } = start()
    await expect.poll(health, waits).toMatchObject({ status: 'ok' })
    const shell = new Sqlite(store())
    shell.exec('BEGIN IMMEDIATE')
    expect(await press()).toBe(409)
    expect(await reason()).toBe('locked')
    const begun = performance.now()
    for (let call = 0; call < 10; call += 1) await page()
    expect(performance.now() - begun).toBeLessThan(5000)
    shell.exec('ROLLBACK')
    shell.close()
    await expect.poll(reason, waits).toBeUndefined()
    expect(child.exitCode).toBeNull()
  },
  120_000,
)
