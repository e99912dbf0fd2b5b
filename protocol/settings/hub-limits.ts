import {
  defaultsOf,
  duration,
  inGroup,
  limits,
  named,
  prefixed,
  wholeNumber,
  type SettingsOf,
  type SettingsTable,
} from '../model/program-settings.ts'
import { DAY_MS } from '../model/times.ts'

/** Every limit of a hub. Tests change the plain numbers, which have no setting for operators. */

/**
 * Memory of SQLite for the journal. The driver's default is 16 MB, a fifth of the hub's memory limit. The operating
 * system also caches the file's pages if it has room.
 */
export const CACHE_KB = 512
export const MAX_MB = 512

/** The maximum of a frame of the serial protocol (SPEC §3, `max`). */
const LONGEST_MOTION_MS = 600_000
/** The firmware ends each motion on its own after this time (I7). */
const motion = (env: string, standardMs: number, what: string) =>
  named(
    env,
    duration(
      standardMs,
      `Maximum time of a motion of ${what}. Then the firmware switches it off.`,
      LONGEST_MOTION_MS,
    ),
  )
const door = motion('DOOR_MAX_MS', 8000, "a bin's door")
const lift = motion('LIFT_MAX_MS', 15_000, "a bin's lift")

/** Durations of the hub's own decisions, in milliseconds. */
export const coreSettings = {
  maxMs: {
    open_door: door,
    close_door: door,
    raise_lift: lift,
    lower_lift: lift,
    dispense: motion('DISPENSE_MAX_MS', 10_000, "a row's motor"),
  },
  /** The controller is queried this long after `maxMs` without a result. */
  queryAfterMs: 2000,
  /**
   * After its start the hub dispenses nothing until every cabinet's controller has connected, or for at most
   * this time.
   */
  startUpGraceMs: 120_000,
  /** The first pause before a refused or failed motion is retried; doubles up to `maxRetryMs`. */
  retryMs: 1000,
  maxRetryMs: 60_000,
  /**
   * If the sensor did not see the unit of a dispense, the cabinet rests and the order waits for this time. A
   * hanging unit that falls late is then not booked for another order, and still reaches its customer.
   */
  lateDropMs: 20_000,
  closeAfterEmptyMs: duration(3000, 'Time after a bin was emptied at which its door closes.'),
  /** A bin counts as emptied when its sensor has reported it for this time (bounce). */
  emptyDebounceMs: 500,
  /**
   * Another order uses a bin after this time of continuous emptiness: the hub notices a silent line within this time
   * (`coreOf`).
   */
  emptyProofMs: 5000,
  /** Switches bounce: while they are silent for less than this, their last value holds. */
  binUnsureMs: duration(500, "Time without a position of a bin's door after which it counts as open."),
  binFaultTries: wholeNumber(
    [1, 100],
    3,
    'Number of consecutive failures after which the current order stops using a bin.',
  ),
  /** Each unit is part of the row that the acceptance of an order writes. */
  orderUnits: wholeNumber([1, 10_000], 1000, 'Maximum number of units of an order that the hub accepts.'),
  unitRefusals: wholeNumber(
    [1, 100],
    5,
    'Number of refusals by the controller after which a unit is not tried again from a row.',
  ),
  /**
   * After the preparation deadline a running dispense may still end within this time. A lift may rise for the
   * same time again.
   */
  prepareGraceMs: 30_000,
  maxUnlockMs: named(
    'UNLOCK_MAX_MS',
    duration(10 * 60_000, 'Maximum time for which a door can be unlocked.'),
  ),
  mainUnlockMs: duration(10_000, 'Time for which a remote command unlocks the main door.'),
  fridgeUnlockMs: duration(30_000, "Time for which a remote command unlocks a fridge's door."),
  /** A reconnect command fails if its controller has not completed the handshake within this time. */
  reconnectMs: 8000,
  /** A step of an acceptance waits this long for people's actions, and its door stays unlocked this long. */
  acceptanceStepMs: duration(60_000, 'Time for which a step of an acceptance waits for actions of people.'),
  /** After all expected readings, a step waits this long for unexpected ones. */
  acceptanceSettleMs: 1000,
  /** A contact is read after `doorDebounceMs` without an edge, but at most `doorReadWithinMs` after its first edge. */
  doorDebounceMs: 50,
  doorReadWithinMs: 500,
  gpioReadMs: duration(1000, 'Time after which GPIO lines that could not be read are read again.'),
  /** A lock that stays open after its time, or a contact that cannot be read, raises an alarm after this. */
  doorTroubleMs: duration(
    10_000,
    'Time after which a lock that cannot be locked, or a contact that cannot be read, raises an alarm.',
  ),
  sensorHoldMs: duration(
    2000,
    'Time for which a light barrier or a door contact must hold its state before the hub reports it.',
  ),
  sensorUnsettledMs: duration(
    5000,
    'Time after which a light barrier or a door contact that does not settle is unknown and raises an alarm.',
  ),
  /** A sensor that changes repeatedly must hold for longer each time, up to this. */
  maxSensorHoldMs: 60_000,
  silentMs: named(
    'CONTROLLER_SILENT_MS',
    duration(5000, 'Time without an answer after which the products of a controller are not sold.'),
  ),
  /** Consecutive failures of a row with nothing moved, after which even a running order does not retry it. */
  rowTries: wholeNumber(
    [1, 100],
    5,
    'Number of failures without a motion after which a row is not tried again before it is counted.',
  ),
  /** A failed row is retried after this time if another row has the product; doubles with each failure. */
  rowRetryMs: duration(
    10 * 60_000,
    'Time after which a row that failed is tried again, if another row has its product.',
  ),
  binTries: wholeNumber(
    [1, 100],
    10,
    'Number of failures after which the hub does not try a bin again before a person has moved it.',
  ),
  silentAlarmMs: named(
    'CONTROLLER_SILENT_ALARM_MS',
    duration(60_000, 'Time without an answer after which a controller raises an alarm.'),
  ),
  /** A controller that returned for less than this counts as absent the whole time: an unstable line is not usable. */
  steadyMs: 30_000,
  doorLeftOpenMs: duration(5 * 60_000, 'Time after which an open door raises an alarm.'),
  restarts: named(
    'RESTARTS_ALARM',
    wholeNumber(
      [1, 1000],
      3,
      'Number of starts without an orderly end, within RESTARTS_WITHIN_MS, that raises an alarm.',
    ),
  ),
  restartsWithinMs: duration(10 * 60_000, 'Time within which such starts are counted.'),
  certificateWarnMs: duration(
    14 * DAY_MS,
    'Time before the end of a certificate at which an alarm is raised.',
    365 * DAY_MS,
  ),
  /** If the board's clock differs more than this from the cloud's, an alarm is raised. */
  clockWrongMs: 5 * 60_000,
  /** A fridge above its limit for this time raises an alarm. */
  warmAlarmMs: 10 * 60_000,
  fridgeUnreadableMs: duration(
    5 * 60_000,
    'Age after which a temperature is no longer valid: the fridge is unknown and raises an alarm.',
  ),
  fridgeUnreadableOldMs: named(
    'FRIDGE_UNREADABLE_OLD_FIRMWARE_MS',
    duration(
      15 * 60_000,
      'The same age for controllers of version 2 of the serial protocol: they report only changes.',
    ),
  ),
  fridgeProofMs: duration(
    60_000,
    'Time over which several readings must be cold before a fridge counts as cold again.',
  ),
  /** Consecutive readings that prove that a fridge is cold, or warm. */
  proof: { coldReadings: 3, warmReadings: 2 },
  /** The plausible readings of a probe (`thermometer.ts`). */
  probe: {
    minCelsius: -45,
    maxCelsius: 60,
    stepCelsius: 3,
    celsiusPerMinute: 2,
    maxStepCelsius: 10,
    agreeing: 3,
    moveCelsius: 1,
  },
  /**
   * A probe that repeats one value this often, for this time, is frozen if there is evidence of a change
   * (`thermometer.ts`).
   */
  frozen: {
    frozenMs: named(
      'FRIDGE_FROZEN_MS',
      duration(
        4 * 3_600_000,
        'Time for which a probe repeats one value before it counts as frozen, if other probes change or a door was open.',
      ),
    ),
    frozenReadings: 30,
    /** A door that is open for this time warms the air at its probe. */
    openMs: 120_000,
  },
  ...inGroup('Hub', {
    healthShutoffMs: duration(30 * 60_000, 'Time above its limit after which nothing is sold from a fridge.'),
  }),
  /** After a start the hub waits this long for the cloud's time, which shows the length of its absence. */
  clockWaitMs: 60_000,
  /** Housekeeping: temperatures, pruning, the ballast, the clock's persisted estimate. */
  housekeepingMs: 60_000,
  /** Time between two checks whether the process was suspended. */
  runningCheckMs: 10_000,
  /** Updates of the controllers' firmware (serial SPEC §12). */
  firmware: prefixed('FIRMWARE', {
    /** A release of the hub is confirmed within UPDATE_CONFIRM_MS. Until then its controllers stay as they are. */
    afterMs: duration(
      10 * 60_000,
      'Time after the start at which the hub begins to update the firmware of its controllers.',
    ),
    retryMs: 5000,
    tries: wholeNumber(
      [1, 100],
      3,
      'Number of attempts to run a firmware, after which the hub gives it up and raises an alarm.',
    ),
    /** The trial of a firmware takes at most 3 minutes. */
    silentMs: duration(
      15 * 60_000,
      'Time after which the hub gives a firmware up, if the controller has not reported since it was ordered to run it.',
    ),
    /** Number of boards on the line of a controller that may fail at an image. After that, no further board is tried. */
    boards: 3,
  }),
  /** On a full disk, failed writes are retried after this time. */
  fullRetryMs: 5000,
  /** Ended orders and drops within this time are reported again to a cloud that may have been restored. */
  reportAgainMs: duration(
    48 * 3_600_000,
    'Time for which ended orders are reported again to a cloud that was restored.',
    30 * 24 * 3_600_000,
  ),
  kept: prefixed('KEPT', {
    rows: wholeNumber(
      [1, 100_000],
      1000,
      'Number of finished operations for each controller, finished orders, commands and dead letters in the journal.',
    ),
    stockRows: wholeNumber(
      [1, 10_000_000],
      20_000,
      'Number of stock movements in the journal; older ones are replaced by their sums.',
    ),
    acceptances: wholeNumber([1, 1000], 20, 'Number of acceptances in the journal.'),
  }),
} satisfies SettingsTable

