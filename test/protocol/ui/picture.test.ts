import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fit, deviceByKey, layOut } from '../../../protocol/ui/picture-layout.ts'
import {
  type HubPicture,
  type PictureRow,
  rowState,
  rowText,
  sentenceOf,
} from '../../../protocol/ui/picture-model.ts'

const row = (more: Partial<PictureRow>): PictureRow => ({
  shelf: 2,
  row: 3,
  units: 5,
  depth: 10,
  product: 'Cola',
  blocked: null,
  ...more,
})
const picture = (rows: PictureRow[] = []): HubPicture => ({
  bins: [1, 2, 3, 4].map((number) => ({
    id: `bin-${number}`,
    number,
    door: 'closed',
    lift: 'down',
    units: null,
    occupied: false,
    note: null,
    trouble: null,
  })),
  cabinets: [1, 2, 3].map((number) => ({
    id: `cabinet-${number}`,
    number,
    shelves: [{ shelf: 2, rows }],
    trouble: null,
  })),
  fridges: [
    {
      id: 'fridge-1',
      number: 1,
      celsius: null,
      trouble: null,
      doors: ['left', 'right'].map((side) => ({
        id: `fridge_1_${side}`,
        open: false,
        locked: true,
        trouble: null,
      })),
    },
  ],
  main: { id: 'main', open: false, locked: true, trouble: null },
  controllers: [],
})

test.each([
  [{}, 'stocked', 'Row 1/2/3: Cola, 5 of 10'],
  [{ units: 2 }, 'low', 'Row 1/2/3: Cola, 2 of 10, low'],
  [{ units: 2, depth: null }, 'stocked', 'Row 1/2/3: Cola, 2'],
  [{ units: 0 }, 'empty', 'Row 1/2/3: Cola, 0 of 10, empty'],
  [{ units: null }, 'unknown', 'Row 1/2/3: Cola, unknown number of 10'],
  [{ blocked: 'unknown' }, 'unknown', 'Row 1/2/3: Cola, 5 of 10, not for sale: unknown'],
  [{ blocked: 'jam' }, 'blocked', 'Row 1/2/3: Cola, 5 of 10, not for sale: jam'],
  [{ product: null, units: 0 }, 'unassigned', 'Row 1/2/3: no product'],
  [{ product: null, units: 3 }, 'stocked', 'Row 1/2/3: no product, 3 of 10'],
] as const)('a row with %o is drawn as %s, and its label has the same words', (more, state, words) => {
  expect([rowState(row(more)), rowText(1, row(more))]).toEqual([state, words])
})

test('the label of a cabinet counts its rows by state', () => {
  const rows = [
    row({}),
    row({ units: 1 }),
    row({ units: 0 }),
    row({ product: null, units: 0 }),
    row({ units: null }),
  ]
  expect(sentenceOf(picture(rows), 'cabinet-1')).toBe(
    '6 units in 4 rows, 1 empty, 1 low, 1 unknown, 1 without a product',
  )
})

test.each([2, 4])('with %i columns the arrow keys reach every device, in both directions', (columns) => {
  const { boxes } = layOut(picture([row({})]), columns)
  const ids = [...boxes.keys()]
  const reached = new Set<string>([ids[0]!])
  for (const id of reached)
    for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) {
      const next = deviceByKey(boxes, id, key)
      if (next !== undefined) reached.add(next)
    }
  expect([...reached].toSorted()).toEqual(ids.toSorted())
  expect(deviceByKey(boxes, 'bin-1', 'ArrowRight')).toBe('bin-2')
  expect(deviceByKey(boxes, 'bin-2', 'ArrowLeft')).toBe('bin-1')
  expect(deviceByKey(boxes, 'bin-1', 'Home')).toBe(ids[0])
  expect(deviceByKey(boxes, 'bin-1', 'End')).toBe(ids.at(-1))
  for (const key of ['Enter', 'a', 'Tab']) expect(deviceByKey(boxes, 'bin-1', key)).toBeUndefined()
})

test('a fitted text is never wider than its room, and is whole if it fits', () => {
  const widthOf = (text: string): number =>
    Array.from(text).reduce((sum, one) => sum + (one === 'W' ? 9 : 4), 0)
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), fc.integer({ min: 0, max: 120 }), (text, width) => {
      const shown = fit(text, width, widthOf)
      if (widthOf(text) <= width) expect(shown).toBe(text)
      else expect(shown === '' || (widthOf(shown) <= width && shown.endsWith('…'))).toBe(true)
    }),
  )
})
