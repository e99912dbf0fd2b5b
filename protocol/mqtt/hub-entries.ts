import { z } from 'zod'
import { hubAlarmCodes } from '../model/alarms.ts'
import { Location } from '../model/location.ts'
import { OrderId } from './session.ts'

/** What dates can express, in milliseconds. */
const LATEST_MS = 8.64e15
const MAX_UNITS = 1_000_000
/** Numbers of a hub's parts: as the serial protocol names devices. */
const part = z.int().min(1).max(9)
const units = z.int().min(-MAX_UNITS).max(MAX_UNITS)
const product = z.int().min(0)
const celsius = z.number().min(-300).max(300)

/**
 * What a hub reports through its ledger stream. Every text and every list has a bound: a hub may be stolen, or run wild. `at` is the hub's estimate of the cloud's time, in milliseconds; order
 * is by sequence, never by `at`.
 */
const at = z.number().min(-LATEST_MS).max(LATEST_MS)
/** `number`: the one that people read. A cloud that has lost the order in a restore issues it to no other one. */
const order = { order_id: OrderId, number: z.int().min(1).optional(), at }
const bins = z.array(part).max(9)
/** Where a line of an order stands: `dropped` were seen to fall, of `doubtful` units nobody knows. Absolute counts. */
export const LineProgress = z.object({
  line_id: product,
  dropped: z.int().min(0).max(MAX_UNITS),
  doubtful: z.int().min(0).max(MAX_UNITS),
  bins,
})
export type LineProgress = z.infer<typeof LineProgress>
const lines = z.array(LineProgress).max(1000)

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
    product_id: product,
    location: Location,
    delta: z.int().min(-MAX_UNITS).max(0),
    quantity: units,
    operation_id: z.uuid(),
    order_id: OrderId.nullable(),
    line_id: product.nullable(),
    delivered: z.int().min(0).max(MAX_UNITS),
    bin: part.nullable(),
  }),
  z.object({
    kind: z.literal('stock.counted'),
    at,
    product_id: product,
    location: Location,
    delta: units,
    quantity: units,
    count_id: z.uuid(),
  }),
  z.object({
    kind: z.literal('stock.restocked'),
    at,
    product_id: product,
    location: Location,
    delta: z.int().min(1).max(MAX_UNITS),
    quantity: units,
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
    device: z.string().max(40),
    action: z.string().max(40),
    reason: z.string().max(64),
    /** When it was intended. */
    started_at: at,
    /** Of a dispense: the row. */
    location: Location.nullable(),
    order_id: OrderId.nullable(),
    line_id: product.nullable(),
    product_id: product.nullable(),
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
  code: z.enum(hubAlarmCodes),
  /** `bin 3`, `row 2/1/4`, `fridge 1`, `controller front`, `door main`, `hub`. */
  subject: z.string().max(64),
  raised: z.boolean(),
  detail: z.string().max(500),
})
export type AlarmEntry = z.infer<typeof AlarmEntry>

/**
 * What a bin is to the next order. `held`: an order has it, and it comes free when that is done. `left_behind`: something is in
 * it, and nobody is coming for it.
 */
export const binUses = ['free', 'held', 'left_behind', 'open', 'faulty', 'offline'] as const
export const fridgeStates = ['unknown', 'cold', 'warm', 'shutoff'] as const

/**
 * How a row, bin, cabinet or fridge stands as far as selling is concerned. What the hub does not dispense from, the cloud does not
 * sell. `since`: cloud time in milliseconds, as the hub estimates it.
 */
export const State = z.discriminatedUnion('of', [
  /** `blocked`: why nothing is dispensed from it (serial SPEC §7, and SPEC §10 here); null where something is. */
  z.object({ of: z.literal('row'), location: Location, blocked: z.string().max(32).nullable(), since: at }),
  z.object({
    of: z.literal('bin'),
    bin: part,
    /** Units that fit into it at once. */
    capacity: z.int().min(1).max(1000),
    state: z.enum(binUses),
    /** The order that holds it, or whose goods were left in it. */
    order_id: OrderId.nullable(),
    /** The motion that failed, and why, until one succeeds. */
    fault: z.string().max(64).nullable(),
    since: at,
  }),
  /** `withheld`: nothing is dispensed from any of its rows. */
  z.object({
    of: z.literal('cabinet'),
    cabinet: part,
    withheld: z.enum(['shutoff', 'silent']).nullable(),
    since: at,
  }),
  /** `shutoff`: it was too warm for too long, and nothing behind its doors is sold before a person confirms. */
  z.object({
    of: z.literal('fridge'),
    fridge: part,
    state: z.enum(fridgeStates),
    since: at,
  }),
])
export type State = z.infer<typeof State>

