import { expect, test } from 'vitest'
import { normalText } from '../../../protocol/model/name-text.ts'

test('a text that is longer than its limit is refused before it is normalised', () => {
  const normalised: string[] = []
  const schema = normalText(3, (text) => {
    normalised.push(text)
    return text.trim()
  })
  expect([schema.safeParse(' a ').data, schema.safeParse('    ').success]).toEqual(['a', false])
  expect(normalised).toEqual([' a '])
})
