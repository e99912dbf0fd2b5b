import { expect, test } from 'vitest'
import { PendingCounts, type PendingCount, type Sent } from '../../../edge/local-api/page/pending-counts.ts'

const at = (row: number) => ({ cabinet: 1, shelf: 2, row })
const entry = (id: string, row: number, units: number, what: PendingCount['what'] = 'count') => ({
  id,
  what,
  location: at(row),
  units,
})

/** A page with a network that the test switches. Tabs with the same `stored` share their entries. */
function page(stored: { entries: readonly PendingCount[] } = { entries: [] }) {
  let now = 1_000_000
  const world = {
    isThere: true,
    person: 'Ann',
    refused: new Map<string, string>(),
    sent: [] as string[],
    get shown() {
      return stored.entries
    },
    pass: (ms: number) => void (now += ms),
  }
  const counts = new PendingCounts({
    read: () => stored.entries,
    write: (entries) => void (stored.entries = entries),
    now: () => now,
    isMine: ({ by }) => by === undefined || by === world.person,
    send: ({ id }, ageMs): Promise<Sent> => {
      if (!world.isThere) return Promise.resolve('not delivered')
      const refusal = world.refused.get(id)
      if (refusal !== undefined) return Promise.resolve({ refused: refusal })
      world.sent.push(`${id} ${ageMs}`)
      return Promise.resolve('confirmed')
    },
  })
  return { counts, world }
}

test('a count waits until its person has logged in again, so that nobody else signs it', async () => {
  const { counts, world } = page()
  world.isThere = false
  await counts.enter({ ...entry('a', 1, 7), by: 'Ann' })
  world.isThere = true
  world.person = 'Bob'
  await counts.enter({ ...entry('b', 2, 4), by: 'Bob' })
  expect([world.sent, world.shown.map(({ id }) => id)]).toEqual([['b 0'], ['a']])
  world.person = 'Ann'
  await counts.send()
  expect([world.sent, world.shown]).toEqual([['b 0', 'a 0'], []])
})

test('a confirmed count is deleted', async () => {
  const { counts, world } = page()
  await counts.enter(entry('a', 1, 7))
  expect([world.sent, world.shown]).toEqual([['a 0'], []])
})

test('counts without network wait in order, and are sent with their age', async () => {
  const { counts, world } = page()
  world.isThere = false
  await counts.enter(entry('a', 1, 7))
  world.pass(30_000)
  await counts.enter(entry('b', 2, 4, 'restock'))
  expect(world.shown.map(({ id, isLate }) => [id, isLate])).toEqual([
    ['a', true],
    ['b', false],
  ])
  world.pass(30_000)
  world.isThere = true
  await counts.send()
  expect([world.sent, world.shown]).toEqual([['a 60000', 'b 30000'], []])
})

test('a later count of a row replaces its pending count, and a restock is added to it', async () => {
  const { counts, world } = page()
  world.isThere = false
  await counts.enter(entry('a', 1, 7))
  await counts.enter(entry('b', 1, 2, 'restock'))
  expect(world.shown.map(({ id }) => id)).toEqual(['a', 'b'])
  await counts.enter(entry('c', 1, 8))
  expect(world.shown.map(({ id }) => id)).toEqual(['c'])
  counts.discard(at(1))
  expect(world.shown).toEqual([])
})

test('a count that the hub refuses stays with the reason, and does not delay other counts', async () => {
  const { counts, world } = page()
  world.refused.set('a', 'counted since')
  await counts.enter(entry('a', 1, 7))
  await counts.enter(entry('b', 2, 3))
  expect(world.shown).toMatchObject([{ id: 'a', problem: 'counted since' }])
  expect(world.sent).toEqual(['b 0'])
  await counts.enter(entry('c', 1, 6))
  expect([world.sent, world.shown]).toEqual([['b 0', 'c 0'], []])
})

test('counts of an earlier load of the page are sent', async () => {
  const { counts, world } = page({
    entries: [{ ...entry('a', 1, 7), at: 940_000, problem: null, isLate: true }],
  })
  await Promise.all([counts.send(), counts.send()])
  expect(world.sent).toEqual(['a 60000'])
})

test('counts that two tabs of one page could not send are all kept, and one tab sends them', async () => {
  const stored = { entries: [] }
  const [one, other] = [page(stored), page(stored)]
  one.world.isThere = other.world.isThere = false
  await one.counts.enter(entry('a', 1, 7))
  await other.counts.enter(entry('b', 2, 3))
  await one.counts.enter(entry('c', 3, 5))
  expect(one.world.shown.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  one.world.isThere = true
  await one.counts.send()
  expect([one.world.sent, other.world.shown]).toEqual([['a 0', 'b 0', 'c 0'], []])
  other.world.isThere = true
  await other.counts.send()
  expect(other.world.sent).toEqual([])
})
