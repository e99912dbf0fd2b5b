import type { Migration } from '../migrate.ts'

/** The reliable streams (design §4): what the hub has to report, and what the cloud told it. */
export const streams: Migration = {
  name: 'streams',
  sql: `
    CREATE TABLE stream_positions (
      stream TEXT PRIMARY KEY,
      epoch TEXT NOT NULL,
      base INTEGER NOT NULL,
      base_tag INTEGER NOT NULL,
      last INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE outbox (
      stream TEXT NOT NULL,
      seq INTEGER NOT NULL,
      tag INTEGER NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (stream, seq)
    ) STRICT, WITHOUT ROWID;
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
      at INTEGER NOT NULL
    ) STRICT;
  `,
}
