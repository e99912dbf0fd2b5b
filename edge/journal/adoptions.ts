import type { Store } from './store.ts'

export interface AdoptionRow {
  id: string
  memory_id: string
  /** Its memory and this journal are known to agree: what it holds was begun here, or was taken over from it. */
  adopted: 0 | 1
  /**
   * After a store was found to be a copy: what the controller's memory does not hold never happened since the copy was
   * made, as it is the memory that the copy knew, with nothing overwritten. A new store can say that of none.
   */
  continuous: 0 | 1
}

/** Which controllers' memories this store was matched with, and which operations the cloud's stock already includes. */
export interface Adoptions {
  find(controller: string): AdoptionRow | undefined
  put(row: AdoptionRow): void
  all(): AdoptionRow[]
  setKnownOperations(ids: readonly string[]): void
  isKnownOperation(id: string): boolean
}

export function createAdoptions({ db }: Store): Adoptions {
  const statements = {
    find: db.prepare<[string], AdoptionRow>('SELECT * FROM controllers WHERE id = ?'),
    put: db.prepare<AdoptionRow>(
      `INSERT INTO controllers (id, memory_id, adopted, continuous) VALUES (@id, @memory_id, @adopted, @continuous)
       ON CONFLICT (id) DO UPDATE SET
         memory_id = excluded.memory_id, adopted = excluded.adopted, continuous = excluded.continuous`,
    ),
    all: db.prepare<[], AdoptionRow>('SELECT * FROM controllers ORDER BY id'),
    clearKnown: db.prepare<[]>('DELETE FROM known_operations'),
    addKnown: db.prepare<[string]>('INSERT INTO known_operations (id) VALUES (?) ON CONFLICT DO NOTHING'),
    isKnown: db.prepare<[string], number>('SELECT 1 FROM known_operations WHERE id = ?').pluck(),
  }
  return {
    find: (controller) => statements.find.get(controller),
    put: (row) => void statements.put.run(row),
    all: () => statements.all.all(),
    setKnownOperations(ids) {
      statements.clearKnown.run()
      for (const id of ids) statements.addKnown.run(id)
    },
    isKnownOperation: (id) => statements.isKnown.get(id) !== undefined,
  }
}
