import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { Kept, Store } from '../../../edge/journal/store.ts'

/** A store that reads again whatever is asked of what it keeps, and fails where its tables say otherwise. */
export function checkedStore(store: Store): Store {
  const checked = <Key extends unknown[], T>(kept: Kept<Key, T>, read: (...key: Key) => T): Kept<Key, T> => ({
    get(...key) {
      const found = kept.get(...key)
      const again = read(...key)
      // It is asked a hundred thousand times: the one that tells what differs takes ten times as long.
      if (!isDeepStrictEqual(found, again))
        expect(found, 'what is kept in memory is what the tables hold').toEqual(again)
      return found
    },
    forget: kept.forget,
  })
  return {
    ...store,
    keep: (read) => checked(store.keep(read), read),
    keepBy: (read) => checked(store.keepBy(read), read),
  }
}
