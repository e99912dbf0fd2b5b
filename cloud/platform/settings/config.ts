import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAnyAddress } from '../../../protocol/model/address.ts'
import { goesInClear, isLoopback, refusedExposures, type Exposure } from '../../../protocol/model/exposure.ts'
import {
  helpText,
  readSettings,
  shownSettings,
  type SettingsOf,
  type SettingsTable,
  type Shown,
} from '../../../protocol/model/program-settings.ts'
import { fileProblem } from '../../../protocol/model/system-error.ts'
import { hostsInClear, postgresAddress } from './postgres-url.ts'
import { cloudLimits } from './limits.ts'
import { serviceSettings, type storeSettings } from './settings.ts'
import { UsageError } from './usage-error.ts'

/** Every setting of the cloud service. */
export const cloudSettings = {
  ...serviceSettings,
  limits: cloudLimits,
} satisfies SettingsTable

export type CloudConfig = SettingsOf<typeof cloudSettings> & {
  databaseUrl: string
  mediaUrl: string
  shown: Shown
}

export const databaseUrlOf = (settings: SettingsOf<typeof storeSettings>): string =>
  settings.DATABASE_URL ?? `sqlite:${join(settings.DATA_DIR, 'larder.sqlite')}`

/** A subfolder of the data folder. */
export const defaultMediaUrl = (dataDir: string): string => `file:${join(dataDir, 'media')}`

export const managementKeyOf = (
  settings: SettingsOf<Pick<typeof cloudSettings, 'DATA_DIR' | 'MANAGEMENT_KEY'>>,
): string => settings.MANAGEMENT_KEY ?? join(settings.DATA_DIR, 'management-key')

export type ConfigResult<T> = { ok: true; config: T } | { ok: false; problems: string[] }

/** Reads the configuration of the service, and reports all of its problems. */
export function readCloudConfig(
  environment: Readonly<Record<string, string | undefined>>,
  file?: { path: string; text: string },
): ConfigResult<CloudConfig> {
  const result = readSettings(cloudSettings, environment, file)
  if (!result.ok) return result
  const { settings } = result
  const problems = [
    ...(settings.NODE_ENV === 'production' ? refusedInProduction(settings) : []),
    ...missingForStripe(settings),
    ...missingForHubs(settings),
    ...refusedExposures(exposuresOf(settings), settings.ALLOW_INSECURE),
    ...((settings.MQTT_CERT === undefined) === (settings.MQTT_KEY === undefined)
      ? []
      : ['MQTT_CERT: it and MQTT_KEY must be set together']),
  ]
  if (problems.length > 0) return { ok: false, problems }
  return {
    ok: true,
    config: {
      ...settings,
      databaseUrl: databaseUrlOf(settings),
      mediaUrl: settings.MEDIA_URL ?? defaultMediaUrl(settings.DATA_DIR),
      shown: shownSettings(cloudSettings, result.byName),
    },
  }
}

/** Problems of settings that are for demos only. */
function refusedInProduction(settings: SettingsOf<typeof serviceSettings>): string[] {
  return [
    ...(settings.PAYMENTS_URL === 'sandbox:'
      ? ['PAYMENTS_URL: the sandbox card processor is refused with NODE_ENV=production']
      : []),
    ...(settings.IDENTITY_ISSUER === undefined
      ? ['IDENTITY_ISSUER: must be set with NODE_ENV=production; the embedded issuer is refused']
      : []),
    ...(settings.WEBHOOK_ALLOW_PRIVATE
      ? ['WEBHOOK_ALLOW_PRIVATE: addresses that are not public are refused with NODE_ENV=production']
      : []),
    ...(['MEDIA_SECRET', 'STORE_SECRET'] as const).flatMap((name) =>
      settings[name] === undefined ? [`${name}: must be set with NODE_ENV=production`] : [],
    ),
  ]
}

/** A database on another machine with a connection that is, or may be, unencrypted. */
export const databaseExposure = (databaseUrl: string | undefined) =>
  ({
    name: 'plain-database',
    problems: databaseUrl?.startsWith('postgres')
      ? hostsInClear(postgresAddress(databaseUrl)).map(
          (host) =>
            `DATABASE_URL: ${host} may be called in clear: add sslmode=verify-full, or sslmode=require if its certificate cannot be verified`,
        )
      : [],
  }) as const satisfies Exposure<string>

