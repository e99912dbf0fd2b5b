import { assert, jsonValue, property } from 'fast-check'
import { expect, test } from 'vitest'
import { changesOf, type Json, withChanges } from '../../../protocol/model/json-changes.ts'

test('the changes between any two JSON values turn the first value into the second', () => {
  assert(
    property(jsonValue(), jsonValue(), (before, after) => {
      expect(withChanges(before as Json, changesOf(before as Json, after as Json))).toEqual(after)
    }),
  )
})

test('changes name the smallest changed places, and unchanged objects stay identical', () => {
  const before = { bins: [{ door: 'closed' }, { door: 'closed' }], doors: { main: 0 }, gone: 1 }
  const after = { bins: [{ door: 'closed' }, { door: 'open' }], doors: { main: 0 } }
  const changes = changesOf(before, after)
  expect(changes).toEqual([{ path: ['gone'] }, { path: ['bins', 1, 'door'], value: 'open' }])
  const made = withChanges(before, changes) as typeof after
  expect(made).toEqual(after)
  expect(made.doors).toBe(before.doors)
  expect(made.bins[0]).toBe(before.bins[0])
})
