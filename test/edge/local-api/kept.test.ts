import { expect, test } from 'vitest'
import { StoredHubs } from '../../../edge/local-api/page/kept.ts'
import type { PendingCount } from '../../../edge/local-api/page/pending-counts.ts'

const entry: PendingCount = {
  id: 'a',
  hub: 1,
  what: 'count',
  location: { cabinet: 1, shelf: 1, row: 1 },
  units: 11,
  at: 1_000_000,
  by: 'Ann',
  problem: null,
  isLate: true,
}
type Seen = NonNullable<ReturnType<StoredHubs['lastSeen']>>
const seen = (hubId: number, at: number) => ({ at, hardware: { hubId } }) as Seen

function browser(texts: Record<string, string> = {}) {
  const stored = new Map(Object.entries(texts))
  return new StoredHubs(() => ({
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, text) => void stored.set(key, text),
    removeItem: (key) => void stored.delete(key),
    key: (index) => [...stored.keys()][index] ?? null,
    length: stored.size,
  }))
}

test('counts and typed numbers of one hub are no counts of another hub at the same address', () => {
  const stored = browser()
  stored.keep(1, { pending: [entry], typed: [['1/1/2', 4]] })
  expect(stored.of(2)).toEqual({ typed: [], pending: [], seen: null })
  expect(stored.entriesOfOthers(2)).toEqual([entry])
  expect([stored.of(1).pending, stored.entriesOfOthers(1)]).toEqual([[entry], []])
  stored.discard('a')
  expect([stored.of(1).pending, stored.entriesOfOthers(2)]).toEqual([[], []])
})

test('counts that an older page has stored without a hub are shown, and belong to no hub', () => {
  const { hub: _, ...old } = entry
  const stored = browser({ 'larder-hub-page': JSON.stringify({ typed: [], pending: [old], seen: null }) })
  expect([stored.of(1).pending, stored.entriesOfOthers(1)]).toEqual([[], [old]])
})

test('without network the page shows the hub that it has seen last, until the login ends', () => {
  const stored = browser()
  stored.keep(1, { seen: seen(1, 2000) })
  stored.keep(2, { seen: seen(2, 1000) })
  expect(stored.lastSeen()).toEqual(seen(1, 2000))
  stored.forgetSeen()
  expect([stored.lastSeen(), stored.of(1).seen]).toEqual([null, null])
})

test('a page works in a browser that refuses its storage', () => {
  const refused = new StoredHubs(() => {
    throw new Error('SecurityError')
  })
  refused.keep(1, { pending: [entry] })
  refused.forgetSeen()
  expect([refused.of(1).pending, refused.entriesOfOthers(1), refused.lastSeen()]).toEqual([[entry], [], null])
})
