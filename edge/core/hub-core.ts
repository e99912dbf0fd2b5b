import type { CommandBody, Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubHealth, Welcome } from '../../protocol/mqtt/session.ts'
import type { Location } from '../../protocol/model/location.ts'
import type { ControllerEvents } from '../hardware/controllers.ts'

/** An operation whose outcome nobody knows (I1), for a person to settle. */
export interface UnknownOperation {
  operation_id: string
  device: string
  action: string
  location: Location | null
  product_id: number | null
  order_id: string | null
  /** What people call the order. */
  order_number: number | null
  line_id: number | null
  /** Cloud time of the intent, milliseconds. */
  at: number
}

export interface OrderSummary {
  order_id: string
  order_number: number
  phase: string
  bins: number[]
  lines: { line_id: number; product_id: number; quantity: number; dropped: number; doubtful: number }[]
}

export interface FacingStock {
  product_id: number
  location: Location
  primary: boolean
  quantity: number
  /** An operation there has an unknown outcome: nothing is dispensed from it until that is settled. */
  blocked: boolean
}

export type LocalRefusal = 'not_found' | 'not_unknown' | 'invalid' | 'unavailable'
export type LocalOutcome = { ok: true } | { ok: false; reason: LocalRefusal }

/** What the hub is, to those that carry messages to it: the streams, the cloud's commands, the local API. */
export interface HubCore {
  /** Begins to act: locks locked, controllers connected, unfinished business taken up where the journal left it. */
  start(): void
  /** Ends all timers and connections; relocks. What runs on controllers runs on. */
  stop(): void
  readonly controllerEvents: ControllerEvents
  /** Applies one entry of the cloud's stream, within the inbox's transaction. Throws `ApplyError`. */
  applyCloudEntry(entry: unknown): void
  /**
   * Carries out a command that passed the fence (I2). A repeated `command_id` moves nothing and gets the first one's
   * result. `reply` is called once the outcome is journaled, perhaps before `execute` returns, perhaps never (a crash,
   * a controller that stays away); the outcome is also in the ledger as `command.finished`.
   */
  execute(command: Command, reply: (result: CommandResult) => void): void
  /** As `execute`, for a person at the hub itself: the cloud gets no report of the command. */
  operate(body: CommandBody, reply: (result: CommandResult) => void): void
  health(): HubHealth
  /** Milliseconds since the core last handled an event; its housekeeping is one each `housekeepingMs` at the least. */
  quietMs(): number
  /** Calls `listener` when what `health` says has changed (temperatures aside). */
  onHealthChange(listener: () => void): void
  /**
   * The cloud says that its time is `clock.monotonic() + offsetMs`: in its welcome, or `passing`, in a message of a session
   * under way.
   */
  setCloudClock(offsetMs: number, how: { passing: boolean }): void
  /** Cloud time, milliseconds: known, or the best lower bound (`cloud-clock.ts`). */
  cloudNow(): number
  /** Takes up what the cloud says on connecting: it may ask for a new epoch of the ledger. */
  onWelcome(welcome: Welcome): void
  /** Begins a new epoch of the ledger with a snapshot: the cloud's history of it is not this store's (a fork). */
  restartLedger(reason: string): void
  settle(operationId: string, happened: boolean): LocalOutcome
  restock(location: Location, units: number): LocalOutcome
  count(location: Location, units: number): LocalOutcome
  /** Takes the board on a controller's line for this hub's, although it belongs elsewhere; what it remembers is erased. */
  takeOverController(controller: string): LocalOutcome
  /** The controllers on whose lines there is a board that belongs elsewhere. */
  foreignControllers(): string[]
  /** Unlocks `main` or `fridge_<n>_left|middle|right` for a bounded time. */
  unlockDoor(door: string, forMs: number): LocalOutcome
  unknownOperations(): UnknownOperation[]
  orders(): OrderSummary[]
  stock(): FacingStock[]
}
