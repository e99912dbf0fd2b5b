import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { makeKeys, signMetadata, type ListChange } from '../../../cloud/operations/releases/metadata.ts'
import { partOf, updateFiles } from '../../../edge/update/files.ts'
import { fetchRelease } from '../../../edge/update/fetch-release.ts'
import { RefusedRelease } from '../../../edge/update/updater.ts'
import { processor, tarballOf } from '../../support/release.ts'
import { service } from '../../support/services.ts'

const V1 = '2026.3.1+0000001'
const V2 = '2026.4.1+0000002'
const YEAR = 365 * 86_400_000
const fileOf = (version: string) => `larder-hub_${version}_${processor}.tar.gz`
let now: number
beforeAll(() => {
  now = Date.now()
})

/** A server of releases, and a hub that trusts its root. */
async function world() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-fetch-'))
  let keys = makeKeys(now)
  const root = join(folder, 'root.json')
  writeFileSync(root, keys['root.json'])
  /** The served content by path. */
  const served = new Map<string, Buffer>()
  const requests: string[] = []
  /** The server ends the connection after this many bytes of a file. */
  let cutAfter = Infinity
  /** Runs once, before the server answers a request for this file. */
  let event: { file: string; happens: (response: ServerResponse) => unknown } | undefined
  const server = createServer((request, response) => {
    const content = served.get(decodeURIComponent(request.url!))
    const { range } = request.headers
    requests.push(`${request.url!.replace(/^.*\//, '')} ${range ?? ''}`)
    if (event && request.url!.endsWith(`/${event.file}`)) {
      const { happens } = event
      event = undefined
      happens(response)
      if (response.headersSent || response.destroyed) return
    }
    if (!content) return void response.writeHead(404).end()
    const first = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0)
    const part = content.subarray(first)
    response.writeHead(first > 0 ? 206 : 200, { 'Content-Length': part.length })
    if (part.length <= cutAfter || !request.url!.includes('/files/')) return void response.end(part)
    response.write(part.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 200))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  let published: { root: string; list: string } | undefined
  function publish(change: ListChange, { signing = keys['signing.key'], at = now } = {}): void {
    const made = signMetadata({ root: keys['root.json'], signing }, published, change, at)
    published = { root: keys['root.json'], list: made['targets.json']! }
    for (const [name, text] of Object.entries(made)) served.set(`/metadata/${name}`, Buffer.from(text))
  }
  const releases = join(folder, 'releases')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    root,
    releases,
    during: (file: string, happens: (response: ServerResponse) => unknown) => (event = { file, happens }),
    served,
    requests,
    installed: (version: string) => existsSync(join(releases, version, 'hub/package.json')),
    cut: (bytes: number) => (cutAfter = bytes),
    add: (version: string, { signing = keys['signing.key'], at = now, files = {} } = {}) => {
      const content = readFileSync(tarballOf(version, files))
      const sha256 = createHash('sha256').update(content).digest('hex')
      const file = { path: fileOf(version), bytes: content.length, sha256 }
      publish({ add: file }, { signing, at })
      served.set(`/files/${fileOf(version)}`, content)
      return new Map(served)
    },
    backUp: () => published,
    /** The cloud's database is from an earlier time, or another cell has another database. */
    restore: (backup: typeof published) => (published = backup),
    remove: (version: string) => publish({ remove: [fileOf(version)] }),
    keys: () => keys,
    /** Publishes a root with other keys, which the former root key has signed. */
    rotate: () => {
      keys = makeKeys(now, keys)
      publish({})
    },
    fetch: (version: string, provenNow: number | null = now) =>
      fetchRelease(
        { version, url, rollout: '019a0000-0000-7000-8000-000000000001' },
        { releases, root, arch: process.arch, provenNow: provenNow ?? undefined },
      ),
  }
}

test('a hub installs a signed release, and a later one', async () => {
  const { add, fetch, installed } = await world()
  add(V1)
  await fetch(V1)
  add(V2)
  await fetch(V2)
  expect([installed(V1), installed(V2)]).toEqual([true, true])
  await expect(fetch('2026.5.1+3')).rejects.toThrow('does not contain')
})

