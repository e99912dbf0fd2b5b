import { expect, test } from 'vitest'
import { differenceOf } from '../../../simulator/scenarios/partial.ts'

test('a comparison checks only the expected fields, at any depth, in any order', () => {
  const seen = {
    online: true,
    bins: [
      { bin: 1, status: 'healthy' },
      { bin: 2, status: 'fault' },
    ],
    more: 1,
  }
  expect(differenceOf({ online: true }, seen)).toBeUndefined()
  expect(differenceOf({ bins: [{ bin: 2, status: 'fault' }] }, seen)).toBeUndefined()
  expect(differenceOf({}, seen)).toBeUndefined()
})

test.each([
  [{ online: false }, 'online is true, not false'],
  [{ door: { open: true } }, 'door is nothing, not {"open":true}'],
  [
    { bins: [{ bin: 1, status: 'fault' }] },
    'bins has no {"bin":1,"status":"fault"}: there status is healthy, not fault',
  ],
  [{ bins: [{ bin: 3 }] }, 'bins has no {"bin":3}; it has [{"bin":1,"status":"healthy"}]'],
  [{ names: ['ann'] }, 'names has no ann: it is empty'],
])('a difference is described in a sentence: %j', (expected, sentence) => {
  const seen = { online: true, bins: [{ bin: 1, status: 'healthy' }], names: [] }
  expect(differenceOf(expected, seen)).toBe(sentence)
})

test('an expected empty list matches only an empty list', () => {
  expect(differenceOf({ names: [] }, { names: ['ann'] })).toBe('names is ["ann"], not []')
  expect(differenceOf({ names: [] }, { names: [] })).toBeUndefined()
})
