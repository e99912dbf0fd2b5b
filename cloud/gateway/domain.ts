import type { CloudEntry, StockCount } from '../../protocol/mqtt/cloud-entries.ts'
import type {
  OperationEntry,
  OrderEntry,
  SnapshotEntry,
  StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/**
 * What hubs' entries mean to the rest of the cloud. Each function runs in the transaction that moves the stream's cursor,
 * applies entries in their order, and throws `ApplyError` for one that can never be applied.
 */
export interface HubDomain {
  applyOrderEntry(tx: Tx, context: CloudContext, hubId: number, entry: OrderEntry): Promise<void>
  /** Consecutive entries, in bulk. */
  applyStockEntries(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    entries: readonly StockEntry[],
  ): Promise<void>
  applyOperationEntry(tx: Tx, context: CloudContext, hubId: number, entry: OperationEntry): Promise<void>
  applySnapshot(tx: Tx, context: CloudContext, hubId: number, entry: SnapshotEntry): Promise<void>
  /** The orders that a hub has to do with, for the snapshot that begins an epoch of its outbox. */
  snapshotOrders(tx: Tx, hubId: number): Promise<Snapshot['orders']>
  /** The counts of stock that it is not known to have taken in, for the same. */
  pendingCounts(tx: Tx, hubId: number): Promise<StockCount[]>
}

/**
 * An entry of a hub's stream that cannot be applied, now or ever: it becomes a dead letter and the cursor moves on (I8).
 * Any other error undoes the batch, and its entries come again.
 */
export class ApplyError extends Error {
  override readonly name = 'ApplyError'
}
