import { sql, type RawBuilder } from 'kysely'

const escaped = (text: string): string => text.replaceAll(/[!%_]/g, (special) => `!${special}`)

/** A pattern for `lower(column)`: contains the text, ignoring case. */
export const containsPattern = (text: string): string => `%${escaped(text.toLowerCase())}%`
/** A pattern for a column: starts with the text. */
export const prefixPattern = (text: string): string => `${escaped(text)}%`

/**
 * Whether a column matches such a pattern. SQLite reads a pattern parameter to choose an index, and therefore prepares
 * the statement again for each run. The cast prevents this.
 */
export const isLike = (column: string, pattern: unknown): RawBuilder<boolean> =>
  sql<boolean>`${sql.ref(column)} like cast(${pattern} as text) escape '!'`
