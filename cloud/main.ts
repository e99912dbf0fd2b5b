import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { spawn } from 'node:child_process'
import * as files from 'node:fs'
import { hostname } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { Hono } from 'hono'
import { makeFolder } from '../protocol/model/make-folder.ts'
import { callableHost } from '../protocol/model/address.ts'
import { BUILD } from '../protocol/build.ts'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import { randomHex } from '../protocol/model/ids.ts'
import { isMetricsHost } from '../protocol/model/allowed-hosts.ts'
import type { Log } from '../protocol/model/log.ts'
import { quietly } from '../protocol/model/repeated-lines.ts'
import { stopper } from '../protocol/model/stopping.ts'
import { sleep, type Clock, type Runtime } from '../protocol/model/runtime.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import {
  cloudHelp,
  managementKeyOf,
  postRulesOf,
  readCloudConfig,
  readConfigFile,
  using,
  type CloudConfig,
} from './platform/settings/config.ts'
import { Cloud, type CloudOptions } from './cloud.ts'
import type { CloudContext } from './platform/context.ts'
import { openSealer, ensureStoreSecret } from './platform/store/sealer.ts'
import { HttpPoster } from './events/webhooks/post.ts'
import { hubBrokerUrl } from './enrolment/broker-url.ts'
import { openBroker } from './broker.ts'
import { healthz, readyz } from './platform/http/health.ts'
import { addressReader, listen, untrustedProxyWarning, type HttpServer } from './platform/http/listen.ts'
import { openIssuer } from './platform/identity/open-issuer.ts'
import { ensureMediaSecret } from './platform/media/addresses.ts'
import { CleaningThread, threadFileOf } from './platform/media/clean/cleaning-thread.ts'
import { openMediaStore } from './platform/media/open-store.ts'
import { createRemote, readClientKeys, sshExec } from './operations/ssh/remote.ts'
import { openProcessor } from './commerce/processors/open-processor.ts'
import { postEvent } from './commerce/payments/webhook.ts'
import { sandboxWork } from './commerce/processors/sandbox/sandbox.ts'
import { openLog } from './platform/log-files.ts'
import { ended } from './operations/backup/archive.ts'
import { installationOf, targetOf } from './operations/backup/place.ts'
import { backupWork, type BackupSchedule } from './operations/backup/schedule.ts'
import { openTarget } from './operations/backup/target.ts'
import { smtpSender } from './operations/alarms/mail.ts'
import { createSenders } from './people/notifications/senders.ts'
import { openDatabase, type CloudDatabase } from './platform/store/database.ts'
import { onPort, UsageError } from './platform/settings/usage-error.ts'
import { warnWithoutHubs } from './platform/store/no-hubs.ts'
import { storeProblem } from './platform/store/outage.ts'
import { requireCurrency } from './commerce/orders/require-currency.ts'
import { takeCell } from './platform/store/take-cell.ts'
import { isolated } from './platform/work/background.ts'

/** Prints the problems for the operator, and ends the process. */
function fail(...problems: string[]): never {
  for (const problem of problems) process.stderr.write(`larder cloud: ${problem}\n`)
  process.exit(1)
}

/** Runs a function with errors that an operator can repair: the error's own message names the problem. */
function attempt<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    return fail(wordsOf(error))
  }
}

