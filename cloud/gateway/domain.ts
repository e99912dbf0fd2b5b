import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type {
  AlarmEntry,
  MaintenanceEntry,
  OperationEntry,
  OrderEntry,
  SnapshotEntry,
  StateEntry,
  StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'

/**
 * `isLate`: a dead letter that is replayed. What it says was so when it was made; how things stand by now the hub has told
 * since.
 */
export interface ApplyOptions {
  isLate?: boolean
}

/** What of the connection with a hub can stand still: its hellos, its two streams, and the stream to it. */
export type StalledPart = 'hello' | 'ledger' | 'telemetry' | 'outbox'

/** A hub that was heard. */
export interface HeardHub {
  hubId: number
  /** What it has just said, where that is what holds by now; null: the database knows. */
  health: HubHealth | null
}

/**
 * What hubs' entries mean to the rest of the cloud, which `cloud.ts` passes in. Each `apply…` runs in the transaction that
 * moves the stream's cursor, applies entries in their order, and throws `ApplyError` for one that can never be applied.
 */
export interface HubDomain {
  applyOrderEntry(tx: Tx, context: CloudContext, hubId: number, entry: OrderEntry): Promise<void>
  /** Consecutive entries, in bulk. */
  applyStockEntries(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    entries: readonly StockEntry[],
    options?: ApplyOptions,
  ): Promise<void>
  applyOperationEntry(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    entry: OperationEntry,
    options?: ApplyOptions,
  ): Promise<void>
  applyStateEntry(tx: Tx, context: CloudContext, hubId: number, entry: StateEntry): Promise<void>
  applySnapshot(tx: Tx, context: CloudContext, hubId: number, entry: SnapshotEntry): Promise<void>
  applyAlarmEntries(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    entries: readonly AlarmEntry[],
  ): Promise<void>
  applyMaintenanceEntry(tx: Tx, context: CloudContext, hubId: number, entry: MaintenanceEntry): Promise<void>
  /** Entries of a hub became dead letters, or are none any more. */
  deadLettersChanged(tx: Tx, context: CloudContext, hubId: number): void
  /** A part of the connection stands still though the hub is there, for this reason; or advances again (undefined). */
  streamStalled(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    part: StalledPart,
    error: string | undefined,
  ): Promise<void>
  /** Two hubs have come with one identity, and one of them was refused. Again and again, as long as it comes. */
  identityConflict(tx: Tx, context: CloudContext, hubId: number): Promise<void>
  /** Hubs were heard, or their states may have changed: last in the transaction that recorded it. */
  hubsHeard(tx: Tx, context: CloudContext, hubs: readonly HeardHub[]): Promise<void>
  /** A hub has taken in entries that this database does not know to have sent: it was restored. */
  booksAreBehind(tx: Tx, context: CloudContext): Promise<void>
  /** All that a hub must know, as the transaction sees it: the first entry of an epoch of its outbox (SPEC §4). */
  hubSnapshot(tx: Tx, context: CloudContext, hubId: number): Promise<CloudEntry>
}

/**
 * An entry of a hub's stream that cannot be applied, now or ever: it becomes a dead letter and the cursor moves on (I8).
 * Any other error undoes the batch, and its entries come again.
 */
export class ApplyError extends Error {
  override readonly name = 'ApplyError'
}
