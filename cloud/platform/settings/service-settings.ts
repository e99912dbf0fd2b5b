import { resolve } from 'node:path'
import { z } from 'zod'
import { allowInsecure } from '../../../protocol/model/exposure.ts'
import { metricsSettings } from '../../../protocol/model/metrics-settings.ts'
import { BrokerUrls } from '../../../protocol/mqtt/brokers.ts'
import { readPostgresUrl } from './postgres-url.ts'
import { shutdownTimeout } from '../../../protocol/model/stopping.ts'
import {
  hostText,
  oneOf,
  optionalText,
  port,
  wholeNumber,
  type SettingsTable,
} from '../../../protocol/model/program-settings.ts'

/** Secrets of which the first is used and the others are still accepted, for a rotation. */
const secretList = (leastLength: number) =>
  z
    .string()
    .transform((text) => text.split(',').map((secret) => secret.trim()))
    .pipe(z.array(z.string().min(leastLength, `must have at least ${leastLength} characters`)))
    .optional()

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
    schema: url(/^(sqlite:.|postgres(ql)?:\/\/)/, 'sqlite:PATH or postgres://…')
      .superRefine((text, context) => {
        const read = text.startsWith('postgres') ? readPostgresUrl(text) : undefined
        if (read && !read.ok) context.addIssue({ code: 'custom', message: read.problem })
      })
      .optional(),
    describe:
      'Address of the database: sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=… as libpq defines it, also with several hosts; several processes may share a PostgreSQL. Default: sqlite:<DATA_DIR>/larder.sqlite.',
  },
} satisfies SettingsTable

