import { expect, test } from 'vitest'
import { DeadLetters, createInbox } from '../../../edge/journal/inbox.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'

const EPOCH = 'e'.repeat(32)

function setUp() {
  const disk = { isFull: false }
  const checkpoint = (point: string): void => {
    if (disk.isFull && point === 'journal.before-commit')
      throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL')
  }
  const store = openStore({ path: ':memory:', checkpoint, log: silentLog })
  const runtime = virtualRuntime()
  const told: number[] = []
  const letters = new DeadLetters(store)
  const open = (software: string) =>
    createInbox(store, runtime, silentLog, {
      software,
      onDeadLetter: () => told.push(store.transact(() => letters.count())),
    })
  const inbox = open('hub 1')
  inbox.takeUp(EPOCH)
  const receive = (...bodies: unknown[]) =>
    inbox.receive(
      {
        epoch: EPOCH,
        first: 1,
        previousTag: 0,
        oldest: 1,
        entries: bodies.map((body, index) => ({ tag: index + 1, body })),
      },
      () => {
        throw new Error('not understood')
      },
    )
  return { disk, letters, inbox, open, receive, told }
}

test('a dead letter is announced after the commit that stored it', () => {
  const { receive, told } = setUp()
  receive({ kind: 'one' }, { kind: 'two' })
  expect(told).toEqual([2, 2])
})

test('another version of the service requests the entries again, once, that the former version could not apply', () => {
  const { inbox, open, receive } = setUp()
  open('hub 2').takeOverLetters()
  expect(inbox.position().cursor).toBe(0)
  receive({ kind: 'one' })
  open('hub 1').takeOverLetters()
  expect(inbox.position()).toMatchObject({ epoch: EPOCH, cursor: 1 })
  open('hub 2').takeOverLetters()
  expect(inbox.position()).toMatchObject({ epoch: null, cursor: 0 })
  expect(inbox.deadLetters(10)).toMatchObject([{ error: 'not understood', software: 'hub 2' }])
  inbox.takeUp('f'.repeat(32))
  open('hub 2').takeOverLetters()
  expect(inbox.position().epoch).toBe('f'.repeat(32))
})

test('an update on a full disk continues, and the request follows after a start with space', () => {
  const { disk, inbox, open, receive } = setUp()
  receive({ kind: 'one' })
  disk.isFull = true
  open('hub 2').takeOverLetters()
  expect(inbox.position()).toMatchObject({ epoch: EPOCH, cursor: 1 })
  disk.isFull = false
  open('hub 2').takeOverLetters()
  expect(inbox.position()).toMatchObject({ epoch: null, cursor: 0 })
})

test('the oldest dead letters are deleted above their maximum number', () => {
  const { letters, receive } = setUp()
  receive('a', 'b', 'c')
  letters.prune(2)
  expect(letters.list(10).map(({ body }) => body)).toEqual(['"c"', '"b"'])
  letters.prune(2)
  expect(letters.count()).toBe(2)
})
