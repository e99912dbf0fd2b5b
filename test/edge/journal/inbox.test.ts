import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ApplyError, createInbox } from '../../../edge/journal/inbox.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Batch } from '../../../protocol/mqtt/session.ts'
import { virtualRuntime } from '../../world/clock.ts'

const EPOCH = 'a'.repeat(32)
const LATER = 'b'.repeat(32)

/** Entry n has tag 100 + n and body { n }. */
function batch(first: number, count: number, epoch = EPOCH): Batch {
  const entries = Array.from({ length: count }, (_, n) => ({ tag: 100 + first + n, body: { n: first + n } }))
  return { epoch, first, previousTag: first === 1 ? 0 : 99 + first, oldest: 1, entries }
}

function setUp() {
  let crashAt: string | undefined
  const store = openStore({
    path: ':memory:',
    checkpoint: (point) => {
      if (point === crashAt) throw new Error(`crash ${point}`)
    },
    log: silentLog,
  })
  const runtime = virtualRuntime()
  const inbox = createInbox(store, runtime, silentLog)
  const machine: { fails: string | undefined } = { fails: undefined }
  store.db.exec('CREATE TABLE effects (n INTEGER NOT NULL)')
  const effects = (): number[] => store.db.prepare<[], number>('SELECT n FROM effects').pluck().all()
  const apply = (body: unknown): void => {
    const { n } = z.object({ n: z.int().max(1000) }).parse(body)
    store.db.prepare('INSERT INTO effects VALUES (?)').run(n)
    if (n === 13) throw new ApplyError('unknown_product', 'unlucky')
    if (n === 66) throw new TypeError('a defect')
    if (n === 77) store.db.exec('INSERT INTO effects VALUES (NULL)')
    if (machine.fails?.startsWith('SQLITE')) throw new Sqlite.SqliteError(machine.fails, machine.fails)
    if (machine.fails !== undefined) throw Object.assign(new Error(machine.fails), { errno: -5 })
  }
  return { inbox, effects, apply, machine, crashAt: (point: string | undefined) => (crashAt = point) }
}

test('a new entry is applied once, together with the cursor', () => {
  const { inbox, effects, apply } = setUp()
  expect(inbox.position()).toEqual({ epoch: null, cursor: 0, tag: 0 })
  expect(inbox.receive(batch(1, 2), apply)).toBe('foreign')
  expect(inbox.takeUp(EPOCH)).toBe('new')
  expect(inbox.receive(batch(1, 2), apply)).toBe('apply')
  expect(inbox.receive(batch(1, 2), apply)).toBe('duplicate')
  expect(inbox.receive(batch(5, 2), apply)).toBe('gap')
  expect(inbox.receive(batch(2, 3), apply)).toBe('apply')
  expect(effects()).toEqual([1, 2, 3, 4])
  expect(inbox.position()).toEqual({ epoch: EPOCH, cursor: 4, tag: 104 })
})

test('an entry with another tag under an applied number is a fork', () => {
  const { inbox, effects, apply } = setUp()
  inbox.takeUp(EPOCH)
  inbox.receive(batch(1, 3), apply)
  expect(inbox.receive({ ...batch(4, 1), previousTag: 7 }, apply)).toBe('fork')
  expect(effects()).toEqual([1, 2, 3])
})

describe('I8: bad entries', () => {
  test('I8: an entry that cannot be applied leaves only a dead letter, and later entries are applied', () => {
    const { inbox, effects, apply } = setUp()
    inbox.takeUp(EPOCH)
    expect(inbox.receive(batch(12, 3), apply)).toBe('gap')
    inbox.receive(batch(1, 14), apply)
    inbox.receive(
      {
        ...batch(15, 2),
        entries: [
          { tag: 115, body: 'nonsense' },
          { tag: 116, body: { n: 16 } },
        ],
      },
      apply,
    )
    expect(effects()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16])
    expect(inbox.position().cursor).toBe(16)
    expect(inbox.deadLetters(10)).toMatchObject([
      { epoch: EPOCH, seq: 15, body: '"nonsense"' },
      { epoch: EPOCH, seq: 13, body: '{"n":13}', error: 'unlucky' },
    ])
  })

  test('I8: an entry that violates a table’s rule, or meets a defect of the hub, does not block', () => {
    const { inbox, effects, apply } = setUp()
    inbox.takeUp(EPOCH)
    inbox.receive(batch(1, 60), apply)
    inbox.receive(batch(61, 20), apply)
    expect(effects()).toHaveLength(77)
    expect(inbox.position().cursor).toBe(80)
    expect(inbox.deadLetters(10)).toMatchObject([
      { seq: 77, error: 'NOT NULL constraint failed: effects.n' },
      { seq: 66, error: 'a defect' },
      { seq: 13 },
    ])
  })

  test('a failure of the machine is no failure of the entry: the batch is rolled back, and applied at its repetition', () => {
    const { inbox, effects, apply, machine } = setUp()
    inbox.takeUp(EPOCH)
    for (const code of ['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'EIO']) {
      machine.fails = code
      expect(() => inbox.receive(batch(1, 3), apply)).toThrow(code)
    }
    machine.fails = undefined
    expect(effects()).toEqual([])
    expect(inbox.receive(batch(1, 3), apply)).toBe('apply')
    expect(effects()).toEqual([1, 2, 3])
    expect(inbox.deadLetters(10)).toEqual([])
  })
})

describe('a crash of the inbox', () => {
  test('a crash before the commit rolls the batch back, and after it the batch stays applied', () => {
    const { inbox, effects, apply, crashAt } = setUp()
    inbox.takeUp(EPOCH)
    crashAt('journal.before-commit')
    expect(() => inbox.receive(batch(1, 3), apply)).toThrow('crash')
    expect(effects()).toEqual([])
    expect(inbox.position().cursor).toBe(0)
    crashAt('journal.after-commit')
    expect(() => inbox.receive(batch(1, 3), apply)).toThrow('crash')
    crashAt(undefined)
    expect(inbox.receive(batch(1, 3), apply)).toBe('duplicate')
    expect(effects()).toEqual([1, 2, 3])
  })
})

test('an epoch that was left is never followed again', () => {
  const { inbox, apply } = setUp()
  expect(inbox.takeUp(EPOCH)).toBe('new')
  inbox.receive(batch(1, 3), apply)
  expect(inbox.takeUp(EPOCH)).toBe('same')
  expect(inbox.takeUp(LATER)).toBe('new')
  expect(inbox.position()).toEqual({ epoch: LATER, cursor: 0, tag: 0 })
  expect(inbox.takeUp(EPOCH)).toBe('left')
  expect(inbox.receive(batch(1, 3), apply)).toBe('foreign')
})

test('a reset store asks for a snapshot, and follows none of its former epochs', () => {
  const { inbox, apply } = setUp()
  inbox.takeUp(EPOCH)
  inbox.receive(batch(1, 3), apply)
  inbox.reset()
  inbox.reset()
  expect(inbox.position()).toEqual({ epoch: null, cursor: 0, tag: 0 })
  expect(inbox.takeUp(EPOCH)).toBe('left')
  expect(inbox.takeUp(LATER)).toBe('new')
})
