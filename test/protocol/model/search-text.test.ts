import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { searchText } from '../../../protocol/model/search-text.ts'

test.each<[string, string]>([
  ['Lay\u2019s', "lay's"],
  ['Lay\u2018s', "lay's"],
  ['Lay\u2032s', "lay's"],
  ['Lay\u02bcs', "lay's"],
  ['Lay`s', "lay's"],
  ...['\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212'].map(
    (hyphen): [string, string] => [`Coca${hyphen}Cola`, 'coca-cola'],
  ),
  ['Łódź', 'lodz'],
  ['Đặc biệt', 'dac biet'],
  ['Øl', 'ol'],
  ['Æbleskiver', 'aebleskiver'],
  ['Œuf', 'oeuf'],
  ['Große STRAẞE', 'grosse strasse'],
  ['Þorramatur, Ð', 'thorramatur, d'],
  ['Ħobż', 'hobz'],
  ['Çıtır İçecek', 'citir icecek'],
  ['Zero\u200bSugar', 'zerosugar'],
  ['Choco\u00adlate\ufeff', 'chocolate'],
  ['\u201cExtra\u201d', '"extra"'],
  ['👨\u200d🌾 salad', '👨\u200d🌾 salad'],
  ['\u200b', ''],
])('the text %j is searched as %j', (name, folded) => {
  expect(searchText(name)).toBe(folded)
})

test('folding a folded text changes nothing, so that stored texts can be folded again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(searchText(searchText(text))).toBe(searchText(text))
    }),
  )
})
