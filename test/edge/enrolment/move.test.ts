import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { desiredFile } from '../../../edge/desired/desired-states.ts'
import { enrolmentFiles } from '../../../edge/enrolment/enrolment.ts'
import { erasing } from '../../../edge/enrolment/erase.ts'
import { completeMove } from '../../../edge/enrolment/complete-move.ts'
import type { Next } from '../../../edge/enrolment/install.ts'
import { moving } from '../../../edge/enrolment/moving.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { lockStore } from '../../../edge/journal/store-lock.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import { silentLog, type Log } from '../../../protocol/model/log.ts'
import type { OpenTransport, TransportHandlers } from '../../../protocol/mqtt/transport.ts'
import { downTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import { seededChance } from '../../simulation/chance.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { virtualClock } from '../../world/clock.ts'
import { PowerCut } from '../../world/update-board.ts'
import { cutPower, startDisk } from '../update/mortal-disk.ts'

vi.mock('node:fs', async (original) => {
  const { mortal } = await import('../update/mortal-disk.ts')
  return mortal(await original<typeof import('node:fs')>())
})

const next: Next = {
  order: 5,
  code: 'K7QM2XRA',
  key: 'the next key',
  former_hub_id: 1,
  answer: {
    hub_id: 100_000_001,
    name: 'Lobby',
    certificate: 'the next certificate',
    ca: 'the next authority',
    mqtt_url: 'mqtts://c1.example:8883',
    expires_at: '2026-06-01T00:00:00.000Z',
    hardware: { ...demoHub, hubId: 100_000_001 },
    settings: {},
    desired_version: 4,
    update_root: 'the root of the next cell',
  },
}

/** An enrolled hub 1 with a journal, whose board is enrolled in another cell. `isOrdered`: the cloud has ordered it to leave. */
function board({ isOrdered = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-move-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  openStore({ path: store, checkpoint: noCheckpoint, log: silentLog, hubId: 1 }).close()
  const paths = enrolmentFiles(store)
  const updates = updateFiles(store)
  mkdirSync(updates.metadata, { recursive: true })
  const metadata = join(updates.metadata, 'root.json')
  const former = {
    [paths.enrolment]: '{"hub_id":1,"mqtt_url":"mqtts://c0.example:8883"}',
    [paths.key]: 'the key',
    [paths.certificate]: 'the certificate',
    [paths.ca]: 'the authority',
    [paths.hardware]: JSON.stringify({ ...demoHub, hubId: 1 }),
    [desiredFile(store)]: '{"applied":null}',
    [updates.root]: 'the root',
    [updates.desired]: 'a release of the former cell',
    [`${store}.token`]: 'a token',
    [isOrdered ? paths.moving : paths.next]: JSON.stringify(next),
    [metadata]: 'verified with the root',
  }
  for (const [path, text] of Object.entries(former)) writeFileSync(path, text)
  const read = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const place = { store, hardware: undefined }
  const errors: string[] = []
  const log: Log = { ...silentLog, error: (_, message) => void errors.push(message) }
  return {
    store,
    paths,
    read,
    folder,
    complete: () => completeMove(place, virtualClock(), log),
    errors,
    log,
    /** Everything that the hub of the next cell uses. */
    state: () => ({
      enrolment: read(paths.enrolment),
      key: read(paths.key),
      certificate: read(paths.certificate),
      ca: read(paths.ca),
      hub: (JSON.parse(read(paths.hardware) ?? '{}') as { hubId?: number }).hubId,
      desired: read(desiredFile(store)),
      root: read(updates.root),
      release: read(updates.desired),
      metadata: read(metadata),
      token: read(`${store}.token`),
      journal: [existsSync(store), existsSync(`${store}.former`)],
      moving: read(paths.moving),
    }),
  }
}

const inNextCell = {
  enrolment: '{"hub_id":100000001,"mqtt_url":"mqtts://c1.example:8883","former_hub_id":1}\n',
  key: 'the next key',
  certificate: 'the next certificate',
  ca: 'the next authority',
  hub: 100_000_001,
  desired: expect.stringContaining('"version":4') as string,
  root: 'the root',
  release: undefined,
  token: undefined,
  metadata: 'verified with the root',
  journal: [true, true],
  moving: undefined,
}

test('a board that moves keeps its former journal apart, erases the secrets of the former cell, and keeps the root of releases that it trusts', () => {
  const { complete, state } = board()
  complete()
  expect(state()).toEqual(inNextCell)
  complete()
  expect(state()).toEqual(inNextCell)
})

const isPowerCut = (error: unknown): boolean =>
  error instanceof PowerCut || (error instanceof Error && isPowerCut(error.cause))

test('the next start completes a move after a power failure at any step, even if it undoes unsynced changes', () => {
  let failures = 0
  for (let cutAfter = 1; ; cutAfter += 1) {
    const { folder, complete, state } = board()
    const disk = startDisk(folder, [])
    disk.cutAfter = cutAfter
    try {
      complete()
      disk.cutAfter = Infinity
      break
    } catch (error) {
      if (!isPowerCut(error)) throw error
      failures += 1
    }
    cutPower(disk, seededChance(cutAfter))
    complete()
    expect([cutAfter, state()]).toEqual([cutAfter, inNextCell])
  }
  expect(failures).toBeGreaterThan(15)
})

const DEMO_FRIDGES = demoHub.controllers.flatMap(({ devices }) =>
  devices.flatMap((device) => (device.kind === 'fridge' ? [device.number] : [])),
)

const fridgesIn = (path: string): { number: number; warm_since: number | null; read_at: number }[] => {
  const db = new Sqlite(path, { readonly: true })
  const rows = db.prepare<[], { number: number; warm_since: number | null; read_at: number }>(
    'SELECT number, warm_since, read_at FROM fridges ORDER BY number',
  )
  const found = rows.all()
  db.close()
  return found
}

test.each([
  ['page', 1024],
  ['header', 0],
])('a former journal with a damaged %s does not prevent a move: no fridge counts as cold then', (_, at) => {
  const { store, complete, state, errors } = board()
  const bytes = readFileSync(store)
  bytes.fill(0xff, at)
  writeFileSync(store, bytes)
  complete()
  expect(state()).toEqual(inNextCell)
  expect(readFileSync(`${store}.former`)).toEqual(bytes)
  const fridges = fridgesIn(store)
  expect(fridges.map(({ number }) => number)).toEqual(DEMO_FRIDGES)
  // Before any time of a clock.
  for (const { warm_since, read_at } of fridges) expect([warm_since! < 0, read_at < 0]).toEqual([true, true])
  expect(errors).toEqual([expect.stringContaining('the former journal cannot be read')])
})

test('a start that cannot find out whether the former journal is there changes nothing, and the next start completes the move', () => {
  const { store, complete, state } = board()
  const before = state()
  symlinkSync(`${store}.former`, `${store}.former`)
  expect(complete).toThrow('the move to another cell is not complete')
  expect(state()).toEqual(before)
  rmSync(`${store}.former`)
  complete()
  expect(state()).toEqual(inNextCell)
})

test('the next start carries over times from the log of the former journal that an interrupted start has already moved', () => {
  const { store, complete } = board()
  const db = new Sqlite(store)
  for (const number of DEMO_FRIDGES)
    db.prepare('INSERT INTO fridges VALUES (?, NULL, 1700000000000, NULL)').run(number)
  // A power failure leaves the log beside the journal, and the next start loses power after it has moved the log.
  const [journal, log] = [readFileSync(store), readFileSync(`${store}-wal`)]
  db.close()
  writeFileSync(store, journal)
  writeFileSync(`${store}.former-wal`, log)
  complete()
  expect(fridgesIn(store)).toEqual(
    DEMO_FRIDGES.map((number) => ({ number, warm_since: null, read_at: 1_700_000_000_000 })),
  )
})

/** Connections of hub 1 that obey orders of its cloud. `enrolments` answer in turn. */
function connection(enrolments: (() => Promise<unknown>)[] = []) {
  const { store, read, paths, errors, log } = board({ isOrdered: false })
  const told: unknown[] = []
  const asked: unknown[] = []
  let [restarts, why, breaks] = [0, undefined as string | undefined, false]
  let handlers: TransportHandlers | undefined
  const open: OpenTransport = (_options, given) => {
    handlers = given
    return {
      publish(topic, payload) {
        told.push([topic, JSON.parse(payload)])
        if (breaks) throw new Error('the connection is broken')
        return Promise.resolve(true)
      },
      close() {},
    }
  }
  const restart = (): void => void (restarts += 1)
  const over = moving(
    {
      hubId: 1,
      log,
      reasonToStay: () => why,
      enrol(to) {
        asked.push(to)
        return enrolments.shift()!()
      },
    },
    erasing({ hubId: 1, store, log: silentLog, restart, reasonToStay: () => why }, open),
  )
  over({ subscribe: [] }, { onConnect() {}, onDisconnect() {}, onMessage() {} })
  const order = (channel: 'move' | 'erase', body: unknown): void =>
    handlers!.onMessage(downTopic(1, channel), JSON.stringify(body))
  return {
    told,
    asked,
    store,
    errors,
    breakLine: () => void (breaks = true),
    restarts: () => restarts,
    mustStay: (reason: string | undefined) => void (why = reason),
    move: (body: unknown) => order('move', body),
    erase: (body: unknown) => order('erase', body),
    isEnrolled: () => read(paths.enrolment) !== undefined,
    files: () => [read(paths.next) !== undefined, read(paths.moving) !== undefined],
  }
}

const to = { order: 5, cloud: 'https://shop.example/c1', hub_id: 100_000_001, code: 'K7QM2XRA' }
const moved = (error?: string) => [
  upTopic(1, 'moved'),
  { order: to.order, hub_id: to.hub_id, ...(error !== undefined && { error }) },
]

test('an enrolment that failed is reported again for the same order, without another question to the next cell; the next order asks it again', async () => {
  const hub = connection([
    () => Promise.reject(new Error('the cloud refused the enrolment')),
    () => Promise.resolve(),
  ])
  for (const count of [1, 2, 3]) {
    hub.move(to)
    await expect.poll(() => hub.told).toHaveLength(count)
  }
  const failed = moved('the cloud refused the enrolment')
  expect([hub.told, hub.asked]).toEqual([[failed, failed, failed], [to]])
  hub.move({ ...to, order: 6 })
  await expect.poll(() => hub.told).toHaveLength(4)
  expect(hub.told[3]).toEqual([upTopic(1, 'moved'), { order: 6, hub_id: to.hub_id }])
  expect([hub.asked.length, hub.restarts(), hub.isEnrolled()]).toEqual([2, 0, true])
})

test('a hub that must stay does not ask the next cell, and stays if the reason appears during the enrolment', async () => {
  let enrolled = (): void => {}
  const hub = connection([
    () => new Promise<void>((resolve) => (enrolled = resolve)),
    () => Promise.resolve(),
  ])
  hub.mustStay('bin 2 is open')
  hub.move(to)
  await expect.poll(() => hub.told).toEqual([moved('bin 2 is open')])
  expect(hub.asked).toEqual([])
  hub.mustStay(undefined)
  hub.move(to)
  // The cloud repeats its order while the first one is under way.
  hub.move(to)
  await expect.poll(() => hub.asked).toEqual([to])
  hub.mustStay('order 7 is in progress')
  enrolled()
  await expect.poll(() => hub.told).toHaveLength(2)
  expect(hub.told[1]).toEqual(moved('order 7 is in progress'))
  hub.mustStay(undefined)
  hub.move(to)
  await expect.poll(() => hub.told).toHaveLength(3)
  expect([hub.told[2], hub.restarts(), hub.isEnrolled()]).toEqual([moved(), 0, true])
})

test('only the order to leave for the cell in which the board is enrolled begins the move; its enrolment here stays until then', async () => {
  const hub = connection()
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.isEnrolled(), hub.files()]).toEqual([
    [[upTopic(1, 'erased'), {}]],
    true,
    [false, true],
  ])
})

