import type { Database } from 'better-sqlite3'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import { firstStep } from './first-step.ts'
import { judgeJournal, storeSchema, type Migration } from './journal-schema.ts'

/**
 * Applies the missing migrations, each in its own transaction. The transaction also stores the journal's
 * owner and the digests of the tables (`journal-schema.ts`). Throws before the first migration if the journal
 * must not be used.
 */
export function migrate(db: Database, migrations: readonly Migration[], hubId?: number): void {
  judgeJournal(db, migrations, hubId)
  const done = Number(db.pragma('user_version', { simple: true }))
  for (const [index, migration] of migrations.entries()) {
    if (index < done) continue
    db.transaction(() => {
      db.exec(migration.sql)
      storeSchema(db, migrations.slice(0, index + 1), { hubId, software: PRODUCT_VERSION })
      db.pragma(`user_version = ${index + 1}`)
    }).immediate()
  }
}

/** The hub's state (`tables.ts`). `number` is the order of events. */
const business: Migration = { name: 'business', sql: firstStep }

/** The reliable streams: the hub's reports, and the cloud's entries. */
const streams: Migration = {
  name: 'streams',
  sql: `
    -- Through which entry each stream is forgotten. The next one stands in the outbox, or is yet to be appended.
    CREATE TABLE stream_positions (
      stream TEXT PRIMARY KEY,
      epoch TEXT NOT NULL,
      base INTEGER NOT NULL,
      base_tag INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE outbox_ledger (seq INTEGER PRIMARY KEY, tag INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE TABLE outbox_telemetry (seq INTEGER PRIMARY KEY, tag INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
    -- Epochs under which this store has reported: an order queued under another one may belong to an earlier life.
    CREATE TABLE ledger_epochs (id INTEGER PRIMARY KEY, epoch TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE inbox_position (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      epoch TEXT,
      cursor INTEGER NOT NULL,
      tag INTEGER NOT NULL
    ) STRICT;
    INSERT INTO inbox_position (id, epoch, cursor, tag) VALUES (1, NULL, 0, 0);
    -- The cloud's epochs that the inbox has moved on from, never to go back.
    CREATE TABLE inbox_left_epochs (epoch TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  `,
}

/**
 * Every migration of the journal's tables, in order. Append new ones; never change or remove a released one. A new
 * journal runs all of them, and then has the tables that `tables.ts` declares.
 */
export const migrations: readonly Migration[] = [business, streams]