/** Prints an operator's error and ends the process; throws any other error. */
function failWithText(error: unknown): never {
  if (error instanceof UsageError) return fail(error.message)
  throw error
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Names the setting if a folder cannot be used. */
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

/** Opens the database and migrates its schema; ends the process with a sentence if that fails. */
async function openStore({ databaseUrl, limits }: CloudConfig, log: Log): Promise<CloudDatabase> {
  try {
    if (/^sqlite:[^:]/.test(databaseUrl)) makeFolder(files, dirname(databaseUrl.slice('sqlite:'.length)))
    const db = openDatabase({ url: databaseUrl, log, pools: limits.database, isBusy: true })
    await db.migrate()
    await takeCell(db, limits.rules.cell)
    await requireCurrency(db.kysely, limits.rules.currency)
    return db
  } catch (error) {
    const problem = error instanceof UsageError ? error.message : storeProblem(error, databaseUrl)
    if (problem === undefined) throw error
    return fail(problem)
  }
}

/** The log on standard output and in files. Processes that share a folder differ in their ports. */
function programLog({ LOG_DIR, DATA_DIR, PORT, LOG_LEVEL: level }: CloudConfig, clock: Clock) {
  const folder = LOG_DIR ?? join(DATA_DIR, 'logs')
  const log = inFolder('LOG_DIR', folder, () =>
    openLog({ part: 'cloud', file: `cloud-${PORT}`, level, folder }),
  )
  return { log: quietly(log, clock), logFolder: folder }
}

/** Resources that the service opens at its start and closes at its end. */
type Resources = Awaited<ReturnType<typeof openResources>>

async function openResources(config: CloudConfig) {
  const runtime = systemRuntime()
  const { clock, random } = runtime
  const { log, logFolder } = programLog(config, clock)
  const warn = (sentence: string): void => log.warn({}, sentence)
  inFolder('DATA_DIR', config.DATA_DIR, () => makeFolder(files, config.DATA_DIR))
  const db = await openStore(config, log)
  const storeSecrets = config.STORE_SECRET ?? [
    attempt(() => ensureStoreSecret(config.DATA_DIR, random, warn)),
  ]
  const context: CloudContext = {
    db,
    runtime,
    log,
    checkpoint: noCheckpoint,
    settings: config.limits.rules,
    sealer: await openSealer(db, storeSecrets, random),
  }
  const link = await openBroker(config, context)
  const baseUrl = config.PUBLIC_URL ?? `http://127.0.0.1:${config.PORT}`
  const issuer = await openIssuer(config, baseUrl, runtime, log).catch((error: unknown) =>
    fail(wordsOf(error)),
  )
  const processor = await openProcessor(config, context)
  const webhookSecrets = config.PAYMENTS_WEBHOOK_SECRET ?? [randomHex(random, 32)]
  return { config, context, log, logFolder, warn, baseUrl, issuer, processor, webhookSecrets, ...link }
}

/** `webhook`: the address of the sandbox's events. */
function cloudOptions(resources: Resources, webhook: () => string): CloudOptions {
  const { config, context, logFolder, warn, baseUrl, issuer, processor, webhookSecrets } = resources
  const { refusals, budgets, known, processId, broker, embedded, brokerCa } = resources
  const { db, runtime, log } = context
  const { clock, random } = runtime
  const { rules } = config.limits
  const background = { ...context, db: db.for('background') }
  return {
    context,
    broker,
    refusals,
    budgets,
    processId,
    enrolment: {
      // A free port of the embedded broker is known only now.
      mqttUrl: hubBrokerUrl({
        ...config,
        MQTT_PORT: embedded?.port ?? config.MQTT_PORT,
        MQTT_TLS_PORT: embedded?.certificatePort,
      }),
      brokerCa,
    },
    gatewaySettings: config.limits.gateway,
    processor,
    webhookSecret: webhookSecrets,
    publishableKey: config.PAYMENTS_PUBLISHABLE_KEY,
    ...identityOptions(issuer),
    baseUrl,
    ...bundledPages(),
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
    mediaSecret: config.MEDIA_SECRET ?? [attempt(() => ensureMediaSecret(config.DATA_DIR, random, warn))],
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
    otherWork: {
      ...backupWork(background, backupSchedule(config, runtime)),
      // The sandbox has no process of its own, so this process sends its events.
      ...(processor.name === 'sandbox' &&
        sandboxWork({
          context: background,
          secret: webhookSecrets[0]!,
          deliver: (body, signature) => postEvent(webhook(), body, signature),
        })),
    },
    facts: {
      name: `cloud@${hostname()}`,
      pid: process.pid,
      commit: BUILD?.commit ?? 'unknown',
      settings: config.shown,
      logFolder,
      ...(embedded && { brokerClients: () => embedded.clientCount() }),
    },
    addressOf: addressReader(config.TRUSTED_PROXIES, untrustedProxyWarning(clock, log)),
    hasMetrics: config.METRICS_PORT !== undefined,
    certificates: known.all,
    folders: { DATA_DIR: config.DATA_DIR, LOG_DIR: logFolder },
  }
}

/** The pages, as the build has bundled them. */
function bundledPages() {
  const of = (room: string) => pageAssets(files, join(import.meta.dirname, `${room}/assets`))
  return { docs: of('docs'), console: of('console'), shop: of('shop') }
}

const identityOptions = ({ verify, handlers, check, signIn, site }: Resources['issuer']) => ({
  verifyIdentity: verify,
  ...(handlers && { demoHandlers: handlers }),
  ...(check && { checks: { identity: check } }),
  signIn,
  site,
})

/** A separate process makes each backup, because encryption takes much processor time. */
function backupSchedule(config: CloudConfig, runtime: Runtime): BackupSchedule | undefined {
  const { BACKUP_SCHEDULE: daily } = config
  if (daily === undefined) return undefined
  const command = join(import.meta.dirname, `cli/main${extname(import.meta.filename)}`)
  const words = [command, 'backup', 'create', '--scheduled', ...process.argv.slice(2)]
  return {
    daily,
    create: () => ended(spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'pipe'] })),
    target: attempt(() => openTarget(targetOf(config), installationOf(config, runtime).credentials)),
  }
}

