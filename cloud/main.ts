import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import * as files from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { Hono } from 'hono'
import { makeFolder } from '../protocol/model/make-folder.ts'
import { callableHost } from '../protocol/model/address.ts'
import { BUILD } from '../protocol/build.ts'
import { buildTimeOf } from '../protocol/model/build-time.ts'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import { randomHex, uuidv7 } from '../protocol/model/ids.ts'
import { isMetricsHost } from '../protocol/model/allowed-hosts.ts'
import type { Log } from '../protocol/model/log.ts'
import { quietly } from '../protocol/model/repeated-lines.ts'
import { stopper } from '../protocol/model/stopping.ts'
import { sleep, type Clock, type Runtime } from '../protocol/model/runtime.ts'
import { certificateTime, KnownCertificates } from '../protocol/mqtt/certificates.ts'
import type { ChangingTransport, OpenTransport } from '../protocol/mqtt/transport.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import {
  cloudHelp,
  managementKeyOf,
  postRulesOf,
  readCloudConfig,
  readConfigFile,
  readNamed,
  using,
  type CloudConfig,
} from './platform/settings/config.ts'
import { createCloud, type Cloud } from './cloud.ts'
import type { CloudContext } from './platform/context.ts'
import { openSealer } from './platform/store/open-sealer.ts'
import { keptStoreSecret } from './platform/store/sealer.ts'
import { HttpPoster } from './events/webhooks/post.ts'
import { followCertificates, type Pems } from './certificate-files.ts'
import { startEmbeddedBroker } from './gateway/broker-embedded.ts'
import { externalBroker } from './gateway/broker-external.ts'
import { healthz, readyz } from './platform/http/health.ts'
import { addressReader, listen, untrustedProxyWarning, type HttpServer } from './platform/http/listen.ts'
import { openIssuer } from './platform/identity/open-issuer.ts'
import { keptMediaSecret } from './platform/media/addresses.ts'
import { CleaningThread, threadFileOf } from './platform/media/clean/cleaning-thread.ts'
import { openMediaStore } from './platform/media/open-store.ts'
import { createRemote, readClientKeys, sshExec } from './operations/ssh/remote.ts'
import { openProcessor } from './commerce/processors/open-processor.ts'
import { post } from './commerce/payments/post-event.ts'
import { sandboxWork } from './commerce/processors/sandbox/sandbox.ts'
import { openBudgets } from './platform/limits/budgets.ts'
import { cloudRefusals } from './platform/refusals.ts'
import { openLog } from './platform/log-files.ts'
import { smtpSender } from './operations/alarms/mail.ts'
import { createSenders } from './people/notifications/senders.ts'
import { openDatabase, type CloudDatabase } from './platform/store/database.ts'
import { UsageError } from './platform/settings/usage-error.ts'
import { warnWithoutHubs } from './platform/store/no-hubs.ts'
import { storeProblem } from './platform/store/outage.ts'
import { isolated } from './platform/work/background.ts'

/** Says what is wrong in the operator's words, and ends. */
function fail(...problems: string[]): never {
  for (const problem of problems) process.stderr.write(`larder cloud: ${problem}\n`)
  process.exit(1)
}

/** What cannot be read is the operator's to mend: its own words say what it is. */
function attempt<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    return fail(wordsOf(error))
  }
}

