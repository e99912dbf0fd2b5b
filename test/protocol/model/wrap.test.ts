import { expect, test } from 'vitest'
import { z } from 'zod'
import { helpText } from '../../../protocol/model/program-settings.ts'
import { wrap } from '../../../protocol/model/wrap.ts'

test('a text is broken at spaces, and a word longer than a line stays whole', () => {
  expect(wrap('one two three', 9, '  ')).toBe('  one two\n  three')
  expect(wrap('a verylongword b', 5)).toBe('a\nverylongword\nb')
})

test('no line of --help is longer than 100 characters, and groups of settings have headings', () => {
  const long = { schema: z.string(), describe: 'word '.repeat(60).trim(), standard: 'x' }
  const help = helpText('Usage: x', { FIRST: long, storageReports: { second: { ...long, env: 'SECOND' } } })
  expect(Math.max(...help.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  expect(help).toContain('\nSettings: Storage reports\n  SECOND\n')
})
