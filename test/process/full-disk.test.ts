import { execFileSync, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { missing, service } from '../support/services.ts'
import { startEdge } from '../support/edge-program.ts'

const TOKEN = 'a-token-of-this-test'
let folder: string
let disk: string
let child: ChildProcess | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-full-'))
  disk = join(folder, 'disk')
  mkdirSync(disk)
  if (missing('tmpfs') === undefined)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'larder-test', disk])
})
afterEach(async () => {
  await end()
  if (missing('tmpfs') === undefined) execFileSync('umount', [disk])
  rmSync(folder, { recursive: true })
})

/** Ends the hub like a power cut. */
async function end(): Promise<void> {
  const ended = child
  child = undefined
  if (!ended || ended.exitCode !== null) return
  const exited = new Promise((resolve) => ended.once('exit', resolve))
  ended.kill('SIGKILL')
  await exited
}

interface Hub {
  url: string
  process: ChildProcess
  output: () => string
}

async function start(): Promise<Hub> {
  const hub = startEdge(folder, { STORE: join(disk, 'hub.sqlite'), LOCAL_TOKEN: TOKEN })
  child = hub.child
  return { url: await hub.url, process: hub.child, output: hub.output }
}

/** Writes until no byte fits. */
function fillUp(name: string): void {
  const file = openSync(join(disk, name), 'a')
  for (const bytes of [65_536, 4096, 1])
    try {
      for (;;) writeSync(file, Buffer.alloc(bytes, bytes))
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' })
    }
  closeSync(file)
}

const call = (hub: Hub, path: string, body?: object) =>
  fetch(hub.url + path, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${TOKEN}` },
  })
const isAccepting = async (hub: Hub): Promise<unknown> =>
  ((await (await call(hub, '/api/state')).json()) as { health: { accepting_orders: unknown } }).health
    .accepting_orders

const alarmsOf = async (hub: Hub): Promise<string[]> =>
  ((await (await call(hub, '/api/state')).json()) as { alarms: { code: string }[] }).alarms.map(
    ({ code }) => code,
  )

/** Sends commands that fill the free space within the journal; returns the statuses. */
async function press(hub: Hub, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let count = 0; count < times; count++) statuses.push((await call(hub, '/api/bins/1/open', {})).status)
  return statuses
}

service('tmpfs')(
  'a hub with a permanently full disk stays up and repairable, also without its ballast and after a restart',
  async () => {
    let hub = await start()
    // Whether the page is built or not.
    const page = (await call(hub, '/')).status
    expect(await press(hub, 1)).toEqual([409])
    fillUp('waste-1')
    // The log's own file takes some more space. Then the hub gives up its ballast, and further writes use
    // that space too.
    await press(hub, 50)
    await expect.poll(() => alarmsOf(hub), { timeout: 20_000 }).toContain('store_full')
    fillUp('waste-2')
    const statuses = await press(hub, 400)
    fillUp('waste-3')
    statuses.push(...(await press(hub, 400)))
    expect(new Set(statuses)).toEqual(new Set([409]))
    expect(hub.output()).toContain('the disk is full')
    expect([hub.process.exitCode, (await call(hub, '/health')).status]).toEqual([null, 200])
    expect(await isAccepting(hub)).toBe(false)

    await end()
    fillUp('waste-4')
    hub = await start()
    expect((await call(hub, '/health')).status).toBe(200)
    expect((await call(hub, '/')).status).toBe(page)
    expect(await press(hub, 3)).toEqual([409, 409, 409])
    // After a graceful end SQLite deletes its log, and has no space for a new one at the next start.
    hub.process.kill('SIGTERM')
    await new Promise((resolve) => hub.process.once('exit', resolve))
    fillUp('waste-5')
    hub = await start()
    expect((await call(hub, '/health')).status).toBe(200)
    expect(await press(hub, 3)).toEqual([409, 409, 409])
    expect(await isAccepting(hub)).toBe(false)

    for (const number of [1, 2, 3, 4, 5]) rmSync(join(disk, `waste-${number}`))
    expect(await press(hub, 3)).toEqual([409, 409, 409])
    expect(hub.process.exitCode).toBeNull()
  },
  120_000,
)
