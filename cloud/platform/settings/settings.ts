import { resolve } from 'node:path'
import { z } from 'zod'
import { allowInsecure } from '../../../protocol/model/exposure.ts'
import { metricsSettings } from '../../../protocol/model/metrics-settings.ts'
import { BrokerUrls } from '../../../protocol/mqtt/brokers.ts'
import { readPostgresUrl } from './postgres-url.ts'
import { shutdownTimeout } from '../../../protocol/model/stopping.ts'
import {
  hostText,
  inGroup,
  limits,
  oneOf,
  optionalText,
  port,
  wholeNumber,
  type SettingsTable,
  numberText,
} from '../../../protocol/model/program-settings.ts'

/** A list of secrets: the service signs with the first and accepts all, for a rotation. */
const secretList = (leastLength: number) =>
  z
    .string()
    .transform((text) => text.split(',').map((secret) => secret.trim()))
    .pipe(z.array(z.string().min(leastLength, `must have at least ${leastLength} characters`)))
    .optional()

const url = (pattern: RegExp, expected: string) => z.string().regex(pattern, `must be ${expected}`)

/** The issuer, and possibly the former one during a change. */
const issuers = url(
  /^https?:\/\/[^,\s]+(\s*,\s*https?:\/\/[^,\s]+)?$/,
  'an http(s) address, or two separated by a comma',
).transform((text) => text.split(',').map((issuer) => issuer.trim()) as [string, string?])

