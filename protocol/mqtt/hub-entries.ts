import { z } from 'zod'
import { hubAlarmCodes } from '../model/alarms.ts'
import { Location } from '../model/location.ts'
import { OrderId } from './session.ts'

/** The latest time that a date can represent, in milliseconds. */
const LATEST_MS = 8.64e15
const MAX_UNITS = 1_000_000
/** Numbers of a hub's parts, as in the serial protocol. */
const part = z.int().min(1).max(9)
const units = z.int().min(-MAX_UNITS).max(MAX_UNITS)
const product = z.int().min(0)
const celsius = z.number().min(-300).max(300)

/**
 * The entries of a hub's ledger stream. Every text and list has a bound, because a hub may be stolen or faulty. `at` is
 * the hub's estimate of the cloud's time, in milliseconds. Sequence numbers define the order, never `at`.
 */
const at = z.number().min(-LATEST_MS).max(LATEST_MS)
/** `number`: the number that people see. A cloud that lost the order in a restore assigns it to no other order. */
const order = { order_id: OrderId, number: z.int().min(1).optional(), at }
const bins = z.array(part).max(9)
/**
 * The progress of an order's line, in absolute counts. `dropped` units were seen to fall; `doubtful` units may have
 * fallen.
 */
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
  /** The order did not start in time, or nothing dropped in time. If anything dropped, it is `order.ready` instead. */
  z.object({ kind: z.literal('order.timed_out'), ...order, bins, lines }),
  /** The hardware failed before READY. Units that did not drop are refunded. */
  z.object({ kind: z.literal('order.failed'), ...order, reason: z.string().max(64), bins, lines }),
  z.object({ kind: z.literal('order.unclaimed'), ...order }),
])
export type OrderEntry = z.infer<typeof OrderEntry>

