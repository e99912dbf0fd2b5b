import { ApplyError } from './apply-error.ts'
import type { Queries } from '../platform/store/database.ts'

export interface DeadLetter {
  hubId: number
  stream: 'ledger' | 'telemetry'
  epoch: string
  seq: number
  body: unknown
  error: unknown
}

/** Keeps an entry that cannot be applied, for a person or a later version (I8). */
export async function buryEntry(q: Queries, letter: DeadLetter, now: number): Promise<void> {
  await q
    .insertInto('dead_letters')
    .values({
      hub_id: letter.hubId,
      stream: letter.stream,
      epoch: letter.epoch,
      seq: letter.seq,
      body: JSON.stringify(letter.body ?? null),
      error: letter.error instanceof Error ? letter.error.message : String(letter.error),
      at: now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/**
 * Whether an error is the entry's own: it was refused by name, or the database refuses its values (SQLite's constraints;
 * PostgreSQL's classes 22, data, and 23, integrity).
 */
export function isEntryFault(error: unknown): boolean {
  return error instanceof ApplyError || /^(SQLITE_CONSTRAINT|22|23)/.test(codeOf(error))
}

/**
 * Whether an error is the store's or the network's: the same entry may well be applied later. Whatever carries a code of
 * a database or of the system counts; a defect in our own code carries none.
 */
export function isStoreFailure(error: unknown): boolean {
  return codeOf(error) !== '' && !isEntryFault(error)
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}