/** One of them has changed. */
export const StateEntry = z.object({ kind: z.literal('state'), at, state: State })
export type StateEntry = z.infer<typeof StateEntry>

/** The person at the hub's page. Hubs of the version before send none of it. */
export const LocalActor = z.object({
  /** Name of the person; null if a caller with the shared token gave none. */
  person: z.string().max(60).nullable().default(null),
  /** True if the person used the shared token: nobody has verified the name. */
  shared_token: z.boolean().default(false),
})
export type LocalActor = z.infer<typeof LocalActor>

/**
 * A person did something at the hub itself, or tried to. Counts and settlements have entries of their own; this entry
 * records who made them there.
 */
export const LocalEntry = LocalActor.extend({
  kind: z.literal('local'),
  at,
  /** `unlock_door`, `open_bin`, `count_row`, `confirm_fridge`, …: what was asked for. */
  action: z.string().max(64),
  subject: z.string().max(64),
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  /** Units in the row before and after a count or a restock. */
  before: z.int().optional(),
  after: z.int().optional(),
})
export type LocalEntry = z.infer<typeof LocalEntry>

/**
 * A maintenance report that was made at the hub itself: the protocol of a guided acceptance. A cloud may be told of it again,
 * and keeps it once, by its `report_id`.
 */
export const MaintenanceEntry = z.object({
  kind: z.literal('maintenance.report'),
  at,
  report_id: z.uuid(),
  name: z.string().max(200),
  /** Who did it, by his own word. */
  submitted_by: z.string().max(200),
  service_type: z.string().max(100),
  started_at: at,
  ended_at: at,
  /** `passed`, `failed`, `incomplete`. */
  hub_tested: z.string().max(500),
  /** What was done, expected, observed and decided, line by line. */
  description: z.string().max(60_000),
  /** `bin 2`, `controller front`, … */
  components_serviced: z.array(z.string().max(200)).max(100),
})
export type MaintenanceEntry = z.infer<typeof MaintenanceEntry>

/** What became of a command, as `CommandResult` says; sent here too because a result on its own topic may be lost. */
export const CommandEntry = z.object({
  kind: z.literal('command.finished'),
  at,
  command_id: z.uuid(),
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  reason: z.string().max(64).nullable(),
  data: z
    .record(z.string().max(64), z.unknown())
    .refine((data) => JSON.stringify(data).length <= 16_384, 'at most 16384 characters')
    .nullable(),
})
export type CommandEntry = z.infer<typeof CommandEntry>

/**
 * In every epoch, behind what the former one left unacknowledged (SPEC §4): everything that the hub holds true, replacing
 * what the cloud mirrors.
 */
export const SnapshotEntry = z.object({
  kind: z.literal('snapshot'),
  at,
  stock: z.array(z.object({ product_id: product, location: Location, quantity: units })).max(4000),
  /**
   * All operations whose outcome nobody knows: any other is settled. Absent where the hub's store is new, and knows no
   * operation yet.
   */
  unknown_operations: z.array(z.uuid()).max(10_000).optional(),
  /** All states that were told; rows that are not blocked need not be among them. */
  states: z.array(State).max(4000),
  /** All alarms that are raised, and since when. */
  alarms: z
    .array(
      AlarmEntry.pick({ subject: true, detail: true })
        // A newer hub's snapshot is taken up all the same.
        .extend({ code: z.string().max(64), since: at }),
    )
    .max(1000),
})
export type SnapshotEntry = z.infer<typeof SnapshotEntry>

export const HubEntry = z.discriminatedUnion('kind', [
  OrderEntry,
  StockEntry,
  OperationEntry,
  StateEntry,
  AlarmEntry,
  LocalEntry,
  MaintenanceEntry,
  CommandEntry,
  SnapshotEntry,
])
export type HubEntry = z.infer<typeof HubEntry>

/** What the telemetry stream carries: what each fridge is at, once a minute. */
export const TelemetryEntry = z.object({
  kind: z.literal('temperature'),
  at,
  fridge_number: part,
  celsius,
  /** Of all that was read since the entry before. */
  min: celsius,
  max: celsius,
})
export type TelemetryEntry = z.infer<typeof TelemetryEntry>