/**
 * A change of the stock of one facing. `delta` is in units; `quantity` is the facing's stock after it, by the hub's
 * ledger. Drops beyond `delivered` (a double drop) belong to no order. A `delta` of 0 means that the stock no longer
 * contained the unit: the planogram has no facing of its product any more.
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
  /** It is unknown whether this operation happened (I1). The owner sees it until it is settled. */
  z.object({
    kind: z.literal('operation.unknown'),
    at,
    operation_id: z.uuid(),
    device: z.string().max(40),
    action: z.string().max(40),
    reason: z.string().max(64),
    /** When the hub recorded the intent. */
    started_at: at,
    /** The row, for a dispense. */
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
 * The state of a bin for the next order. `held`: an order has it, and it becomes free when that order ends.
 * `left_behind`: an object is in it, and no customer is expected.
 */
export const binUses = ['free', 'held', 'left_behind', 'open', 'faulty', 'offline'] as const
export const fridgeStates = ['unknown', 'cold', 'warm', 'shutoff'] as const

/**
 * The state of a row, bin, cabinet or fridge as it affects sales. The cloud does not sell goods that the hub does not
 * dispense. `since`: the hub's estimate of the cloud's time, in milliseconds.
 */
export const State = z.discriminatedUnion('of', [
  /**
   * `blocked`: the reason why nothing is dispensed from the row (serial SPEC §7, and SPEC §10 here); null if it
   * dispenses.
   */
  z.object({ of: z.literal('row'), location: Location, blocked: z.string().max(32).nullable(), since: at }),
  z.object({
    of: z.literal('bin'),
    bin: part,
    /** The number of units that fit. */
    capacity: z.int().min(1).max(1000),
    state: z.enum(binUses),
    /** The order that holds the bin, or the order of the goods left in it. */
    order_id: OrderId.nullable(),
    /** The failed motion and its reason, until a motion succeeds. */
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
  /** `shutoff`: the fridge was too warm for too long. Nothing behind its doors is sold until a person confirms. */
  z.object({
    of: z.literal('fridge'),
    fridge: part,
    state: z.enum(fridgeStates),
    since: at,
  }),
])
export type State = z.infer<typeof State>

/** A changed state. */
export const StateEntry = z.object({ kind: z.literal('state'), at, state: State })
export type StateEntry = z.infer<typeof StateEntry>

/** The person at the hub's page. Hubs of the previous version send none of it. */
export const LocalActor = z.object({
  /** Name of the person; null if a caller with the shared token gave none. */
  person: z.string().max(60).nullable().default(null),
  /** True if the person used the shared token, so that the name is not verified. */
  shared_token: z.boolean().default(false),
})
export type LocalActor = z.infer<typeof LocalActor>

/**
 * A person did something at the hub's page, or tried to. Counts and settlements have their own entries; this entry
 * records the person.
 */
export const LocalEntry = LocalActor.extend({
  kind: z.literal('local'),
  at,
  /** The requested action: `unlock_door`, `open_bin`, `count_row`, `confirm_fridge`, … */
  action: z.string().max(64),
  subject: z.string().max(64),
  outcome: z.enum(['executed', 'refused', 'failed', 'unknown']),
  /** Units in the row before and after a count or a restock. */
  before: z.int().optional(),
  after: z.int().optional(),
})
export type LocalEntry = z.infer<typeof LocalEntry>

/**
 * A maintenance report that was made at the hub: the record of a guided acceptance. A hub may send it again; the cloud
 * stores it once, by its `report_id`.
 */
export const MaintenanceEntry = z.object({
  kind: z.literal('maintenance.report'),
  at,
  report_id: z.uuid(),
  name: z.string().max(200),
  /** The name that the person gave. */
  submitted_by: z.string().max(200),
  service_type: z.string().max(100),
  started_at: at,
  ended_at: at,
  /** `passed`, `failed`, `incomplete`. */
  hub_tested: z.string().max(500),
  /** The steps with action, expectation, observation and decision, line by line. */
  description: z.string().max(60_000),
  /** `bin 2`, `controller front`, … */
  components_serviced: z.array(z.string().max(200)).max(100),
})
export type MaintenanceEntry = z.infer<typeof MaintenanceEntry>

/** The hub's own hardware description, for a cloud that has none. */
export const HardwareEntry = z.object({
  kind: z.literal('hardware'),
  at,
  hardware: z
    .record(z.string().max(64), z.unknown())
    .refine((hardware) => JSON.stringify(hardware).length <= 65_536, 'at most 65536 characters'),
})
export type HardwareEntry = z.infer<typeof HardwareEntry>

/** The result of a command, as in `CommandResult`. Also sent here, because a result on its own topic may be lost. */
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
 * In every epoch, after the unacknowledged entries of the former one (SPEC §4): the hub's whole state, which replaces
 * the cloud's mirror.
 */
export const SnapshotEntry = z.object({
  kind: z.literal('snapshot'),
  at,
  stock: z.array(z.object({ product_id: product, location: Location, quantity: units })).max(4000),
  /**
   * All operations with an unknown outcome: every other operation is settled. Absent if the hub's store is new and
   * knows no operation yet.
   */
  unknown_operations: z.array(z.uuid()).max(10_000).optional(),
  /** All reported states. Rows that are not blocked may be absent. */
  states: z.array(State).max(4000),
  /** All raised alarms, with the time of each. */
  alarms: z
    .array(
      AlarmEntry.pick({ subject: true, detail: true })
        // Unknown codes are accepted, so that the snapshot of a newer hub can be applied.
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
  HardwareEntry,
  CommandEntry,
  SnapshotEntry,
])
export type HubEntry = z.infer<typeof HubEntry>

/** The content of the telemetry stream: the temperature of each fridge, once a minute. */
export const TelemetryEntry = z.object({
  kind: z.literal('temperature'),
  at,
  fridge_number: part,
  celsius,
  /** The extremes of all readings since the previous entry. */
  min: celsius,
  max: celsius,
})
export type TelemetryEntry = z.infer<typeof TelemetryEntry>
