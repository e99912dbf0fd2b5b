import type { Log } from '../../protocol/model/log.ts'
import type { HubEntry, LineProgress, SnapshotEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Journal } from '../journal/journal.ts'
import type { Outbox } from '../journal/outbox.ts'

/** An entry without its time. */
export type Untimed<E extends HubEntry = HubEntry> = E extends HubEntry ? Omit<E, 'at'> : never

/** The hub's word to the cloud, in the transaction of what it tells. */
export interface Ledger {
  report(entry: Untimed): void
  /** Begins the epoch's account: the snapshot, then what had to wait for it. */
  reportSnapshot(): void
}

export function createLedger(journal: Journal, outbox: Outbox, now: () => number): Ledger {
  const append = (entry: HubEntry): void => outbox.append('ledger', entry)
  return {
    report(entry) {
      const timed: HubEntry = { ...entry, at: now() }
      // A hub without stock of its own says nothing before its snapshot (MQTT SPEC §4).
      if (journal.meta.isLive()) append(timed)
      else journal.held.hold(timed)
    },
    reportSnapshot() {
      append(snapshotOf(journal, now()))
      for (const entry of journal.held.take()) append(entry)
    },
  }
}

function snapshotOf({ stock }: Journal, at: number): SnapshotEntry {
  return {
    kind: 'snapshot',
    at,
    stock: stock.facings().map(({ product_id, cabinet, shelf, row, quantity }) => ({
      product_id,
      location: { cabinet, shelf, row },
      quantity,
    })),
  }
}

/** Where each line of an order stands, in absolute counts. */
export function progressOf({ orders }: Journal, orderId: number): LineProgress[] {
  const units = orders.units(orderId)
  return orders.lines(orderId).map(({ line_id }) => {
    const mine = units.filter((unit) => unit.line_id === line_id)
    const fell = mine.filter((unit) => unit.state === 'dropped' || unit.state === 'doubtful')
    return {
      line_id,
      dropped: fell.filter((unit) => unit.state === 'dropped').length,
      doubtful: fell.filter((unit) => unit.state === 'doubtful').length,
      bins: [...new Set(fell.flatMap((unit) => unit.bin ?? []))].toSorted((a, b) => a - b),
    }
  })
}

/** Raises or lowers an alarm; it is reported when it changes, and not again after a restart. */
export function setAlarm(
  { journal, ledger, log }: { journal: Journal; ledger: Ledger; log: Log },
  code: string,
  device: string,
  raised: boolean,
  detail: string,
): void {
  if (!journal.alarms.set(code, device, raised)) return
  if (raised) log.warn({ code, device, detail }, 'alarm')
  else log.info({ code, device }, 'alarm over')
  ledger.report({ kind: 'alarm', code, device, raised, detail })
}
