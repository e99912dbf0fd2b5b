import type { AcceptanceResult } from '../../protocol/model/acceptance.ts'
import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import type { LocalActor, State } from '../../protocol/mqtt/hub-entries.ts'
import type { Action } from '../../protocol/serial/frames.ts'
import { flag, initially, instant, integer, json, nullable, real, table, text, type RowOf } from './table.ts'

/**
 * Every table of the journal, described once. The schema (`migrations.ts`), the state in memory (`rows.ts`,
 * `state.ts`) and the correction of times (`correct-times.ts`) follow from these descriptions. A column named
 * `…_at` contains milliseconds.
 */

/** Single facts of the hub, as JSON (`facts.ts`). */
export const meta = table({ name: 'meta', key: ['key'], columns: { key: text(), value: text() } })

export const controllers = table({
  name: 'controllers',
  key: ['id'],
  columns: {
    id: text(),
    memory_id: text(),
    /** Its memory and this journal agree: its operations were started here or imported. */
    reconciled: flag(),
    /**
     * Used after a store was found to be a copy: the controller's memory contains every operation since the
     * copy was made. It is the memory that the copy knew, with nothing overwritten. A new store sets it for
     * no controller.
     */
    continuous: flag(),
  },
})
export type ControllerRow = RowOf<typeof controllers>

/** Reason of an operation that was never written to the line. It does not count as an attempt. */
export const NEVER_SENT = 'never'

/**
 * `open`: the intent is journaled, the outcome is pending. `nothing`: it never moved anything. `unknown`: the
 * outcome is unknown (I1). `settled`: a count or a person resolved it.
 */
export type OperationPhase = 'open' | 'done' | 'failed' | 'nothing' | 'unknown' | 'settled'

/** The source that resolved an operation of unknown outcome. */
export type Settler = 'sensor' | 'count' | 'person'

const isUnfinished = 'ended_at IS NULL'
const isOpenCommand = 'outcome IS NULL'

/** Every actuation: the intent before its first byte, and its outcome (I1). */
export const operations = table({
  name: 'operations',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    controller: text(),
    device: text(),
    action: text<Action>(),
    max_ms: integer(),
    shelf: nullable(integer()),
    row: nullable(integer()),
    bin: nullable(integer()),
    ref: nullable(text()),
    /** The controller's memory when the intent was journaled: `none` from another memory proves nothing. */
    memory_id: nullable(text()),
    state: text<OperationPhase>(),
    why: nullable(text()),
    moved: initially(true, flag()),
    drops: initially(0, integer()),
    ms: initially(0, integer()),
    order_id: nullable(text()),
    line_id: nullable(integer()),
    unit: nullable(integer()),
    product_id: nullable(integer()),
    command_id: nullable(text()),
    /** Imported from a controller's memory, and not accounted for yet. */
    imported: initially(false, flag()),
    /** A unit fell after its result: the controller is queried for the new count. */
    recheck: initially(false, flag()),
    intent_at: instant(),
    ended_at: nullable(instant()),
    settled_by: nullable(text<Settler>()),
    happened: nullable(flag()),
  },
  live: `state IN ('open', 'unknown') OR recheck = 1 OR imported = 1
    OR order_id IN (SELECT id FROM orders WHERE ${isUnfinished})
    OR command_id IN (SELECT id FROM commands WHERE ${isOpenCommand})`,
})
export type OperationRow = RowOf<typeof operations>

/**
 * `recovering`: an earlier store of this hub may have worked on it; its controllers' memories decide.
 * `completed` and all later values are ended phases.
 */
export type OrderPhase =
  | 'queued'
  | 'recovering'
  | 'preparing'
  | 'ready'
  | 'collecting'
  | 'completed'
  | 'cancelled'
  | 'timed_out'
  | 'failed'
  | 'unclaimed'
export type EndedPhase = Extract<OrderPhase, 'completed' | 'cancelled' | 'timed_out' | 'failed' | 'unclaimed'>

/** `doubtful`: unconfirmed whether it fell. `short`: it did not fall. */
export type UnitState = 'waiting' | 'running' | 'dropped' | 'doubtful' | 'short'

