import { DiskTable } from './rows.ts'
import type { Store } from './store.ts'
import { deadLetters, type DeadLetter } from './tables.ts'

/** Cloud entries that the hub could not apply. */
export class DeadLetters extends DiskTable<typeof deadLetters> {
  constructor(store: Store) {
    super(store, deadLetters)
  }

  /** The newest first. */
  list(limit: number): DeadLetter[] {
    return this.select('ORDER BY number DESC LIMIT ?', limit)
  }

  find(number: number): DeadLetter | undefined {
    return this.select('WHERE number = ?', number)[0]
  }

  count(): number {
    return this.value('count(*)', '') ?? 0
  }

  /** Assigns all dead letters to this version. Returns whether another version of the service stored any of them. */
  takeOver(software: string): boolean {
    if (this.value('1', 'WHERE software <> ? LIMIT 1', software) === null) return false
    this.update('software = ?', '', software)
    return true
  }

  /** Deletes all but the newest. */
  prune(kept: number): void {
    this.remove(
      'WHERE number <= (SELECT number FROM dead_letters ORDER BY number DESC LIMIT 1 OFFSET ?)',
      kept,
    )
  }
}
