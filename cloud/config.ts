import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import {
  helpText,
  numberText,
  readSettings,
  type Setting,
  type SettingsOf,
  type SettingsTable,
} from '../protocol/model/program-settings.ts'
import { defaultGatewaySettings } from './gateway/gateway-settings.ts'
import { defaultSettings, type CloudSettings } from './settings.ts'

const url = (pattern: RegExp, expected: string) => z.string().regex(pattern, `must be ${expected}`)

/** Where the data is: shared with the command-line tools. */
export const storeSettings = {
  DATA_DIR: {
    schema: z.string().transform((path) => resolve(path)),
    standard: 'data/cloud',
    describe: 'Folder of the database file and of what the demo keeps.',
  },
  DATABASE_URL: {
    secret: true,
    schema: url(/^(sqlite:.|postgres(ql)?:\/\/)/, 'sqlite:PATH or postgres://…').optional(),
    describe:
      'sqlite:PATH or postgres://…; several processes may share a PostgreSQL. Default: sqlite:<DATA_DIR>/larder.sqlite.',
  },
} satisfies SettingsTable

const serviceSettings = {
  ...storeSettings,
  HOST: {
    schema: z.string(),
    standard: '127.0.0.1',
    describe: 'Address that HTTP and the embedded broker listen on.',
  },
  PORT: { schema: numberText(0, 65_535), standard: '8080', describe: 'Port of HTTP; 0 takes any free one.' },
  PUBLIC_URL: {
    schema: url(/^https?:\/\/[^/]+.*[^/]$/, 'an http(s) address without a slash at its end').optional(),
    describe: 'Address by which callers know this service. Default: http://127.0.0.1:<PORT>.',
  },
  TRUSTED_PROXIES: {
    schema: numberText(0, 10),
    standard: '0',
    describe: 'How many proxies stand in front: so many entries of X-Forwarded-For are believed.',
  },
  MQTT_URL: {
    secret: true,
    schema: url(/^mqtts?:\/\/./, 'mqtt://… or mqtts://…').optional(),
    describe: 'An external MQTT 3.1.1 broker, with user and password. Default: a broker inside this process.',
  },
  MQTT_PORT: {
    schema: numberText(0, 65_535),
    standard: '18830',
    describe: 'Port of the embedded broker; 0 takes any free one. Without meaning where MQTT_URL is set.',
  },
  LEASE_MS: {
    schema: numberText(1000, 3_600_000),
    standard: String(defaultGatewaySettings.leaseMs),
    describe:
      'Of several processes, one that has not heard a hub for so long leaves it to another. Several heartbeats of a hub. Milliseconds.',
  },
  PAYMENTS_URL: {
    secret: true,
    schema: url(/^sandbox:$/, 'sandbox:'),
    standard: 'sandbox:',
    describe: 'The card processor. The sandbox moves no money; production refuses it.',
  },
  PAYMENTS_WEBHOOK_SECRET: {
    secret: true,
    schema: z.string().min(16, 'must have at least 16 characters').optional(),
    describe: "Secret of the processor's signatures. The sandbox needs none: it makes one at each start.",
  },
  IDENTITY_ISSUER: {
    schema: url(/^https?:\/\/./, 'an http(s) address').optional(),
    describe:
      'OIDC issuer of identity tokens (RS256 or ES256). Default: an issuer inside this process that believes everybody; production refuses it.',
  },
  IDENTITY_AUDIENCE: { schema: z.string(), standard: 'larder', describe: '`aud` of identity tokens.' },
  MEDIA_URL: {
    secret: true,
    schema: url(
      /^(file:.|s3:\/\/[^/?]+(\/[^?]*)?(\?.*)?$)/,
      'file:PATH or s3://BUCKET[/PREFIX]?…',
    ).optional(),
    describe:
      'Where images and videos are kept: file:PATH, a folder that all processes see, or s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION, by default of AWS in us-east-1. Default: file:<DATA_DIR>/media.',
  },
  AWS_ACCESS_KEY_ID: { schema: z.string().min(1).optional(), describe: 'Key of an s3: MEDIA_URL.' },
  AWS_SECRET_ACCESS_KEY: {
    secret: true,
    schema: z.string().min(1).optional(),
    describe: 'Secret of an s3: MEDIA_URL.',
  },
  MEDIA_SECRET: {
    secret: true,
    schema: z.string().min(32, 'must have at least 32 characters').optional(),
    describe:
      'Secret of the signed addresses of files, the same in all processes. Default: one kept in DATA_DIR; production requires it.',
  },
  MANAGEMENT_KEY: {
    schema: z.string().min(1).optional(),
    describe:
      "The cloud's private key for the hubs' management services, in OpenSSH's format. Default: <DATA_DIR>/management-key. `npm run hubs -- key` makes it where there is none.",
  },
  NODE_ENV: {
    schema: z.string(),
    standard: 'development',
    describe: 'production refuses to start with the sandbox and with the embedded issuer.',
  },
  LOG_DIR: {
    schema: z
      .string()
      .transform((path) => resolve(path))
      .optional(),
    describe: 'Folder of the log files, a new one each day or at 10 MB. Default: <DATA_DIR>/logs.',
  },
  FCM_SERVICE_ACCOUNT: {
    schema: z.string().optional(),
    describe:
      'File with the key of a Google service account: notices to iOS and Android go through FCM. Default: they are logged.',
  },
  FCM_URL: {
    schema: url(/^https?:\/\/.*[^/]$/, 'an http(s) address without a slash at its end'),
    standard: 'https://fcm.googleapis.com',
    describe: 'Where FCM is.',
  },
  VAPID_PUBLIC_KEY: {
    schema: z.string().optional(),
    describe: 'With VAPID_PRIVATE_KEY: notices to browsers go out by Web Push. Default: they are logged.',
  },
  VAPID_PRIVATE_KEY: {
    schema: z.string().optional(),
    secret: true,
    describe: 'Signs Web Push.',
  },
  VAPID_SUBJECT: {
    schema: url(/^(mailto:.+@.+|https:\/\/.+)$/, 'mailto:… or https://…').optional(),
    describe: 'Whom a push service may complain to. Needed for Web Push.',
  },
  WEB_PUSH_ORIGINS: {
    schema: z.string().transform((text) => text.split(',').map((origin) => origin.trim())),
    standard:
      'https://fcm.googleapis.com,https://*.push.services.mozilla.com,https://*.push.apple.com,https://*.notify.windows.com',
    describe: 'Push services that may be called: a browser names its own, and any other one is not called.',
  },
  LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
    standard: 'info',
    describe: 'debug, info, warn, error or silent; debug tells of each request.',
  },
} satisfies SettingsTable

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
const ruleSettings = {
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
  SWEEP_MS: duration(defaultSettings.sweepMs, 'How often the background rules of payments run.'),
  TASK_PERIOD_MS: duration(defaultSettings.taskPeriodMs, 'How often the background tasks of orders run.'),
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
    "Telemetry, finished commands and the processor's events are deleted after this.",
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

/** Every setting of the cloud service. */
export const cloudSettings = { ...serviceSettings, ...ruleSettings } satisfies SettingsTable

export type StoreConfig = SettingsOf<typeof storeSettings> & { databaseUrl: string }
export type CloudConfig = SettingsOf<typeof serviceSettings> & {
  databaseUrl: string
  mediaUrl: string
  rules: CloudSettings
  shown: Shown
}

export const databaseUrlOf = (settings: SettingsOf<typeof storeSettings>): string =>
  settings.DATABASE_URL ?? `sqlite:${join(settings.DATA_DIR, 'larder.sqlite')}`

/** A folder below that of the data. */
export const defaultMediaUrl = (dataDir: string): string => `file:${join(dataDir, 'media')}`

export const managementKeyOf = (
  settings: SettingsOf<Pick<typeof cloudSettings, 'DATA_DIR' | 'MANAGEMENT_KEY'>>,
): string => settings.MANAGEMENT_KEY ?? join(settings.DATA_DIR, 'management-key')

export type ConfigResult<T> = { ok: true; config: T } | { ok: false; problems: string[] }

/** Reads the configuration of the service, and names everything that is wrong with it. */
export function readCloudConfig(
  environment: Readonly<Record<string, string | undefined>>,
  file?: { path: string; text: string },
): ConfigResult<CloudConfig> {
  const result = readSettings(cloudSettings, environment, file)
  if (!result.ok) return result
  const { settings } = result
  const problems = settings.NODE_ENV === 'production' ? refusedInProduction(settings) : []
  if (problems.length > 0) return { ok: false, problems }
  return {
    ok: true,
    config: {
      ...settings,
      databaseUrl: databaseUrlOf(settings),
      mediaUrl: settings.MEDIA_URL ?? defaultMediaUrl(settings.DATA_DIR),
      rules: rulesOf(settings),
      shown: shownOf(settings),
    },
  }
}

/** What stands in for another party is for demos (contract §13). */
function refusedInProduction(settings: SettingsOf<typeof serviceSettings>): string[] {
  return [
    ...(settings.PAYMENTS_URL === 'sandbox:'
      ? ['PAYMENTS_URL: the sandbox card processor is refused with NODE_ENV=production']
      : []),
    ...(settings.IDENTITY_ISSUER === undefined
      ? ['IDENTITY_ISSUER: must be set with NODE_ENV=production; the embedded issuer is refused']
      : []),
    ...(settings.MEDIA_SECRET === undefined ? ['MEDIA_SECRET: must be set with NODE_ENV=production'] : []),
  ]
}

/** Settings as anybody may see them; secret ones, and addresses that may hold a password, are not among them. */
export type Shown = Record<string, string | number | boolean>

const shownOf = (settings: SettingsOf<typeof cloudSettings>): Shown =>
  Object.fromEntries(
    Object.entries(cloudSettings as SettingsTable).flatMap(([name, { secret }]) => {
      const value = settings[name as keyof typeof settings]
      if (secret || value === undefined) return []
      return [[name, typeof value === 'object' ? value.join(',') : value]]
    }),
  )

function rulesOf(settings: SettingsOf<typeof ruleSettings>): CloudSettings {
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
    sweepMs: settings.SWEEP_MS,
    taskPeriodMs: settings.TASK_PERIOD_MS,
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

/** The file that `--config` names. */
export const readConfigFile = (path: string | undefined): { path: string; text: string } | undefined =>
  path === undefined ? undefined : { path, text: readFileSync(path, 'utf8') }

export const cloudHelp = (): string =>
  helpText(
    'Usage: npm run cloud -- [--config FILE] [--help]\n\nThe cloud service: HTTP and the hubs’ broker.',
    cloudSettings,
  )
