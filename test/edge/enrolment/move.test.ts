import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { lockStore } from '../../../edge/journal/store-lock.ts'
import { seededChance } from '../../simulation/chance.ts'
import { demoHub } from '../../support/demo-hub.ts'
import { PowerCut } from '../../world/update-board.ts'
import { cutPower, startDisk } from '../update/mortal-disk.ts'
import { board, next } from './support/moving-board.ts'

vi.mock('node:fs', async (original) => {
  const { mortal } = await import('../update/mortal-disk.ts')
  return mortal(await original<typeof import('node:fs')>())
})

const inNextCell = {
  enrolment: '{"hub_id":100000001,"mqtt_url":"mqtts://c1.example:8883","former_hub_id":1}\n',
  key: 'the next key',
  certificate: next.answer.certificate,
  ca: 'the next authority',
  hub: 100_000_001,
  desired: expect.stringContaining('"version":4') as string,
  root: 'the root',
  release: undefined,
  token: undefined,
  metadata: 'verified with the root',
  list: undefined,
  journal: [true, true],
  next: undefined,
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
  expect(errors).toEqual([expect.stringContaining('the former journal is damaged')])
})

test('a board that was off until its certificate of the other cell ended stays the former hub, unless it has begun to leave', () => {
  const { store, paths, complete, state } = board()
  const before = state()
  const late = { now: () => Date.parse(next.answer.expires_at) }
  complete({}, late)
  expect(state()).toEqual({ ...before, moving: undefined })
  complete({}, late)
  expect(state().hub).toBe(1)
  writeFileSync(paths.moving, JSON.stringify(next))
  renameSync(store, `${store}.former`)
  complete({}, late)
  expect(state()).toEqual(inNextCell)
})

test('a start that cannot look for the order to leave begins no move, and does not end', () => {
  const { complete, state, paths } = board({ isOrdered: false })
  symlinkSync(paths.moving, paths.moving)
  const before = state()
  complete()
  expect(state()).toEqual(before)
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

test('the log reports a damaged order to leave, and its second copy completes the move; if both are damaged, the board does not start with its former enrolment', () => {
  const { paths, complete, state, errors } = board()
  writeFileSync(paths.moving, '{"order":')
  writeFileSync(paths.next, '')
  const before = state()
  expect(complete).toThrow('are damaged. Set the hub to maintenance')
  expect(state()).toEqual(before)
  writeFileSync(paths.next, JSON.stringify(next))
  complete()
  expect(state()).toEqual(inNextCell)
  expect(new Set(errors)).toEqual(new Set(['the order to leave for another cell is damaged']))
})

test('a former journal that cannot be read for a moment does not count as damaged: the next start reads it', () => {
  const { store, complete, errors } = board()
  const db = new Sqlite(store)
  for (const number of DEMO_FRIDGES)
    db.prepare('INSERT INTO fridges VALUES (?, NULL, 1700000000000, NULL)').run(number)
  db.close()
  renameSync(store, `${store}.former`)
  // SQLite cannot open the log.
  mkdirSync(`${store}.former-wal`)
  expect(complete).toThrow(/the former journal .* cannot be read/)
  rmSync(`${store}.former-wal`, { recursive: true })
  complete()
  expect(errors).toEqual([])
  expect(fridgesIn(store)).toEqual(
    DEMO_FRIDGES.map((number) => ({ number, warm_since: null, read_at: 1_700_000_000_000 })),
  )
})

test('a former journal that no start can read counts as damaged after some starts: the hub starts without its times, and reports that', () => {
  const { store, complete, state, errors } = board()
  renameSync(store, `${store}.former`)
  mkdirSync(`${store}.former-wal`)
  const start = (): void => complete({ starts: 3 })
  for (const _ of [1, 2, 3]) expect(start).toThrow(/the former journal .* cannot be read/)
  start()
  expect([state(), errors]).toEqual([
    inNextCell,
    [expect.stringContaining('the former journal cannot be read: nothing is sold')],
  ])
  expect(fridgesIn(store).map(({ warm_since }) => warm_since! < 0)).toEqual(DEMO_FRIDGES.map(() => true))
  expect(existsSync(`${store}.former.unread`)).toBe(false)
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
