import type { Database } from 'better-sqlite3'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import { judgeJournal, storeSchema, type Migration } from './journal-schema.ts'

/**
 * Applies the migrations that the database lacks, each in its own transaction, which also stores whose journal it is and the
 * digest of its tables (`journal-schema.ts`). Throws before the first one if the journal must not be used.
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

/**
 * What the hub holds true: operations, orders, stock, commands. Instants (`…_at`) are the hub's estimate of the cloud's
 * time in milliseconds; flags are 0 or 1; `rowid` order is the order of events.
 */
const business: Migration = {
  name: 'business',
  sql: `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Controllers, and whether their memory and this store are reconciled.
CREATE TABLE controllers (
  id TEXT PRIMARY KEY,
  memory_id TEXT NOT NULL,
  reconciled INTEGER NOT NULL,
  -- Its memory holds all that happened since this store, a copy, was made.
  continuous INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  controller TEXT NOT NULL,
  device TEXT NOT NULL,
  action TEXT NOT NULL,
  max_ms INTEGER NOT NULL,
  shelf INTEGER, row INTEGER, bin INTEGER,
  ref TEXT,
  -- The controller's memory when the intent was journaled: 'none' of another memory proves nothing.
  memory_id TEXT,
  -- open | done | failed | nothing | unknown | settled
  state TEXT NOT NULL,
  why TEXT,
  moved INTEGER NOT NULL DEFAULT 1,
  drops INTEGER NOT NULL DEFAULT 0,
  ms INTEGER NOT NULL DEFAULT 0,
  order_id TEXT, line_id INTEGER, unit INTEGER,
  product_id INTEGER,
  command_id TEXT,
  -- Learned from a controller's memory, not begun by this store.
  imported INTEGER NOT NULL DEFAULT 0,
  -- A unit fell after its result: the controller is asked for the new count.
  recheck INTEGER NOT NULL DEFAULT 0,
  intent_at REAL NOT NULL,
  ended_at REAL,
  -- Of an unknown outcome that became known: what or who said so, and what.
  settled_by TEXT,
  happened INTEGER
) STRICT;
CREATE INDEX operations_settled ON operations (ended_at) WHERE settled_by IS NOT NULL;
CREATE INDEX operations_recheck ON operations (controller) WHERE recheck = 1;
CREATE INDEX operations_of_order ON operations (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_of_command ON operations (command_id) WHERE command_id IS NOT NULL;

CREATE TABLE orders (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  -- What people call it. Not unique: a cloud that was restored gives numbers out again.
  order_number INTEGER NOT NULL,
  -- queued | recovering | preparing | ready | collecting | completed | cancelled | timed_out | failed | unclaimed
  phase TEXT NOT NULL,
  reserved_bin INTEGER,
  open_when_ready INTEGER NOT NULL,
  start_by REAL NOT NULL,
  -- The bins that its customer is sent to, JSON.
  bins TEXT NOT NULL,
  reason TEXT,
  received_at REAL NOT NULL,
  preparing_at REAL, ready_at REAL, collecting_at REAL, ended_at REAL
) STRICT;
CREATE INDEX orders_unfinished ON orders (number) WHERE ended_at IS NULL;

CREATE TABLE order_lines (
  order_id TEXT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  line_id INTEGER NOT NULL,
  product_id INTEGER NOT NULL,
  quantity INTEGER NOT NULL,
  -- Of a recovered order: units that the cloud knows to have dropped.
  known_dropped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (order_id, line_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE units (
  order_id TEXT NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  line_id INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  -- waiting | running | dropped | doubtful | short
  state TEXT NOT NULL,
  bin INTEGER,
  PRIMARY KEY (order_id, line_id, unit)
) STRICT, WITHOUT ROWID;

CREATE TABLE bins (
  number INTEGER PRIMARY KEY,
  -- The order that holds the bin, from PREPARING until it was emptied and closed.
  order_id TEXT,
  -- Its door was open since the order was READY.
  opened INTEGER NOT NULL DEFAULT 0,
  -- Motions of its door or lift that failed in a row, and why the first of them did.
  failures INTEGER NOT NULL DEFAULT 0,
  fault TEXT,
  -- The hub tries by itself whether door or lift move again, and brings them home after it.
  on_trial INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Rows whose dispenses have failed in a row, each without moving anything.
CREATE TABLE row_faults (
  cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  why TEXT NOT NULL,
  failed_at REAL NOT NULL,
  PRIMARY KEY (cabinet, shelf, row)
) STRICT, WITHOUT ROWID;

-- Fridges: since when one was last read as cold while it is warm, when it was last read, and since when it is shut off.
CREATE TABLE fridges (
  number INTEGER PRIMARY KEY,
  warm_since REAL,
  read_at REAL NOT NULL,
  shutoff_at REAL
) STRICT;

-- How rows, bins, cabinets and fridges stand, as it was told to the cloud.
CREATE TABLE told_states (
  subject TEXT PRIMARY KEY,
  -- JSON, without since when.
  state TEXT NOT NULL,
  since REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE facings (
  cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL,
  product_id INTEGER NOT NULL,
  is_primary INTEGER NOT NULL,
  quantity INTEGER NOT NULL,
  PRIMARY KEY (cabinet, shelf, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX facings_of_product ON facings (product_id);

-- Append-only. A facing's quantity is the sum of its deltas (I5).
CREATE TABLE stock_ledger (
  number INTEGER PRIMARY KEY,
  -- snapshot | dropped | counted | restocked | moved
  kind TEXT NOT NULL,
  product_id INTEGER NOT NULL,
  cabinet INTEGER NOT NULL, shelf INTEGER NOT NULL, row INTEGER NOT NULL,
  delta INTEGER NOT NULL,
  -- Operation, count or restock.
  cause_id TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;
CREATE INDEX stock_ledger_of_product ON stock_ledger (product_id, number);
CREATE INDEX stock_ledger_counts ON stock_ledger (cause_id) WHERE kind = 'counted';

CREATE TABLE commands (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  -- Given at the hub itself: the cloud knows nothing of it.
  is_local INTEGER NOT NULL,
  -- JSON: the person who gave a local command.
  local_actor TEXT,
  -- Null while its operations run.
  outcome TEXT,
  reason TEXT,
  data TEXT
) STRICT;

CREATE TABLE alarms (
  code TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL,
  raised_at REAL NOT NULL,
  PRIMARY KEY (code, subject)
) STRICT, WITHOUT ROWID;

-- Ledger entries that wait for the snapshot with which an epoch begins.
CREATE TABLE held_entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
-- Operations that the cloud's stock already includes, while controllers' memories are reconciled with it.
CREATE TABLE known_operations (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
`,
}

