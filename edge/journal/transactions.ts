import type Database from 'better-sqlite3'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import { storageReasonOf } from './storage-error.ts'
import type { StorageWatch } from './storage-watch.ts'

/** A result that is not a promise: an asynchronous transaction would commit before its work ends. */
export type Synchronous<T> = T extends PromiseLike<unknown> ? never : T

/** A change in memory. */
export interface Change {
  /** Undoes the change: the transaction, or a part of it, is rolled back. */
  undo(): void
  /** Marks the change's rows as unsaved: the part of the transaction that wrote them was rolled back. */
  again(): void
}

/** Rows in memory. */
export interface Saved {
  /** A transaction starts. */
  begin(): void
  /** Writes the rows that changed since the last write. */
  save(): void
  /** The transaction is rolled back: no row has changed. */
  forget(): void
  reread(): void
}

/** Transactions of the database, with their changes in memory and their effects. `Store` describes the methods. */
export class Transactions {
  commits = 0
  readonly saved: Saved[] = []
  readonly #db: Database.Database
  readonly #watch: StorageWatch
  readonly #checkpoint: Checkpoint
  readonly #log: Log
  readonly #statements: Record<'begin' | 'commit' | 'savepoint' | 'release', Database.Statement<[]>>
  readonly #changes: Change[] = []
  #effects: (() => void)[] = []
  #isOpen = false
  #isRunning = false

  constructor(
    db: Database.Database,
    { watch, checkpoint, log }: { watch: StorageWatch; checkpoint: Checkpoint; log: Log },
  ) {
    this.#db = db
    this.#watch = watch
    this.#checkpoint = checkpoint
    this.#log = log
    this.#statements = {
      begin: db.prepare<[]>('BEGIN IMMEDIATE'),
      commit: db.prepare<[]>('COMMIT'),
      savepoint: db.prepare<[]>('SAVEPOINT part'),
      release: db.prepare<[]>('RELEASE part'),
    }
  }

  transact<T>(work: () => Synchronous<T>): T {
    if (this.#isOpen) return work()
    this.#watch.refuseIfLost()
    const earlier = this.#effects
    this.#effects = []
    this.#isOpen = true
    let result: T
    try {
      this.#checkpoint('journal.begin')
      this.#statements.begin.run()
      for (const rows of this.saved) rows.begin()
      result = work()
      this.save()
      this.#checkpoint('journal.before-commit')
      this.#statements.commit.run()
      this.commits += 1
    } catch (error) {
      this.#effects = earlier
      this.#undoChanges(0)
      for (const rows of this.saved) rows.forget()
      this.#isOpen = false
      this.#undo('ROLLBACK')
      throw this.#watch.failureOf(error)
    }
    this.#isOpen = false
    this.#changes.length = 0
    this.#watch.worked()
    this.#effects = [...earlier, ...this.#effects]
    this.#checkpoint('journal.after-commit')
    this.#runEffects()
    return result
  }

  savepoint<T>(work: () => Synchronous<T>): T {
    const before = { effects: this.#effects.length, changes: this.#changes.length }
    this.#statements.savepoint.run()
    try {
      const result = work()
      this.#statements.release.run()
      return result
    } catch (error) {
      this.#effects.length = before.effects
      this.#undoChanges(before.changes)
      this.#undo('ROLLBACK TO part; RELEASE part')
      for (const change of this.#changes) change.again()
      throw error
    }
  }

  isWritable(): boolean {
    if (this.#isOpen) return true
    this.#watch.refuseIfLost()
    try {
      this.#statements.begin.run()
      this.#db.exec('ROLLBACK')
    } catch (error) {
      throw this.#watch.failureOf(error)
    }
    this.#watch.worked()
    return true
  }

  afterCommit(effect: () => void): void {
    if (this.#isOpen || this.#isRunning) this.#effects.push(effect)
    else effect()
  }

  note(change: Change): void {
    if (!this.#isOpen) throw new Error('the state in memory changes within transactions only')
    this.#changes.push(change)
  }

  save(): void {
    for (const rows of this.saved) rows.save()
  }

  /** Undoes the changes in memory after the first `count`, the last one first. */
  #undoChanges(count: number): void {
    for (const change of this.#changes.splice(count).toReversed()) change.undo()
  }

  /** An effect may start a transaction; its effects run after the effects that are already due. */
  #runEffects(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      for (let next = this.#effects.shift(); next; next = this.#effects.shift()) next()
    } catch (error) {
      this.#effects = []
      throw error
    } finally {
      this.#isRunning = false
    }
  }

  #undo(how: string): void {
    try {
      if (this.#db.inTransaction) this.#db.exec(how)
    } catch (error) {
      // A failing card may also fail here. The rollback then happens when the file is reopened.
      if (storageReasonOf(error) === undefined) throw error
      this.#log.debug({ error: String(error) }, 'a transaction could not be undone')
    }
  }
}
