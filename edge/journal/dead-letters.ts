import { all, one, run } from './statements.ts'
import type { Store } from './store.ts'

/** An entry from the cloud that could not be applied (I8). */
export interface DeadLetter {
  id: number
  epoch: string
  seq: number
  /** As it came, JSON text. */
  body: string
  error: string
  /** The hub's wall clock, milliseconds since the Unix epoch. */
  at: number
  /** Which version of the hub's service could not apply it. */
  software: string
}

export type DeadLetters = ReturnType<typeof createDeadLetters>

/** What the cloud sent and the hub could not apply, on table `dead_letters`. */
export function createDeadLetters({ db }: Store) {
  const count = one(db.prepare<[], { count: number }>('SELECT count(*) AS count FROM dead_letters'))
  const drop = run(db.prepare<[id: number]>('DELETE FROM dead_letters WHERE id = ?'))
  const find = one(db.prepare<[id: number], DeadLetter>('SELECT * FROM dead_letters WHERE id = ?'))
  const claim = run(db.prepare<[software: string]>('UPDATE dead_letters SET software = ?'))
  const ofOthers = one(
    db.prepare<[software: string], object>('SELECT 1 FROM dead_letters WHERE software <> ? LIMIT 1'),
  )
  return {
    add: run(
      db.prepare<[Omit<DeadLetter, 'id'>]>(
        `INSERT INTO dead_letters (epoch, seq, body, error, at, software)
         VALUES (@epoch, @seq, @body, @error, @at, @software)`,
      ),
    ),
    /** The newest first. */
    list: all(db.prepare<[limit: number], DeadLetter>('SELECT * FROM dead_letters ORDER BY id DESC LIMIT ?')),
    find,
    count: () => count()?.count ?? 0,
    drop,
    deleteAll: run(db.prepare<[]>('DELETE FROM dead_letters')),
    /** Whether another version of the service has left some; from now on they are this one's. */
    takeOver(software: string): boolean {
      if (!ofOthers(software)) return false
      claim(software)
      return true
    },
    /** Deletes all but the newest. */
    prune: run(
      db.prepare<[kept: number]>(
        'DELETE FROM dead_letters WHERE id <= (SELECT id FROM dead_letters ORDER BY id DESC LIMIT 1 OFFSET ?)',
      ),
    ),
  }
}
