import { sql, type RawBuilder } from 'kysely'

const escaped = (text: string): string => text.replaceAll(/[!%_]/g, (special) => `!${special}`)

/** A pattern for `lower(column)`: the text anywhere, in any case. */
export const containsPattern = (text: string): string => `%${escaped(text.toLowerCase())}%`
/** A pattern for a column: the text at the beginning. */
export const prefixPattern = (text: string): string => `${escaped(text)}%`

/**
 * Whether a column is as such a pattern. SQLite looks into a pattern that is a parameter to choose an index, and so prepares
 * the statement anew for each run; a cast it leaves alone.
 */
export const isLike = (column: string, pattern: unknown): RawBuilder<boolean> =>
  sql<boolean>`${sql.ref(column)} like cast(${pattern} as text) escape '!'`
