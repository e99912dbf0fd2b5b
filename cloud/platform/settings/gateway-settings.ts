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
    'Of several processes, one that has not heard a hub for so long leaves it to another. Several heartbeats of a hub. Milliseconds.',
  ),
  ...prefixed('GATEWAY', {
    passwordCheckMs: ms(
      2 * SECOND,
      'How often the embedded broker checks the passwords of connected hubs: a renewed password ends the session of the former one.',
      4 * SECOND,
    ),
    beatMs: ms(SECOND, 'How often each of several processes says to the others that it is there.'),
    silentBeats: wholeNumber(
      [2, 1000],
      4,
      'A process that the others have not heard for so many of their own beats is gone: they share its hubs. How long it may stand still.',
    ),
    pollMs: ms(
      5 * SECOND,
      'How often hubs that are new, and what is to be sent to hubs, are looked for: the signal for it may be lost.',
    ),
    gatherMs: ms(
      SECOND,
      'Heartbeats that come within so long are written together, and hellos of hubs that only ask whether somebody is there answered together.',
    ),
    quietMs: ms(
      30 * SECOND,
      'A hub that says hello again after nothing was said to it for so long only asks whether somebody is there.',
    ),
    greetAtOnce: wholeNumber(
      [1, 1000],
      64,
      'How many hubs are greeted at once at most, of those that connect: they share transactions.',
    ),
    greetAtLeast: wholeNumber([1, 1000], 4, 'However slow the database is, so many of them.'),
    greetTogetherMs: ms(
      500,
      'More of them are greeted at once while a greeting takes no longer than this, and fewer where it takes more than double.',
    ),
    greetWithinMs: ms(
      2 * SECOND,
      'A hub whose turn to be greeted does not come within this is told when to come again.',
    ),
    greetAgainMs: ms(MINUTE, 'For the longest, after this.'),
    recallMs: ms(
      2 * SECOND,
      'A hub that was told when to come again, and is asked to come at once, is waited for so long.',
    ),
    greetTransactions: wholeNumber(
      [1, 100],
      2,
      'How many transactions answer hellos at once: one that waits for a lock stops not all others.',
    ),
    mailbox: wholeNumber(
      [1, 100_000],
      64,
      'How many messages of a hub may wait. What comes beyond is dropped, and comes again.',
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
    commandTtlMs: ms(5 * SECOND, "How long a command lives, by the hub's clock."),
    recordResultsMs: ms(
      100,
      "A command's outcome that the hub's ledger has not brought by then is recorded without it.",
    ),
    hailTimeoutMs: ms(
      2 * SECOND,
      'How long a command waits for a hub whose clock this process has not heard yet.',
    ),
    listenMs: ms(
      MINUTE,
      'How long after a command the results of a hub are listened for that another process serves.',
    ),
    hailEveryMs: ms(SECOND, 'The least time between two hails to a hub.'),
    sweepMs: ms(MINUTE, 'How often commands whose process died are looked for.'),
    lostCommandMs: ms(
      3 * MINUTE,
      'A command whose process died is unknown after this; longer than any may take.',
    ),
    stallTries: wholeNumber(
      [1, 1000],
      3,
      'Failures in a row to apply what a hub sends, after which the alarm stream_stalled is raised and the hub sells nothing.',
    ),
    stallMs: ms(
      3 * MINUTE,
      'The same alarm is raised if nothing of a hub arrives, or nothing is acknowledged by it, for this long while it is online.',
    ),
    batchBytes: wholeNumber([1, 1024 * 1024], 512 * 1024, 'The most bytes of entries in a message to a hub.'),
  }),
  sender: prefixed('GATEWAY', {
    batchEntries: wholeNumber([1, 100_000], 500, 'The most entries in a message to a hub.'),
    windowBytes: wholeNumber(
      [1, 16 * 1024 * 1024],
      64 * 1024,
      'The most bytes of entries sent ahead of what a hub has acknowledged, at the beginning of a connection.',
    ),
    maxWindowBytes: wholeNumber(
      [1, 16 * 1024 * 1024],
      1024 * 1024,
      'The same later: it grows with what is acknowledged in time.',
    ),
    promptMs: ms(SECOND, 'What is acknowledged within this lets it grow; twice as long lets it shrink.'),
    askMs: ms(5 * SECOND, 'A hub that acknowledges nothing for so long is asked where it stands.'),
    maxAskMs: ms(MINUTE, 'And, as this doubles each time, at the latest after this.'),
  }),
  backoff: prefixed('GATEWAY_RECONNECT', {
    firstMs: ms(250, 'The first pause before the broker is tried again.'),
    maxMs: ms(15 * SECOND, 'The longest one.'),
  }),
} satisfies SettingsTable

export type GatewaySettings = SettingsOf<typeof gatewaySettings>
export const defaultGatewaySettings: GatewaySettings = defaultsOf(gatewaySettings)
