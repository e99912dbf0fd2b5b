import { expect, test } from 'vitest'
import { Locale } from '../../../protocol/contract/consumer-profile.ts'

const parts: string[][] = [
  ['en', 'ZH', 'und', 'gsw', 'sgn', 'iw', 'sh', 'zzz'],
  ['', '-Hant', '-latn', '-Zzzz'],
  ['', '-US', '-gb', '-419', '-SU', '-ZZ'],
  ['', '-valencia', '-1996', '-heploc', '-00000', '-0abc'],
  ['', '-u-hc-h23', '-u-ca', '-u-ca-buddhist-hc-h12', '-u-1a-yes', '-u-ca-abc-ca-def'],
]
const tags = parts.reduce((all, part) => all.flatMap((head) => part.map((tail) => head + tail)), [''])

test('the documented pattern of a language tag accepts exactly the tags that Intl accepts', () => {
  const pattern = new RegExp(Locale.meta()!['pattern'] as string)
  for (const tag of tags) {
    expect([tag, pattern.test(tag)]).toEqual([tag, true])
    if (tag.length <= 35) expect(Locale.parse(tag)).toBe(Intl.getCanonicalLocales(tag)[0])
  }
  for (const tag of [
    '',
    'e',
    '_US',
    'en US',
    'en-',
    'english',
    'en-u',
    'en-u-c',
    'i-klingon',
    'x-a',
    'en-US\0',
    'en\n',
  ])
    expect([tag, pattern.test(tag), Locale.safeParse(tag).success]).toEqual([tag, false, false])
})
