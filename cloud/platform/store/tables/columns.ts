import type { ColumnType } from 'kysely'

/** A column that no statement may change once it is written. */
export type Fixed<T> = ColumnType<T, T, never>

export type Flag = 0 | 1

/** Milliseconds since the Unix epoch. */
export type Instant = number
