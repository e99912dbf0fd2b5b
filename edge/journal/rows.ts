import type { Statement } from 'better-sqlite3'
import type { Store } from './store.ts'
import { completeRow, readRow, storedRow, type NewRow, type RowOf, type Stored, type Table } from './table.ts'
import type { Saved } from './transactions.ts'

type Key = string | number
type StoredRow = Record<string, Stored>
/** A row's key as callers pass it: the value of a single key column, or an object with the key columns. */
type KeyOf<T extends Table> = T extends Table<infer C, infer K> ? KeyIn<RowOf<{ columns: C }>, K> : never
type KeyIn<R, K> = [K] extends [keyof R] ? R[K] | Pick<R, K> : never

/** A table that is only on the disk. Queries see the changes of the current transaction. */
export class DiskTable<T extends Table> {
  readonly table: T
  protected readonly store: Store
  readonly #statements = new Map<string, Statement<unknown[], StoredRow>>()
  readonly #insertion: string

  constructor(store: Store, table: T) {
    this.store = store
    this.table = table
    const names = Object.keys(table.columns)
    const values = names.map((name) => `@${name}`)
    this.#insertion = `INSERT OR REPLACE INTO ${table.name} (${names.join(', ')}) VALUES (${values.join(', ')})`
  }

  /** Adds a row, in the current transaction or its own. */
  add(row: NewRow<T>): void {
    this.insert(storedRow(this.table, completeRow(this.table, row)))
  }