export type CoreSettings = SettingsOf<typeof coreSettings>
export const defaultCoreSettings: CoreSettings = defaultsOf(coreSettings)

/** Times of a serial link, in milliseconds (serial SPEC §4, §5). */
export const linkSettings = {
  /** The first pause before an unacknowledged frame is repeated; doubles up to `maxRetryMs`. */
  retryMs: 25,
  maxRetryMs: 400,
  /** A frame that is unacknowledged after this time ends the connection, even if the line answers. */
  giveUpMs: 10_000,
  pingMs: named('SERIAL_PING_MS', duration(1000, 'Time between two heartbeats on a serial line.')),
  /** Time without any acknowledgement or PONG. */
  silentMs: named(
    'SERIAL_SILENT_MS',
    duration(3000, 'Time without an answer of its controller after which a serial port is opened again.'),
  ),
  /** The maximum wait of an open port for the answer to HELLO; the wait doubles with each attempt. */
  maxGreetMs: named(
    'SERIAL_GREET_MAX_MS',
    duration(
      30_000,
      'Maximum wait for the first answer of a serial port; it starts at SERIAL_SILENT_MS and doubles with each attempt.',
    ),
  ),
  /** The first pause before a lost port is reopened; doubles up to `maxReopenMs`, without end. */
  reopenMs: 250,
  maxReopenMs: 5000,
} satisfies SettingsTable

