import type { SelectQueryBuilder } from 'kysely'
import type { DatabaseKind } from './table.ts'

/** How a query of a transaction locks what it reads. SQLite has one writer at a time anyway. */
export interface Locks {
  kind: DatabaseKind
  /** Locks the rows that a query reads until the end; of several tables those of one. */
  forUpdate<DB, TB extends keyof DB, O>(
    query: SelectQueryBuilder<DB, TB, O>,
    of?: TB & string,
  ): SelectQueryBuilder<DB, TB, O>
  /** Keeps the rows that a query reads from being deleted until the end, as rows are about to refer to them; all else may go on. */
  forKeyShare<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>): SelectQueryBuilder<DB, TB, O>
}

const sqlite: Locks = { kind: 'sqlite', forUpdate: (query) => query, forKeyShare: (query) => query }

const postgres: Locks = {
  kind: 'postgres',
  // Not FOR UPDATE: that would also stop other transactions from inserting rows that refer to the locked one.
  forUpdate: (query, of) => (of === undefined ? query.forNoKeyUpdate() : query.forNoKeyUpdate(of as never)),
  forKeyShare: (query) => query.forKeyShare(),
}

export const locksOf = (kind: DatabaseKind): Locks => (kind === 'postgres' ? postgres : sqlite)
