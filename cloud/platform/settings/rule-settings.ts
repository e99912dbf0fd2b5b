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
    'Time for which an API key, a role and the owner of a hub are cached. A revoked one ends after this time at the latest, in all processes.',
    5 * SECOND,
  ),
  identityTokens: wholeNumber(
    [1, 1_000_000],
    2000,
    'Number of verified identity tokens that are cached while the issuer has their key.',
  ),
  identityClockToleranceS: wholeNumber(
    [0, 600],
    60,
    'Maximum difference in seconds between the clock of the identity issuer and the clock of this service. Tokens are accepted this long before nbf and after exp.',
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
  onlineWithinMs: ms(90 * SECOND, 'Time after its last message for which a hub counts as online.'),
  commandTimeoutMs: ms(10 * SECOND, "Maximum time for a hub's answer to a command."),
  idleOrderMs: ms(30 * MINUTE, 'Time without a change after which an unpaid order expires.'),
  purgeExpiredMs: ms(DAY, 'Time after which an expired order is deleted.'),
  startWithinMs: ms(10 * MINUTE, 'Maximum time until a hub starts a queued order. A later start is refused.'),
  prepareTimeoutMs: ms(10 * MINUTE, 'Maximum time for the preparation of an order.'),
  unclaimedTimeoutMs: ms(HOUR, 'Time after which a ready order that nobody collects fails.'),
  expiringNoticeMs: ms(5 * MINUTE, 'Time before the expiry of a cart at which its customer is notified.'),
  unclaimedNoticeMs: ms(10 * MINUTE, 'Time after which the customer of a ready order is notified again.'),
  silentHubMs: ms(DAY, 'Time after which an order ends that a hub has started and no longer reports.'),
  hubDrainMs: ms(
    7 * DAY,
    'Maximum time for which a retired hub may still sign in, to receive its cancellations and to report what fell. Its login ends sooner if both are done.',
  ),
  hubReturnMs: ms(
    2 * MINUTE,
    'Time that hubs have to report after the cloud begins to listen: after its start, after a standstill, and after a loss of the broker or the database. Until then the cloud ends nothing because of a silent hub.',
  ),
  listeningGapMs: ms(
    10 * SECOND,
    'Length from which a standstill of the process, or a loss of the broker or the database, interrupts its listening to hubs.',
    5 * MINUTE,
  ),
  paymentRecheckMs: ms(
    30 * SECOND,
    'Time after which the processor is asked about a payment without a known outcome.',
  ),
  paymentHoldMs: ms(
    15 * MINUTE,
    'Maximum time for which an unpaid order holds stock and bins, for every payment method and payment state. Then the payment is cancelled and the order is a cart again; money that arrives later is refunded.',
  ),
  externalClaimMs: ms(
    5 * MINUTE,
    "Time within which an integrator must confirm a customer's external payment claim. PAYMENT_HOLD_MS bounds it, too.",
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
    'Number of units that unpaid orders of the guests of one network (IPv4 /32, IPv6 /64) may reserve at one hub. A first unpaid order is not bounded by it, nor is a customer with an account.',
  ),
  paymentAbandonMs: ms(15 * MINUTE, 'Time after which an unfinished wallet deposit is cancelled.'),
  processorCheckMs: ms(
    HOUR,
    'Time between two comparisons of the books with the payments, refunds and disputes at the card processor: an event may have been lost.',
  ),
  processorCheckBatch: wholeNumber(
    [1, 100],
    100,
    'Number of payments, refunds or disputes that one such request reads.',
  ),
  paymentCheckMs: days('PAYMENT_CHECK_DAYS', 1, 'Time after a payment for which it is compared again.'),
  orphanedPayments: {
    schema: z.enum(['alarm', 'refund']),
    standard: 'alarm',
    describe:
      'Treatment of a payment that the card processor has and the books lack, as after a restored database: alarm raises an alarm, refund also refunds the money.',
  },
  lostOrderNumbers: wholeNumber(
    [0, 1_000_000_000],
    1_000_000,
    'Maximum step by which order numbers move on, so that no number is issued twice, if a hub or the card processor names an order above the highest one in the database.',
  ),
  refundCheckMs: days(
    'REFUND_CHECK_DAYS',
    3,
    'Time after a refund for which it is compared again: it may fail later.',
  ),
  disputeCheckMs: days(
    'DISPUTE_CHECK_DAYS',
    180,
    'Time after the start of a dispute for which it is compared again: it may be won later.',
  ),
  refundRetryMs: ms(
    HOUR,
    'Time after which a rejected refund is tried again. The time doubles with each try.',
  ),
  refundRetries: wholeNumber([0, 20], 6, 'Number of further tries of a rejected refund.'),
  ...prefixed('WALLET', {
    depositMinCents: wholeNumber(CENTS, 100, 'Minimum of one wallet deposit in cents.'),
    depositMaxCents: wholeNumber(CENTS, 50_000, 'Maximum of one wallet deposit in cents.'),
  }),
  loyaltyCentsPerPoint: wholeNumber(
    [1, 1_000_000],
    100,
    'Whole cents of an order, after deals and before tax, that earn one point.',
  ),
  loyaltyPointCents: wholeNumber([0, 1_000_000], 1, 'Value of a point in cents.'),
  orderSearchNames: wholeNumber(
    [1, 1_000_000],
    10_000,
    "Number of product names that one search in a hub's orders reads, the most recent ones first.",
  ),
  searchTotalsKept: wholeNumber(
    [1, 1_000_000],
    10_000,
    'Number of product searches whose total is cached while the catalogue of the hub is unchanged.',
  ),
  topProducts: wholeNumber([1, 100], 10, 'Number of products in the list of best-selling products.'),
  workBatch: wholeNumber(
    [1, 10_000],
    100,
    'Number of rows of due work of one kind that are claimed at once.',
  ),
  workConcurrency: wholeNumber(
    [1, 100],
    4,
    'Number of rows of due work of one kind that this process handles at once.',
  ),
  workLeaseMs: ms(MINUTE, 'Time after which due work of a dead process is taken over by another process.'),
  workPollMs: ms(10 * SECOND, 'Time between two checks for due work that other processes have added.'),
  clockStepMs: ms(
    10 * SECOND,
    'Backward step of the clock from which the service corrects the times that it has stored in the future.',
  ),
  staleSalesMs: ms(
    MINUTE,
    'Time between two checks for hubs with a changed time zone. Their sales summaries are calculated again.',
  ),
  overdueRecheckMs: ms(
    30 * SECOND,
    'Time after which an overdue order is checked again while its hub may still report it.',
  ),
  retentionBatch: wholeNumber([1, 100_000], 500, 'Number of expired rows that are deleted at once.'),
  // Together they stay below the time for which an idempotency key is kept for a request under way.
  managementConnectMs: named(
    'MANAGEMENT_CONNECT_TIMEOUT_MS',
    ms(10 * SECOND, "Maximum time for the login at a hub's management service (SSH).", 15 * SECOND),
  ),
  managementCommandMs: named(
    'MANAGEMENT_COMMAND_TIMEOUT_MS',
    ms(
      40 * SECOND,
      "Maximum time for a command at a hub's management service. The command stops and starts the hub's service.",
      40 * SECOND,
    ),
  ),
  recordsKeptMs: days(
    'RECORDS_KEPT_DAYS',
    90,
    'Time after which telemetry, finished commands, processor events, notices to customers and unused announced redemptions are deleted.',
  ),
  incidentsKeptMs: days(
    'INCIDENTS_KEPT_DAYS',
    365,
    'Time after which ended alarms, dead letters and former epochs of hubs are deleted. Orders, money, stock and the audit log are kept.',
  ),
  ...prefixed('HTTP', {
    bodyIdleMs: ms(10 * SECOND, 'Time without a byte after which an incomplete JSON body is refused.'),
    bodyTimeoutMs: ms(MINUTE, 'Maximum time for a JSON body to arrive.'),
  }),
  rateSettleMs: ms(
    100,
    'Time between two exchanges of call counts between processes that share a PostgreSQL. A caller gets at most the calls of this time beyond an allowance.',
    MINUTE,
  ),
  accessLog: {
    schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
    standard: 'false',
    describe:
      'Log line at level info for each request, with path, route, status, time and address: true or false. At level debug it is always there.',
  },
  eventBatch: wholeNumber([1, 4000], 500, 'Number of events that get their place in the list at once.'),
  eventsInMemory: wholeNumber(
    [1, 100_000],
    1000,
    'Number of the newest events that are kept in memory for live streams.',
  ),
  eventPollMs: ms(SECOND, 'Time between two checks for events of other processes.', MINUTE),
  orderPollMs: ms(
    SECOND,
    'Time between two checks for orders that other processes have changed, while customers follow orders.',
    MINUTE,
  ),
  webhookTimeoutMs: ms(15 * SECOND, 'Maximum time for the answer of a webhook.', MINUTE),
  webhookConcurrency: wholeNumber(
    [1, 100],
    4,
    'Number of events that this process sends to one webhook at once.',
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
      'Pauses before the further attempts of a delivery, in milliseconds, separated by commas. Each is up to a tenth longer.',
  }),
  webhookFailingMs: days(
    'WEBHOOK_FAILING_DAYS',
    5,
    'Time without any success after which a webhook is disabled.',
  ),
  streamMs: ms(
    15 * MINUTE,
    'Maximum time of a live stream. Then its credential is checked again; readers reconnect by themselves.',
  ),
  streamCheckMs: ms(
    2 * SECOND,
    'Time between two checks of the credential of a live stream. A stream ends at most this time and GRANTS_KEPT_MS after its credential was revoked or expired.',
    4 * SECOND,
  ),
  streamStallMs: ms(MINUTE, 'Time without a read after which the reader of a live stream is disconnected.'),
  eventsKeptMs: days('EVENTS_KEPT_DAYS', 30, 'Time after which events are deleted.'),
  lowStock: wholeNumber(
    [0, 1000],
    2,
    'Number of units from which on the stock of a product is low, and its owner is notified.',
  ),
  hubSilentAlarmMs: ms(5 * MINUTE, 'Time without a message after which a hub raises an alarm.'),
  alarmsPerHub: wholeNumber(
    [1, 10_000],
    200,
    'Maximum number of open alarms of one hub. Further alarms are only logged. A tenth is reserved for alarms of the hub as a whole.',
  ),
  alarmClearMs: ms(
    10 * SECOND,
    'Time without the problem after which an alarm ends whose problem may come back.',
  ),
  alarmFlapMs: ms(
    10 * MINUTE,
    'Time after the end of an alarm within which the same problem opens the same alarm again. That alarm ends after this time without the problem.',
  ),
  hubSilentCriticalMs: ms(HOUR, 'Time without a message after which the alarm of a silent hub is critical.'),
  workAlarmAttempts: wholeNumber(
    [1, 1000],
    8,
    'Number of consecutive failures of due work that raise an alarm.',
  ),
  certificateWarnMs: ms(
    14 * DAY,
    'Time before the end of a certificate at which an alarm is raised. An API key that expires within this time has a warning in `keys list`.',
    365 * DAY,
  ),
  mailGatherMs: ms(2 * SECOND, 'Time for which alarms are collected into one mail to a contact.'),
  pushDevices: wholeNumber(
    [1, 1000],
    20,
    'Number of devices of a user that get notices. Beyond it, the device that was registered longest ago is removed.',
  ),
  webhookToleranceMs: ms(300 * SECOND, 'Maximum age of a signed event of the processor.'),
  announcedRedemptionMs: ms(
    30 * MINUTE,
    'Time for which a redemption of apply-reward counts towards the limits of its deal.',
  ),
  dealImageRequired: {
    schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
    standard: 'true',
    describe: 'Image of a deal that its owner creates with a form: true requires one, false does not.',
  },
  fileAddressMs: ms(DAY, 'Minimum time for which the signed address of an image or video is valid.'),
  fileAddressesKept: wholeNumber([1, 1_000_000], 10_000, 'Number of signed addresses that are cached.'),
  imagePixels: wholeNumber([1, 1_000_000_000], 50_000_000, 'Maximum number of pixels of an uploaded image.'),
  mediaParts: wholeNumber(
    [100, 10_000_000],
    20_000,
    'Maximum number of segments, chunks, blocks or boxes of an uploaded image or video.',
  ),
  mediaDepth: wholeNumber([1, 100], 8, 'Maximum depth of boxes within boxes of an uploaded video.'),
  mediaProcessorMs: wholeNumber(
    [10, 60_000],
    2000,
    'Maximum processor time for one uploaded image or video, in milliseconds.',
  ),
  orphanedFileMs: ms(DAY, 'Time after which the file of an unfinished upload is removed.'),
} satisfies SettingsTable

export type CloudSettings = SettingsOf<typeof ruleSettings>
export const defaultSettings: CloudSettings = defaultsOf(ruleSettings)
