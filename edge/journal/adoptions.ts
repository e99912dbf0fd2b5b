import type { Store } from './store.ts'

export interface AdoptionRow {
  id: string
  memory_id: string
  /** Its memory and this journal are known to agree: what it holds was begun here, or was taken over from it. */
  adopted: 0 | 1
}

/** Which controllers' memories this store was matched with, and which operations the cloud's stock already includes. */
export interface Adoptions {
  find(controller: string): AdoptionRow | undefined
  put(controller: string, memoryId: string, adopted: boolean): void
  forgetAll(): void
  setKnownOperations(ids: readonly string[]): void
  isKnownOperation(id: string): boolean
}

export function createAdoptions({ db }: Store): Adoptions {
  const statements = {
    find: db.prepare<[string], AdoptionRow>('SELECT * FROM controllers WHERE id = ?'),
    put: db.prepare<[string, string, 0 | 1]>(
      `INSERT INTO controllers (id, memory_id, adopted) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET memory_id = excluded.memory_id, adopted = excluded.adopted`,
    ),
    forget: db.prepare<[]>('DELETE FROM controllers'),
    clearKnown: db.prepare<[]>('DELETE FROM known_operations'),
    addKnown: db.prepare<[string]>('INSERT INTO known_operations (id) VALUES (?) ON CONFLICT DO NOTHING'),
    isKnown: db.prepare<[string], number>('SELECT 1 FROM known_operations WHERE id = ?').pluck(),
  }
  return {
    find: (controller) => statements.find.get(controller),
    put: (controller, memoryId, adopted) => void statements.put.run(controller, memoryId, adopted ? 1 : 0),
    forgetAll: () => void statements.forget.run(),
    setKnownOperations(ids) {
      statements.clearKnown.run()
      for (const id of ids) statements.addKnown.run(id)
    },
    isKnownOperation: (id) => statements.isKnown.get(id) !== undefined,
  }
}
