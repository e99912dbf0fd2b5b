import {
  duration,
  limits,
  prefixed,
  wholeNumber,
  type SettingsOf,
} from '../../../protocol/model/program-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const MIB = 1024 * 1024

const ms = (standard: number, describe: string, max = 30 * 24 * 60 * MINUTE) =>
  duration(standard, describe, max)
const within = (min: number, max: number) => (standard: number, describe: string) =>
  wholeNumber([min, max], standard, describe)
const some = within(1, 1000)
const many = within(1, 100_000_000)

/** Limits of the communication with hubs (mqtt SPEC §7, §8). */
export const gatewayLimits = limits('Gateway', {
  leaseMs: wholeNumber(
    [SECOND, 60 * MINUTE],
    MINUTE,
    'Time without a message of a hub, in milliseconds, after which its process leaves it to another process. It spans three heartbeats of a hub, so that one may be lost.',
  ),
  ...prefixed('GATEWAY', {
    passwordCheckMs: ms(
      2 * SECOND,
      'Time between two checks of the passwords of connected hubs at the embedded broker. A renewed password ends the session of the former one.',
      3 * SECOND,
    ),
    beatMs: ms(SECOND, 'Time between two heartbeats of a process to the other processes.'),
    silentBeats: within(2, 1000)(
      4,
      'Number of missed heartbeats after which the others share the hubs of a process.',
    ),
    pollMs: ms(
      3 * SECOND,
      'Time between two checks for new hubs and entries: their signal may be lost, and commands at the database send none to SQLite.',
    ),
    gatherMs: ms(
      SECOND,
      'Time for which heartbeats, and hellos of known hubs, are collected for one transaction.',
    ),
    quietMs: ms(
      30 * SECOND,
      'Time without a message to a hub after which a repeated hello only checks the line.',
    ),
    greetAtOnce: some(64, 'Maximum number of hubs that are greeted at once. They share transactions.'),
    greetAtLeast: some(4, 'Minimum number of hubs that are greeted at once, also if the database is slow.'),
    greetTogetherMs: ms(
      500,
      'Time of one greeting up to which more hubs are greeted at once. Fewer hubs are greeted if it takes more than twice as long.',
    ),
    greetWithinMs: ms(2 * SECOND, 'Waiting time from which a hub is asked to come back later.'),
    greetAgainMs: ms(MINUTE, 'Maximum time after which such a hub comes back.'),
    recallMs: ms(2 * SECOND, 'Time that a hub has to answer when it is asked to come back at once.'),
    greetTransactions: within(1, 100)(2, 'Number of transactions that answer hellos at once: one may wait.'),
    mailbox: within(1, 100_000)(
      64,
      'Number of messages of one hub that may wait. The hub sends others again.',
    ),
    messagesAtOnce: many(
      600,
      'Number of messages of a hub that enter without a pause. The embedded broker reads further ones later; a message through an external broker is dropped, and the hub sends it again.',
    ),
    messagesPerMinute: many(
      1200,
      'Number of messages of a hub that enter in a minute once GATEWAY_MESSAGES_AT_ONCE are used up.',
    ),
    messageBytesAtOnce: many(32 * MIB, 'Bytes of messages of a hub that enter without a pause.'),
    messageBytesPerMinute: many(
      64 * MIB,
      'Bytes of messages of a hub that enter in a minute once GATEWAY_MESSAGE_BYTES_AT_ONCE are used up.',
    ),
    epochsAtOnce: some(100, 'Number of epochs of its streams that a hub may begin without a pause.'),
    epochsPerHour: some(
      10,
      'Number of epochs that a hub may begin in an hour once GATEWAY_EPOCHS_AT_ONCE are used up.',
    ),
    entriesAtOnce: many(
      50_000,
      'Number of entries of a hub that are applied without a pause after a long absence.',
    ),
    entriesPerMinute: many(
      1200,
      'Number of entries of a hub that are applied in a minute once GATEWAY_ENTRIES_AT_ONCE are used up. The hub keeps the others and sends them again.',
    ),
    entryBytesAtOnce: many(
      32 * MIB,
      'Bytes of batches of a hub that are applied without a pause after a long absence.',
    ),
    entryBytesPerMinute: many(
      MIB,
      'Bytes of batches of a hub that are applied in a minute once GATEWAY_ENTRY_BYTES_AT_ONCE are used up.',
    ),
    deadLetterBytes: within(10_000, 10 * MIB)(
      256 * 1024,
      'Maximum length of a dead letter. A longer entry is stored with its first half of that, and its length.',
    ),
    largeDeadLetters: within(1, 100_000)(
      200,
      'Number of dead letters of one hub above 4,096 characters. Further ones are stored with their beginning and length.',
    ),
    commandTtlMs: ms(5 * SECOND, "Lifetime of a command, by the hub's clock."),
    recordResultsMs: ms(
      100,
      "Time that a hub's ledger has to bring the outcome of a command before it is recorded.",
    ),
    hailTimeoutMs: ms(2 * SECOND, 'Time that a command waits for a hub with an unknown clock.'),
    listenMs: ms(MINUTE, 'Time after a command for which results of a hub of another process are received.'),
    hailEveryMs: ms(SECOND, 'Minimum time between two hails to a hub.'),
    sweepMs: ms(MINUTE, 'Time between two checks for commands of dead processes.'),
    lostCommandMs: ms(
      3 * MINUTE,
      'Time after which the outcome of a command of a dead process is unknown. It is longer than any command takes.',
    ),
    stallTries: some(3, "Number of consecutive failures to apply a hub's entries that raise stream_stalled."),
    stallMs: ms(
      3 * MINUTE,
      'Time without progress of the stream of an online hub that raises stream_stalled.',
    ),
    batchBytes: within(1, MIB)(MIB / 2, 'Maximum number of bytes of entries in a message to a hub.'),
  }),
  sender: prefixed('GATEWAY', {
    batchEntries: within(1, 100_000)(500, 'Maximum number of entries in a message to a hub.'),
    windowBytes: within(1, 16 * MIB)(64 * 1024, 'Maximum of unacknowledged bytes when a connection starts.'),
    maxWindowBytes: within(1, 16 * MIB)(
      MIB,
      'Maximum of unacknowledged bytes later: prompt acknowledgements raise it.',
    ),
    promptMs: ms(
      SECOND,
      'Time of an acknowledgement that lets the window grow. Twice this time lets it shrink.',
    ),
    askMs: ms(5 * SECOND, 'Time without an acknowledgement after which a hub is asked for its position.'),
    maxAskMs: ms(MINUTE, 'Maximum time between two such questions. The time doubles with each of them.'),
  }),
  backoff: prefixed('GATEWAY_RECONNECT', {
    firstMs: ms(250, 'First pause before the broker is tried again.'),
    maxMs: ms(15 * SECOND, 'Maximum pause before the broker is tried again.'),
  }),
})

export type GatewayLimits = SettingsOf<typeof gatewayLimits>