export interface Unit {
  readonly state: UnitState
  /** The bin that it fell into, or the target bin. */
  readonly bin: number | null
}

export interface OrderLine {
  readonly line_id: number
  readonly product_id: number
  /** For a recovered order: dropped units that the cloud knows. */
  readonly known_dropped: number
  /** The units that are not refunded; absent if all are wanted. It never increases. */
  readonly wanted?: number
  /** One unit for each item. */
  readonly units: readonly Unit[]
}

/** The orders that this hub must finish or has finished. */
export const orders = table({
  name: 'orders',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    /** The order number that people use. Not unique: a restored cloud assigns numbers again. */
    order_number: integer(),
    phase: text<OrderPhase>(),
    reserved_bin: nullable(integer()),
    open_when_ready: flag(),
    /** The cloud's own time. */
    start_by: real(),
    /** The bins for its customer. */
    bins: json<readonly number[]>(),
    lines: json<readonly OrderLine[]>(),
    reason: nullable(text()),
    received_at: instant(),
    preparing_at: nullable(instant()),
    ready_at: nullable(instant()),
    collecting_at: nullable(instant()),
    ended_at: nullable(instant()),
  },
  live: `${isUnfinished} OR id IN (SELECT order_id FROM bins WHERE order_id IS NOT NULL)`,
})
export type OrderRow = RowOf<typeof orders>

export const bins = table({
  name: 'bins',
  key: ['number'],
  columns: {
    number: integer(),
    /**
     * The order that holds the bin, from PREPARING (a recovering order: from its acceptance) until the bin was
     * emptied and closed.
     */
    order_id: nullable(text()),
    /** Its door was open after the order became READY. */
    opened: flag(),
    /** Consecutive failed motions of its door or lift. */
    failures: integer(),
    /** `<action>:<why>` of a failed motion, until a motion of the same part (door or lift) succeeds. */
    fault: nullable(text()),
    /** The hub tests whether it moves again, and brings it home afterwards. */
    on_trial: flag(),
  },
})
export type BinRow = RowOf<typeof bins>

/** Rows with consecutive failed dispenses that moved nothing. */
export const rowFaults = table({
  name: 'row_faults',
  key: ['cabinet', 'shelf', 'row'],
  columns: {
    cabinet: integer(),
    shelf: integer(),
    row: integer(),
    failures: integer(),
    /** The reason of the last failure (serial SPEC §7). */
    why: text(),
    failed_at: instant(),
  },
})

export const fridges = table({
  name: 'fridges',
  key: ['number'],
  columns: {
    number: integer(),
    /** While it is too warm: the last time it was read as cold. */
    warm_since: nullable(instant()),
    read_at: instant(),
    shutoff_at: nullable(instant()),
  },
})
export type FridgeRow = RowOf<typeof fridges>

/** Before any time that a clock can show: a board without a battery may begin in 1970. */
export const LONG_AGO = -8.64e15

type WithoutSince<S> = S extends State ? Omit<S, 'since'> : never
/** The state of a row, bin, cabinet or fridge, without its start time. */
export type Condition = WithoutSince<State>

/** The states of rows, bins, cabinets and fridges as last reported to the cloud. */
export const reportedStates = table({
  name: 'reported_states',
  key: ['subject'],
  columns: { subject: text(), state: json<Condition>(), since: instant() },
})

export const facings = table({
  name: 'facings',
  key: ['cabinet', 'shelf', 'row'],
  columns: {
    cabinet: integer(),
    shelf: integer(),
    row: integer(),
    product_id: integer(),
    is_primary: flag(),
    quantity: integer(),
  },
})
export type FacingRow = RowOf<typeof facings>

/** `snapshot`: from the cloud. `moved`: the planogram assigned the location to another product. */
export type StockKind = 'snapshot' | 'dropped' | 'counted' | 'restocked' | 'moved'

