import { z } from 'zod'
import { Location } from '../model/location.ts'
import { OrderId } from './session.ts'

/**
 * What a hub reports through its ledger stream. `at` is the hub's estimate of the cloud's time, in milliseconds; order
 * is by sequence, never by `at`.
 */
const at = z.number()
const order = { order_id: OrderId, at }
const bins = z.array(z.int())
/** Where a line of an order stands: `dropped` were seen to fall, of `doubtful` units nobody knows. Absolute counts. */
export const LineProgress = z.object({
  line_id: z.int(),
  dropped: z.int().min(0),
  doubtful: z.int().min(0),
  bins,
})
export type LineProgress = z.infer<typeof LineProgress>
const lines = z.array(LineProgress)

export const OrderEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('order.preparing'), ...order, bins }),
  z.object({ kind: z.literal('order.ready'), ...order, bins, lines }),
  z.object({ kind: z.literal('order.collecting'), ...order }),
  z.object({ kind: z.literal('order.completed'), ...order }),
  z.object({ kind: z.literal('order.cancelled'), ...order }),
  /** It did not begin in time, or nothing dropped in time; one of which anything dropped is `order.ready`. */
  z.object({ kind: z.literal('order.timed_out'), ...order, bins, lines }),
  /** By hardware, before READY. What did not drop is refunded. */
  z.object({ kind: z.literal('order.failed'), ...order, reason: z.string().max(64), bins, lines }),
  z.object({ kind: z.literal('order.unclaimed'), ...order }),
])
export type OrderEntry = z.infer<typeof OrderEntry>

/**
 * A change of the stock of one facing. `delta` in units; `quantity` is the facing's stock after it, by the hub's ledger.
 * Dropped units beyond `delivered` (a double drop) belong to no order. A drop whose `delta` is 0 had left the books before:
 * the planogram has no facing of its product any more.
 */
export const StockEntry = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('stock.dropped'),
    at,
    product_id: z.int(),
    location: Location,
    delta: z.int().max(0),
    quantity: z.int(),
    operation_id: z.uuid(),
    order_id: OrderId.nullable(),
    line_id: z.int().nullable(),
    delivered: z.int().min(0),
    bin: z.int().nullable(),
  }),
  z.object({
    kind: z.literal('stock.counted'),
    at,
    product_id: z.int(),
    location: Location,
    delta: z.int(),
    quantity: z.int(),
    count_id: z.uuid(),
  }),
  z.object({
    kind: z.literal('stock.restocked'),
    at,
    product_id: z.int(),
    location: Location,
    delta: z.int().min(1),
    quantity: z.int(),
    restock_id: z.uuid(),
  }),
])
export type StockEntry = z.infer<typeof StockEntry>

export const OperationEntry = z.discriminatedUnion('kind', [
  /** Nobody can say whether this operation happened (I1). Shown to the owner until settled. */
  z.object({
    kind: z.literal('operation.unknown'),
    at,
    operation_id: z.uuid(),
    device: z.string(),
    action: z.string(),
    reason: z.string(),
    order_id: OrderId.nullable(),
    line_id: z.int().nullable(),
    product_id: z.int().nullable(),
  }),
  z.object({
    kind: z.literal('operation.settled'),
    at,
    operation_id: z.uuid(),
    by: z.enum(['sensor', 'count', 'person']),
    happened: z.boolean(),
  }),
])
export type OperationEntry = z.infer<typeof OperationEntry>

export const AlarmEntry = z.object({
  kind: z.literal('alarm'),
  at,
  /** For example `door_forced`, `fridge_warm`, `controller_silent`, `controller_foreign`, `store_full`, `clock_wrong`. */
  code: z.string().max(64),
  device: z.string().max(64),
  raised: z.boolean(),
  detail: z.string().max(500),
})
export type AlarmEntry = z.infer<typeof AlarmEntry>

/** What became of a command, as `CommandResult` says; sent here too because a result on its own topic may be lost. */
export const CommandEntry = z.object({
  kind: z.literal('command.finished'),
  at,
  command_id: z.uuid(),
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  reason: z.string().nullable(),
  data: z.record(z.string(), z.unknown()).nullable(),
})
export type CommandEntry = z.infer<typeof CommandEntry>

/**
 * In every epoch, behind what the former one left unacknowledged (SPEC §4): everything that the hub holds true, replacing
 * what the cloud mirrors.
 */
export const SnapshotEntry = z.object({
  kind: z.literal('snapshot'),
  at,
  stock: z.array(z.object({ product_id: z.int(), location: Location, quantity: z.int() })),
  /**
   * All operations whose outcome nobody knows: any other is settled. Absent where the hub's store is new, and knows no
   * operation yet.
   */
  unknown_operations: z.array(z.uuid()).optional(),
})
export type SnapshotEntry = z.infer<typeof SnapshotEntry>

export const HubEntry = z.discriminatedUnion('kind', [
  OrderEntry,
  StockEntry,
  OperationEntry,
  AlarmEntry,
  CommandEntry,
  SnapshotEntry,
])
export type HubEntry = z.infer<typeof HubEntry>

/** What the telemetry stream carries. */
export const TelemetryEntry = z.object({
  kind: z.literal('temperature'),
  at,
  fridge_number: z.int(),
  celsius: z.number(),
})
export type TelemetryEntry = z.infer<typeof TelemetryEntry>
