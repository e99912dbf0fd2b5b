import { z } from 'zod'
import {
  numberText,
  type Setting,
  type SettingsOf,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'
import { defaultSettings, type CloudSettings } from './settings.ts'

const DAY_MS = 24 * 3_600_000
const milliseconds = numberText(1, 30 * 24 * 3_600_000)
const duration = (standardMs: number, describe: string): Setting<typeof milliseconds> => ({
  schema: milliseconds,
  standard: String(standardMs),
  describe: `${describe} Milliseconds.`,
})

const wholeDays = numberText(1, 36_500)
const days = (standardMs: number, describe: string): Setting<typeof wholeDays> => ({
  schema: wholeDays,
  standard: String(standardMs / DAY_MS),
  describe: `${describe} Days.`,
})

/** The values that the contract marks *config*, by the names of the environment. */
export const ruleSettings = {
  CURRENCY: {
    schema: z.string().regex(/^[A-Z]{3}$/, 'must be three capital letters'),
    standard: defaultSettings.currency,
    describe: 'ISO 4217 code of all amounts.',
  },
  ONLINE_WITHIN_MS: duration(defaultSettings.onlineWithinMs, 'A hub heard from within this is online.'),
  COMMAND_TIMEOUT_MS: duration(
    defaultSettings.commandTimeoutMs,
    'How long a hub may take to answer a command.',
  ),
  IDLE_ORDER_MS: duration(defaultSettings.idleOrderMs, 'An unpaid order left alone so long expires.'),
  PURGE_EXPIRED_MS: duration(defaultSettings.purgeExpiredMs, 'An expired order is deleted after this.'),
  START_WITHIN_MS: duration(
    defaultSettings.startWithinMs,
    'A hub begins a queued order within this, or not at all.',
  ),
  PREPARE_TIMEOUT_MS: duration(defaultSettings.prepareTimeoutMs, 'How long preparing an order may take.'),
  UNCLAIMED_TIMEOUT_MS: duration(
    defaultSettings.unclaimedTimeoutMs,
    'A ready order that nobody takes fails after this.',
  ),
  EXPIRING_NOTICE_MS: duration(
    defaultSettings.expiringNoticeMs,
    'A customer is told so long before a cart expires.',
  ),
  UNCLAIMED_NOTICE_MS: duration(
    defaultSettings.unclaimedNoticeMs,
    'A customer is told of an order that has been ready for so long.',
  ),
  SILENT_HUB_MS: duration(defaultSettings.silentHubMs, 'An order at a hub that fell silent ends after this.'),
  PAYMENT_RECHECK_MS: duration(
    defaultSettings.paymentRecheckMs,
    'A payment in doubt is asked about after this.',
  ),
  PAYMENT_ABANDON_MS: duration(
    defaultSettings.paymentAbandonMs,
    'A payment or deposit that its customer does not finish is given up after this.',
  ),
  REFUND_RETRY_MS: duration(
    defaultSettings.refundRetryMs,
    'A refund that is owed and was refused is tried again after this, then after twice as long, and so on.',
  ),
  REFUND_RETRIES: {
    schema: numberText(0, 20),
    standard: String(defaultSettings.refundRetries),
    describe: 'How often it is tried again.',
  },
  WALLET_DEPOSIT_MIN_CENTS: {
    schema: numberText(1, 100_000_000),
    standard: String(defaultSettings.depositMinCents),
    describe: 'The least that is deposited into a wallet at once. Cents.',
  },
  WALLET_DEPOSIT_MAX_CENTS: {
    schema: numberText(1, 100_000_000),
    standard: String(defaultSettings.depositMaxCents),
    describe: 'The most. Cents.',
  },
  LOYALTY_CENTS_PER_POINT: {
    schema: numberText(1, 1_000_000),
    standard: String(defaultSettings.loyaltyCentsPerPoint),
    describe: 'For so many whole cents of an order, after deals and before tax, a point is earned.',
  },
  LOYALTY_POINT_CENTS: {
    schema: numberText(0, 1_000_000),
    standard: String(defaultSettings.loyaltyPointCents),
    describe: 'What a point is worth. Cents.',
  },
  TOP_PRODUCTS: {
    schema: numberText(1, 100),
    standard: String(defaultSettings.topProducts),
    describe: 'How many products the list of those that sold most has.',
  },
  WORK_BATCH: {
    schema: numberText(1, 10_000),
    standard: String(defaultSettings.workBatch),
    describe: 'How many rows of due work of a kind are claimed at once. Never a limit of what gets done.',
  },
  WORK_CONCURRENCY: {
    schema: numberText(1, 100),
    standard: String(defaultSettings.workConcurrency),
    describe: 'How many rows of due work of a kind this process handles at once.',
  },
  WORK_LEASE_MS: duration(
    defaultSettings.workLeaseMs,
    'Due work whose process has died is taken up by another one after this.',
  ),
  WORK_POLL_MS: duration(
    defaultSettings.workPollMs,
    'How often a process looks for due work that other processes have added.',
  ),
  SWEEP_MS: duration(defaultSettings.sweepMs, 'How often the background rules of payments run.'),
  STALE_SALES_MS: duration(
    defaultSettings.staleSalesMs,
    'How often hubs are looked for whose time zone has changed: their summaries of sales are made anew.',
  ),
  OVERDUE_RECHECK_MS: duration(
    defaultSettings.overdueRecheckMs,
    'An order past its time is looked at again after this while its hub may still report of it.',
  ),
  RETENTION_BATCH: {
    schema: numberText(1, 100_000),
    standard: String(defaultSettings.retentionBatch),
    describe: 'How many rows that have been kept for their time are deleted at once.',
  },
  MANAGEMENT_CONNECT_TIMEOUT_MS: {
    schema: numberText(1, 15_000),
    standard: String(defaultSettings.managementConnectMs),
    describe: "How long a hub's management service (SSH) may take to let the cloud in. Milliseconds.",
  },
  MANAGEMENT_COMMAND_TIMEOUT_MS: {
    // Together they stay below the time for which an idempotency key is kept for a request under way.
    schema: numberText(1, 40_000),
    standard: String(defaultSettings.managementCommandMs),
    describe: "How long a command there may take: it stops and starts the hub's service. Milliseconds.",
  },
  RECORDS_KEPT_DAYS: days(
    defaultSettings.recordsKeptMs,
    "Telemetry, finished commands, the processor's events, notices to customers, and redemptions that were announced and never taken up are deleted after this.",
  ),
  INCIDENTS_KEPT_DAYS: days(
    defaultSettings.incidentsKeptMs,
    'Alarms that are over, dead letters, and epochs that hubs have left are deleted after this. Orders, money, stock and the audit log are kept.',
  ),
  WEBHOOK_TOLERANCE_MS: duration(defaultSettings.webhookToleranceMs, 'How old a signed webhook may be.'),
  ANNOUNCED_REDEMPTION_MS: duration(
    defaultSettings.announcedRedemptionMs,
    'How long a redemption announced by apply-reward counts towards the limits of its deal.',
  ),
  DEAL_IMAGE_REQUIRED: {
    schema: z.enum(['true', 'false']).transform((value) => value === 'true'),
    standard: String(defaultSettings.dealImageRequired),
    describe: 'Whether a deal that its owner creates with a form must have an image: true or false.',
  },
  FILE_ADDRESS_MS: duration(
    defaultSettings.fileAddressMs,
    'How long, at least, the signed address of an image or video can be used.',
  ),
  ORPHANED_FILE_MS: duration(
    defaultSettings.orphanedFileMs,
    'A file left by an upload that never ended is removed after this.',
  ),
} satisfies SettingsTable

/** The settings, as the parts of the service take them. */
export function rulesOf(settings: SettingsOf<typeof ruleSettings>): CloudSettings {
  return {
    currency: settings.CURRENCY,
    onlineWithinMs: settings.ONLINE_WITHIN_MS,
    commandTimeoutMs: settings.COMMAND_TIMEOUT_MS,
    idleOrderMs: settings.IDLE_ORDER_MS,
    purgeExpiredMs: settings.PURGE_EXPIRED_MS,
    startWithinMs: settings.START_WITHIN_MS,
    prepareTimeoutMs: settings.PREPARE_TIMEOUT_MS,
    unclaimedTimeoutMs: settings.UNCLAIMED_TIMEOUT_MS,
    expiringNoticeMs: settings.EXPIRING_NOTICE_MS,
    unclaimedNoticeMs: settings.UNCLAIMED_NOTICE_MS,
    silentHubMs: settings.SILENT_HUB_MS,
    paymentRecheckMs: settings.PAYMENT_RECHECK_MS,
    paymentAbandonMs: settings.PAYMENT_ABANDON_MS,
    refundRetryMs: settings.REFUND_RETRY_MS,
    refundRetries: settings.REFUND_RETRIES,
    depositMinCents: settings.WALLET_DEPOSIT_MIN_CENTS,
    depositMaxCents: settings.WALLET_DEPOSIT_MAX_CENTS,
    loyaltyCentsPerPoint: settings.LOYALTY_CENTS_PER_POINT,
    loyaltyPointCents: settings.LOYALTY_POINT_CENTS,
    topProducts: settings.TOP_PRODUCTS,
    workBatch: settings.WORK_BATCH,
    workConcurrency: settings.WORK_CONCURRENCY,
    workLeaseMs: settings.WORK_LEASE_MS,
    workPollMs: settings.WORK_POLL_MS,
    sweepMs: settings.SWEEP_MS,
    staleSalesMs: settings.STALE_SALES_MS,
    overdueRecheckMs: settings.OVERDUE_RECHECK_MS,
    retentionBatch: settings.RETENTION_BATCH,
    managementConnectMs: settings.MANAGEMENT_CONNECT_TIMEOUT_MS,
    managementCommandMs: settings.MANAGEMENT_COMMAND_TIMEOUT_MS,
    recordsKeptMs: settings.RECORDS_KEPT_DAYS * DAY_MS,
    incidentsKeptMs: settings.INCIDENTS_KEPT_DAYS * DAY_MS,
    webhookToleranceMs: settings.WEBHOOK_TOLERANCE_MS,
    announcedRedemptionMs: settings.ANNOUNCED_REDEMPTION_MS,
    dealImageRequired: settings.DEAL_IMAGE_REQUIRED,
    fileAddressMs: settings.FILE_ADDRESS_MS,
    orphanedFileMs: settings.ORPHANED_FILE_MS,
  }
}