export type LinkSettings = SettingsOf<typeof linkSettings>
export const defaultLinkSettings: LinkSettings = defaultsOf(linkSettings)

/** Times in milliseconds; SPEC §3, §5, §8. */
export const syncSettings = {
  /** Between connections. */
  backoff: { firstMs: 500, maxMs: 30_000 },
  hello: prefixed('HELLO', {
    firstMs: duration(3000, 'Time after which a hello to the cloud without an answer is repeated.'),
    maxMs: duration(
      30_000,
      'Maximum time between two hellos. The time doubles with each of them, and half of each pause is random.',
    ),
  }),
  /** The minimum interval between hellos after a hail, or after a message that only a new hello can explain. */
  hailMs: 1000,
  /** The maximum time that the cloud may delay the hub's next hello. */
  laterMs: 300_000,
  /** A connected broker without an answer of the cloud for this time is a problem that the page shows. */
  unansweredMs: 10_000,
  stalledMs: named(
    'LEDGER_STALLED_MS',
    duration(
      180_000,
      'Time without an acknowledgement by the connected cloud after which the hub takes no orders.',
    ),
  ),
  /** The interval of this check. */
  stalledCheckMs: 5_000,
  /** The hub sends hello again after this time without any message from the cloud. */
  quietMs: 60_000,
  heartbeatMs: duration(
    15_000,
    'Time between two heartbeats to the cloud, a tenth more or less. Above 50 s the cloud may interrupt the streams before each heartbeat.',
  ),
  /** The delay after which a change of health is reported. */
  healthMs: 500,
  /** Entries appended within this time are sent together: one commit here and one in the cloud for all of them. */
  lingerMs: 20,
  /** `askMs`: after this time without an acknowledgement the hub sends hello again, to get the cloud's position. */
  ledger: { batchEntries: 1000, askMs: 10_000, maxAskMs: 60_000 },
  telemetry: { batchEntries: 1000, askMs: 20_000, maxAskMs: 60_000 },
  /** Unacknowledged bytes in flight; the window grows with acknowledgements within `promptMs`. */
  stream: { windowBytes: 64 * 1024, maxWindowBytes: 2 * 1024 * 1024, promptMs: 1000 },
  /** Bytes of entries in one batch. */
  batchBytes: 480 * 1024,
  /** Maximum characters of a message from the cloud; longer messages are dropped. */
  maxMessage: 1024 * 1024,
} satisfies SettingsTable

