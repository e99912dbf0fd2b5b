import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type { AcceptanceProtocol, AcceptanceState, KeptAcceptance } from '../../protocol/model/acceptance.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { Location } from '../../protocol/model/location.ts'
import type { ControllerEvents } from '../hardware/controllers.ts'
import type { LeaveOut } from '../journal/inbox.ts'

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

/** What the cloud sent and this hub could not apply (I8). */
export interface DeadLetterSummary {
  id: number
  /** `config`, `order.queued`, …; null where the entry has none. */
  kind: string | null
  error: string
  /** As it came, JSON text. */
  body: string
  /** The hub's wall clock, milliseconds since the Unix epoch. */
  at: number
}

export interface FacingStock {
  product_id: number
  /** What it is called, and its barcode; null where the cloud has not said. */
  name: string | null
  upc: string | null
  location: Location
  primary: boolean
  quantity: number
  /** How many units the row holds; 0 where the hub's hardware has no such row. */
  capacity: number
  /** Why nothing is sold from it: what its controller said, `unknown`, `disabled` or `shutoff`; null where it sells. */
  blocked: string | null
}

/** What a fridge's probe shows. */
export interface FridgeReading {
  fridge_number: number
  /** Degrees Celsius; null without a valid reading. */
  celsius: number | null
  /** Whole minutes since the last plausible reading; null if there was none since the hub's start. */
  age_min: number | null
  /** Why there is no valid reading. */
  why: string | null
}

export type LocalRefusal =
  'not_found' | 'not_unknown' | 'invalid' | 'invalid_quantity' | 'not_now' | 'unavailable'
/** `why`: a sentence, where the reason alone does not say enough. */
export type LocalOutcome = { ok: true } | { ok: false; reason: LocalRefusal; why?: string }

/** How a person entered units. */
export interface Entered {
  by?: LocalActor | undefined
  /** UUID of the entry: the hub books it once, however often the page sends it. */
  id?: string | undefined
  /** How long ago the person counted, milliseconds. */
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
  /** Several steps are carried out one after another, as long as the hub sees what is expected. */
  beginSteps(steps: readonly string[], by?: LocalActor): LocalOutcome
  /** The step that is carried out ends without what it waits for; no further one begins. */
  stop(): LocalOutcome
  decide(steps: readonly string[], verdict: 'passed' | 'failed', remark: string): LocalOutcome
  end(by?: LocalActor): LocalOutcome
  state(): AcceptanceState
  /** Without an id: the one that is under way, or else the last. */
  protocol(id?: string): AcceptanceProtocol | null
  parts(): string[]
  /** Those that have ended, the newest first. */
  kept(): KeptAcceptance[]
}

/** What the hub is, to those that carry messages to it: the streams, the cloud's commands, the local API. */
export interface HubCore {
  /** Begins to act: locks locked, controllers connected, unfinished business taken up where the journal left it. */
  start(): void
  /** Ends all timers and connections; relocks. What runs on controllers runs on. */
  stop(): void
  readonly controllerEvents: ControllerEvents
  /**
   * Applies one entry of the cloud's stream, within the inbox's transaction. Throws `ApplyError`; what of a snapshot alone cannot
   * be applied goes to `leaveOut`.
   */
  applyCloudEntry(entry: unknown, leaveOut: LeaveOut): void
  /**
   * Carries out a command that passed the fence (I2). A repeated `command_id` moves nothing and gets the first one's
   * result. `reply` is called once the outcome is journaled, perhaps before `execute` returns, perhaps never (a crash,
   * a controller that stays away); the outcome is also in the ledger as `command.finished`.
   */
  execute(command: Command, reply: (result: CommandResult) => void): void
  /** As `execute`, for a person at the hub itself: the ledger says `local` in place of the command's end. */
  operate(body: CommandBody, reply: (result: CommandResult) => void, by?: LocalActor): void
  health(): HubHealth
  /** What the hub reports reaches the cloud no more, or does again: health says so. */
  noteStall(): void
  /** What each fridge's probe shows, with the age of it. */
  readings(): FridgeReading[]
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
  /** As far as the cloud has confirmed it; undefined if it never has. */
  certainNow(): number | undefined
  /**
   * Begins a new epoch of the ledger with a snapshot, which comes later where the cloud is `ahead` and no cabinet has been
   * met: the cloud's history of it is not this store's (a fork). False where
   * nothing of it happened: the disk is full; or the cloud is `ahead` (it has heard of this hub what this store has never
   * written), this store may be an older copy, and controllers that would tell have yet to be met.
   */
  restartLedger(reason: string, cloud?: 'ahead'): boolean
  /** Acts of people at the hub; `by` is who did it, for the cloud's audit log. */
  settle(operationId: string, happened: boolean, by?: LocalActor): LocalOutcome
  restock(location: Location, units: number, entered?: Entered): LocalOutcome
  count(location: Location, units: number, entered?: Entered): LocalOutcome
  /** A person has looked at what is in a fridge that was too warm for too long: it is sold again. */
  confirmFridge(fridge: number, by?: LocalActor): LocalOutcome
  /** A person takes a bin, or the taking of orders, out of service at the hub itself, or gives it back. */
  hold(what: 'orders' | number, isHeld: boolean, by?: LocalActor): LocalOutcome
  /** A person restarts the service. */
  noteRestart(by?: LocalActor): void
  held(): { orders: boolean; bins: number[] }
  /** What is wrong and not over, as the cloud was told. `raised_at`: cloud time, milliseconds. */
  alarms(): { code: string; subject: string; detail: string | null; raised_at: number }[]
  /** Takes the board on a controller's line for this hub's, although it is another's or new; what it remembers is erased. */
  takeOverController(controller: string, by?: LocalActor): LocalOutcome
  /** The controllers on whose lines there is a board that is not this hub's. */
  foreignControllers(): string[]
  /** Unlocks `main` or `fridge_<n>_left|middle|right` for a bounded time. */
  unlockDoor(door: string, forMs: number, by?: LocalActor): LocalOutcome
  unknownOperations(): UnknownOperation[]
  /** The newest of the cloud's entries that could not be applied. */
  deadLetters(): DeadLetterSummary[]
  /** The inbox has kept a dead letter. */
  noteDeadLetters(): void
  /**
   * Has the cloud tell everything again, by a snapshot: what an old entry said may hold no longer. When it is applied, no dead
   * letter is left.
   */
  replayDeadLetters(by?: LocalActor): LocalOutcome
  dropDeadLetter(id: number, by?: LocalActor): LocalOutcome
  orders(): OrderSummary[]
  stock(): FacingStock[]
  readonly acceptance: HubAcceptance
}