/** Append-only. The quantity of a facing is the sum of its deltas (I5). */
export const stockLedger = table({
  name: 'stock_ledger',
  key: ['number'],
  columns: {
    number: integer(),
    kind: text<StockKind>(),
    product_id: integer(),
    cabinet: integer(),
    shelf: integer(),
    row: integer(),
    delta: integer(),
    /** Id of the operation, count or restock. */
    cause_id: text(),
    at: instant(),
  },
  indexes: [
    'stock_ledger_of_product ON stock_ledger (product_id, number)',
    `stock_ledger_counts ON stock_ledger (cause_id) WHERE kind = 'counted'`,
  ],
})

/** Names and barcodes of products, for people at the hub. */
export const products = table({
  name: 'products',
  key: ['product_id'],
  columns: { product_id: integer(), name: text(), upc: text() },
})

/** Every accepted command with its outcome: a repeated command gets the stored outcome and is not executed again. */
export const commands = table({
  name: 'commands',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    /** `CommandBody`. Another version of the service may have written it. */
    body: json<unknown>(),
    /** Given at the hub itself: the cloud does not know the command. */
    is_local: flag(),
    /** The person who gave a local command. */
    local_actor: nullable(json<LocalActor>()),
    /** Null while its operations run. */
    outcome: nullable(text<CommandResult['outcome']>()),
    reason: nullable(text<CommandReason>()),
    /** The data of the outcome; for an open command, the known part. */
    data: nullable(json<unknown>()),
  },
  live: isOpenCommand,
})
export type CommandRow = RowOf<typeof commands>

/** Open alarms, so that each is reported once, also across restarts. */
export const alarms = table({
  name: 'alarms',
  key: ['code', 'subject'],
  columns: { code: text(), subject: text(), detail: text(), raised_at: instant() },
})

/** Ledger entries that wait for the first snapshot of an epoch. */
export const heldEntries = table({
  name: 'held_entries',
  key: ['number'],
  columns: { number: integer(), body: text() },
})

/** Operations that the cloud's stock already includes, for reconciliation with controllers' memories. */
export const knownOperations = table({
  name: 'known_operations',
  key: ['id'],
  columns: { id: text() },
})

/** Guided acceptances of the hub, or of parts of it, by technicians. */
export const acceptances = table({
  name: 'acceptances',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    /** The name that the technician gave. */
    by: text(),
    /** Null for the whole hub. */
    parts: nullable(json<readonly string[]>()),
    /** The steps of rows without a product. */
    left_out: json<readonly string[]>(),
    software: text(),
    /** The firmware of each controller when the acceptance ended. */
    firmware: nullable(json<readonly { controller: string; firmware: string | null }[]>()),
    begun_at: instant(),
    ended_at: nullable(instant()),
    result: nullable(text<AcceptanceResult>()),
  },
  live: isUnfinished,
})
export type AcceptanceRow = RowOf<typeof acceptances>

/** One execution of a step; the last attempt of a step counts. */
export const acceptanceAttempts = table({
  name: 'acceptance_attempts',
  key: ['number'],
  columns: {
    number: integer(),
    acceptance_id: text(),
    step: text(),
    /** The step's position among all steps. */
    position: integer(),
    part: text(),
    title: text(),
    expected: text(),
    observed: text(),
    /** Whether the hub saw the expected result. */
    agrees: flag(),
    verdict: nullable(text<'passed' | 'failed'>()),
    remark: initially('', text()),
    at: instant(),
  },
})
export type AttemptRow = RowOf<typeof acceptanceAttempts>

/** Entries from the cloud that could not be applied (I8). */
export const deadLetters = table({
  name: 'dead_letters',
  key: ['number'],
  columns: {
    number: integer(),
    epoch: text(),
    seq: integer(),
    /** The entry as received, JSON text. */
    body: text(),
    error: text(),
    at: instant(),
    /** The version of the service that could not apply it. */
    software: text(),
  },
})
export type DeadLetter = RowOf<typeof deadLetters>

/** The tables of the hub's business. For the stream tables see `migrations.ts`. */
export const businessTables = [
  meta,
  controllers,
  operations,
  orders,
  bins,
  rowFaults,
  fridges,
  reportedStates,
  facings,
  stockLedger,
  products,
  commands,
  alarms,
  heldEntries,
  knownOperations,
  acceptances,
  acceptanceAttempts,
  deadLetters,
] as const