/** How the service is put together: what it listens on, and with whom it works. */
export const serviceSettings = {
  ...storeSettings,
  HOST: hostText('Address that HTTP listens on.', '127.0.0.1'),
  ALLOW_INSECURE: allowInsecure(
    ['embedded-issuer', 'sandbox', 'plain-http', 'plain-mqtt', 'plain-database'],
    'What to allow though others than this machine reach it, separated by commas: embedded-issuer (anybody is anybody), sandbox (nobody pays), plain-http (keys and tokens in clear, unless a proxy that encrypts is the only one to reach HOST), plain-mqtt (passwords of hubs in clear), plain-database (a DATABASE_URL on another machine without TLS). Without it the service does not start so; production refuses the first two always.',
  ),
  PORT: port(8080, 'Port of HTTP; 0 takes any free one.'),
  shutdownTimeoutMs: shutdownTimeout,
  ...metricsSettings,
  PUBLIC_URL: {
    schema: url(
      /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/,
      'an http(s) address without user name, query and fragment, such as https://shop.example or https://shop.example/larder',
    )
      .transform((address) => address.replace(/\/+$/, ''))
      .optional(),
    describe:
      'Address by which callers know this service, with the path at which a proxy mounts it; the proxy removes that path before it forwards. Default: http://127.0.0.1:<PORT>.',
  },
  HSTS_SUBDOMAINS: {
    schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
    standard: 'false',
    describe:
      'Whether Strict-Transport-Security (sent with an https PUBLIC_URL) includes the subdomains of its host: true or false. True only if every one of them speaks https.',
  },
  CORS_ORIGINS: {
    schema: z
      .string()
      .regex(
        /^(\*|https?:\/\/[^/,\s]+(,\s*https?:\/\/[^/,\s]+)*)?$/,
        'must be origins without a path, separated by commas, or *',
      )
      .transform((text) => (text === '' ? [] : text.split(',').map((origin) => origin.trim().toLowerCase()))),
    standard: '',
    describe:
      'Origins whose pages may call from a browser, separated by commas (https://shop.example), or * for any. None by default: the pages of this service alone.',
  },
  ALLOWED_HOSTS: {
    schema: z
      .string()
      .transform((text) => (text === '' ? [] : text.split(',').map((name) => name.trim().toLowerCase()))),
    standard: '',
    describe:
      "Names in `Host`, separated by commas, by which the demo's routes (/demo/…) may be called, besides addresses, localhost, HOST, the name of this machine and the host of PUBLIC_URL. Other names are refused: a foreign page could get credentials by DNS rebinding.",
  },
  TRUSTED_PROXIES: wholeNumber(
    [0, 10],
    0,
    'Proxies in front of this service (0 to 10): the entry of X-Forwarded-For that the outermost of them writes is the address of the caller. With 0 behind a proxy, all callers share the limits of one address.',
  ),
  MQTT_URL: {
    secret: true,
    schema: BrokerUrls.optional(),
    describe:
      'An external MQTT 3.1.1 broker, with user and password, which processes of the cloud may share; or several of one cluster, separated by commas. Default: a broker inside this process.',
  },
  MQTT_CA: optionalText(
    'A PEM file of authorities to trust with an mqtts: MQTT_URL; a renewed file is used within a minute. Default: those of the system.',
  ),
  MQTT_HOST: {
    schema: hostText('').schema.optional(),
    describe: 'Address that the embedded broker listens on. Default: HOST.',
  },
  MQTT_PORT: port(
    18830,
    'Port of the embedded broker; 0 takes any free one. Without meaning where MQTT_URL is set.',
  ),
  MQTT_CERT: optionalText(
    "A PEM file with the embedded broker's certificate and its chain: it then takes mqtts: alone. A renewed file is used within a minute.",
  ),
  MQTT_KEY: optionalText('A PEM file with the key of MQTT_CERT.'),
  PAYMENTS_URL: {
    secret: true,
    schema: url(/^(sandbox:|stripe:(https?:\/\/[^/]+)?)$/, 'sandbox: or stripe:'),
    standard: 'sandbox:',
    describe:
      'The card processor: sandbox:, which moves no money and which production refuses, or stripe:, where need be with the origin of its API (stripe:https://api.stripe.com).',
  },
  PAYMENTS_API_KEY: {
    ...optionalText(
      "Key of the processor's API: of Stripe the secret or a restricted one. stripe: requires it.",
    ),
    secret: true,
  },
  // A call that gets no answer is made twice; the second must end before the request's own idempotency key does.
  PAYMENTS_TIMEOUT_MS: wholeNumber(
    [100, 12_000],
    10_000,
    'How long a call of the processor may take. Milliseconds.',
  ),
  PAYMENTS_WEBHOOK_SECRET: {
    secret: true,
    schema: secretList(16),
    describe:
      "Secret of the processor's signatures, or several separated by commas, of which each is accepted: of Stripe that of the endpoint <PUBLIC_URL>/webhooks/payments. stripe: requires it; the sandbox makes one at each start.",
  },
  IDENTITY_ISSUER: {
    schema: url(/^https?:\/\/./, 'an http(s) address').optional(),
    describe:
      'OIDC issuer of identity tokens (RS256 or ES256). Default: an issuer inside this process that believes everybody; production refuses it.',
  },
  DOCS_API_KEY: {
    ...optionalText(
      'An API key that /docs has filled in. Whoever reaches the service can read it (/demo/credentials): for demos. Without meaning where IDENTITY_ISSUER is set.',
    ),
    secret: true,
  },
  DOCS: oneOf(
    ['public', 'off'],
    'public',
    '/docs and /openapi.json: public, which anybody can read, or off, which answers 404.',
  ),
  DRAIN_MS: wholeNumber(
    [0, 600_000],
    0,
    'Time between SIGTERM and the stop during which /readyz is 503 and calls are still served, so that load balancers send callers elsewhere. Milliseconds.',
  ),
  IDENTITY_AUDIENCE: {
    schema: z.string().regex(/^[^,\s]+(\s*,\s*[^,\s]+)*$/, 'must be audiences, separated by commas'),
    standard: 'larder',
    describe:
      '`aud` of identity tokens, or several values separated by commas: a token must name one of them.',
  },
  IDENTITY_JWKS_URL: {
    schema: url(/^https?:\/\/./, 'an http(s) address').optional(),
    describe:
      'Address of the keys of IDENTITY_ISSUER. Default: the jwks_uri of <IDENTITY_ISSUER>/.well-known/openid-configuration.',
  },
  IDENTITY_TOKEN_USE: oneOf(
    ['any', 'access'],
    'any',
    'Accepted tokens: any (access and ID tokens), or access, which refuses tokens that are marked as ID tokens (token_use or typ).',
  ),
  IDENTITY_ROLES: {
    schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
    standard: 'true',
    describe:
      'Whether the claim `role` of identity tokens counts: `admin` opens /diag. Set false if users can set the claim at the issuer.',
  },
  MEDIA_URL: {
    secret: true,
    schema: url(
      /^(file:.|s3:\/\/[^/?]+(\/[^?]*)?(\?.*)?$)/,
      'file:PATH or s3://BUCKET[/PREFIX]?…',
    ).optional(),
    describe:
      'Where images and videos are kept: file:PATH, a folder that all processes see, or s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION, by default of AWS in us-east-1. Default: file:<DATA_DIR>/media.',
  },
  AWS_ACCESS_KEY_ID: optionalText(
    'Key of an s3: MEDIA_URL; one that lasts, for no session token goes with it.',
  ),
  AWS_SECRET_ACCESS_KEY: { ...optionalText('Secret of an s3: MEDIA_URL.'), secret: true },
  MEDIA_SECRET: {
    secret: true,
    schema: secretList(32),
    describe:
      'Secret of the signed addresses of files, the same in all processes; or the new one and former ones separated by commas: the first signs, each is accepted. Default: one kept in DATA_DIR; production requires it.',
  },
  STORE_SECRET: {
    secret: true,
    schema: secretList(32),
    describe:
      'Seals what the database keeps for the service alone (client secrets of payments, push tokens), the same in all processes; keep it with the backups. Several, separated by commas, all open the database: the new one and the former one during a rotation. Default: one kept in DATA_DIR; production requires it.',
  },
  MANAGEMENT_KEY: optionalText(
    "The cloud's private key for the hubs' management services, in OpenSSH's format. Default: <DATA_DIR>/management-key. `npm run hubs -- key` makes it where there is none.",
  ),
  NODE_ENV: {
    // Anything else may be meant to be production, which is guarded.
    schema: z.enum(['development', 'test', 'production'], 'must be development, test or production'),
    standard: 'development',
    describe:
      'development, test or production, which refuses to start with the sandbox and with the embedded issuer.',
  },
  WEBHOOK_ALLOW_PRIVATE: {
    schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
    standard: 'false',
    describe:
      'Whether webhooks may go to addresses that are not public, as a receiver on this machine has: true or false. Production refuses true.',
  },
  LOG_DIR: {
    schema: z
      .string()
      .transform((path) => resolve(path))
      .optional(),
    describe: 'Folder of the log files, a new one each day or at 10 MB. Default: <DATA_DIR>/logs.',
  },
  SMTP_URL: {
    secret: true,
    schema: url(/^smtps?:\/\/./, 'smtp://… or smtps://…').optional(),
    describe:
      'The mail server for alarms, with user and password where it wants them (smtp://user:password@host:587; ?requireTLS=true where nothing may go in clear). Default: alarms are not mailed.',
  },
  MAIL_FROM: {
    schema: z
      .string()
      .max(320)
      .regex(/^[^\r\n]+@[^\r\n]+$/, 'must be an address')
      .optional(),
    describe:
      'Who alarms come from: an address, with a name where it is wanted. Default: larder@<host of PUBLIC_URL>.',
  },
  SMTP_TIMEOUT_MS: wholeNumber(
    [100, 120_000],
    20_000,
    'How long the mail server may take for an answer. Milliseconds.',
  ),
  FCM_SERVICE_ACCOUNT: optionalText(
    'File with the key of a Google service account: notices to iOS and Android go through FCM. Default: they are logged.',
  ),
  FCM_URL: {
    schema: url(/^https?:\/\/.*[^/]$/, 'an http(s) address without a slash at its end'),
    standard: 'https://fcm.googleapis.com',
    describe: 'Where FCM is.',
  },
  VAPID_PUBLIC_KEY: optionalText(
    'With VAPID_PRIVATE_KEY: notices to browsers go out by Web Push. Default: they are logged.',
  ),
  VAPID_PRIVATE_KEY: { ...optionalText('Signs Web Push.'), secret: true },
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
  LOG_LEVEL: oneOf(
    ['debug', 'info', 'warn', 'error', 'silent'],
    'info',
    'debug, info, warn, error or silent; debug tells of each request.',
  ),
} satisfies SettingsTable