/** The same for work that takes time; any other error than an operator's goes on. */
function failInWords(error: unknown): never {
  if (error instanceof UsageError) return fail(error.message)
  throw error
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Names the setting where a folder cannot be used. */
const inFolder = <T>(setting: string, folder: string, work: () => T): T =>
  attempt(() => using(setting, folder, 'used', work))

function configure(): CloudConfig {
  const { values } = attempt(() =>
    parseArgs({
      options: {
        config: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        all: { type: 'boolean' },
      },
    }),
  )
  if (values.help) {
    process.stdout.write(cloudHelp(values.all))
    process.exit(0)
  }
  const result = readCloudConfig(
    process.env,
    attempt(() => readConfigFile(values.config)),
  )
  return result.ok ? result.config : fail(...result.problems)
}

/** Names the setting where a port cannot be had. */
function onPort(setting: 'PORT' | 'MQTT_PORT' | 'METRICS_PORT', port: number, host: string) {
  return (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') fail(`port ${port} of ${host} is in use: set ${setting} to another one`)
    if (code === 'EACCES') fail(`port ${port} may not be used by this user: set ${setting} to another one`)
    throw error
  }
}

const readPem = (setting: string, path: string): string => attempt(() => readNamed(setting, path))

/** The certificates and the key that settings name. */
const readPems = ({ MQTT_CERT, MQTT_KEY, MQTT_CA }: CloudConfig): Pems => ({
  MQTT_CERT: MQTT_CERT && readPem('MQTT_CERT', MQTT_CERT),
  MQTT_KEY: MQTT_KEY && readPem('MQTT_KEY', MQTT_KEY),
  MQTT_CA: MQTT_CA && readPem('MQTT_CA', MQTT_CA),
})

/** Opens the database and brings its schema up to date; says in a sentence where it cannot be had. */
async function openStore({ databaseUrl, limits }: CloudConfig, log: Log): Promise<CloudDatabase> {
  try {
    if (/^sqlite:[^:]/.test(databaseUrl)) makeFolder(files, dirname(databaseUrl.slice('sqlite:'.length)))
    const db = openDatabase({ url: databaseUrl, log, pools: limits.database, isBusy: true })
    await db.migrate()
    return db
  } catch (error) {
    const problem = storeProblem(error, databaseUrl)
    if (problem === undefined) throw error
    return fail(problem)
  }
}

/** Where the embedded broker listens, and with which certificate. */
const brokerAddress = (
  { HOST, MQTT_HOST: host = HOST, MQTT_PORT: port, ...config }: CloudConfig,
  { MQTT_CERT: cert, MQTT_KEY: key }: Pems,
) => ({
  databaseUrl: config.databaseUrl,
  passwordCheckMs: config.limits.gateway.passwordCheckMs,
  host,
  port,
  ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
})

/** The log on standard output and in files. Processes that share a folder differ in their ports. */
function programLog({ LOG_DIR, DATA_DIR, PORT, LOG_LEVEL: level }: CloudConfig, clock: Clock) {
  const folder = LOG_DIR ?? join(DATA_DIR, 'logs')
  const log = inFolder('LOG_DIR', folder, () =>
    openLog({ part: 'cloud', file: `cloud-${PORT}`, level, folder }),
  )
  return { log: quietly(log, clock), logFolder: folder }
}

/** The connections to the external broker that `MQTT_URL` names. */
function openExternal(
  config: CloudConfig,
  parts: {
    processId: string
    runtime: Runtime
    known: KnownCertificates
    pems: Pems
  },
): OpenTransport<ChangingTransport> {
  const { processId, runtime, known, pems } = parts
  const builtAt = buildTimeOf(import.meta.dirname, (path) => files.readFileSync(path, 'utf8'))
  return externalBroker({
    urls: config.MQTT_URL!,
    clientId: `larder-cloud-${processId}`,
    runtime,
    time: () => certificateTime(runtime.clock.now(), builtAt),
    onCertificate: known.sawBroker,
    ca: () => pems.MQTT_CA,
  })
}

async function main(): Promise<void> {
  const config = configure()
  const runtime = systemRuntime()
  const { clock, random } = runtime
  const { rules } = config.limits
  const { log, logFolder } = programLog(config, clock)
  const say = (sentence: string): void => log.warn({}, sentence)
  inFolder('DATA_DIR', config.DATA_DIR, () => makeFolder(files, config.DATA_DIR))
  const db = await openStore(config, log)
  const storeSecrets = config.STORE_SECRET ?? [attempt(() => keptStoreSecret(config.DATA_DIR, random, say))]
  const context: CloudContext = {
    db,
    runtime,
    log,
    checkpoint: noCheckpoint,
    settings: rules,
    sealer: await openSealer(db, storeSecrets, random).catch(failInWords),
  }

  const refusals = cloudRefusals(context)
  const budgets = openBudgets(rules)
  const pems = readPems(config)
  const known = new KnownCertificates({ ...pems, MQTT_KEY: undefined })
  // With the embedded broker this is the only process: the one before it needs not be waited for (SPEC §7).
  const processId = config.MQTT_URL === undefined ? 'embedded' : uuidv7(runtime)
  const broker =
    config.MQTT_URL === undefined
      ? await startEmbeddedBroker({
          db: db.for('gateway'),
          log,
          refusals,
          clock,
          unsigned: budgets.brokerUnsigned,
          ...brokerAddress(config, pems),
        }).catch(onPort('MQTT_PORT', config.MQTT_PORT, config.MQTT_HOST ?? config.HOST))
      : undefined
  const endFollowing = followCertificates(config, { pems, broker, known, clock, log })
  const baseUrl = config.PUBLIC_URL ?? `http://127.0.0.1:${config.PORT}`
  const issuer = await openIssuer(config, baseUrl, runtime, log).catch((error: unknown) =>
    fail(wordsOf(error)),
  )
  const webhookSecrets = config.PAYMENTS_WEBHOOK_SECRET ?? [randomHex(random, 32)]
  const processor = await openProcessor(config, context).catch((error: unknown) => {
    if (error instanceof UsageError) fail(error.message)
    throw error
  })

  // Known once the server listens; nothing is sent before.
  let webhook = ''
  const cloud = createCloud({
    context,
    broker: broker
      ? { kind: 'own', open: broker.openTransport }
      : { kind: 'shared', open: openExternal(config, { processId, runtime, known, pems }) },
    refusals,
    budgets,
    processId,
    gatewaySettings: config.limits.gateway,
    processor,
    webhookSecret: webhookSecrets,
    verifyIdentity: issuer.verify,
    ...(issuer.handlers && { demoHandlers: issuer.handlers }),
    ...(issuer.check && { checks: { identity: issuer.check } }),
    baseUrl,
    docs: pageAssets(files, join(import.meta.dirname, 'docs/assets')),
    hasDocs: config.DOCS === 'public',
    corsOrigins: config.CORS_ORIGINS,
    hstsSubdomains: config.HSTS_SUBDOMAINS,
    allowedHosts: [config.HOST, hostname(), `${hostname()}.local`, ...config.ALLOWED_HOSTS],
    mediaStore: attempt(() =>
      openMediaStore(config.mediaUrl, {
        accessKeyId: config.AWS_ACCESS_KEY_ID,
        secretAccessKey: config.AWS_SECRET_ACCESS_KEY,
      }),
    ),
    mediaCleaning: new CleaningThread(threadFileOf(import.meta.url), clock),
    mediaSecret: config.MEDIA_SECRET ?? [attempt(() => keptMediaSecret(config.DATA_DIR, random, say))],
    remote: createRemote({
      readKey: () => readClientKeys(managementKeyOf(config)),
      exec: (request) => sshExec(request, clock, log),
      connectMs: rules.managementConnectMs,
      commandMs: rules.managementCommandMs,
      log,
    }),
    poster: new HttpPoster({ clock, timeoutMs: rules.webhookTimeoutMs, ...postRulesOf(config) }),
    ...(config.SMTP_URL !== undefined && {
      sendMail: smtpSender({
        url: config.SMTP_URL,
        from: config.MAIL_FROM ?? `larder@${new URL(baseUrl).hostname}`,
        timeoutMs: config.SMTP_TIMEOUT_MS,
      }),
    }),
    senders: attempt(() => createSenders(config, { log, clock })),
    // The sandbox sends its events from here, as there is no other place for it.
    ...(processor.name === 'sandbox' && {
      otherWork: sandboxWork({
        context: { ...context, db: db.for('background') },
        secret: webhookSecrets[0]!,
        deliver: (body, signature) => post(webhook, body, signature),
      }),
    }),
    facts: {
      name: `cloud@${hostname()}`,
      pid: process.pid,
      commit: BUILD?.commit ?? 'unknown',
      settings: config.shown,
      logFolder,
      ...(broker && { brokerClients: () => broker.clientCount() }),
    },
    addressOf: addressReader(config.TRUSTED_PROXIES, untrustedProxyWarning(clock, log)),
    hasMetrics: config.METRICS_PORT !== undefined,
    certificates: known.all,
    folders: { DATA_DIR: config.DATA_DIR, LOG_DIR: logFolder },
  })
  const address = { host: config.HOST, port: config.PORT }
  const server = await listen(cloud.app, {
    ...address,
    runtime,
    bounds: config.limits.http,
    trustedProxies: config.TRUSTED_PROXIES,
  }).catch(onPort('PORT', config.PORT, config.HOST))
  webhook = `http://${callableHost(config.HOST)}:${server.port}/webhooks/payments`
  const metrics = await listenForMetrics(cloud, config, runtime)
  cloud.start()
  // The service runs by now: a database that is away for a moment does not end it.
  await isolated(context, 'a look for hubs', () => warnWithoutHubs(db.kysely, log, config.databaseUrl))
  await tellStarted(cloud, config, log, {
    port: server.port,
    mqttPort: broker?.port,
    metricsPort: metrics?.port,
    database: db.kind,
    payments: processor.name,
    baseUrl,
  })

  const stop = stopper({
    clock,
    log,
    timeoutMs: config.DRAIN_MS + config.shutdownTimeoutMs,
    async stop() {
      // Load balancers see it, and send callers elsewhere, before anybody is refused.
      cloud.health.phase = 'stopping'
      server.drain()
      if (config.DRAIN_MS > 0) await sleep(clock, config.DRAIN_MS)
      await cloud.endStreams()
      await server.close(config.shutdownTimeoutMs / 2)
      await cloud.stop()
      endFollowing()
      await broker?.close()
      await db.close()
      await metrics?.close(0)
      log.flush()
    },
    exit: (code) => process.exit(code),
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
}

/** The listener of those who watch over the service, apart from its callers'. */
async function listenForMetrics(
  { health, metrics }: Cloud,
  { METRICS_PORT: port, METRICS_HOST: host, limits: { http: bounds } }: CloudConfig,
  runtime: Runtime,
): Promise<HttpServer | undefined> {
  if (port === undefined || !metrics) return undefined
  const app = new Hono()
  const isAllowedHost = isMetricsHost(host)
  app.get('/metrics', async (c) => {
    if (!isAllowedHost(c.req.header('host'))) return c.text('This host name is not allowed.', 403)
    const { type, text } = await metrics.read()
    return c.body(text, 200, { 'Content-Type': type })
  })
  app.get('/healthz', () => healthz())
  app.get('/readyz', () => readyz(health))
  return listen(app, { host, port, runtime, bounds }).catch(onPort('METRICS_PORT', port, host))
}

await main()

/** Logs that the service runs. What a broker or a database lacks by now may come in a moment; an issuer without keys is named. */
async function tellStarted({ health }: Cloud, config: CloudConfig, log: Log, about: object): Promise<void> {
  if (!(await health.failing()).includes('identity')) return log.info(about, 'cloud is ready')
  const issuer = config.IDENTITY_ISSUER!
  log.warn(
    about,
    `cloud is running and not ready: IDENTITY_ISSUER: no keys can be fetched from ${issuer}, so nobody can log in`,
  )
}