/** Places of the data, shared with the commands. */
export const storeSettings = inGroup('Storage', {
  DATA_DIR: {
    schema: z.string().transform((path) => resolve(path)),
    standard: 'data/cloud',
    describe: 'Folder of the database file, the media, the logs and the keys that the service creates.',
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
})

/**
 * Decisions of operators: addresses, secrets and partners of the service. After them come details that few operators
 * change.
 */
export const serviceSettings = {
  ...inGroup('Service', {
    NODE_ENV: {
      // Any other value may be a misspelled `production`, which has safeguards.
      schema: z.enum(['development', 'test', 'production'], 'must be development, test or production'),
      standard: 'development',
      describe:
        'Environment: development, test or production, which refuses the sandbox and the embedded issuer.',
    },
    HOST: hostText('Address that HTTP listens on.', '127.0.0.1'),
    PORT: port(8080, 'Port of HTTP; 0 takes any free one.'),
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
    TRUSTED_PROXIES: wholeNumber(
      [0, 10],
      0,
      "Number of proxies in front of this service (0 to 10). The caller's address is the entry of X-Forwarded-For that the outermost proxy writes. With 0 behind a proxy, all callers share the limits of one address.",
    ),
    CORS_ORIGINS: {
      schema: z
        .string()
        .regex(
          /^(\*|https?:\/\/[^/,\s]+(,\s*https?:\/\/[^/,\s]+)*)?$/,
          'must be origins without a path, separated by commas, or *',
        )
        .transform((text) =>
          text === '' ? [] : text.split(',').map((origin) => origin.trim().toLowerCase()),
        ),
      standard: '',
      describe:
        'Origins of the pages that may call from a browser, separated by commas (https://shop.example), or * for any. Default: only the pages of this service.',
    },
    ALLOWED_HOSTS: {
      schema: z
        .string()
        .transform((text) => (text === '' ? [] : text.split(',').map((name) => name.trim().toLowerCase()))),
      standard: '',
      describe:
        "Names in `Host`, separated by commas, under which the demo's routes (/demo/…) answer, in addition to addresses, localhost, HOST, the name of this machine and the host of PUBLIC_URL. Other names are refused, because a foreign page could get credentials by DNS rebinding.",
    },
    ALLOW_INSECURE: allowInsecure(
      ['embedded-issuer', 'sandbox', 'plain-http', 'plain-mqtt', 'plain-database'],
      'Exceptions for a service that others than this machine can reach, separated by commas: embedded-issuer (every caller gets a token), sandbox (takes no money), plain-http (keys and tokens in plain text, unless an encrypting proxy is the only one that reaches HOST), plain-mqtt (passwords of hubs in plain text), plain-database (a DATABASE_URL on another machine without TLS). Without an exception the service refuses to start with them. Production always refuses the first two.',
    ),
  }),
  ...storeSettings,
  ...inGroup('Storage', {
    MEDIA_URL: {
      secret: true,
      schema: url(
        /^(file:.|s3:\/\/[^/?]+(\/[^?]*)?(\?.*)?$)/,
        'file:PATH or s3://BUCKET[/PREFIX]?…',
      ).optional(),
      describe:
        'Store of images and videos: file:PATH, a folder that all processes share, or s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION, by default of AWS in us-east-1. Default: file:<DATA_DIR>/media.',
    },
    AWS_ACCESS_KEY_ID: optionalText(
      'Key of an s3: MEDIA_URL. It must be permanent, because no session token is sent.',
    ),
    AWS_SECRET_ACCESS_KEY: { ...optionalText('Secret of an s3: MEDIA_URL.'), secret: true },
    MEDIA_SECRET: {
      secret: true,
      schema: secretList(32),
      describe:
        'Secret that signs the addresses of files, the same in all processes. During a rotation: the new one and the former ones, separated by commas; the first signs. Default: one in DATA_DIR; production requires the setting.',
    },
    STORE_SECRET: {
      secret: true,
      schema: secretList(32),
      describe:
        'Secret that seals the secrets in the database (client secrets of payments, push tokens), the same in all processes. Keep it with the backups. During a rotation: the new one and the former one, separated by commas. Default: one in DATA_DIR; production requires the setting.',
    },
  }),
  ...inGroup('Backups', {
    BACKUP_TO: {
      secret: true,
      schema: url(
        /^(s3:\/\/[^/?]+(\/[^?]*)?(\?.*)?|(?!s3:).+)$/,
        'a folder or s3://BUCKET[/PREFIX]?…',
      ).optional(),
      describe:
        'Folder or bucket of backups: a path on another disk, or s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION. Default: <DATA_DIR>/backups.',
    },
    BACKUP_SCHEDULE: {
      schema: z
        .string()
        .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time, HH:MM in UTC')
        .optional(),
      describe:
        'Time of the daily backup to BACKUP_TO, HH:MM in UTC. The service keeps 7 daily, 4 weekly and 12 monthly backups there. Default: the service makes no backups.',
    },
    BACKUP_PASSPHRASE_FILE: optionalText(
      'File with a random text that encrypts backups (age). Keep a copy on another machine: no backup opens without it. Default: backups are not encrypted.',
    ),
  }),
  ...inGroup('Hubs', {
    MQTT_URL: {
      secret: true,
      schema: BrokerUrls.optional(),
      describe:
        'External MQTT 3.1.1 broker with user and password, or several brokers of one cluster, separated by commas. Processes of the cloud may share it. Default: a broker inside this process.',
    },
    MQTT_CA: optionalText(
      'PEM file of the authorities to trust with an mqtts: MQTT_URL. A renewed file is used within a minute. Default: the public authorities that Node contains.',
    ),
    MQTT_HOST: {
      schema: hostText('').schema.optional(),
      describe: 'Address that the embedded broker listens on. Default: HOST.',
    },
    MQTT_PORT: port(
      18830,
      'Port of the embedded broker; 0 takes any free one. It has no effect if MQTT_URL is set.',
    ),
    MQTT_TLS_PORT: {
      schema: numberText(0, 65_535).optional(),
      describe:
        'Further port of the embedded broker, for TLS: hubs sign in there with their certificates. Its certificate is MQTT_CERT, or one of the own authority for MQTT_HOST. MQTT_PORT then stays without TLS, and in production listens only on 127.0.0.1. Default: none.',
    },
    MQTT_PUBLIC_URL: {
      schema: url(/^mqtts?:\/\/[^/@]+$/, 'mqtts://HOST:PORT').optional(),
      describe:
        'Address of the broker that enrolled hubs get. Default: mqtts: with the host of PUBLIC_URL and MQTT_TLS_PORT.',
    },
    MQTT_CERT: optionalText(
      'PEM file with the certificate of the embedded broker and its chain. The broker then accepts mqtts: only. A renewed file is used within a minute.',
    ),
    MQTT_KEY: optionalText('PEM file with the key of MQTT_CERT.'),
  }),
  ...inGroup('Payments', {
    PAYMENTS_URL: {
      secret: true,
      schema: url(/^(sandbox:|stripe:(https?:\/\/[^/]+)?)$/, 'sandbox: or stripe:'),
      standard: 'sandbox:',
      describe:
        'Card processor: sandbox:, which moves no money and which production refuses, or stripe:, optionally with the origin of its API (stripe:https://api.stripe.com).',
    },
    PAYMENTS_API_KEY: {
      ...optionalText(
        "Key of the processor's API: the secret key or a restricted key of Stripe. Required by stripe:.",
      ),
      secret: true,
    },
    PAYMENTS_PUBLISHABLE_KEY: optionalText(
      'Publishable key of Stripe, for the form for cards on the page of the shop. Default: the shop takes no cards with stripe:.',
    ),
    PAYMENTS_WEBHOOK_SECRET: {
      secret: true,
      schema: secretList(16),
      describe:
        "Secret that signs the processor's events, or several separated by commas. At Stripe it is the secret of the endpoint <PUBLIC_URL>/webhooks/payments. Required by stripe:; the sandbox makes one at each start.",
    },
  }),
  ...inGroup('Identity', {
    IDENTITY_ISSUER: {
      schema: issuers.optional(),
      describe:
        'OIDC issuer of identity tokens (RS256 or ES256). During a change of the issuer: the new one and the former one, separated by a comma; a subject must be the same person at both. Default: an issuer inside this process that gives everybody a token; production refuses it.',
    },
    IDENTITY_AUDIENCE: {
      schema: z.string().regex(/^[^,\s]+(\s*,\s*[^,\s]+)*$/, 'must be audiences, separated by commas'),
      standard: 'larder',
      describe:
        '`aud` of identity tokens, or several values separated by commas: a token must name one of them.',
    },
    IDENTITY_CLIENT_ID: optionalText(
      'Client id of this service at IDENTITY_ISSUER, for sign-in in a browser. The issuer must allow the address <PUBLIC_URL>/session/callback. Default: no sign-in in browsers.',
    ),
  }),
  ...inGroup('Events and notices', {
    WEBHOOK_ALLOW_PRIVATE: {
      schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
      standard: 'false',
      describe:
        'Webhooks to addresses that are not public, such as a receiver on this machine: true or false. Production refuses true.',
    },
    SMTP_URL: {
      secret: true,
      schema: url(/^smtps?:\/\/./, 'smtp://… or smtps://…').optional(),
      describe:
        'Mail server for alarms, with user and password if it needs them (smtp://user:password@host:587; ?requireTLS=true forbids plain text). Default: alarms are not mailed.',
    },
    FCM_SERVICE_ACCOUNT: optionalText(
      'File with the key of a Google service account: notices to iOS and Android go through FCM. Default: they are logged.',
    ),
    VAPID_PRIVATE_KEY: {
      ...optionalText(
        'Private key of Web Push: notices to browsers are sent by Web Push. Default: they are logged.',
      ),
      secret: true,
    },
  }),
  ...inGroup('Observation', {
    LOG_LEVEL: oneOf(
      ['debug', 'info', 'warn', 'error', 'silent'],
      'info',
      'Level of the log: debug, info, warn, error or silent. debug logs each request.',
    ),
  }),
  ...metricsSettings,
  ...limits('Service', {
    shutdownTimeoutMs: shutdownTimeout,
    MANAGEMENT_KEY: optionalText(
      "Private key of the cloud for the hubs' management services, in OpenSSH's format. `larder hubs key` makes it if it is missing. Default: <DATA_DIR>/management-key.",
    ),
    IDENTITY_TOKEN_USE: oneOf(
      ['any', 'access'],
      'any',
      'Accepted tokens: any (access and ID tokens), or access, which refuses tokens that are marked as ID tokens (token_use or typ).',
    ),
    DRAIN_MS: wholeNumber(
      [0, 600_000],
      0,
      'Time in milliseconds between SIGTERM and the stop. Meanwhile /readyz is 503 and calls are still served, so that load balancers send callers elsewhere.',
    ),
    LOG_DIR: {
      schema: z
        .string()
        .transform((path) => resolve(path))
        .optional(),
      describe: 'Folder of the log files, a new one each day or at 10 MB. Default: <DATA_DIR>/logs.',
    },
    DOCS: oneOf(
      ['public', 'off'],
      'public',
      'Access to /docs and /openapi.json: public, or off, which answers 404.',
    ),
    MAIL_FROM: {
      schema: z
        .string()
        .max(320)
        .regex(/^[^\r\n]+@[^\r\n]+$/, 'must be an address')
        .optional(),
      describe: 'Sender of alarms: an address, optionally with a name. Default: larder@<host of PUBLIC_URL>.',
    },
    IDENTITY_ROLES: {
      schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
      standard: 'true',
      describe:
        'Use of the claim `role` of identity tokens: true or false. With true, `admin` opens /diag. Set false if users can set the claim at the issuer.',
    },
    HSTS_SUBDOMAINS: {
      schema: z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true'),
      standard: 'false',
      describe:
        'Subdomains in Strict-Transport-Security (sent with an https PUBLIC_URL): true includes them. Set true only if every subdomain of the host uses https.',
    },
    DOCS_API_KEY: {
      ...optionalText(
        'API key that /docs fills in. Everybody who reaches the service can read it (/demo/credentials): for demos only. It has no effect if IDENTITY_ISSUER is set.',
      ),
      secret: true,
    },
    // A call without an answer is repeated once. The repetition must end before the request's own idempotency key does.
    PAYMENTS_TIMEOUT_MS: wholeNumber(
      [100, 12_000],
      10_000,
      'Maximum time for an answer of the processor, in milliseconds.',
    ),
    IDENTITY_CLIENT_SECRET: {
      ...optionalText('Secret of IDENTITY_CLIENT_ID, if the issuer has given one.'),
      secret: true,
    },
    IDENTITY_JWKS_URL: {
      schema: url(/^https?:\/\/./, 'an http(s) address').optional(),
      describe:
        'Address of the keys of IDENTITY_ISSUER. Default: the jwks_uri of <IDENTITY_ISSUER>/.well-known/openid-configuration.',
    },
    VAPID_SUBJECT: {
      schema: url(/^(mailto:.+@.+|https:\/\/.+)$/, 'mailto:… or https://…').optional(),
      describe: 'Contact for push services: mailto:… or https://…. Default: PUBLIC_URL.',
    },
    SMTP_TIMEOUT_MS: wholeNumber(
      [100, 120_000],
      20_000,
      'Maximum time for an answer of the mail server, in milliseconds.',
    ),
    FCM_URL: {
      schema: url(/^https?:\/\/.*[^/]$/, 'an http(s) address without a slash at its end'),
      standard: 'https://fcm.googleapis.com',
      describe: 'Address of FCM.',
    },
    WEB_PUSH_ORIGINS: {
      schema: z.string().transform((text) => text.split(',').map((origin) => origin.trim())),
      standard:
        'https://fcm.googleapis.com,https://*.push.services.mozilla.com,https://*.push.apple.com,https://*.notify.windows.com',
      describe:
        'Origins of the push services that may be called, separated by commas. A browser names its own; others are not called.',
    },
  }),
} satisfies SettingsTable
