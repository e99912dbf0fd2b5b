import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { mkdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import { randomHex, uuidv7 } from '../protocol/model/ids.ts'
import type { Log } from '../protocol/model/log.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import {
  cloudHelp,
  managementKeyOf,
  readCloudConfig,
  readConfigFile,
  stripeUrlOf,
  type CloudConfig,
} from './platform/settings/config.ts'
import { createCloud } from './cloud.ts'
import { commitOf } from './platform/settings/commit.ts'
import type { CloudContext } from './platform/context.ts'
import { identityVerifier } from './platform/credentials/identity-token.ts'
import { startEmbeddedBroker } from './gateway/broker-embedded.ts'
import { externalBroker } from './gateway/broker-external.ts'
import { addressReader, listen } from './platform/http/listen.ts'
import { createEmbeddedIssuer } from './platform/identity/embedded-issuer.ts'
import { remoteKeys } from './platform/identity/remote-keys.ts'
import { keptSigningKey } from './platform/identity/signing-key.ts'
import { keptMediaSecret } from './platform/media/addresses.ts'
import { openMediaStore } from './platform/media/open-store.ts'
import { createRemote, readClientKey, sshExec } from './operations/ssh/remote.ts'
import { sandboxWork, createSandbox } from './commerce/processors/sandbox/sandbox.ts'
import type { CardProcessor } from './commerce/processors/processor.ts'
import { SIGNATURE_HEADER } from './commerce/payments/webhook.ts'
import { cloudRefusals } from './platform/refusals.ts'
import { openLog } from './platform/log-files.ts'
import { createSenders } from './people/notifications/senders.ts'
import { openDatabase, type CloudDatabase } from './platform/store/database.ts'
import { storeProblem } from './platform/store/outage.ts'

const GRACE_MS = 5000

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

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Names the setting where a folder cannot be used. */
const inFolder = <T>(setting: string, folder: string, work: () => T): T =>
  attempt(() => {
    try {
      return work()
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException
      throw new Error(`${setting}: ${folder} cannot be used (${code})`, { cause: error })
    }
  })

function configure(): CloudConfig {
  const { values } = attempt(() =>
    parseArgs({ options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' } } }),
  )
  if (values.help) {
    process.stdout.write(cloudHelp())
    process.exit(0)
  }
  const result = readCloudConfig(
    process.env,
    attempt(() => readConfigFile(values.config)),
  )
  return result.ok ? result.config : fail(...result.problems)
}

/** Names the setting where a port cannot be had. */
function onPort(setting: 'PORT' | 'MQTT_PORT', port: number, host: string) {
  return (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') fail(`port ${port} of ${host} is in use: set ${setting} to another one`)
    if (code === 'EACCES') fail(`port ${port} may not be used by this user: set ${setting} to another one`)
    throw error
  }
}

const readPem = (setting: string, path: string): string =>
  attempt(() => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException
      throw new Error(`${setting}: ${path} cannot be read (${code})`, { cause: error })
    }
  })

/** Opens the database and brings its schema up to date; says in a sentence where it cannot be had. */
async function openStore({ databaseUrl }: CloudConfig, log: Log): Promise<CloudDatabase> {
  try {
    if (/^sqlite:[^:]/.test(databaseUrl))
      mkdirSync(dirname(databaseUrl.slice('sqlite:'.length)), { recursive: true })
    const db = openDatabase({ url: databaseUrl, log })
    await db.migrate()
    return db
  } catch (error) {
    const problem = storeProblem(error, databaseUrl)
    if (problem === undefined) throw error
    return fail(problem)
  }
}

/** Where the embedded broker listens, and with which certificate. */
const brokerAddress = ({ HOST, MQTT_HOST: host = HOST, MQTT_PORT: port, ...config }: CloudConfig) => ({
  host,
  port,
  ...(config.MQTT_CERT !== undefined && {
    tls: {
      cert: readPem('MQTT_CERT', config.MQTT_CERT),
      key: readPem('MQTT_KEY', config.MQTT_KEY!),
    },
  }),
})