test('a hub follows a new root that the former root key signed, and refuses the list of the former signing key', async () => {
  const { add, fetch, installed, rotate, keys, served } = await world()
  add(V1)
  await fetch(V1)
  const stolen = keys()
  rotate()
  rotate()
  add(V2)
  await fetch(V2)
  expect(installed(V2)).toBe(true)
  const file = { path: fileOf('2026.5.1+3'), bytes: 1, sha256: '0'.repeat(64) }
  const by = { root: stolen['root.json'], signing: stolen['signing.key'] }
  const { '1.root.json': _root, ...forged } = signMetadata(by, undefined, { add: file }, now)
  for (const [name, text] of Object.entries(forged)) served.set(`/metadata/${name}`, Buffer.from(text))
  await expect(fetch('2026.5.1+3')).rejects.toBeInstanceOf(RefusedRelease)
})

test('a hub installs a release that a restored cloud adds, although the hub has verified a later list', async () => {
  const { add, fetch, installed, backUp, restore } = await world()
  add(V1, { at: now - 20_000 })
  const backup = backUp()
  add(V2, { at: now - 10_000 })
  await fetch(V2)
  restore(backup)
  add('2026.5.1+3')
  await fetch('2026.5.1+3')
  expect(installed('2026.5.1+3')).toBe(true)
})

test('a hub that has moved to another cell with the same keys installs a release from an earlier list', async () => {
  const { add, fetch, installed, restore, releases } = await world()
  add(V1, { at: now - 20_000 })
  await fetch(V1)
  const { list } = updateFiles(join(releases, '../hub.sqlite'))
  expect(list.every((path) => existsSync(path))).toBe(true)
  restore(undefined)
  add(V2, { at: now - 30_000 })
  await expect(fetch(V2)).rejects.toThrow(RefusedRelease)
  for (const path of list) rmSync(path)
  await fetch(V2)
  expect(installed(V2)).toBe(true)
})

test('a hub does not install a release that was removed from the list', async () => {
  const { add, remove, fetch, installed } = await world()
  add(V1)
  remove(V1)
  await expect(fetch(V1)).rejects.toThrow('does not contain')
  expect(installed(V1)).toBe(false)
})

test('a download that was cut is continued from its last byte', async () => {
  const { add, fetch, installed, cut, requests } = await world()
  add(V1)
  cut(100)
  const failure: unknown = await fetch(V1).catch((error: unknown) => error)
  expect(failure).not.toBeInstanceOf(RefusedRelease)
  expect(installed(V1)).toBe(false)
  cut(Infinity)
  await fetch(V1)
  expect(installed(V1)).toBe(true)
  expect(requests.at(-1)).toMatch(/ bytes=\d+-$/)
})

test('a download with a damaged first part begins again at once, and is no refusal', async () => {
  const { add, fetch, installed, cut, releases, requests } = await world()
  add(V1)
  cut(100)
  await fetch(V1).catch(() => {})
  writeFileSync(join(releases, partOf(V1)), Buffer.alloc(100))
  cut(Infinity)
  await fetch(V1)
  expect(installed(V1)).toBe(true)
  expect(requests.slice(-2)).toEqual([expect.stringMatching(/bytes=100-$/), expect.stringMatching(/gz $/)])
})

test('the proven time judges a list, and an expiry by the clock of the board alone is no refusal', async () => {
  const { add, fetch, installed } = await world()
  add(V1)
  vi.useFakeTimers({ toFake: ['Date'], now: now + 2 * YEAR })
  onTestFinished(() => void vi.useRealTimers())
  const failure: unknown = await fetch(V1, null).catch((error: unknown) => error)
  expect(String(failure)).toContain('expired')
  expect(failure).not.toBeInstanceOf(RefusedRelease)
  await fetch(V1, now)
  expect(installed(V1)).toBe(true)
})

service('tmpfs')(
  'a release that is too large for the disk is no refusal, and is not downloaded',
  async () => {
    const { add, fetch, releases, requests } = await world()
    mkdirSync(releases)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'larder-test', releases])
    onTestFinished(() => void execFileSync('umount', ['-l', releases]))
    add(V1, { files: { large: randomBytes(400_000).toString('hex') } })
    const failure: unknown = await fetch(V1).catch((error: unknown) => error)
    expect(String(failure)).toMatch(/needs \d+\.\d MB of the disk, and \d\.\d MB are free/)
    expect(failure).not.toBeInstanceOf(RefusedRelease)
    expect(requests.filter((path) => path.includes('.tar.gz'))).toEqual([])
  },
)

test.each(['', '{"signed": {"_type": "ro', '\0\0\0'])(
  'a hub whose stored root is %j after a power failure installs a release',
  async (torn) => {
    const { add, fetch, installed, releases } = await world()
    add(V1)
    mkdirSync(join(releases, 'metadata'), { recursive: true })
    writeFileSync(join(releases, 'metadata/root.json'), torn)
    await fetch(V1)
    expect(installed(V1)).toBe(true)
  },
)

