import type { Action } from '../../protocol/serial/frames.ts'

/** Durations of the hub's own decisions, in milliseconds. */
export interface CoreSettings {
  /** The firmware ends each motion after this long by itself (I7). */
  maxMs: Record<Action, number>
  /** Beyond `maxMs` without a result the controller is asked. */
  queryAfterMs: number
  /** After its start the hub dispenses nothing until every cabinet's controller has been up, or for this long. */
  startUpGraceMs: number
  /** A refused or failed motion is tried again no sooner; doubles up to `maxRetryMs`. */
  retryMs: number
  maxRetryMs: number
  /**
   * After a dispense whose unit was not seen, its cabinet rests and its order waits for so long: a unit that hung and falls
   * late is then taken for nobody else's, and still reaches its customer.
   */
  lateDropMs: number
  /** A bin's door closes when the bin has been empty for so long. */
  closeAfterEmptyMs: number
  /** A bin counts as emptied when its sensor has said so for this long (bounce). */
  emptyDebounceMs: number
  /** After the preparation deadline a running dispense may still end for so long, and a lift rise for as long again. */
  prepareGraceMs: number
  /** For how long a command unlocks the main door, and a fridge's. */
  mainUnlockMs: number
  fridgeUnlockMs: number
  /** A command to reconnect has failed when its controller has not shaken hands by then. */
  reconnectMs: number
  /** Longest time that a door may be unlocked for. */
  maxUnlockMs: number
  /** A door sensor must hold its level for this long. */
  doorDebounceMs: number
  /** A controller that is away for longer raises an alarm. */
  silentAlarmMs: number
  /** A fridge this much above its target for `warmAlarmMs` raises an alarm. */
  warmCelsius: number
  warmAlarmMs: number
  /** Temperatures are reported this often. */
  temperatureMs: number
  /** Housekeeping: pruning, the ballast, the clock's persisted estimate. */
  housekeepingMs: number
  /** Finished operations kept for each controller, and finished orders and commands. */
  keptRows: number
}

export const defaultCoreSettings: CoreSettings = {
  maxMs: {
    open_door: 8000,
    close_door: 8000,
    raise_lift: 15_000,
    lower_lift: 15_000,
    dispense: 10_000,
  },
  queryAfterMs: 2000,
  startUpGraceMs: 120_000,
  retryMs: 1000,
  maxRetryMs: 60_000,
  lateDropMs: 20_000,
  closeAfterEmptyMs: 3000,
  emptyDebounceMs: 500,
  prepareGraceMs: 30_000,
  mainUnlockMs: 10_000,
  fridgeUnlockMs: 30_000,
  reconnectMs: 8000,
  maxUnlockMs: 10 * 60_000,
  doorDebounceMs: 50,
  silentAlarmMs: 60_000,
  warmCelsius: 4,
  warmAlarmMs: 10 * 60_000,
  temperatureMs: 60_000,
  housekeepingMs: 60_000,
  keptRows: 1000,
}