async function main(): Promise<void> {
  const config = configure()
  const resources = await openResources(config)
  const { context, embedded, processor, baseUrl } = resources
  const { db, runtime, log } = context
  // The address is known when the server listens; no event is sent earlier.
  let webhook = ''
  const cloud = new Cloud(cloudOptions(resources, () => webhook))
  const server = await listen(cloud.app, {
    host: config.HOST,
    port: config.PORT,
    runtime,
    bounds: config.limits.http,
    trustedProxies: config.TRUSTED_PROXIES,
  }).catch(onPort('PORT', config.PORT, config.HOST))
  webhook = `http://${callableHost(config.HOST)}:${server.port}/webhooks/payments`
  const metrics = await listenForMetrics(cloud, config, runtime)
  cloud.start()
  // The service runs now: a short database failure does not end it.
  await isolated(context, 'a search for hubs', () => warnWithoutHubs(db.kysely, log, config.databaseUrl))
  await logStarted(cloud, config, log, {
    port: server.port,
    mqttPort: embedded?.port,
    metricsPort: metrics?.port,
    database: db.kind,
    payments: processor.name,
    baseUrl,
  })
  const stop = stopper({
    clock: runtime.clock,
    log,
    timeoutMs: config.DRAIN_MS + config.shutdownTimeoutMs,
    stop: () => shutDown(resources, cloud, server, metrics),
    exit: (code) => process.exit(code),
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
}

async function shutDown(
  { config, context, log, embedded, endFollowing }: Resources,
  cloud: Cloud,
  server: HttpServer,
  metrics: HttpServer | undefined,
): Promise<void> {
  const { db, runtime } = context
  // Load balancers see this phase, and redirect callers before any caller is refused.
  cloud.health.phase = 'stopping'
  server.drain()
  if (config.DRAIN_MS > 0) await sleep(runtime.clock, config.DRAIN_MS)
  await cloud.endStreams()
  await server.close(config.shutdownTimeoutMs / 2)
  await cloud.stop()
  endFollowing()
  await embedded?.close()
  await db.close()
  await metrics?.close(0)
  log.flush()
}

/** The listener for monitoring, apart from the callers' listener. */
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

await main().catch(failWithText)

/**
 * Logs that the service runs. A broker or a database may connect a moment later; an issuer without keys is
 * named.
 */
async function logStarted({ health }: Cloud, config: CloudConfig, log: Log, about: object): Promise<void> {
  if (!(await health.failing()).includes('identity')) return log.info(about, 'cloud is ready')
  const [issuer] = config.IDENTITY_ISSUER!
  log.warn(
    about,
    `cloud is running and not ready: IDENTITY_ISSUER: no keys can be fetched from ${issuer}, so no caller can log in`,
  )
}