/** The reliable streams: what the hub has to report, and what came from the cloud. */
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
    CREATE TABLE dead_letters (
      id INTEGER PRIMARY KEY,
      epoch TEXT NOT NULL,
      seq INTEGER NOT NULL,
      body TEXT NOT NULL,
      error TEXT NOT NULL,
      at INTEGER NOT NULL,
      -- Which version of the service could not apply it.
      software TEXT NOT NULL
    ) STRICT;
  `,
}

/** Guided acceptances of the hub by technicians, and what was done and seen in them. */
const acceptances: Migration = {
  name: 'acceptances',
  sql: `
    CREATE TABLE acceptances (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      by TEXT NOT NULL,
      parts TEXT,
      -- JSON: the steps of rows without a product.
      left_out TEXT NOT NULL,
      software TEXT NOT NULL,
      -- JSON: of each controller, when the acceptance ended.
      firmware TEXT,
      begun_at REAL NOT NULL,
      ended_at REAL,
      result TEXT
    ) STRICT;
    CREATE INDEX acceptances_open ON acceptances (number) WHERE ended_at IS NULL;
    CREATE TABLE acceptance_attempts (
      number INTEGER PRIMARY KEY,
      acceptance_id TEXT NOT NULL REFERENCES acceptances (id) ON DELETE CASCADE,
      step TEXT NOT NULL,
      -- Of the step among all of them.
      position INTEGER NOT NULL,
      part TEXT NOT NULL,
      title TEXT NOT NULL,
      expected TEXT NOT NULL,
      observed TEXT NOT NULL,
      agrees INTEGER NOT NULL,
      verdict TEXT,
      remark TEXT NOT NULL,
      at REAL NOT NULL
    ) STRICT;
    CREATE INDEX acceptance_attempts_of ON acceptance_attempts (acceptance_id, number);
  `,
}

/** What products are called, for people at the hub. */
const products: Migration = {
  name: 'products',
  sql: `
    CREATE TABLE products (
      product_id INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      upc TEXT NOT NULL
    ) STRICT;
  `,
}

/** Every step of the journal's tables, in order. Add to the end; never change or remove one that was released. */
export const migrations: readonly Migration[] = [business, streams, acceptances, products]
