const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** What an operator can set (contract, "config"). Durations are milliseconds, money is cents. */
export interface CloudSettings {
  currency: string
  /** A hub heard from within this is online (contract §6). */
  onlineWithinMs: number
  /** How long a command may take to be answered. */
  commandTimeoutMs: number
  /** An unpaid order that nobody touched for so long expires (contract §5), and is deleted so long after that. */
  idleOrderMs: number
  purgeExpiredMs: number
  /** A hub that has not begun a queued order by then does not begin. */
  startWithinMs: number
  prepareTimeoutMs: number
  unclaimedTimeoutMs: number
  /** Customers are told so long before a cart expires, and so long after an order is READY. */
  expiringNoticeMs: number
  unclaimedNoticeMs: number
  /** An order that the hub has taken and then fell silent with ends after this. */
  silentHubMs: number
  /** An unfinished payment is asked about at the processor after this, and given up (cancelled there) after that. */
  paymentRecheckMs: number
  paymentAbandonMs: number
  /** A refund that the service owes and the processor refused is tried again after this, then twice as long, so many times. */
  refundRetryMs: number
  refundRetries: number
  /** Bounds of one wallet deposit. */
  depositMinCents: number
  depositMaxCents: number
  /** An order earns a point for so many whole cents; a point is worth so many (contract §10). */
  loyaltyCentsPerPoint: number
  loyaltyPointCents: number
  /** How many products the list of those that sold most has (O §4.4). */
  topProducts: number
  /** Due work: how much of a kind is claimed at once, how much of it runs at once, how long a claim holds, how often the queue is looked at. */
  workBatch: number
  workConcurrency: number
  workLeaseMs: number
  workPollMs: number
  sweepMs: number
  /** How often hubs are looked for whose summaries of sales are kept in another time zone than theirs. */
  staleSalesMs: number
  /** How often an order that is past its time is looked at again while its hub may still report of it. */
  overdueRecheckMs: number
  /** How many old rows of a table are deleted at once. */
  retentionBatch: number
  /** How long a hub's management service may take to let the cloud in, and how long a command there may take. */
  managementConnectMs: number
  managementCommandMs: number
  /**
   * How long rows are kept that only say what was: telemetry, finished commands, events that a processor sent; and what
   * somebody may still look into: alarms that are over, dead letters, epochs that hubs have left.
   */
  recordsKeptMs: number
  incidentsKeptMs: number
  /** How old a signed webhook may be. */
  webhookToleranceMs: number
  /** How long a redemption that an integrator announced binds a deal's limits (contract §8). */
  announcedRedemptionMs: number
  /** Whether create-from-owner must come with an image (O §4.7). */
  dealImageRequired: boolean
  /** How long, at least, the address of a file can be used. */
  fileAddressMs: number
  /** A file that no request has made use of by then is removed; longer than any upload takes. */
  orphanedFileMs: number
}

export const defaultSettings: CloudSettings = {
  currency: 'USD',
  onlineWithinMs: 90 * SECOND,
  commandTimeoutMs: 10 * SECOND,
  idleOrderMs: 30 * MINUTE,
  purgeExpiredMs: 24 * HOUR,
  startWithinMs: 10 * MINUTE,
  prepareTimeoutMs: 10 * MINUTE,
  unclaimedTimeoutMs: 60 * MINUTE,
  expiringNoticeMs: 5 * MINUTE,
  unclaimedNoticeMs: 10 * MINUTE,
  silentHubMs: 24 * HOUR,
  paymentRecheckMs: 30 * SECOND,
  paymentAbandonMs: 15 * MINUTE,
  refundRetryMs: HOUR,
  refundRetries: 6,
  depositMinCents: 100,
  depositMaxCents: 50_000,
  loyaltyCentsPerPoint: 100,
  loyaltyPointCents: 1,
  topProducts: 10,
  workBatch: 100,
  workConcurrency: 4,
  workLeaseMs: MINUTE,
  workPollMs: 10 * SECOND,
  sweepMs: 10 * SECOND,
  staleSalesMs: MINUTE,
  overdueRecheckMs: 30 * SECOND,
  retentionBatch: 500,
  managementConnectMs: 10 * SECOND,
  managementCommandMs: 40 * SECOND,
  recordsKeptMs: 90 * DAY,
  incidentsKeptMs: 365 * DAY,
  webhookToleranceMs: 300 * SECOND,
  announcedRedemptionMs: 30 * MINUTE,
  dealImageRequired: true,
  fileAddressMs: 24 * HOUR,
  orphanedFileMs: 24 * HOUR,
}
