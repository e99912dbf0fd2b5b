import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type {
  AcceptanceProtocol,
  AcceptanceState,
  StoredAcceptance,
} from '../../protocol/model/acceptance.ts'
import type { PersonAtHub } from '../../protocol/mqtt/cloud-entries.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { Location } from '../../protocol/model/location.ts'
import type { TimeSource } from './cloud-clock.ts'
import type { ControllerEvents } from '../hardware/controller-events.ts'
import type { Fact, Held } from '../journal/facts.ts'
import type { LeaveOut } from '../journal/inbox.ts'
import type {
  AlarmSummary,
  DeadLetterSummary,
  FacingStock,
  FridgeReading,
  OrderSummary,
  UnknownOperation,
} from './summaries.ts'

export type LocalRefusal =
  'not_found' | 'not_unknown' | 'invalid' | 'invalid_quantity' | 'not_now' | 'unavailable'
/** `why`: a sentence, if the reason alone is not enough. */
export type LocalOutcome = { ok: true } | { ok: false; reason: LocalRefusal; why?: string }

/** Metadata of units that a person entered. */
export interface Entered {
  by?: LocalActor | undefined
  /** UUID of the entry: the hub books it once, even if the page sends it several times. */
  id?: string | undefined
  /** Milliseconds since the person counted or filled the row. */
  ageMs?: number | undefined
}

/** The hub's guided acceptance by a technician (`acceptance/acceptance.ts`). */
export interface HubAcceptance {
  /** `parts`: null for the whole hub. Rows without a product are left out, unless the planogram is empty. */
  begin(
    name: string,
    parts: readonly string[] | null,
    how?: { by?: LocalActor | undefined; withUnassignedRows?: boolean | undefined },
  ): LocalOutcome
  /** Runs several steps one after another, while the hub sees the expected results. */
  beginSteps(steps: readonly string[], by?: LocalActor): LocalOutcome
  /** Ends the running step without waiting for its result; cancels the following steps. */
  stop(): LocalOutcome
  decide(steps: readonly string[], verdict: 'passed' | 'failed', remark: string): LocalOutcome
  end(by?: LocalActor): LocalOutcome
  state(): AcceptanceState
  /** Without an id: the open acceptance, or else the last one. */
  protocol(id?: string): AcceptanceProtocol | null
  parts(): string[]
  /** Ended acceptances, newest first. */
  kept(): StoredAcceptance[]
}

/** The hub's interface for its callers: the streams, the cloud's commands, the local API. */
export interface HubCore {
  /** Starts the core: locks the doors, connects the controllers, and continues unfinished work from the journal. */
  start(): void
  /** Ends all timers and connections; relocks. Operations on controllers continue. */
  stop(): void
  readonly controllerEvents: ControllerEvents
  /**
   * Applies one entry of the cloud's stream, within the inbox's transaction. Throws `ApplyError`. Parts of a
   * snapshot that cannot be applied are passed to `leaveOut`.
   */
  applyCloudEntry(entry: unknown, leaveOut: LeaveOut): void
  /**
   * Executes a command that passed the fence (I2). A repeated `command_id` moves nothing and gets the result
   * of the first command. `reply` is called once the outcome is journaled. That may be before `execute`
   * returns, or never (a crash, an absent controller). The outcome is also in the ledger as
   * `command.finished`.
   */
  execute(command: Command, reply: (result: CommandResult) => void): void
  /**
   * Like `execute`, for a person at the hub itself. The ledger contains a `local` entry instead of
   * `command.finished`.
   */
  operate(body: CommandBody, reply: (result: CommandResult) => void, by?: LocalActor): void
  health(): HubHealth
  /** The hub's reports no longer reach the cloud, or reach it again; health reports it. */
  noteStall(): void
  /** A version of the desired state was confirmed: an alarm about an earlier one is over. */
  noteDesired(): void
  /** Why the service must not stop now, as a sentence: an order, a motion, or a controller's firmware. Undefined if it may. */
  reasonToWait(): string | undefined
  /** Why the hub must not begin a new journal now, as a sentence; undefined if it may. */
  reasonToStay(): string | undefined
  /** Each fridge's reading and its age. */
  readings(): FridgeReading[]
  /** Milliseconds since the core last handled an event. Housekeeping is an event at least every `housekeepingMs`. */
  quietMs(): number
  /** Calls `listener` when `health` has changed (temperatures aside). */
  onHealthChange(listener: () => void): void
  /** Sets the cloud's time to `clock.monotonic() + offsetMs`. */
  setCloudClock(offsetMs: number, how: TimeSource): void
  /** Starts of the service after a crash, a kill or a power failure. */
  life(): Pick<Fact<'life'>, 'restarts' | 'last'>
  /** Cloud time in milliseconds: known, or the best lower bound (`cloud-clock.ts`). */
  cloudNow(): number
  /** Cloud time as far as the cloud has confirmed it; undefined if it never has. */
  certainNow(): number | undefined
  /**
   * Starts a new epoch of the ledger with a snapshot. `ahead`: the cloud has entries of this hub that this
   * store never wrote (a fork). If the cloud is `ahead` and no cabinet has connected, the snapshot follows
   * later.
   *
   * Returns false, without any change, in two cases:
   * - The disk is full.
   * - The cloud is `ahead`, and controllers that could prove an older copy have not connected yet.
   */
  restartLedger(reason: string, cloud?: 'ahead'): boolean
  /** Actions of people at the hub. `by`: the person, for the cloud's audit log. */
  settle(operationId: string, happened: boolean, by?: LocalActor): LocalOutcome
  restock(location: Location, units: number, entered?: Entered): LocalOutcome
  count(location: Location, units: number, entered?: Entered): LocalOutcome
  /** A person has checked the goods in a fridge that was too warm for too long: the hub sells from it again. */
  confirmFridge(fridge: number, by?: LocalActor): LocalOutcome
  /** A person takes a bin, or the intake of orders, out of service at the hub itself, or puts it back. */
  hold(what: 'orders' | number, isHeld: boolean, by?: LocalActor): LocalOutcome
  /** A person restarts the service. */
  noteRestart(by?: LocalActor): void
  held(): Held
  /** The people who may use the hub's page, from the cloud's configuration. */
  people(): readonly PersonAtHub[]
  /** Open alarms as reported to the cloud. */
  alarms(): AlarmSummary[]
  /**
   * Assigns the board on a controller's line to this hub, although it is new or belongs to another hub. Its
   * memory is erased.
   */
  takeOverController(controller: string, by?: LocalActor): LocalOutcome
  /** The controllers with a foreign board on their line. */
  foreignControllers(): string[]
  /** Unlocks `main` or `fridge_<n>_left|middle|right` for a bounded time. */
  unlockDoor(door: string, forMs: number, by?: LocalActor): LocalOutcome
  unknownOperations(): UnknownOperation[]
  /** The newest cloud entries that could not be applied. */
  deadLetters(): DeadLetterSummary[]
  /** Called when the inbox has stored a dead letter. */
  noteDeadLetters(): void
  /** Requests a snapshot from the cloud, because old entries may be outdated. Applying it removes all dead letters. */
  replayDeadLetters(by?: LocalActor): LocalOutcome
  dropDeadLetter(id: number, by?: LocalActor): LocalOutcome
  orders(): OrderSummary[]
  stock(): FacingStock[]
  readonly acceptance: HubAcceptance
}