test('a retired board erases its secrets at once and does not move, whatever its state is', async () => {
  const hub = connection()
  hub.mustStay('bin 2 is open')
  hub.erase({})
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.isEnrolled(), hub.files()]).toEqual([
    [[upTopic(1, 'erased'), {}]],
    false,
    [false, false],
  ])
})

test('a board that is not enrolled in the other cell with the ordered number keeps its enrolment', async () => {
  const hub = connection()
  hub.erase({ next: 100_000_002 })
  await Promise.resolve()
  expect([hub.told, hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([[], 0, true, [true, false]])
})

test('a hub that must stay does not obey the order to leave until the reason has ended', async () => {
  const hub = connection()
  hub.mustStay('bin 2 is open')
  hub.erase({ next: 100_000_001 })
  await Promise.resolve()
  expect([hub.told, hub.restarts(), hub.isEnrolled(), hub.files()]).toEqual([[], 0, true, [true, false]])
  hub.mustStay(undefined)
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect([hub.told, hub.files()]).toEqual([[[upTopic(1, 'erased'), {}]], [false, true]])
})

test('the order to leave removes the journal of an earlier move, so that no log of it is read with the new one', async () => {
  const hub = connection()
  const former = ['', '-wal', '-shm'].map((suffix) => `${hub.store}.former${suffix}`)
  for (const path of former) writeFileSync(path, 'of an earlier move')
  hub.erase({ next: 100_000_001 })
  await expect.poll(() => hub.restarts()).toBe(1)
  expect(former.map(existsSync)).toEqual([false, false, false])
})

test('a hub ignores an order to move that a later order has replaced', async () => {
  const hub = connection([() => Promise.resolve(), () => Promise.resolve()])
  hub.move({ ...to, order: 6 })
  await expect.poll(() => hub.told).toHaveLength(1)
  hub.move(to)
  await Promise.resolve()
  hub.move({ ...to, order: 7 })
  await expect.poll(() => hub.told).toHaveLength(2)
  expect(hub.asked).toEqual([6, 7].map((order) => ({ ...to, order })))
})

test('an answer that the connection does not take ends nothing, and the next order is answered', async () => {
  const hub = connection([() => Promise.resolve(), () => Promise.resolve()])
  const unanswered = 'an order to move to another cell is not answered'
  hub.breakLine()
  for (const count of [1, 2]) {
    hub.move(to)
    await expect.poll(() => hub.errors).toEqual(Array.from({ length: count }, () => unanswered))
  }
  expect(hub.asked).toEqual([to, to])
})

test('a damaged order changes nothing', async () => {
  const hub = connection()
  for (const damaged of ['text', { next: {} }]) hub.erase(damaged)
  for (const damaged of [{}, { ...to, cloud: 'file:///etc/passwd' }, { ...to, code: '' }]) hub.move(damaged)
  await Promise.resolve()
  expect([hub.told, hub.asked, hub.restarts(), hub.isEnrolled()]).toEqual([[], [], 0, true])
})

test('only the service that has the journal completes a move', () => {
  const { store, complete, state } = board()
  const before = state()
  const lock = lockStore(store, { pid: 7, since: 'then' })
  expect(complete).toThrow(
    /^STORE: the move to another cell is not complete: the journal .* is in use by process 7/,
  )
  expect(state()).toEqual(before)
  lock.release()
  complete()
  expect(state()).toEqual(inNextCell)
})
