import { expect } from 'vitest'
import type { Kept, Store } from '../../../edge/journal/store.ts'

/** A store that reads again whatever is asked of what it keeps, and fails where its tables say otherwise. */
export function checkedStore(store: Store): Store {
  const checked = <Key extends unknown[], T>(kept: Kept<Key, T>, read: (...key: Key) => T): Kept<Key, T> => ({
    get(...key) {
      const found = kept.get(...key)
      expect(found, 'what is kept in memory is what the tables hold').toEqual(read(...key))
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