async function main(): Promise<void> {
  const config = configure()
  const runtime = systemRuntime()
  const { clock, random } = runtime
  const logFolder = config.LOG_DIR ?? join(config.DATA_DIR, 'logs')
  // Processes that share a folder differ in their ports.
  const file = `cloud-${config.PORT}`
  const log = inFolder('LOG_DIR', logFolder, () =>
    openLog({ part: 'cloud', file, level: config.LOG_LEVEL, folder: logFolder }),
  )
  const say = (sentence: string): void => log.warn({}, sentence)
  inFolder('DATA_DIR', config.DATA_DIR, () => mkdirSync(config.DATA_DIR, { recursive: true }))
  const db = await openStore(config, log)
  const context: CloudContext = { db, runtime, log, checkpoint: noCheckpoint, settings: config.rules }

  const refusals = cloudRefusals(context)
  // With the embedded broker this is the only process: the one before it needs not be waited for (SPEC §7).
  const processId = config.MQTT_URL === undefined ? 'embedded' : uuidv7(runtime)
  const broker =
    config.MQTT_URL === undefined
      ? await startEmbeddedBroker({ db, log, refusals, ...brokerAddress(config) }).catch(
          onPort('MQTT_PORT', config.MQTT_PORT, brokerAddress(config).host),
        )
      : undefined
  const openTransport: OpenTransport =
    broker?.openTransport ??
    externalBroker({
      url: config.MQTT_URL!,
      clientId: `larder-cloud-${processId}`,
      clock,
      ...(config.MQTT_CA !== undefined && { ca: readPem('MQTT_CA', config.MQTT_CA) }),
    })

  const baseUrl = config.PUBLIC_URL ?? `http://127.0.0.1:${config.PORT}`
  const audience = config.IDENTITY_AUDIENCE
  const issuer =
    config.IDENTITY_ISSUER === undefined
      ? createEmbeddedIssuer({
          issuer: baseUrl,
          audience,
          key: await keptSigningKey(config.DATA_DIR, say).catch((error: unknown) =>
            fail(error instanceof Error ? error.message : String(error)),
          ),
          runtime,
        })
      : {
          issuer: config.IDENTITY_ISSUER,
          keys: remoteKeys({ issuer: config.IDENTITY_ISSUER, clock, log }),
          handlers: undefined,
        }
  const webhookSecret = config.PAYMENTS_WEBHOOK_SECRET ?? randomHex(random, 32)
  const processor = await openProcessor(config, context)

  // Known once the server listens; nothing is sent before.
  let webhook = ''
  const cloud = createCloud({
    context,
    openTransport,
    refusals,
    processId,
    gatewaySettings: config.gateway,
    processor,
    webhookSecret,
    verifyIdentity: identityVerifier({ issuer: issuer.issuer, audience, keys: issuer.keys, clock }),
    ...(issuer.handlers && { demoHandlers: issuer.handlers }),
    baseUrl,
    mediaStore: attempt(() =>
      openMediaStore(config.mediaUrl, {
        accessKeyId: config.AWS_ACCESS_KEY_ID,
        secretAccessKey: config.AWS_SECRET_ACCESS_KEY,
      }),
    ),
    mediaSecret: config.MEDIA_SECRET ?? attempt(() => keptMediaSecret(config.DATA_DIR, random, say)),
    remote: createRemote({
      readKey: () => readClientKey(managementKeyOf(config)).privateKey,
      exec: (request) => sshExec(request, clock, log),
      connectMs: config.rules.managementConnectMs,
      commandMs: config.rules.managementCommandMs,
      log,
    }),
    senders: attempt(() => createSenders(config, { log, clock })),
    // The sandbox sends its events from here, as there is no other place for it.
    ...(processor.name === 'sandbox' && {
      otherWork: sandboxWork({
        context,
        secret: webhookSecret,
        deliver: (body, signature) => post(webhook, body, signature),
      }),
    }),
    facts: {
      name: `cloud@${hostname()}`,
      pid: process.pid,
      commit: commitOf(import.meta.dirname),
      settings: config.shown,
      logFolder,
      ...(broker && { brokerClients: () => broker.clientCount() }),
    },
    addressOf: addressReader(config.TRUSTED_PROXIES),
  })
  const address = { host: config.HOST, port: config.PORT }
  const server = await listen(cloud.app, { ...address, clock, bounds: config.http }).catch(
    onPort('PORT', config.PORT, config.HOST),
  )
  webhook = `http://${config.HOST === '0.0.0.0' ? '127.0.0.1' : config.HOST}:${server.port}/webhooks/payments`
  cloud.start()
  log.info(
    { port: server.port, mqttPort: broker?.port, database: db.kind, payments: processor.name, baseUrl },
    'cloud is ready',
  )

  let stopping = false
  async function stop(signal: string): Promise<void> {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    await server.close(GRACE_MS)
    await cloud.stop()
    await broker?.close()
    await db.close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
}

async function openProcessor(
  config: CloudConfig,
  { db, runtime, log }: CloudContext,
): Promise<CardProcessor> {
  const url = stripeUrlOf(config)
  if (url === undefined) return createSandbox({ db, runtime })
  // Only who needs the SDK loads it: it is larger than all else.
  const { createStripe } = await import('./commerce/processors/stripe/stripe.ts')
  const { readInstallation } = await import('./commerce/processors/stripe/account.ts')
  return createStripe({
    apiKey: config.PAYMENTS_API_KEY!,
    url,
    installation: await readInstallation(db, runtime),
    clock: runtime.clock,
    log,
    timeoutMs: config.PAYMENTS_TIMEOUT_MS,
  })
}

/** Sends the sandbox's events to this service's own webhook, as a processor would. */
async function post(url: string, body: string, signature: string): Promise<boolean> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', [SIGNATURE_HEADER]: signature },
      body,
      signal: AbortSignal.timeout(5000),
    })
    return answer.ok
  } catch {
    // Out of reach is an answer too: the event is sent again.
    return false
  }
}

await main()
