import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type {
  OperationEntry,
  OrderEntry,
  SnapshotEntry,
  StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'

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
  ): Promise<void>
  applyOperationEntry(tx: Tx, context: CloudContext, hubId: number, entry: OperationEntry): Promise<void>
  applySnapshot(tx: Tx, context: CloudContext, hubId: number, entry: SnapshotEntry): Promise<void>
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
