import { expect, test } from 'vitest'
import { MAX_DEPTH, parseMessage } from '../../../protocol/mqtt/parse-message.ts'

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`

test('a message may be nested to the limit and no deeper, for any kind of bracket', () => {
  expect(parseMessage(nested(MAX_DEPTH))).toBeDefined()
  expect(parseMessage(nested(MAX_DEPTH + 1))).toBeUndefined()
  expect(parseMessage(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)).toBeUndefined()
  expect(parseMessage(`[${Array(1000).fill(nested(3)).join()}]`)).toHaveLength(1000)
})

test('brackets and quotes within a text do not count as nesting', () => {
  const text = `${'['.repeat(500)}"\\${'{'.repeat(500)}`
  expect(parseMessage(JSON.stringify({ text }))).toEqual({ text })
})

test('a message that is not JSON is undefined', () => {
  for (const text of ['', '{', 'undefined', '[1,', '"']) expect(parseMessage(text)).toBeUndefined()
})