const failures = [
  { failure: 'a closed connection', happens: (response: ServerResponse) => response.destroy() },
  { failure: 'the status 503', happens: (response: ServerResponse) => response.writeHead(503).end() },
  {
    failure: 'a cut answer',
    happens: (response: ServerResponse) =>
      response.writeHead(200, { 'Content-Length': 900 }).write('{', () => response.destroy()),
  },
]
const lists = ['2.root.json', 'timestamp.json', 'snapshot.json', 'targets.json'] as const
test.each(lists.flatMap((file) => failures.map((each) => ({ file, ...each }))))(
  'a download of $file that fails with $failure is no refusal, and the next attempt works',
  async ({ file, happens }) => {
    const { add, fetch, installed, during } = await world()
    add(V1)
    during(file, happens)
    const failure: unknown = await fetch(V1).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    expect(failure).not.toBeInstanceOf(RefusedRelease)
    await fetch(V1)
    expect(installed(V1)).toBe(true)
  },
)

test('a hub with a damaged trusted root refuses every list', async () => {
  const { add, fetch, root } = await world()
  add(V1)
  writeFileSync(root, '{"signed": {"_type": "ro')
  await expect(fetch(V1)).rejects.toThrow(RefusedRelease)
})

test('a list that cannot be saved is no refusal, and the next attempt works', async () => {
  const { add, fetch, installed, releases } = await world()
  add(V1)
  const obstacle = join(releases, 'metadata/snapshot.json')
  mkdirSync(obstacle, { recursive: true })
  const failure: unknown = await fetch(V1).catch((error: unknown) => error)
  expect(String(failure)).toContain('Failed to persist')
  expect(failure).not.toBeInstanceOf(RefusedRelease)
  rmSync(obstacle, { recursive: true })
  await fetch(V1)
  expect(installed(V1)).toBe(true)
})

test.each(['timestamp.json', 'snapshot.json'])(
  'a release that is added while a hub downloads %s does not disturb the download',
  async (file) => {
    const { add, fetch, installed, during } = await world()
    add(V1)
    during(file, () => add(V2))
    await fetch(V1)
    expect(installed(V1)).toBe(true)
  },
)

test('a hub without a trusted root refuses every list', async () => {
  const { add, fetch, root } = await world()
  add(V1)
  rmSync(root)
  await expect(fetch(V1)).rejects.toThrow('UPDATE_ROOT')
})

test.each([
  [
    'an older list than the hub has verified (rollback)',
    async ({ add, served, fetch }: Awaited<ReturnType<typeof world>>) => {
      const old = add(V1)
      add(V2)
      await fetch(V2)
      for (const [path, content] of old) served.set(path, content)
      return V1
    },
  ],
  [
    'a list that another key signed',
    async ({ add, served }: Awaited<ReturnType<typeof world>>) => {
      add(V1)
      const foreign = await world()
      for (const [path, content] of foreign.add(V1)) served.set(path, content)
      return V1
    },
  ],
  [
    'an expired list',
    ({ add }: Awaited<ReturnType<typeof world>>) => {
      add(V1, { at: now - YEAR - 1000 })
      return Promise.resolve(V1)
    },
  ],
  [
    'truncated metadata',
    ({ add, served }: Awaited<ReturnType<typeof world>>) => {
      add(V1)
      const whole = served.get('/metadata/targets.json')!
      served.set('/metadata/targets.json', whole.subarray(0, whole.length - 20))
      return Promise.resolve(V1)
    },
  ],
  [
    'a truncated release',
    ({ add, served }: Awaited<ReturnType<typeof world>>) => {
      add(V1)
      const path = `/files/${fileOf(V1)}`
      served.set(path, served.get(path)!.subarray(0, 50))
      return Promise.resolve(V1)
    },
  ],
  [
    'a release with other content',
    ({ add, served }: Awaited<ReturnType<typeof world>>) => {
      add(V1)
      const path = `/files/${fileOf(V1)}`
      served.set(path, Buffer.alloc(served.get(path)!.length))
      return Promise.resolve(V1)
    },
  ],
])('the hub refuses %s, and installs nothing', async (_, prepare) => {
  const hub = await world()
  const version = await prepare(hub)
  await expect(hub.fetch(version)).rejects.toThrow(RefusedRelease)
  expect(hub.installed(version)).toBe(false)
})
