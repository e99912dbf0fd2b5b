import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type {
  AlarmEntry,
  HardwareEntry,
  MaintenanceEntry,
  OperationEntry,
  OrderEntry,
  SnapshotEntry,
  StateEntry,
  StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import type { CertificateAnswer, CertificateRequest, Moved } from '../../protocol/mqtt/session.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'

/**
 * `isLate`: a dead letter that is replayed. It was true when the hub wrote it, but the hub has reported newer states
 * since.
 */
export interface ApplyOptions {
  isLate?: boolean
}

/** The parts of the connection with a hub that can stall: its hellos, its two streams, and the stream to it. */
export type StalledPart = 'hello' | 'ledger' | 'telemetry' | 'outbox'

/** A hub that has sent a message. */
export interface HeardHub {
  hubId: number
  /** The hub's report, if it is still current; null: read the database. */
  health: HubHealth | null
}

/**
 * How the rest of the cloud applies the entries of hubs; `cloud.ts` passes it in. Each `apply…` runs in the transaction
 * that moves the stream's cursor, and applies entries in order. It throws `ApplyError` for an entry that can never be
 * applied.
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
  /** The hub has no hardware description of the cloud, and reports its own. */
  applyHardwareEntry(tx: Tx, hubId: number, entry: HardwareEntry): Promise<void>
  /** A retired or revoked board has erased its secrets. */
  secretsErased(context: CloudContext, hubId: number): Promise<void>
  /** A hub is enrolled in another cell, or could not move there. `actor`: the cloud, if the hub has not answered. */
  hubMoved(context: CloudContext, hubId: number, answer: Moved, actor?: string): Promise<void>
  /** The number of a hub's dead letters may have changed. */
  deadLettersChanged(tx: Tx, context: CloudContext, hubId: number): void
  /** A part of the connection has stalled while the hub is online, with this error; undefined: it advances again. */
  streamStalled(
    tx: Tx,
    context: CloudContext,
    hubId: number,
    part: StalledPart,
    error: string | undefined,
  ): Promise<void>
  /** Two hubs use one identity, and one of them was refused. Called at each refused hello. */
  identityConflict(tx: Tx, context: CloudContext, hubId: number): Promise<void>
  /** Hubs sent messages, or their states may have changed. Called last in the transaction that recorded it. */
  hubsHeard(tx: Tx, context: CloudContext, hubs: readonly HeardHub[]): Promise<void>
  /** A hub has applied entries that this database does not know: the database was restored. */
  booksAreBehind(tx: Tx, context: CloudContext): Promise<void>
  /** A hub asks for its next certificate. `answer` sends it, if the hub gets one. */
  certificateRequested(
    context: CloudContext,
    hubId: number,
    request: CertificateRequest,
    answer: (answer: CertificateAnswer) => void,
    /** Whether an answer could be sent now. */
    canAnswer: () => boolean,
  ): void
  /** The whole state for a hub as the transaction sees it: the first entry of an epoch of its outbox (SPEC §4). */
  hubSnapshot(tx: Tx, context: CloudContext, hubId: number): Promise<CloudEntry>
}

/**
 * A hub's entry that can never be applied. It becomes a dead letter and the cursor moves on (I8). Any other error rolls
 * the batch back, and its entries are sent again.
 */
export class ApplyError extends Error {
  override readonly name = 'ApplyError'
}
