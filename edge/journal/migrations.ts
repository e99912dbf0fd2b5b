import type { Migration } from './migrate.ts'
import { business } from './migrations/0001-business.ts'
import { streams } from './migrations/0002-streams.ts'

/** Every step of the journal's tables, in order. Add to the end; never change or remove one. */
export const migrations: readonly Migration[] = [business, streams]
