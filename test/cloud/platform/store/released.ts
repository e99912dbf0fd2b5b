import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseKind } from '../../../../cloud/platform/store/table.ts'

const read = (name: string): string => readFileSync(join(import.meta.dirname, 'released', name), 'utf8')

/** The statements of schema 1, as it was released. The files never change. */
export const releasedStatements = (kind: DatabaseKind): string[] =>
  read(`1.${kind}.sql`).replace(/;\n$/, '').split(';\n')

/** Rows of a shop that schema 1 stored, by table: an order in each state, with its payments and ledgers. */
export const releasedRows = (): Record<string, Record<string, unknown>[]> =>
  JSON.parse(read('1.rows.json')) as Record<string, Record<string, unknown>[]>
