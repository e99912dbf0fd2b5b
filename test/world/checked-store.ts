import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { Rows } from '../../edge/journal/rows.ts'
import type { Store } from '../../edge/journal/store.ts'
import type { Table } from '../../edge/journal/table.ts'

/**
 * Makes a store compare its rows in memory with the tables after each transaction that changed a table or failed, and fails if they
 * differ.
 */
export function checkedStore(store: Store): Store {
  const registered: Rows<Table>[] = []
  const changes = store.db.prepare<[], number>('SELECT total_changes()').pluck()
  let depth = 0
  let checkedAt = -1
  function check(): void {
    const present = changes.get()!
    if (present === checkedAt) return
    checkedAt = present
    for (const rows of registered) {
      const { name, key, live } = rows.table
      const keyOf = (row: object): string =>
        JSON.stringify(key.map((column) => (row as Record<string, unknown>)[column]))
      const stored = new Map(rows.select('').map((row) => [keyOf(row), row]))
      const known = rows.all().filter((row) => name !== 'bins' || stored.has(keyOf(row)))
      const inTable = known.map((row) => stored.get(keyOf(row)))
      // `toEqual` finds the difference, but takes ten times as long.
      if (!isDeepStrictEqual(known, inTable))
        expect(known, `the rows in memory are those of table ${name}`).toEqual(inTable)
      if (live === undefined && stored.size !== known.length)
        expect(stored.size, `all rows of table ${name} are in memory`).toBe(known.length)
    }
  }
  const onSave = store.onSave.bind(store)
  const transact = store.transact.bind(store)
  const checked: Pick<Store, 'onSave' | 'transact'> = {
    onSave(rows) {
      if (rows instanceof Rows) registered.push(rows as Rows<Table>)
      onSave(rows)
    },
    transact(work) {
      depth += 1
      try {
        return transact(work)
      } catch (error) {
        // What memory undoes changes no table.
        checkedAt = -1
        throw error
      } finally {
        depth -= 1
        if (depth === 0 && !store.db.inTransaction) check()
      }
    },
  }
  return Object.assign(store, checked)
}
