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

export interface TransactionParts {
  db: Database.Database
  watch: StorageWatch
  checkpoint: Checkpoint
  log: Log
}

/** Transactions of the database, with their changes in memory and their effects. */
export class Transactions {
  readonly db: Database.Database
  readonly #watch: StorageWatch
  readonly #checkpoint: Checkpoint
  readonly #log: Log
  readonly #statements: Record<'begin' | 'commit' | 'savepoint' | 'release', Database.Statement<[]>>
  readonly #saved: Saved[] = []
  readonly #changes: Change[] = []
  #effects: (() => void)[] = []
  #isOpen = false
  #isRunning = false
  #commits = 0

  constructor({ db, watch, checkpoint, log }: TransactionParts) {
    this.db = db
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

  /**
   * Runs `work` in one immediate transaction and commits it. A nested call joins the outer transaction. An
   * error of `work` rolls everything back and is rethrown; a storage failure as a `StorageError`. Effects
   * added by `afterCommit` run after the commit, in order.
   */
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
      for (const rows of this.#saved) rows.begin()
      result = work()
      this.save()
      this.#checkpoint('journal.before-commit')
      this.#statements.commit.run()
      this.#commits += 1
    } catch (error) {
      this.#effects = earlier
      this.#undoChanges(0)
      for (const rows of this.#saved) rows.forget()
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

  /** Runs `work` within the current transaction. If it throws, only its rows and effects are undone. */
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

  /**
   * Whether a transaction can start: the file responds, and no other process locks it. Otherwise returns
   * false or throws.
   */
  isWritable(): boolean {
    if (this.#isOpen) return true
    this.#watch.refuseIfLost()
    try {
      this.#statements.begin.run()
      this.db.exec('ROLLBACK')
    } catch (error) {
      throw this.#watch.failureOf(error)
    }
    this.#watch.worked()
    return true
  }

  /** Runs `effect` after the current transaction's commit, or at once if there is no transaction. */
  afterCommit(effect: () => void): void {
    if (this.#isOpen || this.#isRunning) this.#effects.push(effect)
    else effect()
  }

  /** Notes a change in memory that belongs to the current transaction. */
  note(change: Change): void {
    if (!this.#isOpen) throw new Error('the state in memory changes within transactions only')
    this.#changes.push(change)
  }

  /** Transactions committed since the store was opened. */
  commits(): number {
    return this.#commits
  }

  /** Registers rows in memory that each commit must write. */
  onSave(rows: Saved): void {
    this.#saved.push(rows)
  }

  /** Writes the changed rows now, in the current transaction, so that queries find them. */
  save(): void {
    for (const rows of this.#saved) rows.save()
  }

  /** Reloads the rows in memory after statements of the current transaction changed their tables. */
  reread(): void {
    for (const rows of this.#saved) rows.reread()
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
      if (this.db.inTransaction) this.db.exec(how)
    } catch (error) {
      // A failing card may also fail here. The rollback then happens when the file is reopened.
      if (storageReasonOf(error) === undefined) throw error
      this.#log.debug({ error: String(error) }, 'a transaction could not be undone')
    }
  }
}
