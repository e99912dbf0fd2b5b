import { expect, test } from 'vitest'
import { counted } from '../../../protocol/model/counted.ts'

test('only the number 1 has a singular noun', () => {
  const numbers = [0, 1, 2].map((count) => counted(count, 'hub'))
  expect([...numbers, counted(1, 'process', 'processes'), counted(3, 'process', 'processes')]).toEqual([
    '0 hubs',
    '1 hub',
    '2 hubs',
    '1 process',
    '3 processes',
  ])
})