export type SyncSettings = SettingsOf<typeof syncSettings>
export const defaultSyncSettings: SyncSettings = defaultsOf(syncSettings)

export const outboxSettings = {
  telemetryEntries: wholeNumber(
    [1, 10_000_000],
    50_000,
    'Number of telemetry entries in the journal; the oldest are overwritten.',
  ),
  ledgerEntries: wholeNumber(
    [1, 100_000_000],
    1_000_000,
    'Number of unacknowledged ledger entries at which the hub stops selling.',
  ),
  /**
   * The newest entries among which a replaceable entry is searched. A subject that changes constantly is among them.
   */
  mergedEntries: 64,
} satisfies SettingsTable

export type OutboxSettings = SettingsOf<typeof outboxSettings>
export const defaultOutboxSettings: OutboxSettings = defaultsOf(outboxSettings)

/** All settings of a hub, part by part. */
export const hubSettings = {
  core: limits('Decisions', coreSettings),
  links: limits('Serial lines', linkSettings),
  outbox: limits('Connection to the cloud', outboxSettings),
  sync: limits('Connection to the cloud', syncSettings),
  /** The pauses between attempts to use a failing storage. */
  storage: limits(
    'Journal',
    prefixed('STORAGE_RETRY', {
      firstMs: duration(1000, 'First pause before the hub opens its journal again after a storage failure.'),
      maxMs: duration(30_000, 'Maximum pause. The pauses double, and half of each is random.'),
    }),
  ),
} satisfies SettingsTable

export type HubSettings = SettingsOf<typeof hubSettings>
export const defaultHubSettings: HubSettings = defaultsOf(hubSettings)

/** The settings of decisions, which follow those of the serial lines. */
export function coreOf({ core, links }: Pick<HubSettings, 'core' | 'links'>): CoreSettings {
  const noticedMs = links.silentMs + links.pingMs + core.emptyDebounceMs
  return { ...core, emptyProofMs: Math.max(core.emptyProofMs, noticedMs) }
}
