import { all, run, value, writer } from './statements.ts'
import type { Store } from './store.ts'

export interface ControllerRow {
  id: string
  memory_id: string
  /** Its memory and this journal are known to agree: what it holds was begun here, or was taken over from it. */
  reconciled: 0 | 1
  /**
   * After a store was found to be a copy: what the controller's memory does not hold never happened since the copy was
   * made, as it is the memory that the copy knew, with nothing overwritten. A new store can say that of none.
   */
  continuous: 0 | 1
}

export type ControllerMemories = ReturnType<typeof createControllerMemories>

/** Which controllers' memories this store was reconciled with, and which operations the cloud's stock already includes. */
export function createControllerMemories(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], ControllerRow>('SELECT * FROM controllers ORDER BY id'))
  const known = store.keep((): readonly ControllerRow[] => rows())
  const write = writer(known)
  const clearKnown = run(db.prepare<[]>('DELETE FROM known_operations'))
  const addKnown = run(
    db.prepare<[id: string]>('INSERT INTO known_operations (id) VALUES (?) ON CONFLICT DO NOTHING'),
  )
  const isKnown = value(db.prepare<[id: string], number>('SELECT 1 FROM known_operations WHERE id = ?'))
  return {
    find: (controller: string): ControllerRow | undefined => known.get().find(({ id }) => id === controller),
    put: write(
      db.prepare<[ControllerRow]>(
        `INSERT INTO controllers (id, memory_id, reconciled, continuous)
       VALUES (@id, @memory_id, @reconciled, @continuous)
       ON CONFLICT (id) DO UPDATE SET memory_id = excluded.memory_id, reconciled = excluded.reconciled,
         continuous = excluded.continuous
       WHERE (controllers.memory_id, controllers.reconciled, controllers.continuous)
         IS NOT (excluded.memory_id, excluded.reconciled, excluded.continuous)`,
      ),
    ),
    all: known.get,
    setKnownOperations(ids: readonly string[]): void {
      clearKnown()
      for (const id of ids) addKnown(id)
    },
    isKnownOperation: (id: string): boolean => isKnown(id) !== undefined,
  }
}
