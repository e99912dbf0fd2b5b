import { expect, test } from 'vitest'
import { BoundedMap } from '../../../cloud/platform/bounded-map.ts'

test('a cache never has more entries than its setting allows', () => {
  const map = new BoundedMap<number>(2)
  for (const key of ['a', 'b', 'b', 'c', 'd', 'e']) {
    map.set(key, 1)
    expect([map.get(key), map.size <= 2]).toEqual([1, true])
  }
})
