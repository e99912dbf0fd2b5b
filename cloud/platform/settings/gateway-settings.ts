import {
  DAY_MS as DAY,
  defaultsOf,
  duration,
  prefixed,
  wholeNumber,
  type SettingsOf,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ms = (standardMs: number, describe: string, maxMs = 30 * DAY) => duration(standardMs, describe, maxMs)

/** How the cloud speaks with its hubs (mqtt SPEC §7, §8). */
export const gatewaySettings = {
  leaseMs: wholeNumber(
    [SECOND, HOUR],
    45 * SECOND,
    'Time without a message of a hub, in milliseconds, after which its process leaves it to another process. It spans several heartbeats of a hub.',
  ),
  ...prefixed('GATEWAY', {
    passwordCheckMs: ms(
      2 * SECOND,
      'Time between two checks of the passwords of connected hubs at the embedded broker. A renewed password ends the session of the former one.',
      4 * SECOND,
    ),
    beatMs: ms(SECOND, 'Time between two heartbeats of a process to the other processes.'),
    silentBeats: wholeNumber(
      [2, 1000],
      4,
      'Number of missed heartbeats after which a process counts as dead, and the others share its hubs.',
    ),
    pollMs: ms(
      5 * SECOND,
      'Time between two checks for new hubs and for entries to send: the signal for them may be lost.',
    ),
    gatherMs: ms(
      SECOND,
      'Time for which heartbeats are collected and written together. Hellos of known hubs are answered together too.',
    ),
    quietMs: ms(
      30 * SECOND,
      'Time without a message to a hub after which its repeated hello only checks the connection.',
    ),
    greetAtOnce: wholeNumber(
      [1, 1000],
      64,
      'Maximum number of hubs that are greeted at once. They share transactions.',
    ),
    greetAtLeast: wholeNumber(
      [1, 1000],
      4,
      'Minimum number of hubs that are greeted at once, also if the database is slow.',
    ),
    greetTogetherMs: ms(
      500,
      'Time of one greeting up to which more hubs are greeted at once. Fewer hubs are greeted if it takes more than twice as long.',
    ),
    greetWithinMs: ms(2 * SECOND, 'Waiting time from which a hub is asked to come back later.'),
    greetAgainMs: ms(MINUTE, 'Maximum time after which such a hub comes back.'),
    recallMs: ms(2 * SECOND, 'Time that a hub has to answer when it is asked to come back at once.'),
    greetTransactions: wholeNumber(
      [1, 100],
      2,
      'Number of transactions that answer hellos at once, so that one waiting transaction does not stop all others.',
    ),
    mailbox: wholeNumber(
      [1, 100_000],
      64,
      'Number of messages of one hub that may wait. Further messages are dropped and sent again by the hub.',
    ),
    entriesAtOnce: wholeNumber(
      [1, 100_000_000],
      50_000,
      'Number of entries of a hub that are applied without a pause, for example when it returns after a long time offline.',
    ),
    entriesPerMinute: wholeNumber(
      [1, 100_000_000],
      1200,
      'Number of entries of a hub that are applied in a minute once GATEWAY_ENTRIES_AT_ONCE are used up. The hub keeps the others and sends them again.',
    ),
    commandTtlMs: ms(5 * SECOND, "Lifetime of a command, by the hub's clock."),
    recordResultsMs: ms(
      100,
      "Time that a hub's ledger has to bring the outcome of a command. Then the outcome is recorded without it.",
    ),
    hailTimeoutMs: ms(2 * SECOND, 'Time that a command waits for a hub with an unknown clock.'),
    listenMs: ms(MINUTE, 'Time after a command for which results of a hub of another process are received.'),
    hailEveryMs: ms(SECOND, 'Minimum time between two hails to a hub.'),
    sweepMs: ms(MINUTE, 'Time between two checks for commands of dead processes.'),
    lostCommandMs: ms(
      3 * MINUTE,
      'Time after which the outcome of a command of a dead process is unknown. It is longer than any command takes.',
    ),
    stallTries: wholeNumber(
      [1, 1000],
      3,
      'Number of consecutive failures to apply entries of a hub that raise the alarm stream_stalled. The hub then sells nothing.',
    ),
    stallMs: ms(
      3 * MINUTE,
      'Time without a received or acknowledged entry of an online hub that raises the alarm stream_stalled.',
    ),
    batchBytes: wholeNumber(
      [1, 1024 * 1024],
      512 * 1024,
      'Maximum number of bytes of entries in a message to a hub.',
    ),
  }),
  sender: prefixed('GATEWAY', {
    batchEntries: wholeNumber([1, 100_000], 500, 'Maximum number of entries in a message to a hub.'),
    windowBytes: wholeNumber(
      [1, 16 * 1024 * 1024],
      64 * 1024,
      'Maximum number of unacknowledged bytes of entries at the start of a connection.',
    ),
    maxWindowBytes: wholeNumber(
      [1, 16 * 1024 * 1024],
      1024 * 1024,
      'Maximum number of unacknowledged bytes of entries later. The window grows with acknowledgements in time.',
    ),
    promptMs: ms(
      SECOND,
      'Time within which an acknowledgement lets the window grow. Twice this time lets it shrink.',
    ),
    askMs: ms(5 * SECOND, 'Time without an acknowledgement after which a hub is asked for its position.'),
    maxAskMs: ms(MINUTE, 'Maximum time between two such questions. The time doubles with each of them.'),
  }),
  backoff: prefixed('GATEWAY_RECONNECT', {
    firstMs: ms(250, 'First pause before the broker is tried again.'),
    maxMs: ms(15 * SECOND, 'Maximum pause before the broker is tried again.'),
  }),
} satisfies SettingsTable

export type GatewaySettings = SettingsOf<typeof gatewaySettings>
export const defaultGatewaySettings: GatewaySettings = defaultsOf(gatewaySettings)
