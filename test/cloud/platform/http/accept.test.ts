import { expect, test } from 'vitest'
import { prefersType } from '../../../../cloud/platform/http/receive.ts'

test.each([
  [undefined, false],
  ['*/*', false],
  ['application/json', false],
  ['text/csv', true],
  ['TEXT/CSV; charset=utf-8', true],
  ['text/*', true],
  ['text/csv, */*', true],
  ['text/csv, application/json', true],
  ['application/json, text/csv', false],
  ['text/csv;q=0.5, application/json', false],
  ['application/json;q=0.5, text/csv;q=0.9', true],
  ['text/csv;q=0', false],
  ['image/png', false],
])('a caller with the Accept header %j prefers CSV to JSON: %j', (accept, expected) => {
  expect(prefersType(accept, 'text/csv')).toBe(expected)
})