  protected insert(stored: StoredRow): void {
    this.run(this.#insertion, stored)
  }

  /** The rows of a SELECT statement with this ending, such as `WHERE seq > ? ORDER BY seq`. */
  select(rest: string, ...parameters: unknown[]): RowOf<T>[] {
    this.store.save()
    return this.statement(`SELECT * FROM ${this.table.name} ${rest}`)
      .all(...parameters)
      .map((stored) => readRow(this.table, stored) as RowOf<T>)
  }

  /** One number that a SELECT statement computes, such as `sum(delta)`; null if it finds no row. */
  value(expression: string, rest: string, ...parameters: unknown[]): number | null {
    this.store.save()
    const found = this.statement(`SELECT ${expression} AS found FROM ${this.table.name} ${rest}`)
    return (found.get(...parameters)?.['found'] ?? null) as number | null
  }

  /** Deletes the rows of a DELETE statement with this ending; all rows if it is empty. */
  remove(rest = '', ...parameters: unknown[]): void {
    this.store.save()
    this.run(`DELETE FROM ${this.table.name} ${rest}`, ...parameters)
  }

  /** Changes the rows of an UPDATE statement with this ending. */
  update(assignments: string, rest: string, ...parameters: unknown[]): void {
    this.store.save()
    this.run(`UPDATE ${this.table.name} SET ${assignments} ${rest}`, ...parameters)
  }

  protected statement(sql: string): Statement<unknown[], StoredRow> {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.store.db.prepare<unknown[], StoredRow>(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  /** Runs a writing statement. Returns the number of changed rows. */
  protected run(sql: string, ...parameters: unknown[]): number {
    return this.store.transact(() => this.statement(sql).run(...parameters).changes)
  }
}

const none: readonly never[] = []

/** An index of rows in memory by a computed value. Rows with the value undefined are not in the index. */
class Index<Row, Value> {
  readonly valueOf: (row: Row) => Value | undefined
  readonly #buckets = new Map<Value, Map<Key, Row>>()
  readonly #sorted = new Map<Value, readonly Row[]>()

  constructor(valueOf: (row: Row) => Value | undefined) {
    this.valueOf = valueOf
  }

  replace(key: Key, before: Row | undefined, after: Row | undefined): void {
    const [from, to] = [before && this.valueOf(before), after && this.valueOf(after)]
    if (from !== undefined) {
      const bucket = this.#buckets.get(from)
      bucket?.delete(key)
      if (bucket?.size === 0) this.#buckets.delete(from)
      this.#sorted.delete(from)
    }
    if (to === undefined) return
    const bucket = this.#buckets.get(to) ?? new Map<Key, Row>()
    this.#buckets.set(to, bucket.set(key, after!))
    this.#sorted.delete(to)
  }

  get(value: Value, compare: (a: Row, b: Row) => number): readonly Row[] {
    let rows = this.#sorted.get(value)
    if (rows === undefined) {
      const bucket = this.#buckets.get(value)
      if (bucket === undefined) return none
      rows = [...bucket.values()].toSorted(compare)
      this.#sorted.set(value, rows)
    }
    return rows
  }
}

const limitFor = (live: number): number => 2 * live + 64

/**
 * A table with its rows in memory: all rows, or the live ones (`Table.live`). They are loaded once, and reads
 * use memory. Writes change memory, and the event's commit writes them to the disk. If that commit fails, the
 * store undoes them in memory. Rows are never modified: a changed row is a new object.
 */
export class Rows<T extends Table> extends DiskTable<T> implements Saved {
  readonly #rows = new Map<Key, RowOf<T>>()
  /** Rows that changed since the last write, with any of their versions. */
  readonly #unsaved = new Map<Key, RowOf<T>>()
  readonly #indexes: Index<RowOf<T>, unknown>[] = []
  readonly #order: readonly string[]
  readonly #update: string
  readonly #deletion: string
  #all: readonly RowOf<T>[] | undefined
  readonly #isNumbered: boolean
  #limit = Infinity
  #nextNumber = 1
  /** Rows with larger numbers have never been written. */
  #savedNumber: number

  constructor(store: Store, table: T) {
    super(store, table)
    const { name, key, columns } = table
    this.#order = 'number' in columns ? ['number'] : key
    const where = key.map((column) => `${column} = @${column}`).join(' AND ')
    const values = Object.keys(columns).filter((column) => column !== 'number' && !key.includes(column))
    this.#update = `UPDATE ${name} SET ${values.map((column) => `${column} = @${column}`).join(', ')} WHERE ${where}`
    this.#deletion = `DELETE FROM ${name} WHERE ${where}`
    for (const row of this.select(table.live === undefined ? '' : `WHERE ${table.live}`))
      this.#rows.set(this.#keyOf(row), row)
    this.#isNumbered = 'number' in columns && key[0] !== 'number'
    if (this.#isNumbered) this.#nextNumber = (this.value('max(number)', '') ?? 0) + 1
    this.#savedNumber = this.#nextNumber - 1
    if (table.live !== undefined) this.#limit = limitFor(this.#rows.size)
    store.onSave(this)
  }

  /** All rows in memory, in the order of their numbers or keys. The array stays the same while no row changes. */
  all(): readonly RowOf<T>[] {
    return (this.#all ??= [...this.#rows.values()].toSorted(this.#compare))
  }

  /** The row by its key. A row that is not in memory is read from the disk, if the table has such rows. */
  find(key: KeyOf<T>): RowOf<T> | undefined {
    const text = this.#keyOf(key)
    const row = this.#rows.get(text)
    if (row !== undefined || this.table.live === undefined) return row
    const { key: columns } = this.table
    const where = columns.map((column) => `${column} = ?`).join(' AND ')
    return this.select(`WHERE ${where}`, ...this.#valuesOf(key))[0]
  }

  /** Adds a row with the next number. */
  override add(row: NewRow<T>): RowOf<T> {
    const complete = completeRow(this.table, row) as RowOf<T>
    if (this.#isNumbered) Object.assign(complete, { number: this.#nextNumber++ })
    if (this.#rows.has(this.#keyOf(complete)))
      throw new Error(`table ${this.table.name} has the row ${this.#keyOf(complete)} already`)
    this.put(complete)
    return complete
  }

  /** Adds the row, or replaces the row with the same key. An unchanged row is not written. */
  put(row: RowOf<T>): void {
    const before = this.#rows.get(this.#keyOf(row))
    if (before !== undefined && Object.keys(row).every((name) => Object.is(before[name], row[name]))) return
    this.#set(this.#keyOf(row), row, row)
  }

  /** Changes some values of a row. Throws if there is no such row. Returns the row after the change. */
  change(key: KeyOf<T>, values: Partial<RowOf<T>>): RowOf<T> {
    const before = this.find(key)
    if (before === undefined) throw new Error(`table ${this.table.name} has no row ${this.#keyOf(key)}`)
    const after = { ...before, ...values }
    this.put(after)
    return after
  }

  /** Deletes the row, if there is one. */
  delete(key: KeyOf<T>): void {
    const row = this.find(key)
    if (row !== undefined) this.#set(this.#keyOf(key), undefined, row)
  }

  /** Deletes all rows, also those that are not in memory. */
  clear(): void {
    for (const row of this.all()) this.#set(this.#keyOf(row), undefined, row)
    if (this.table.live !== undefined) this.remove()
  }

  /** Deletes the rows that a condition finds, also those that are not in memory. */
  removeHistory(condition: string, ...parameters: unknown[]): void {
    this.store.transact(() => {
      for (const row of this.select(`WHERE ${condition}`, ...parameters)) {
        const key = this.#keyOf(row)
        const before = this.#rows.get(key)
        if (before === undefined) continue
        this.store.note({ undo: () => this.#replace(key, before), again: () => {} })
        this.#replace(key, undefined)
      }
      this.remove(`WHERE ${condition}`, ...parameters)
    })
  }

  /** A query of the rows in memory by the value that `valueOf` computes. It costs what it finds. */
  index<Value>(valueOf: (row: RowOf<T>) => Value | undefined): (value: Value) => readonly RowOf<T>[] {
    const index = new Index<RowOf<T>, Value>(valueOf)
    for (const [key, row] of this.#rows) index.replace(key, undefined, row)
    this.#indexes.push(index)
    return (value) => index.get(value, this.#compare)
  }

  /** Puts default rows into memory that need not be on the disk before they change. */
  assume(rows: readonly RowOf<T>[]): void {
    for (const row of rows) if (!this.#rows.has(this.#keyOf(row))) this.#replace(this.#keyOf(row), row)
  }

  /** Called by the store. Removes rows that are not live when memory contains twice the live rows. */
  begin(): void {
    if (this.#rows.size > this.#limit) this.shrink()
  }

  /** Removes rows from memory that are no longer live. */
  shrink(): void {
    const { live, key, name } = this.table
    const [column] = key
    const kept = new Set(
      this.statement(`SELECT ${column} FROM ${name} WHERE ${live}`)
        .all()
        .map((row) => row[column!]),
    )
    for (const each of this.#rows.keys())
      if (!kept.has(each) && !this.#unsaved.has(each)) this.#replace(each, undefined)
    this.#limit = limitFor(this.#rows.size)
  }

  /** Called by the store. */
  reread(): void {
    const before = [...this.#rows]
    this.store.note({
      undo: () => {
        for (const [key, row] of before) this.#replace(key, row)
      },
      again: () => {},
    })
    for (const [key, row] of before) {
      const where = this.table.key.map((column) => `${column} = ?`).join(' AND ')
      const [now] = this.select(`WHERE ${where}`, ...this.#valuesOf(row as KeyOf<T>))
      // An assumed row may not be on the disk.
      if (now !== undefined) this.#replace(key, now)
    }
  }

  #set(key: Key, after: RowOf<T> | undefined, version: RowOf<T>): void {
    this.store.transact(() => {
      const before = this.#rows.get(key)
      this.store.note({
        undo: () => {
          this.#replace(key, before)
          this.#unsaved.delete(key)
        },
        again: () => this.#unsaved.set(key, version),
      })
      this.#replace(key, after)
      this.#unsaved.set(key, version)
    })
  }

  #replace(key: Key, after: RowOf<T> | undefined): void {
    const before = this.#rows.get(key)
    if (after === undefined) this.#rows.delete(key)
    else this.#rows.set(key, after)
    for (const index of this.#indexes) index.replace(key, before, after)
    this.#all = undefined
  }

  /** Called by the store. */
  forget(): void {
    this.#unsaved.clear()
  }

  /** Called by the store: writes each changed row once. */
  save(): void {
    if (this.#unsaved.size === 0) return
    const unsaved = [...this.#unsaved]
    this.#unsaved.clear()
    for (const [text, version] of unsaved) {
      const row = this.#rows.get(text)
      const stored = storedRow(this.table, row ?? version)
      if (row === undefined) this.run(this.#deletion, stored)
      else if (this.#isNumbered && Number(stored['number']) > this.#savedNumber) this.insert(stored)
      else if (this.run(this.#update, stored) === 0) this.insert(stored)
    }
    this.#savedNumber = this.#nextNumber - 1
  }

  readonly #compare = (a: RowOf<T>, b: RowOf<T>): number => {
    for (const column of this.#order) {
      const [left, right] = [(a as StoredRow)[column]!, (b as StoredRow)[column]!]
      if (left !== right) return left < right ? -1 : 1
    }
    return 0
  }

  #valuesOf(key: KeyOf<T>): Stored[] {
    if (typeof key !== 'object' || key === null) return [key as Key]
    return this.table.key.map((column) => (key as StoredRow)[column]!)
  }

  #keyOf(key: KeyOf<T> | RowOf<T>): Key {
    if (typeof key !== 'object' || key === null) return key as Key
    const { key: columns } = this.table
    let text = (key as StoredRow)[columns[0]!] as Key
    for (let index = 1; index < columns.length; index++) text += ` ${(key as StoredRow)[columns[index]!]}`
    return text
  }
}
