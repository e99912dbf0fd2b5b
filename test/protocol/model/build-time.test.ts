import { expect, test } from 'vitest'
import { buildTimeOf, versionOf } from '../../../protocol/model/build-time.ts'

const files = (content: Record<string, string>) => (path: string) => {
  const text = content[path]
  if (text === undefined) throw new Error('no such file')
  return text
}
const at = '2026-05-04T03:02:01+02:00'

test('the build time is read from the file above the program, and is 0 without a file or a date', () => {
  const build = JSON.stringify({ commit: 'abc', committed_at: at })
  expect(buildTimeOf('/lib/hub/edge', files({ '/lib/hub/edge/../build.json': build }))).toBe(Date.parse(at))
  expect(buildTimeOf('/lib/hub', files({ '/lib/hub/build.json': build }))).toBe(Date.parse(at))
  expect(buildTimeOf('/lib/hub', files({}))).toBe(0)
  for (const text of ['{}', 'null', '{"committed_at":"yesterday"}', 'no JSON'])
    expect(buildTimeOf('/lib/hub', files({ '/lib/hub/build.json': text }))).toBe(0)
})

test.each([
  ['2026-05-04T03:02:01+02:00', '2026.5.4+0123456'],
  ['2026-11-26T23:59:59Z', '2026.11.26+0123456'],
  ['2027-01-01T00:30:00+01:00', '2026.12.31+0123456'],
])('a commit of %s has the version %s: the date is that of UTC', (committed, version) => {
  expect(versionOf({ commit: '0123456789abcdef', committedAt: Date.parse(committed) })).toBe(version)
})

test('a program without a known commit has the version 0.0.0+unknown', () => {
  expect(versionOf(undefined)).toBe('0.0.0+unknown')
})
