import { expect, test } from 'vitest'
import { dropChance } from '../../../edge/management/drop-chance.ts'

test('no connection is refused in a small crowd, some are in a larger one, and all in a full one', () => {
  const crowd = { start: 10, full: 110 }
  expect([0, 9, 10, 60, 109, 110, 500].map((present) => dropChance(present, crowd))).toEqual([
    0,
    0,
    0.3,
    expect.closeTo(0.65, 3),
    expect.closeTo(0.993, 3),
    1,
    1,
  ])
})
