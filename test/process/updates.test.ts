import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { versionOf } from '../../protocol/model/build-time.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { violationsOf } from '../invariants/check.ts'
import { commandOf, packageRoot } from '../support/programs.ts'
import { processor } from '../support/release.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { collect, install, WAIT_MS, type Installation } from './chaos/installation.ts'
import type { ProgramName } from './chaos/plant-settings.ts'

const { clock } = systemRuntime()
const WAIT = { timeout: 240_000, interval: 500 }
const UNIT = 'larder-edge.service'

/** A further migration of the journal, at the end of the module of migrations. */
const migrating = `
migrations.push({ name: 'later', sql: 'CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT' })
`

/** A program that migrates the journal, and ends. */
const crashing = `import { Sqlite } from './journal/sqlite-driver.js'
new Sqlite(process.env.STORE).pragma('user_version = 9999')
process.exit(1)
`

/** The folder of a hub's package: the real launcher, and the compiled programs (as links, or as copies for a release). */
function layPackage(folder: string, place: (from: string, to: string) => void): void {
  const root = packageRoot()
  mkdirSync(join(folder, 'bin'), { recursive: true })
  symlinkSync(process.execPath, join(folder, 'bin/node'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  cpSync(join(root, 'edge/packaging/larder'), join(folder, 'larder'))
  chmodSync(join(folder, 'larder'), 0o755)
  writeFileSync(join(folder, 'larder.commands'), "edge edge/main.js - - the hub's service\n")
  for (const part of ['edge', 'protocol']) place(join(root, '.build', part), join(folder, part))
}

interface ReleaseOptions {
  /** Replaces the program of the service. */
  main?: string
  /** The programs report the version of this day, and their journal has a further table. */
  migratesAs?: number
}

const buildOf = (day: number) => ({ commit: 'abcdef0'.repeat(5), committed_at: `2026-01-0${day}T00:00:00Z` })
const versionOfDay = (day: number): string =>
  versionOf({ commit: buildOf(day).commit, committedAt: Date.parse(buildOf(day).committed_at) })

/** The tarball of a release: the compiled programs of this repository with another version. */
function release(
  folder: string,
  day: number,
  { main, migratesAs }: ReleaseOptions = {},
): { version: string; tarball: string } {
  const version = versionOfDay(day)
  const hub = join(folder, version, 'larder/hub')
  layPackage(hub, (from, to) => cpSync(from, to, { recursive: true }))
  const write = (name: string, content: string): void => writeFileSync(join(hub, name), content)
  write('package.json', JSON.stringify({ name: 'larder-hub', version, processor, type: 'module' }))
  write('build.json', JSON.stringify(buildOf(migratesAs ?? day)))
  if (migratesAs !== undefined) appendFileSync(join(hub, 'edge/journal/migrations.js'), migrating)
  if (main !== undefined) write('edge/main.js', main)
  const tarball = join(folder, `${version}.tar.gz`)
  execFileSync('tar', ['-czf', tarball, '-C', join(folder, version), 'larder'])
  return { version, tarball }
}

/** A folder with the program `systemctl`, which asks the test to start or stop the hub's service. */
async function systemctl(folder: string, { plant }: Installation): Promise<string> {
  const server = createServer((request, response) => {
    const [verb, ...others] = decodeURIComponent(request.url!.slice(1)).split(' ')
    const act = async (): Promise<void> => {
      expect(others.at(-1)).toBe(UNIT)
      if (verb === 'stop') await plant.stop('hub')
      else plant.start('hub')
    }
    act().then(
      () => response.end(),
      () => response.writeHead(500).end(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const path = join(folder, 'bin')
  mkdirSync(path)
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const lines = [
    `#!${process.execPath}`,
    `fetch('${address}' + encodeURIComponent(process.argv.slice(2).join(' ')))`,
    '  .then(({ ok }) => process.exit(ok ? 0 : 1))',
  ]
  writeFileSync(join(path, 'systemctl'), `${lines.join('\n')}\n`, { mode: 0o755 })
  return path
}

/** The hub of this installation has the launcher of the package, and an updater. */
async function world() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-updates-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const commands = new Map<ProgramName, readonly string[]>()
  const installation = await install({ kind: { type: 'bare' }, commands })
  const { plant } = installation
  const { places, databaseUrl, hubUrl } = plant
  const releases = join(dirname(places.journal), 'releases')
  const launcher = join(folder, 'usr/hub/larder')
  layPackage(dirname(launcher), (from, to) => symlinkSync(from, to))
  commands.set('hub', ['env', `LARDER_RELEASES=${releases}`, launcher, 'edge'])
  const bin = await systemctl(folder, installation)

  async function larder<T>(...args: string[]): Promise<T> {
    const [node, ...main] = commandOf('cloud/cli/main')
    const env = { PATH: process.env['PATH'], DATA_DIR: places.cloud, DATABASE_URL: databaseUrl }
    const child = spawn(node, [...main, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => child.once('close', resolve))
    const output = await text(child.stdout)
    expect([args, await ended]).toEqual([args, 0])
    return JSON.parse(output) as T
  }

  /** Runs the updater until the returned function is called. */
  function startUpdater(confirmMs: number): () => Promise<void> {
    const [node, ...main] = commandOf('edge/updater-main')
    const env = {
      PATH: `${bin}:${process.env['PATH']}`,
      STORE: places.journal,
      HARDWARE: places.hardwareFile,
      MQTT_URL: 'mqtt://127.0.0.1:1',
      MQTT_PASSWORD: 'unused',
      HOST: '127.0.0.1',
      PORT: new URL(hubUrl).port,
      UPDATE_CONFIRM_MS: String(confirmMs),
      UPDATE_STEADY_MS: '1000',
      UPDATE_CHECK_MS: '200',
      UPDATE_AGAIN_MS: '1000',
    }
    const child = spawn(node, main, { env, stdio: ['ignore', 'inherit', 'inherit'] })
    const ended = new Promise((resolve) => child.once('close', resolve))
    const stop = async (): Promise<void> => {
      child.kill('SIGKILL')
      await ended
    }
    onTestFinished(stop)
    return stop
  }

  return { ...installation, installation, folder, releases, larder, startUpdater }
}

interface Rollout {
  state: string
  hubs: { hub_id: number; state: string; error?: string }[]
}

test('a release that migrates the journal and works replaces the program of the hub and sells, and a release that crashes is undone', async () => {
  const { installation, folder, releases, larder, startUpdater, ...rest } = await world()
  const { plant, room, come, reaches, sells, welcomed, failures } = rest
  const id = String(plant.hubId)
  plant.start()
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())
  const version = async (): Promise<string> => (await larder<{ version: string }>('hubs', 'show', id)).version
  const rollout = () => larder<Rollout>('rollouts', 'status')
  const of = (state: string, hub: object) => ({ state, hubs: [{ hub_id: plant.hubId, ...hub }] })
  const start = async ({ tarball, version: added }: { tarball: string; version: string }) => {
    await larder('releases', 'add', tarball, '--keys', plant.places.releaseKeys)
    await larder('rollouts', 'start', added, '--waves', '1')
  }
  const before = await version()

  let stop = startUpdater(120_000)
  const customer = await come(1)
  await customer.pay()
  await reaches(customer, S.READY)
  const good = release(folder, 2, { migratesAs: 2 })
  await start(good)
  await expect.poll(rollout, WAIT).toMatchObject(of('running', { state: 'waiting' }))
  expect(await version()).toBe(before)
  await collect(installation, customer)
  expect((await customer.order()).processing_status).toBe(S.COMPLETED)
  await expect.poll(rollout, WAIT).toMatchObject(of('completed', { state: 'succeeded' }))
  expect(await version()).toBe(good.version)
  expect(failures).toEqual([])
  const later = await come(3)
  await later.pay()
  await collect(installation, later)
  expect((await later.order()).processing_status).toBe(S.COMPLETED)
  await stop()

  stop = startUpdater(20_000)
  const bad = release(folder, 3, { main: crashing })
  await start(bad)
  const error = expect.stringContaining('the service does not answer') as string
  await expect.poll(rollout, WAIT).toMatchObject(of('stopped', { state: 'rolled_back', error }))
  await expect
    .poll(() => larder('alarms', 'list'), WAIT)
    .toContainEqual(expect.objectContaining({ kind: 'update_failed', subject: `version ${bad.version}` }))
  expect(failures.length).toBeGreaterThan(0)
  failures.length = 0
  await welcomed()
  expect([await version(), readlinkSync(join(releases, 'current'))]).toEqual([good.version, good.version])
  await expect.poll(() => existsSync(join(releases, bad.version)), WAIT).toBe(false)
  await stop()

  const next = await come(2)
  await next.pay()
  await collect(installation, next)
  expect((await next.order()).processing_status).toBe(S.COMPLETED)
  expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])
  await plant.stop('hub')
  const journal = new Sqlite(plant.places.journal, { readonly: true })
  onTestFinished(() => void journal.close())
  expect(journal.pragma('integrity_check', { simple: true })).toBe('ok')
  expect(journal.pragma('user_version', { simple: true })).not.toBe(9999)
}, 900_000)

test('a release that migrates the journal takes no order and no count before its confirmation, so its return loses none', async () => {
  const { installation, folder, larder, startUpdater, ...rest } = await world()
  const { plant, room, come, sells, welcomed, failures } = rest
  plant.start()
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())
  const stop = startUpdater(20_000)
  // It works, but reports another version, so the updater does not confirm it.
  const { tarball, version } = release(folder, 2, { migratesAs: 3 })
  await larder('releases', 'add', tarball, '--keys', plant.places.releaseKeys)
  await larder('rollouts', 'start', version, '--waves', '1')
  const running = () =>
    fetch(`${plant.hubUrl}/health`).then(
      (answer) => answer.json(),
      () => undefined,
    )
  const tried = { version: versionOfDay(3), sync: { phase: 'welcomed' } }
  await expect.poll(running, { ...WAIT, interval: 100 }).toMatchObject(tried)
  const [row] = (await room.state()).rows
  const { cabinet, shelf, row: number, units } = row!
  const count = { location: { cabinet, shelf, row: number }, units }
  const customer = await come(1)
  await customer.pay()
  expect(await room.atHub('/stock/count', count)).toBe(false)
  await sleep(clock, 5000)
  expect((await customer.order()).processing_status).toBe(S.QUEUED)
  expect(await running()).toMatchObject(tried)
  const error = `version ${versionOfDay(3)} runs`
  const returned = { state: 'stopped', hubs: [{ hub_id: plant.hubId, state: 'rolled_back', error }] }
  await expect.poll(() => larder<Rollout>('rollouts', 'status'), WAIT).toMatchObject(returned)
  await welcomed()
  await stop()
  await collect(installation, customer)
  expect((await customer.order()).processing_status).toBe(S.COMPLETED)
  expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])
}, 900_000)
