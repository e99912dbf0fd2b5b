import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { createFront } from '../../../edge/local-api/front.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { update } from '../../../edge/update/updater.ts'
import { systemWorld } from '../../../edge/update/world.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { NEW, updateBoard, updaterSettings } from '../../world/update-board.ts'

test.each(['', '\0\0\0', '{"now":{"step":"wai', '{"now":{"step":"unknown"},"last":null}'])(
  'a hub whose update.json is %j logs the damage once, and installs its release',
  async (damaged) => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-state-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = join(folder, 'hub.sqlite')
    const errors: string[] = []
    const log = { ...silentLog, error: (_: unknown, message: string) => void errors.push(message) }
    const real = systemWorld({ store, update: {} } as never, systemRuntime(), log)
    writeFileSync(updateFiles(store).state, damaged)
    const hub = updateBoard()
    hub.world.state = real.state
    await update(hub.world, updaterSettings)
    expect([hub.disk.link, real.state.read().now.step]).toEqual([NEW, 'idle'])
    expect(errors).toEqual([expect.stringContaining('is damaged')])
  },
)

test('the updater does not stop a service that reports a motion or a trial, although its journal has no order', async () => {
  let reason: string | undefined = 'something moves'
  const front = createFront({
    hubId: 1,
    probes: {},
    sync: { state: () => ({ phase: 'welcomed', receivedMsAgo: 0 }) as never },
    version: NEW,
    links: () => [],
    reasonToWait: () => reason,
    load: () => Promise.reject(new Error('not needed')),
  })
  const server = createServer(front)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const settings = { store: '/nonexistent/hub.sqlite', local: { host: '127.0.0.1', port }, update: {} }
  const world = systemWorld(settings as never, systemRuntime(), silentLog)
  expect(await world.isBusy()).toBe(true)
  reason = undefined
  expect(await world.isBusy()).toBe(false)
  // A hub that waits for its journal reports no reason. Its journal may contain an order: here it is no file.
  const folder = mkdtempSync(join(tmpdir(), 'larder-journal-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const waiting = systemWorld({ ...settings, store: folder } as never, systemRuntime(), silentLog)
  expect(await waiting.isBusy()).toBe(true)
})

test('the return of a journal counts the unconfirmed reports that only the other journal contains, without alarms', () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-journal-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  mkdirSync(updateFiles(store).releases)
  openStore({ path: store, hubId: 1, checkpoint: noCheckpoint, log: silentLog }).close()
  const change = (sql: string): void => void new Sqlite(store).exec(sql).close()
  const report = (seq: number, kind = 'stock.counted'): void =>
    change(`INSERT INTO outbox_ledger (seq, tag, body) VALUES (${seq}, 7, '{"kind":"${kind}"}')`)
  change(
    `INSERT OR REPLACE INTO stream_positions (stream, epoch, base, base_tag) VALUES ('ledger', 'e', 3, 7)`,
  )
  report(4)
  const world = systemWorld({ store, update: {} } as never, systemRuntime(), silentLog)
  world.backUp()
  expect(world.restore()).toBe(0)
  report(5)
  report(6)
  report(7, 'alarm')
  expect(world.restore()).toBe(0)
  change('PRAGMA user_version = 9999')
  expect(world.restore()).toBe(2)
  expect(world.restore()).toBe(0)
})
