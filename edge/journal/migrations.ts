import type { Database } from 'better-sqlite3'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import { judgeJournal, storeSchema, type Migration } from './journal-schema.ts'

/** The tables of the first release. It is never changed: later steps of `migrations.ts` change the tables. */
const firstStep = `
CREATE TABLE meta ( key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (key) ) STRICT, WITHOUT ROWID;
CREATE TABLE controllers ( id TEXT NOT NULL, memory_id TEXT NOT NULL, reconciled INTEGER NOT NULL, continuous INTEGER NOT NULL, PRIMARY KEY (id) ) STRICT, WITHOUT ROWID;
CREATE TABLE operations ( number INTEGER PRIMARY KEY, id TEXT NOT NULL, controller TEXT NOT NULL, device TEXT NOT NULL, action TEXT NOT NULL, max_ms INTEGER NOT NULL, shelf INTEGER, row INTEGER, bin INTEGER, ref TEXT, memory_id TEXT, state TEXT NOT NULL, why TEXT, moved INTEGER NOT NULL, drops INTEGER NOT NULL, ms INTEGER NOT NULL, order_id TEXT, line_id INTEGER, unit INTEGER, product_id INTEGER, command_id TEXT, imported INTEGER NOT NULL, recheck INTEGER NOT NULL, intent_at REAL NOT NULL, ended_at REAL, settled_by TEXT, happened INTEGER, UNIQUE (id) ) STRICT;
CREATE TABLE orders ( number INTEGER PRIMARY KEY, id TEXT NOT NULL, order_number INTEGER NOT NULL, phase TEXT NOT NULL, reserved_bin INTEGER, open_when_ready INTEGER NOT NULL, start_by REAL NOT NULL, bins TEXT NOT NULL, lines TEXT NOT NULL, reason TEXT, received_at REAL NOT NULL, preparing_at REAL, ready_at REAL, collecting_at REAL, ended_at REAL, UNIQUE (id) ) STRICT;
CREATE TABLE bins ( number INTEGER PRIMARY KEY, order_id TEXT, opened INTEGER NOT NULL, failures INTEGER NOT NULL, fault TEXT, on_trial INTEGER NOT NULL ) STRICT;
CREATE TABLE row_faults ( cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL, failures INTEGER NOT NULL, why TEXT NOT NULL, failed_at REAL NOT NULL, PRIMARY KEY (cabinet, shelf, row) ) STRICT, WITHOUT ROWID;
CREATE TABLE fridges ( number INTEGER PRIMARY KEY, warm_since REAL, read_at REAL NOT NULL, shutoff_at REAL ) STRICT;
CREATE TABLE reported_states ( subject TEXT NOT NULL, state TEXT NOT NULL, since REAL NOT NULL, PRIMARY KEY (subject) ) STRICT, WITHOUT ROWID;
CREATE TABLE facings ( cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL, product_id INTEGER NOT NULL, is_primary INTEGER NOT NULL, quantity INTEGER NOT NULL, PRIMARY KEY (cabinet, shelf, row) ) STRICT, WITHOUT ROWID;
CREATE TABLE stock_ledger ( number INTEGER PRIMARY KEY, kind TEXT NOT NULL, product_id INTEGER NOT NULL, cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL, delta INTEGER NOT NULL, cause_id TEXT NOT NULL, at REAL NOT NULL ) STRICT;
CREATE INDEX stock_ledger_of_product ON stock_ledger (product_id, number);
CREATE INDEX stock_ledger_counts ON stock_ledger (cause_id) WHERE kind = 'counted';
CREATE TABLE products ( product_id INTEGER PRIMARY KEY, name TEXT NOT NULL, upc TEXT NOT NULL ) STRICT;
CREATE TABLE commands ( number INTEGER PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL, is_local INTEGER NOT NULL, local_actor TEXT, outcome TEXT, reason TEXT, data TEXT, UNIQUE (id) ) STRICT;
CREATE TABLE alarms ( code TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL, raised_at REAL NOT NULL, PRIMARY KEY (code, subject) ) STRICT, WITHOUT ROWID;
CREATE TABLE held_entries ( number INTEGER PRIMARY KEY, body TEXT NOT NULL ) STRICT;
CREATE TABLE known_operations ( id TEXT NOT NULL, PRIMARY KEY (id) ) STRICT, WITHOUT ROWID;
CREATE TABLE acceptances ( number INTEGER PRIMARY KEY, id TEXT NOT NULL, by TEXT NOT NULL, parts TEXT, left_out TEXT NOT NULL, software TEXT NOT NULL, firmware TEXT, begun_at REAL NOT NULL, ended_at REAL, result TEXT, UNIQUE (id) ) STRICT;
CREATE TABLE acceptance_attempts ( number INTEGER PRIMARY KEY, acceptance_id TEXT NOT NULL, step TEXT NOT NULL, position INTEGER NOT NULL, part TEXT NOT NULL, title TEXT NOT NULL, expected TEXT NOT NULL, observed TEXT NOT NULL, agrees INTEGER NOT NULL, verdict TEXT, remark TEXT NOT NULL, at REAL NOT NULL ) STRICT;
CREATE TABLE dead_letters ( number INTEGER PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, error TEXT NOT NULL, at REAL NOT NULL, software TEXT NOT NULL ) STRICT;
`

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
