import { z } from 'zod'
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
import { limitSettings } from './limit-settings.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ms = (standardMs: number, describe: string, maxMs = 30 * DAY) => duration(standardMs, describe, maxMs)
const CENTS = [1, 100_000_000] as const

/** The values that the contract marks *config*: what an operator can set of the service's rules. */
export const ruleSettings = {
  ...limitSettings,
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
  identityClockToleranceS: wholeNumber(
    [0, 600],
    60,
    "Maximum difference between the clock of the identity issuer and this one's: tokens are accepted so much before nbf and after exp. Seconds.",
  ),
  identityRefetchMs: ms(
    5 * SECOND,
    "Minimum time between two fetches of the issuer's keys because tokens name unknown keys; three fetches may follow each other at once.",
    MINUTE,
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
    'Time in milliseconds that hubs have to report after the cloud begins to listen: after its start, after a standstill, and after a loss of the broker or the database. Until then the cloud ends nothing because of a silent hub.',
  ),
  listeningGapMs: ms(
    10 * SECOND,
    'Length in milliseconds from which a standstill of the process, or a loss of the broker or the database, interrupts its listening to hubs.',
    5 * MINUTE,
  ),
  paymentRecheckMs: ms(30 * SECOND, 'A payment in doubt is asked about after this.'),
  paymentHoldMs: ms(
    15 * MINUTE,
    'Longest time in milliseconds for which an unpaid order holds stock and bins, for every payment method and payment state. Then the payment is cancelled and the order is a cart again; money that arrives later is refunded.',
  ),
  externalClaimMs: ms(
    5 * MINUTE,
    "Time in milliseconds within which an integrator must confirm a customer's external payment claim. PAYMENT_HOLD_MS bounds it, too.",
  ),
  unpaidOrdersPerUser: wholeNumber(
    [1, 100],
    1,
    'Number of unpaid orders that a user may have at once, over all hubs. A further payment is refused.',
  ),
  unpaidUnitsPerOrder: wholeNumber(
    [1, 100_000],
    100,
    'Number of units that an order may reserve before it is paid. The wallet pays at once and has no such limit.',
  ),
  unpaidUnitsPerNetwork: wholeNumber(
    [1, 1_000_000],
    200,
    'Number of units that unpaid orders of one network (IPv4 /32, IPv6 /64) may reserve at one hub. A first unpaid order is not bounded by it.',
  ),
  paymentAbandonMs: ms(
    15 * MINUTE,
    'Time in milliseconds after which an unfinished wallet deposit is cancelled.',
  ),
  processorCheckMs: ms(
    HOUR,
    'Time in milliseconds between two comparisons of the books with the payments, refunds and disputes at the card processor: an event may have been lost.',
  ),
  processorCheckBatch: wholeNumber([1, 100], 100, 'How many of them are asked for at once.'),
  paymentCheckMs: days(
    'PAYMENT_CHECK_DAYS',
    1,
    'Number of days for which a payment is compared again after it was made.',
  ),
  orphanedPayments: {
    schema: z.enum(['alarm', 'refund']),
    standard: 'alarm',
    describe:
      'What happens to a payment that the card processor has and the books do not, as after a restored database: `alarm` tells people, `refund` also gives the money back.',
  },
  lostOrderNumbers: wholeNumber(
    [0, 1_000_000_000],
    1_000_000,
    'Maximum step by which order numbers move on, so that no number is issued twice, if a hub or the card processor names an order above the highest one in the database.',
  ),
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
  streamCheckMs: ms(
    2 * SECOND,
    'How often the credential of a live stream is checked: a stream ends at most this and GRANTS_KEPT_MS after its credential was revoked or expired.',
    4 * SECOND,
  ),
  streamStallMs: ms(MINUTE, 'A reader of a live stream that takes nothing for so long is cut off.'),
  eventsKeptMs: days('EVENTS_KEPT_DAYS', 30, 'Events are deleted after this.'),
  lowStock: wholeNumber(
    [0, 1000],
    2,
    'A product of which so many units are left, or fewer, is low; its owner is told.',
  ),
  hubSilentAlarmMs: ms(5 * MINUTE, 'A hub that was not heard for so long raises an alarm.'),
  alarmsPerHub: wholeNumber(
    [1, 10_000],
    200,
    'Open alarms of one hub at most; further ones are only logged. A tenth is kept for alarms of the hub as a whole.',
  ),
  alarmClearMs: ms(10 * SECOND, 'An alarm whose fact may come back ends when it has been gone for so long.'),
  alarmFlapMs: ms(
    10 * MINUTE,
    'One that comes back within this of its end is the same one, and ends when it has been gone for so long.',
  ),
  hubSilentCriticalMs: ms(HOUR, 'The alarm of a hub that has been silent for so long is critical.'),
  workAlarmAttempts: wholeNumber([1, 1000], 8, 'Due work that has failed so often in a row raises an alarm.'),
  certificateWarnMs: ms(
    14 * DAY,
    'A certificate that ends within this raises an alarm; a key that expires within this has a warning in `keys list`.',
    365 * DAY,
  ),
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
  mediaParts: wholeNumber(
    [100, 10_000_000],
    20_000,
    'Segments, chunks, blocks or boxes of an uploaded picture or video; more are refused.',
  ),
  mediaDepth: wholeNumber([1, 100], 8, 'How deep boxes of an uploaded video may stand within boxes.'),
  mediaProcessorMs: wholeNumber(
    [10, 60_000],
    2000,
    'Processor time for one uploaded picture or video, in milliseconds; one that takes more is refused.',
  ),
  orphanedFileMs: ms(DAY, 'A file left by an upload that never ended is removed after this.'),
} satisfies SettingsTable

export type CloudSettings = SettingsOf<typeof ruleSettings>
export const defaultSettings: CloudSettings = defaultsOf(ruleSettings)