/** Settings for demos, and connections in plain text, if other machines can reach the service. */
function exposuresOf(settings: SettingsOf<typeof serviceSettings>) {
  const {
    HOST,
    MQTT_HOST = HOST,
    MQTT_URL,
    PUBLIC_URL,
    IDENTITY_ISSUER,
    IDENTITY_JWKS_URL,
    FCM_URL,
  } = settings
  const isReached = !isLoopback(HOST)
  const reached = `HOST: others reach ${HOST}`
  const inClear = (name: string, url: string | undefined) =>
    url !== undefined && goesInClear(url) && `${name}: ${new URL(url).host} is called in clear`
  return [
    {
      name: 'embedded-issuer',
      problems: [
        isReached &&
          IDENTITY_ISSUER === undefined &&
          `${reached}, and the embedded issuer lets anybody be anybody: set IDENTITY_ISSUER`,
      ],
    },
    {
      name: 'sandbox',
      problems: [
        isReached &&
          settings.PAYMENTS_URL === 'sandbox:' &&
          `${reached}, and the sandbox takes no money: set PAYMENTS_URL`,
      ],
    },
    {
      name: 'plain-http',
      problems: [
        isReached && `${reached}, and HTTP is in clear: set HOST to 127.0.0.1 behind a proxy that encrypts`,
        PUBLIC_URL !== undefined &&
          goesInClear(PUBLIC_URL) &&
          'PUBLIC_URL: callers come in clear: use https:',
        ...(IDENTITY_ISSUER ?? []).map((issuer) => inClear('IDENTITY_ISSUER', issuer)),
        inClear('IDENTITY_JWKS_URL', IDENTITY_JWKS_URL),
        inClear('PAYMENTS_URL', stripeUrlOf(settings)),
        inClear('FCM_URL', FCM_URL),
      ],
    },
    {
      name: 'plain-mqtt',
      problems: [
        MQTT_URL === undefined &&
          settings.MQTT_CERT === undefined &&
          settings.MQTT_TLS_PORT === undefined &&
          !isLoopback(MQTT_HOST) &&
          `MQTT_HOST: others reach ${MQTT_HOST}, and hubs send their passwords in clear: set MQTT_CERT and MQTT_KEY, or MQTT_TLS_PORT`,
        ...(MQTT_URL ?? []).map((url) => inClear('MQTT_URL', url)),
      ],
    },
    databaseExposure(settings.DATABASE_URL),
  ] as const satisfies readonly Exposure<string>[]
}

/** Without these settings an enrolled board would get a broker's address that it cannot reach. */
function missingForHubs(settings: SettingsOf<typeof serviceSettings>): string[] {
  const { HOST, MQTT_HOST = HOST, MQTT_TLS_PORT, MQTT_URL, MQTT_PUBLIC_URL, PUBLIC_URL } = settings
  const isKnown = (MQTT_URL ?? MQTT_PUBLIC_URL ?? PUBLIC_URL) !== undefined
  return isKnown || MQTT_TLS_PORT === undefined || !isAnyAddress(MQTT_HOST)
    ? []
    : [
        `PUBLIC_URL: enrolled boards find the broker at its host, and no board can call ${MQTT_HOST}: set it, or MQTT_PUBLIC_URL`,
      ]
}

function missingForStripe(settings: SettingsOf<typeof serviceSettings>): string[] {
  if (stripeUrlOf(settings) === undefined) return []
  return (['PAYMENTS_API_KEY', 'PAYMENTS_WEBHOOK_SECRET'] as const).flatMap((name) =>
    settings[name] === undefined ? [`${name}: must be set with PAYMENTS_URL=stripe:`] : [],
  )
}

/** Rules for the targets of webhooks. */
export const postRulesOf = ({
  NODE_ENV,
  WEBHOOK_ALLOW_PRIVATE: allowPrivate,
}: Pick<SettingsOf<typeof serviceSettings>, 'NODE_ENV' | 'WEBHOOK_ALLOW_PRIVATE'>) => ({
  allowHttp: NODE_ENV !== 'production',
  allowPrivate,
})

/** The origin of Stripe's API if Stripe is the processor. */
export const stripeUrlOf = ({
  PAYMENTS_URL,
}: Pick<SettingsOf<typeof serviceSettings>, 'PAYMENTS_URL'>): string | undefined =>
  PAYMENTS_URL.startsWith('stripe:')
    ? PAYMENTS_URL.slice('stripe:'.length) || 'https://api.stripe.com'
    : undefined

/** The file of `--config`. Throws a `UsageError` if it cannot be read. */
export const readConfigFile = (path: string | undefined): { path: string; text: string } | undefined =>
  path === undefined ? undefined : { path, text: readNamed('--config', path) }

/** The text of a file that a setting names. Throws a `UsageError` if it cannot be read. */
export const readNamed = (setting: string, path: string): string =>
  using(setting, path, 'read', () => readFileSync(path, 'utf8'))

/** Reads or uses the file at an operator's path. If that fails, throws a `UsageError` that names the setting. */
export function using<T>(setting: string, path: string, use: 'read' | 'used', work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new UsageError(`${setting}: ${path} cannot be ${use}: ${fileProblem(error)}`, { cause: error })
  }
}

export const cloudHelp = (all = false): string =>
  helpText(
    'Usage: npm run cloud -- [--config FILE] [--help [--all]]\n\nThe cloud service: HTTP and the hubs’ broker.',
    cloudSettings,
    all,
  )
