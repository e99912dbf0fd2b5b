import type { AcceptanceResult } from '../../protocol/model/acceptance.ts'
import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import type { LocalActor, State } from '../../protocol/mqtt/hub-entries.ts'
import type { Action } from '../../protocol/serial/frames.ts'
import { flag, initially, instant, integer, json, nullable, real, table, text, type RowOf } from './table.ts'

/**
 * Every table of the journal, described once. The schema (`migrations.ts`), the state in memory (`rows.ts`, `state.ts`) and the
 * correction of times (`correct-times.ts`) follow from these descriptions. A column named `…_at` contains milliseconds.
 */

/** Single facts of the hub, as JSON (`facts.ts`). */
export const meta = table({ name: 'meta', key: ['key'], columns: { key: text(), value: text() } })

export const controllers = table({
  name: 'controllers',
  key: ['id'],
  columns: {
    id: text(),
    memory_id: text(),
    /** Its memory and this journal are known to agree: what it holds was begun here, or was taken over from it. */
    reconciled: flag(),
    /**
     * After a store was found to be a copy: what the controller's memory does not hold never happened since the copy was made.
     * It is the memory that the copy knew, with nothing overwritten. A new store can claim that of none.
     */
    continuous: flag(),
  },
})
export type ControllerRow = RowOf<typeof controllers>

/** Why an operation came to nothing that was never written to the line: it does not count as a try. */
export const NEVER_SENT = 'never'

/**
 * `open`: the intent is journaled, the outcome not known yet. `nothing`: it never moved anything. `unknown`: nobody knows the
 * outcome (I1). `settled`: a count or a person decided.
 */
export type OperationPhase = 'open' | 'done' | 'failed' | 'nothing' | 'unknown' | 'settled'

/** Who or what decided about an operation of unknown outcome. */
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
    /** The controller's memory when the intent was journaled: 'none' of another memory proves nothing. */
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
    /** Learned from a controller's memory, and not accounted for yet. */
    imported: initially(false, flag()),
    /** A unit fell after its result: the controller is asked for the new count. */
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
 * `recovering`: an earlier life of this hub may have worked on it; the memories of its controllers decide. From `completed`
 * on it is ended.
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

/** `doubtful`: nobody knows whether it fell. `short`: it did not. */
export type UnitState = 'waiting' | 'running' | 'dropped' | 'doubtful' | 'short'

export interface Unit {
  readonly state: UnitState
  /** The bin that it fell into, or was to. */
  readonly bin: number | null
}

export interface OrderLine {
  readonly line_id: number
  readonly product_id: number
  /** Of a recovered order: units that the cloud knows to have dropped. */
  readonly known_dropped: number
  /** One for each item. */
  readonly units: readonly Unit[]
}

/** The orders that this hub is to finish, or has finished. */
export const orders = table({
  name: 'orders',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    /** The number that people read. Not unique: a cloud that was restored gives numbers out again. */
    order_number: integer(),
    phase: text<OrderPhase>(),
    reserved_bin: nullable(integer()),
    open_when_ready: flag(),
    /** The cloud's own time. */
    start_by: real(),
    /** The bins that its customer is sent to. */
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
    /** The order that holds the bin, from PREPARING until it was emptied and closed. */
    order_id: nullable(text()),
    /** Its door was open since the order was READY. */
    opened: flag(),
    /** Motions of its door or lift that failed in a row. */
    failures: integer(),
    /** `<action>:<why>` of a motion that failed, while none of the same part (door or lift) has succeeded since. */
    fault: nullable(text()),
    /** The hub tries by itself whether it moves again, and brings it home after that. */
    on_trial: flag(),
  },
})
export type BinRow = RowOf<typeof bins>

/** Rows whose dispenses have failed in a row, each without moving anything. */
export const rowFaults = table({
  name: 'row_faults',
  key: ['cabinet', 'shelf', 'row'],
  columns: {
    cabinet: integer(),
    shelf: integer(),
    row: integer(),
    failures: integer(),
    /** Why the last one did (serial SPEC §7). */
    why: text(),
    failed_at: instant(),
  },
})

export const fridges = table({
  name: 'fridges',
  key: ['number'],
  columns: {
    number: integer(),
    /** While it is too warm: when it was last read as cold. */
    warm_since: nullable(instant()),
    read_at: instant(),
    shutoff_at: nullable(instant()),
  },
})
export type FridgeRow = RowOf<typeof fridges>

type WithoutSince<S> = S extends State ? Omit<S, 'since'> : never
/** The state of a row, bin, cabinet or fridge, without its beginning. */
export type Standing = WithoutSince<State>

/** The states of rows, bins, cabinets and fridges that were reported to the cloud. */
export const reportedStates = table({
  name: 'reported_states',
  key: ['subject'],
  columns: { subject: text(), state: json<Standing>(), since: instant() },
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

/** `snapshot`: taken over from the cloud. `moved`: the planogram gave the place to another product. */
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
    /** Operation, count or restock. */
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

/** Every command that the hub took on, with its outcome: a repeated one is answered, not executed. */
export const commands = table({
  name: 'commands',
  key: ['id'],
  columns: {
    number: integer(),
    id: text(),
    /** `CommandBody`. Another version of the service may have written it. */
    body: json<unknown>(),
    /** Given at the hub itself: the cloud does not know it. */
    is_local: flag(),
    /** The person who gave a local command. */
    local_actor: nullable(json<LocalActor>()),
    /** Null while its operations run. */
    outcome: nullable(text<CommandResult['outcome']>()),
    reason: nullable(text<CommandReason>()),
    /** The data of the outcome; of an open command, the part that is known already. */
    data: nullable(json<unknown>()),
  },
  live: isOpenCommand,
})
export type CommandRow = RowOf<typeof commands>

/** Alarms that are raised, so that each is reported once, also across restarts. */
export const alarms = table({
  name: 'alarms',
  key: ['code', 'subject'],
  columns: { code: text(), subject: text(), detail: text(), raised_at: instant() },
})

/** Ledger entries that wait for the snapshot with which an epoch begins. */
export const heldEntries = table({
  name: 'held_entries',
  key: ['number'],
  columns: { number: integer(), body: text() },
})

/** Operations that the cloud's stock already includes, while controllers' memories are reconciled with it. */
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

/** One execution of a step; the last one of a step counts. */
export const acceptanceAttempts = table({
  name: 'acceptance_attempts',
  key: ['number'],
  columns: {
    number: integer(),
    acceptance_id: text(),
    step: text(),
    /** Of the step among all of them. */
    position: integer(),
    part: text(),
    title: text(),
    expected: text(),
    observed: text(),
    /** Whether the hub saw what was expected. */
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
    /** As it came, JSON text. */
    body: text(),
    error: text(),
    at: instant(),
    /** The version of the service that could not apply it. */
    software: text(),
  },
})
export type DeadLetter = RowOf<typeof deadLetters>

/** The tables of the hub's business. Those of the streams: `migrations.ts`. */
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
