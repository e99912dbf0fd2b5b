import { z } from 'zod'
import { serverBounds } from '../../../protocol/model/bound-server.ts'
import {
  DAY_MS as DAY,
  days,
  defaultsOf,
  duration,
  named,
  prefixed,
  wholeNumber,
  type SettingsOf,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ms = (standardMs: number, describe: string, maxMs = 30 * DAY) => duration(standardMs, describe, maxMs)
const CENTS = [1, 100_000_000] as const

/** What strangers may bind of the HTTP server. A whole request: the largest upload at 1 Mbit/s. */
export const httpSettings = serverBounds('HTTP', { maxConnections: 5000, requestTimeoutMs: 30 * MINUTE })
export const defaultHttpSettings = defaultsOf(httpSettings)

/** How many connections to PostgreSQL a use of them has, and how long it waits for what. Of SQLite there is one connection. */
const pool = (prefix: string, of: string, [connections, waitMs, lockMs, statementMs]: readonly number[]) =>
  prefixed(prefix, {
    connections: wholeNumber([1, 1000], connections!, `The most connections to PostgreSQL for ${of}.`),
    waitMs: ms(
      waitMs!,
      'How long one of these waits for a connection that is free, or for the server to let one in.',
      HOUR,
    ),
    lockMs: ms(lockMs!, 'How long its statements wait for what others have locked.', HOUR),
    statementMs: ms(statementMs!, 'How long a statement of it may take, waiting for locks included.', HOUR),
  })

/**
 * Connections by their use, so that what is slow or locked in one does not stop the others: hubs are heard while requests
 * hang, and what only reads goes on while what writes waits for a lock.
 */
export const databaseSettings = {
  reads: pool('DATABASE_READ', 'what requests read', [8, 2 * SECOND, 2 * SECOND, 10 * SECOND]),
  writes: pool('DATABASE_WRITE', 'transactions of requests', [8, 3 * SECOND, 3 * SECOND, 10 * SECOND]),
  gateway: pool('DATABASE_GATEWAY', 'what hubs report and are sent', [
    6,
    5 * SECOND,
    5 * SECOND,
    10 * SECOND,
  ]),
  background: pool('DATABASE_BACKGROUND', 'due work, live streams and this process itself', [
    6,
    10 * SECOND,
    10 * SECOND,
    MINUTE,
  ]),
} satisfies SettingsTable

export type DatabaseSettings = SettingsOf<typeof databaseSettings>
export type PoolSettings = DatabaseSettings['reads']
export const defaultDatabaseSettings: DatabaseSettings = defaultsOf(databaseSettings)

/** The values that the contract marks *config*: what an operator can set of the service's rules. */
export const ruleSettings = {
  grantsKeptMs: ms(
    SECOND,
    'An API key, a role and the owner of a hub are believed for so long: one that is revoked ends after this at the latest, in all processes.',
    5 * SECOND,
  ),
  identityTokens: wholeNumber(
    [1, 1_000_000],
    2000,
    'How many identity tokens are kept whose signatures need not be verified again while their issuer has the key.',
  ),
  currency: {
    schema: z.string().regex(/^[A-Z]{3}$/, 'must be three capital letters'),
    standard: 'USD',
    describe: 'ISO 4217 code of all amounts.',
  },
  onlineWithinMs: ms(90 * SECOND, 'A hub heard from within this is online.'),
  commandTimeoutMs: ms(10 * SECOND, 'How long a hub may take to answer a command.'),
  idleOrderMs: ms(30 * MINUTE, 'An unpaid order left alone so long expires.'),
  purgeExpiredMs: ms(DAY, 'An expired order is deleted after this.'),
  startWithinMs: ms(10 * MINUTE, 'A hub begins a queued order within this, or not at all.'),
  prepareTimeoutMs: ms(10 * MINUTE, 'How long preparing an order may take.'),
  unclaimedTimeoutMs: ms(HOUR, 'A ready order that nobody takes fails after this.'),
  expiringNoticeMs: ms(5 * MINUTE, 'A customer is told so long before a cart expires.'),
  unclaimedNoticeMs: ms(10 * MINUTE, 'A customer is told of an order that has been ready for so long.'),
  silentHubMs: ms(DAY, 'An order that a hub has begun, and says nothing more of, ends after this.'),
  hubReturnMs: ms(
    2 * MINUTE,
    'After its start the cloud ends no order for the silence of its hub for so long: hubs have yet to report.',
  ),
  paymentRecheckMs: ms(30 * SECOND, 'A payment in doubt is asked about after this.'),
  paymentAbandonMs: ms(
    15 * MINUTE,
    'A payment or deposit that its customer does not finish is given up after this.',
  ),
  processorCheckMs: ms(
    HOUR,
    'How often the refunds and disputes at the card processor are compared with the books: an event may have been lost.',
  ),
  processorCheckBatch: wholeNumber([1, 100], 100, 'How many of them are asked for at once.'),
  refundCheckMs: days(
    'REFUND_CHECK_DAYS',
    3,
    'A refund is compared again for so long after it was made: it may fail later.',
  ),
  disputeCheckMs: days(
    'DISPUTE_CHECK_DAYS',
    180,
    'A dispute is compared again for so long after it was opened: it may be won later.',
  ),
  refundRetryMs: ms(
    HOUR,
    'A refund that is owed and was refused is tried again after this, then after twice as long, and so on.',
  ),
  refundRetries: wholeNumber([0, 20], 6, 'How often it is tried again.'),
  ...prefixed('WALLET', {
    depositMinCents: wholeNumber(CENTS, 100, 'The least that is deposited into a wallet at once. Cents.'),
    depositMaxCents: wholeNumber(CENTS, 50_000, 'The most. Cents.'),
  }),
  loyaltyCentsPerPoint: wholeNumber(
    [1, 1_000_000],
    100,
    'For so many whole cents of an order, after deals and before tax, a point is earned.',
  ),
  loyaltyPointCents: wholeNumber([0, 1_000_000], 1, 'What a point is worth. Cents.'),
  orderSearchNames: wholeNumber(
    [1, 1_000_000],
    10_000,
    'A search in the orders of a hub looks through so many of the names that it has sold under, those first that came up last.',
  ),
  searchTotalsKept: wholeNumber(
    [1, 1_000_000],
    10_000,
    'Of so many searches in products the number of all that they found is kept, as long as the catalogue of the hub is the same.',
  ),
  topProducts: wholeNumber([1, 100], 10, 'How many products the list of those that sold most has.'),
  workBatch: wholeNumber(
    [1, 10_000],
    100,
    'How many rows of due work of a kind are claimed at once. Never a limit of what gets done.',
  ),
  workConcurrency: wholeNumber(
    [1, 100],
    4,
    'How many rows of due work of a kind this process handles at once.',
  ),
  workLeaseMs: ms(MINUTE, 'Due work whose process has died is taken up by another one after this.'),
  workPollMs: ms(10 * SECOND, 'How often a process looks for due work that other processes have added.'),
  clockStepMs: ms(
    10 * SECOND,
    'A clock that is put back by more than this is noticed, and what it has stamped in the future is put right.',
  ),
  staleSalesMs: ms(
    MINUTE,
    'How often hubs are looked for whose time zone has changed: their summaries of sales are made anew.',
  ),
  overdueRecheckMs: ms(
    30 * SECOND,
    'An order past its time is looked at again after this while its hub may still report of it.',
  ),
  retentionBatch: wholeNumber(
    [1, 100_000],
    500,
    'How many rows that have been kept for their time are deleted at once.',
  ),
  // Together they stay below the time for which an idempotency key is kept for a request under way.
  managementConnectMs: named(
    'MANAGEMENT_CONNECT_TIMEOUT_MS',
    ms(10 * SECOND, "How long a hub's management service (SSH) may take to let the cloud in.", 15 * SECOND),
  ),
  managementCommandMs: named(
    'MANAGEMENT_COMMAND_TIMEOUT_MS',
    ms(40 * SECOND, "How long a command there may take: it stops and starts the hub's service.", 40 * SECOND),
  ),
  recordsKeptMs: days(
    'RECORDS_KEPT_DAYS',
    90,
    "Telemetry, finished commands, the processor's events, notices to customers, and redemptions that were announced and never taken up are deleted after this.",
  ),
  incidentsKeptMs: days(
    'INCIDENTS_KEPT_DAYS',
    365,
    'Alarms that are over, dead letters, and epochs that hubs have left are deleted after this. Orders, money, stock and the audit log are kept.',
  ),
  ...prefixed('HTTP', {
    bodyIdleMs: ms(10 * SECOND, 'A body of JSON of which nothing more comes is given up after this.'),
    bodyTimeoutMs: ms(MINUTE, 'How long a body of JSON may take to arrive.'),
    heldBodyBytes: wholeNumber(
      [1024 * 1024, 1024 * 1024 * 1024],
      8 * 1024 * 1024,
      'The most bytes of JSON bodies that have begun to arrive and are not whole. Beyond them requests with bodies are answered 503.',
    ),
  }),
  rateSettleMs: ms(
    100,
    'How often processes that share a PostgreSQL add up their callers’ calls: beyond an allowance a caller gets at most what the other processes let through within this.',
    MINUTE,
  ),
  accessLog: {
    schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
    standard: 'false',
    describe:
      'Whether the log has a line for each request at level info, with its path, route, status, time and address: true or false. At level debug it has one anyway.',
  },
  eventBatch: wholeNumber([1, 4000], 500, 'How many events are given their place in the list at once.'),
  eventsInMemory: wholeNumber(
    [1, 100_000],
    1000,
    'How many of the newest events are kept in memory for live streams.',
  ),
  eventPollMs: ms(SECOND, 'How often events of other processes are looked for.', MINUTE),
  orderPollMs: ms(
    SECOND,
    'How often changes that other processes made to orders are looked for, while customers follow theirs.',
    MINUTE,
  ),
  webhookTimeoutMs: ms(15 * SECOND, 'How long a webhook may take to answer.', MINUTE),
  webhookConcurrency: wholeNumber(
    [1, 100],
    4,
    'How many events are on their way to one webhook at once, from this process.',
  ),
  webhookRetryMs: named('WEBHOOK_RETRY_MS', {
    schema: z
      .string()
      .regex(/^\d{1,10}(,\d{1,10}){0,50}$/, 'must be whole numbers, separated by commas')
      .transform((text) => text.split(',').map(Number)),
    standard: [
      5 * SECOND,
      5 * MINUTE,
      30 * MINUTE,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
    ].join(','),
    describe:
      'After which pauses a webhook that has not taken an event is tried again, each up to a tenth longer. Milliseconds, separated by commas.',
  }),
  webhookFailingMs: days(
    'WEBHOOK_FAILING_DAYS',
    5,
    'A webhook that has taken nothing for so long is switched off.',
  ),
  streamMs: ms(
    15 * MINUTE,
    'A live stream is ended after this, so that its credential is looked at again: readers come back by themselves.',
  ),
  streamStallMs: ms(MINUTE, 'A reader of a live stream that takes nothing for so long is cut off.'),
  eventsKeptMs: days('EVENTS_KEPT_DAYS', 30, 'Events are deleted after this.'),
  lowStock: wholeNumber(
    [0, 1000],
    2,
    'A product of which so many units are left, or fewer, is low; its owner is told.',
  ),
  hubSilentAlarmMs: ms(5 * MINUTE, 'A hub that was not heard for so long raises an alarm.'),
  alarmClearMs: ms(10 * SECOND, 'An alarm whose fact may come back ends when it has been gone for so long.'),
  alarmFlapMs: ms(
    10 * MINUTE,
    'One that comes back within this of its end is the same one, and ends when it has been gone for so long.',
  ),
  hubSilentCriticalMs: ms(HOUR, 'The alarm of a hub that has been silent for so long is critical.'),
  workAlarmAttempts: wholeNumber([1, 1000], 8, 'Due work that has failed so often in a row raises an alarm.'),
  mailGatherMs: ms(2 * SECOND, 'Alarms of so long a time reach a contact in one mail.'),
  pushDevices: wholeNumber(
    [1, 1000],
    20,
    'How many devices of a user are told of its orders; of more, those longest unheard are forgotten.',
  ),
  webhookToleranceMs: ms(300 * SECOND, 'How old a signed webhook may be.'),
  announcedRedemptionMs: ms(
    30 * MINUTE,
    'How long a redemption announced by apply-reward counts towards the limits of its deal.',
  ),
  dealImageRequired: {
    schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
    standard: 'true',
    describe: 'Whether a deal that its owner creates with a form must have an image: true or false.',
  },
  fileAddressMs: ms(DAY, 'How long, at least, the signed address of an image or video can be used.'),
  fileAddressesKept: wholeNumber(
    [1, 1_000_000],
    10_000,
    'So many signed addresses are kept while they stay the same; beyond that they are signed anew.',
  ),
  imagePixels: wholeNumber(
    [1, 1_000_000_000],
    50_000_000,
    'The most pixels that an uploaded image may have.',
  ),
  orphanedFileMs: ms(DAY, 'A file left by an upload that never ended is removed after this.'),
} satisfies SettingsTable

export type CloudSettings = SettingsOf<typeof ruleSettings>
export const defaultSettings: CloudSettings = defaultsOf(ruleSettings)

/** How the cloud speaks with its hubs (mqtt SPEC §7, §8). */
export const gatewaySettings = {
  leaseMs: wholeNumber(
    [SECOND, HOUR],
    45 * SECOND,
    'Of several processes, one that has not heard a hub for so long leaves it to another. Several heartbeats of a hub. Milliseconds.',
  ),
  ...prefixed('GATEWAY', {
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
