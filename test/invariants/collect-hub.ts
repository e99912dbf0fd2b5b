import type BetterSqlite3 from 'better-sqlite3'
import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { HubEvidence } from './evidence.ts'

/** Reads a hub's books from its journal, which may be open read-only beside the running service. */
export function collectHub(db: BetterSqlite3.Database): HubEvidence {
  const all = <T>(sql: string): T[] => db.prepare<[], T>(sql).all()
  const place = "cabinet || '-' || shelf || '-' || row"
  const unforgotten = db.prepare<[], number>('SELECT count(*) FROM outbox_ledger').pluck().get() ?? 0
  const held = db.prepare<[], number>('SELECT count(*) FROM held_entries').pluck().get() ?? 0
  const config = db.prepare<[], string>("SELECT value FROM meta WHERE key = 'config'").pluck().get()
  return {
    config: config === undefined ? null : HubConfig.parse(JSON.parse(config)),
    stock: all(`SELECT ${place} AS location, product_id, quantity FROM facings`),
    ledger: all(`SELECT ${place} AS location, delta, cause_id, kind FROM stock_ledger ORDER BY number`),
    unsettled: all<{ operation_id: string; device: string; shelf: number | null; row: number | null }>(
      "SELECT id AS operation_id, device, shelf, row FROM operations WHERE state = 'unknown'",
    ).map(({ operation_id, device, shelf, row }) => ({
      operation_id,
      location: shelf === null ? null : `${device.replace('cabinet-', '')}-${shelf}-${row}`,
    })),
    open: all<{ id: string }>("SELECT id FROM operations WHERE state = 'open'").map(({ id }) => id),
    pending: unforgotten + held,
    alarms: all('SELECT code, subject FROM alarms'),
    deadLetters: all('SELECT * FROM dead_letters'),
    orders: all<{ order_id: string; ended: number }>(
      'SELECT id AS order_id, ended_at IS NOT NULL AS ended FROM orders',
    ).map(({ order_id, ended }) => ({ order_id, finished: ended === 1 })),
  }
}
