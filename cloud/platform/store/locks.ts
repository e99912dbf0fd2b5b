import type { SelectQueryBuilder } from 'kysely'
import type { DatabaseKind } from './table.ts'

/** Row locks of a transaction's queries. SQLite needs none: it has one writer at a time. */
export interface Locks {
  kind: DatabaseKind
  /** Locks the selected rows until the end of the transaction; with several tables, the rows of one. */
  forUpdate<DB, TB extends keyof DB, O>(
    query: SelectQueryBuilder<DB, TB, O>,
    of?: TB & string,
  ): SelectQueryBuilder<DB, TB, O>
  /**
   * Protects the selected rows from deletion until the end of the transaction, because new rows will refer to them.
   * Allows all other changes.
   */
  forKeyShare<DB, TB extends keyof DB, O>(query: SelectQueryBuilder<DB, TB, O>): SelectQueryBuilder<DB, TB, O>
}

const sqlite: Locks = { kind: 'sqlite', forUpdate: (query) => query, forKeyShare: (query) => query }

const postgres: Locks = {
  kind: 'postgres',
  // Not FOR UPDATE, which would also block inserts of rows that refer to the locked one.
  forUpdate: (query, of) => (of === undefined ? query.forNoKeyUpdate() : query.forNoKeyUpdate(of as never)),
  forKeyShare: (query) => query.forKeyShare(),
}

export const locksOf = (kind: DatabaseKind): Locks => (kind === 'postgres' ? postgres : sqlite)
