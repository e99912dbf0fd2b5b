import { z } from 'zod'
import { serverBounds } from '../../../protocol/model/bound-server.ts'
import {
  days,
  defaultsOf,
  duration,
  inGroup,
  limits,
  named,
  prefixed,
  wholeNumber,
  type Setting,
  type SettingsOf,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'
import { DAY_MS as DAY } from '../../../protocol/model/times.ts'
import { LAST_CELL } from '../cells.ts'
import { databaseLimits } from './database-limits.ts'
import { gatewayLimits } from './gateway-limits.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const MIB = 1024 * 1024
type Limit = Setting<z.ZodType<number>>
const ms = (standard: number, describe: string, max = 30 * DAY): Limit => duration(standard, describe, max)
const within =
  (min: number, max: number) =>
  (standard: number, describe: string): Limit =>
    wholeNumber([min, max], standard, describe)
const few = within(1, 100)
const some = within(1, 1000)
const many = within(1, 1_000_000)
const bytes = within(1024, 1024 * MIB)
const cents = within(1, 100_000_000)
const flag = (standard: 'true' | 'false', describe: string) => ({
  schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
  standard,
  describe,
})

const callers = {
  Network: 'network (IPv4 /32, IPv6 /64)',
  User: 'user',
  Key: 'API key',
  Credential: 'user or API key',
  Owner: 'owner',
}

/** The share of a budget for one caller of each kind (`platform/limits/budgets.ts`). */
const shares = <N extends string, C extends keyof typeof callers>(
  name: N,
  what: string,
  limit: typeof many,
  parts: Record<C, number>,
) =>
  Object.fromEntries(
    (Object.entries(parts) as [C, number][]).map(([caller, standard]) => [
      `${name}Per${caller}`,
      limit(standard, `${what}, of one ${callers[caller]}.`),
    ]),
  ) as Record<`${N}Per${C}`, Limit>

const [bodies, forms, streams, signIns] = [
  'Bytes of JSON bodies that have arrived and are not complete',
  'Forms with files that arrive at the same time',
  'Open event streams and log streams',
  'Connections to the embedded broker that have not logged in',
]

/** Budgets that the callers of one process share. */
const budgetLimits = limits('Budgets', {
  httpHeldBodyBytes: within(MIB, 1024 * MIB)(8 * MIB, `${bodies}, of all callers together.`),
  ...shares('httpHeldBodyBytes', bodies, bytes, { Network: 2 * MIB, Credential: 2 * MIB, Owner: 4 * MIB }),
  uploads: many(100, `${forms}, of all callers together.`),
  ...shares('uploads', forms, many, { Network: 20, User: 4, Key: 10, Owner: 20 }),
  uploadPatienceMs: ms(
    30 * SECOND,
    'Time without a byte, or below UPLOAD_BYTES_PER_SECOND, that ends an upload.',
  ),
  uploadBytesPerSecond: many(1024, 'Average number of bytes a second that an upload must bring.'),
  ...shares(
    'mediaMs',
    'Processor time in milliseconds that images and videos take within a minute, in a thread of their own',
    many,
    { User: 2000, Key: 15_000, Owner: 20_000, Network: 20_000 },
  ),
  streams: many(2000, `${streams}, of all callers together.`),
  ...shares('streams', streams, many, { Network: 500, User: 6, Key: 20, Owner: 200 }),
  ...shares(
    'storedAnswerBytes',
    'Bytes of answers that requests with an Idempotency-Key store within 24 hours',
    bytes,
    { User: 2 * MIB, Key: 64 * MIB, Network: 128 * MIB },
  ),
  guestsPerMinute: many(20, 'New guests a minute, of one network (IPv4 /32, IPv6 /64).'),
  signInsPerMinute: many(20, 'Sign-ins a minute, of one network (IPv4 /32, IPv6 /64).'),
  brokerUnsigned: many(1000, `${signIns}, of all networks together.`),
  ...shares('brokerUnsigned', signIns, many, { Network: 20 }),
})

const orderLimits = limits('Orders', {
  ...inGroup('Orders', {
    paymentHoldMs: ms(
      15 * MINUTE,
      'Maximum time for which an unpaid order holds stock and bins, for every payment method and payment state. Then the payment is cancelled and the order is a cart again; money that arrives later is refunded.',
    ),
    externalClaimMs: ms(
      5 * MINUTE,
      "Time within which an integrator must confirm a customer's external payment claim. PAYMENT_HOLD_MS bounds it, too.",
    ),
    unpaidOrdersPerUser: few(
      1,
      'Number of unpaid orders of a user, over all hubs. A further payment is refused.',
    ),
    unpaidUnitsPerOrder: within(1, 100_000)(
      100,
      'Number of units that an order may reserve before it is paid. The wallet pays at once and has no such limit.',
    ),
    lowStock: within(0, 1000)(2, 'Number of units up to which the stock of a product is low for its owner.'),
  }),
  unpaidUnitsPerNetwork: many(
    200,
    'Number of units that unpaid orders of the guests of one network (IPv4 /32, IPv6 /64) may reserve at one hub. Accounts without a verified contact count as guests. A first unpaid order is not bounded by it.',
  ),
  idleOrderMs: ms(30 * MINUTE, 'Time without a change after which an unpaid order expires.'),
  purgeExpiredMs: ms(DAY, 'Time after which an expired order is deleted.'),
  startWithinMs: ms(10 * MINUTE, 'Maximum time until a hub starts a queued order. A later start is refused.'),
  prepareTimeoutMs: ms(10 * MINUTE, 'Maximum time for the preparation of an order.'),
  unclaimedTimeoutMs: ms(HOUR, 'Time after which a ready order fails if its customer does not collect it.'),
  expiringNoticeMs: ms(5 * MINUTE, 'Time before the expiry of a cart at which its customer is notified.'),
  unclaimedNoticeMs: ms(10 * MINUTE, 'Time after which the customer of a ready order is notified again.'),
  silentHubMs: ms(DAY, 'Time after which an order ends that a hub has started and no longer reports.'),
  overdueRecheckMs: ms(30 * SECOND, 'Time between two checks of an overdue order that its hub may report.'),
  lostOrderNumbers: within(0, 1_000_000_000)(
    1_000_000,
    'Maximum step by which order numbers move on, so that no number is issued twice, if a hub or the card processor names an order above the highest one in the database.',
  ),
  orderSearchNames: many(
    10_000,
    "Number of product names that a search in a hub's orders reads, newest first.",
  ),
  orderPollMs: ms(SECOND, 'Time between two checks for followed orders of other processes.', MINUTE),
})

const moneyLimits = limits('Payments', {
  ...inGroup('Payments', {
    currency: {
      schema: z.string().regex(/^[A-Z]{3}$/, 'must be three capital letters'),
      standard: 'USD',
      describe: 'ISO 4217 code of all amounts. They are integers of its smallest unit: cents, yen.',
    },
    orphanedPayments: {
      schema: z.enum(['alarm', 'refund']),
      standard: 'alarm',
      describe:
        'Treatment of a payment that the card processor has and the books lack, as after a restored database: alarm raises an alarm, refund also refunds the money.',
    },
  }),
  paymentRecheckMs: ms(30 * SECOND, 'Time between two questions to the processor about an unknown outcome.'),
  paymentAbandonMs: ms(15 * MINUTE, 'Time after which an unfinished wallet deposit is cancelled.'),
  processorCheckMs: ms(HOUR, 'Time between two comparisons of the books with the card processor.'),
  processorCheckBatch: few(100, 'Number of payments, refunds or disputes that one such request reads.'),
  paymentCheckMs: days('PAYMENT_CHECK_DAYS', 1, 'Time after a payment for which it is compared again.'),
  refundCheckMs: days('REFUND_CHECK_DAYS', 3, 'Time after a refund for which it is compared again.'),
  disputeCheckMs: days('DISPUTE_CHECK_DAYS', 180, 'Time after a dispute starts for which it is compared.'),
  refundRetryMs: ms(HOUR, 'Pause before a rejected refund is tried again. It doubles with each try.'),
  refundRetries: within(0, 20)(6, 'Number of further tries of a rejected refund.'),
  /**
   * Time without a final answer after which a refund is reported as stuck. Banks take up to ten working days for some
   * pending refunds, which are two weeks. The service never cancels a refund, so no operator needs another value.
   */
  refundStuckMs: 14 * DAY,
  ...prefixed('WALLET', {
    depositMinCents: cents(100, 'Minimum of one wallet deposit in cents.'),
    depositMaxCents: cents(50_000, 'Maximum of one wallet deposit in cents.'),
  }),
  loyaltyCentsPerPoint: many(
    100,
    'Whole cents of an order, after deals and before tax, that earn one point.',
  ),
  loyaltyPointCents: within(0, 1_000_000)(1, 'Value of a point in cents.'),
  webhookToleranceMs: ms(300 * SECOND, 'Maximum age of a signed event of the processor.'),
  announcedRedemptionMs: ms(30 * MINUTE, 'Time for which an apply-reward redemption counts for its deal.'),
  dealImageRequired: flag(
    'true',
    'Image of a deal that its owner creates with a form, required: true or false.',
  ),
})

const hubLimits = limits('Hubs', {
  cell: within(0, LAST_CELL)(
    0,
    'Cell of this installation among several. The ids of its hubs and owners follow from it. A database stays in its cell.',
  ),
  ...inGroup('Hubs', {
    hubSilentAlarmMs: ms(5 * MINUTE, 'Time without a message after which a hub raises an alarm.'),
  }),
  hubSilentCriticalMs: ms(HOUR, 'Time without a message after which the alarm of a silent hub is critical.'),
  onlineWithinMs: ms(90 * SECOND, 'Time after the last recorded message for which a hub is online.'),
  rolloutOfflineMs: ms(
    DAY,
    'Time after which a rollout skips a hub that is offline, and a hub without a result of its switch has failed.',
    30 * DAY,
  ),
  rolloutStepMs: ms(2 * SECOND, 'Time between two checks of a rollout.'),
  commandTimeoutMs: ms(10 * SECOND, "Maximum time for a hub's answer to a command."),
  hubLogMs: ms(40 * SECOND, 'Maximum time of a call of the API that reads the log of a hub.', HOUR),
  hubDiagnosisMs: ms(
    HOUR,
    'Maximum time for a hub to send its log or its diagnostic archive. An archive of 5 MiB takes half an hour on a line of 64 kbit/s.',
    DAY,
  ),
  hubDrainMs: ms(
    7 * DAY,
    'Maximum time for which a retired hub may still sign in, to receive its cancellations and to report what fell. Its login ends sooner if both are done.',
  ),
  claimCodeMs: ms(DAY, 'Time for which a claim code can be used.', 30 * DAY),
  hubCertificateMs: ms(90 * DAY, 'Lifetime of a certificate of a hub.', 825 * DAY),
  hubCertificatesAtOnce: few(2, 'Number of requests of hubs for certificates that are answered at once.'),
  hubAuthorityDelayMs: ms(HOUR, 'Time for brokers to read a new authority before it signs.', 12 * HOUR),
  hubReturnMs: ms(
    2 * MINUTE,
    'Time that hubs have to report after the cloud begins to listen: after its start, after a standstill, and after a loss of the broker or the database. Until then the cloud ends nothing because of a silent hub.',
  ),
  listeningGapMs: ms(
    10 * SECOND,
    'Length from which a standstill of the process, or a loss of the broker or the database, interrupts its listening to hubs.',
    5 * MINUTE,
  ),
  // Their sum is below the time for which a running request holds its idempotency key.
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
  alarmsPerHub: within(1, 10_000)(
    200,
    'Maximum number of open alarms of one hub. Further alarms are only logged. A tenth is reserved for alarms of the hub as a whole.',
  ),
  alarmClearMs: ms(10 * SECOND, 'Time without the problem after which an alarm ends that may come back.'),
  alarmFlapMs: ms(
    10 * MINUTE,
    'Time after the end of an alarm within which the same problem opens the same alarm again. That alarm ends after this time without the problem.',
  ),
  certificateWarnMs: ms(
    14 * DAY,
    'Time before the end of a certificate at which an alarm is raised. An API key that expires within this time has a warning in `keys list`.',
    365 * DAY,
  ),
})

const callLimits = limits('Calls', {
  ...inGroup('Identity', {
    identityClockToleranceS: within(0, 600)(
      60,
      'Maximum difference in seconds between the clock of the identity issuer and the clock of this service. Tokens are accepted this long before nbf and after exp.',
    ),
  }),
  identityTokens: many(2000, 'Number of verified identity tokens that are cached.'),
  identityRefetchMs: ms(5 * SECOND, "Minimum time between fetches of the issuer's unknown keys.", MINUTE),
  grantsKeptMs: ms(
    SECOND,
    'Time for which an API key, a role and the owner of a hub are cached. A revoked one ends after this time at the latest, in all processes.',
    5 * SECOND,
  ),
  sessionMs: ms(30 * DAY, 'Maximum time of the session of a person who has signed in in a browser.'),
  sessionIdleMs: ms(7 * DAY, 'Time without a call after which such a session ends.'),
  keysPerOwner: many(100, 'Maximum number of valid API keys of one owner.'),
  rolesPerOwner: many(500, 'Maximum number of roles of people at the hubs of one owner.'),
  invitationsPerOwner: many(50, 'Maximum number of open invitations of people to the hubs of one owner.'),
  invitationMs: ms(7 * DAY, 'Time in which a person can accept an invitation, or mails.', 90 * DAY),
  unaskedMailsPerOwner: many(50, 'Maximum number of mails in a day to addresses that have not agreed.'),
  unaskedMailsPerAddress: many(3, 'Maximum number of such mails to one address, for all owners together.'),
  guestSessionMs: ms(90 * DAY, "Time without a call after which a guest's session ends.", 400 * DAY),
  ...prefixed('HTTP', {
    bodyIdleMs: ms(10 * SECOND, 'Time without a byte after which an incomplete JSON body is refused.'),
    bodyTimeoutMs: ms(MINUTE, 'Maximum time for a JSON body to arrive.'),
  }),
  rateSettleMs: ms(
    100,
    'Time between two exchanges of call counts between processes that share a PostgreSQL. A caller gets at most the calls of this time beyond an allowance.',
    MINUTE,
  ),
  accessLog: flag(
    'false',
    'Log line at level info for each request, with path, route, status, time and address: true or false. At level debug it is always there.',
  ),
  searchTotalsKept: many(10_000, 'Number of cached totals of product searches, until the catalogue changes.'),
  topProducts: few(10, 'Number of products in the list of best-selling products.'),
  fileAddressMs: ms(DAY, 'Minimum time for which the signed address of an image or video is valid.'),
  fileAddressesKept: many(10_000, 'Number of signed addresses that are cached.'),
  imagePixels: within(1, 1_000_000_000)(50_000_000, 'Maximum number of pixels of an uploaded image.'),
  mediaParts: within(100, 10_000_000)(20_000, 'Maximum number of segments, chunks or boxes of an upload.'),
  mediaProcessorMs: within(10, MINUTE)(2 * SECOND, 'Maximum processor time for one upload in milliseconds.'),
  orphanedFileMs: ms(DAY, 'Time after which the file of an unfinished upload is removed.'),
})

const eventLimits = limits('Events and notices', {
  ...inGroup('Events and notices', {
    webhooksPerOwner: many(16, 'Maximum number of webhooks of one owner.'),
    mailGatherMs: ms(2 * SECOND, 'Time for which alarms are collected into one mail to a contact.'),
  }),
  morningMailAt: {
    schema: z
      .string()
      .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of the day, such as 07:00')
      .transform((time) => Date.parse(`1970-01-01T${time}Z`)),
    standard: '07:00',
    describe: 'Time of the mail of each morning, by the clock of the hub.',
  },
  eventBatch: within(1, 4000)(500, 'Number of events that get their place in the list at once.'),
  eventsInMemory: within(1, 100_000)(
    1000,
    'Number of newest events that are kept in memory for live streams.',
  ),
  eventPollMs: ms(SECOND, 'Time between two checks for events of other processes.', MINUTE),
  webhookTimeoutMs: ms(15 * SECOND, 'Maximum time for the answer of a webhook.', MINUTE),
  webhookConcurrency: few(4, 'Number of events that this process sends to one webhook at once.'),
  webhookRetryMs: {
    schema: z
      .string()
      .regex(/^\d{1,10}(,\d{1,10}){0,50}$/, 'must be whole numbers, separated by commas')
      .transform((text) => text.split(',').map(Number)),
    standard: [5 / 3600, 5 / 60, 0.5, 2, 5, 10, 14, 20, 24].map((hours) => Math.round(hours * HOUR)).join(),
    describe:
      'Pauses before the further attempts of a delivery, in milliseconds, separated by commas. Each is up to a tenth longer.',
  },
  webhookFailingMs: days('WEBHOOK_FAILING_DAYS', 5, 'Time without any success until a webhook is disabled.'),
  streamMs: ms(15 * MINUTE, 'Maximum time of a live stream. Then its reader connects again.'),
  streamCheckMs: ms(
    2 * SECOND,
    'Time between two checks of the credential of a live stream. A stream ends at most this time and GRANTS_KEPT_MS after its credential was revoked or expired.',
    4 * SECOND,
  ),
  streamStallMs: ms(MINUTE, 'Time without a read after which the reader of a live stream is disconnected.'),
  pushDevices: some(20, 'Number of devices of a user that get notices. Beyond it, the oldest is removed.'),
})

const workLimits = limits('Due work', {
  workBatch: within(1, 10_000)(100, 'Number of rows of due work of one kind that are claimed at once.'),
  workConcurrency: few(4, 'Number of rows of due work of one kind that this process handles at once.'),
  workLeaseMs: ms(MINUTE, 'Time after which due work of a dead process is taken over by another process.'),
  workPollMs: ms(2 * SECOND, 'Time between two checks for due work that other processes have added.'),
  workAlarmAttempts: some(8, 'Number of consecutive failures of due work that raise an alarm.'),
  clockStepMs: ms(10 * SECOND, 'Backward step of the clock from which stored future times are corrected.'),
  staleSalesMs: ms(MINUTE, 'Time between two checks for sales figures of hubs with a changed time zone.'),
  retentionBatch: within(1, 100_000)(500, 'Number of expired rows that are deleted at once.'),
  recordsKeptMs: days(
    'RECORDS_KEPT_DAYS',
    90,
    'Time after which finished commands, processor events, notices to customers and unused announced redemptions are deleted.',
  ),
  incidentsKeptMs: days(
    'INCIDENTS_KEPT_DAYS',
    365,
    'Time after which temperatures, ended alarms, dead letters and former epochs of hubs are deleted. PostgreSQL deletes temperatures by whole weeks. Orders, money, stock and the audit log are kept.',
  ),
  eventsKeptMs: days('EVENTS_KEPT_DAYS', 30, 'Time after which events are deleted.'),
  guestsKeptMs: days(
    'GUESTS_KEPT_DAYS',
    30,
    'Time after its last change after which a guest without any order, payment or points is deleted with its picture.',
  ),
})

/** Every limit of the cloud: name, bounds, default and description. Settings in a group are decisions of operators. */
export const cloudLimits = {
  rules: {
    ...budgetLimits,
    ...orderLimits,
    ...moneyLimits,
    ...hubLimits,
    ...callLimits,
    ...eventLimits,
    ...workLimits,
  },
  gateway: gatewayLimits,
  /** A request may take as long as the largest upload at 1 Mbit/s. */
  http: serverBounds('HTTP', {
    maxConnections: 5000,
    connectionsPerNetwork: 1000,
    requestTimeoutMs: 30 * MINUTE,
  }),
  database: databaseLimits,
} satisfies SettingsTable

type CloudLimits = SettingsOf<typeof cloudLimits>
/** The limits of the service's rules, available as `CloudContext.settings`. */
export type CloudSettings = CloudLimits['rules']
export type DatabaseLimits = CloudLimits['database']
export type PoolLimits = DatabaseLimits['reads']
export const defaultLimits: CloudLimits = defaultsOf(cloudLimits)
