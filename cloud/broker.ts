import * as files from 'node:fs'
import { bareHost, callableHost } from '../protocol/model/address.ts'
import { buildTimeOf } from '../protocol/model/build-time.ts'
import { followFiles } from '../protocol/model/fresh-files.ts'
import { uuidv7 } from '../protocol/model/ids.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Cancel, Clock, Runtime } from '../protocol/model/runtime.ts'
import { certificateTime, KnownCertificates, RENEWAL_DUE } from '../protocol/mqtt/certificates.ts'
import { MAX_AUTHORITIES } from '../protocol/mqtt/session.ts'
import type { ChangingTransport, OpenTransport } from '../protocol/mqtt/transport.ts'
import { bundleOf, openAuthorities } from './enrolment/authority.ts'
import { keepRevocations } from './enrolment/revocations.ts'
import { serverAuthority } from './enrolment/rotation.ts'
import { type EmbeddedBroker, type PortCertificates, startEmbeddedBroker } from './gateway/broker-embedded.ts'
import { externalBroker } from './gateway/broker-external.ts'
import type { Broker } from './gateway/gateway.ts'
import { CLOCK_TOLERANCE_MS } from './gateway/lost-certificates.ts'
import { certificateAdopted } from './operations/alarms/hub-alarms.ts'
import type { CloudContext } from './platform/context.ts'
import { openActs } from './platform/credentials/lost-acts.ts'
import { openBudgets } from './platform/limits/budgets.ts'
import { cloudRefusals } from './platform/refusals.ts'
import { type CloudConfig, readNamed } from './platform/settings/config.ts'
import { onPort, UsageError } from './platform/settings/usage-error.ts'
import { everyInBackground, reportFault } from './platform/work/background.ts'

/** Opens the embedded broker, or the connections to the external broker in `MQTT_URL`. */
export async function openBroker(config: CloudConfig, context: CloudContext) {
  const { db, runtime, log, settings } = context
  const { clock } = runtime
  // Before a new authority signs, the embedded broker must trust it.
  const followMs = Math.min(MOST_FOLLOW_MS, Math.max(1000, settings.hubAuthorityDelayMs / FOLLOWS))
  const refusals = cloudRefusals(context)
  const budgets = openBudgets(config.limits.rules)
  const pems = readPems(config)
  const known = new KnownCertificates({ ...pems, MQTT_KEY: undefined })
  const background = { ...context, db: db.for('background') }
  const storeActs = openActs(background, config.DATA_DIR)
  const revocations = async (): Promise<void> => {
    await keepRevocations(background, config.DATA_DIR)
    await storeActs()
  }
  await revocations().catch((error: unknown) => {
    // Without the lists of this machine a stolen board could sign in to a restored database.
    if (error instanceof UsageError) throw error
    reportFault(context, error, KEEPING)
  })
  // With the embedded broker this is the only process: it need not wait for a predecessor (SPEC §7).
  const processId = config.MQTT_URL === undefined ? 'embedded' : uuidv7(runtime)
  const { port, follow } = await certificatePort(config, context, pems)
  const embedded =
    config.MQTT_URL === undefined
      ? await startEmbeddedBroker({
          db: db.for('gateway'),
          log,
          onAdopted: (tx, certificate) => certificateAdopted(tx, context, certificate),
          refusals,
          clock,
          unsigned: budgets.brokerUnsigned,
          ...brokerAddress(config, pems),
          ...port,
        }).catch(onPort('MQTT_PORT', config.MQTT_PORT, config.MQTT_HOST ?? config.HOST))
      : undefined
  const broker: Broker = embedded
    ? { kind: 'own', open: embedded.openTransport }
    : { kind: 'shared', open: openExternal(config, { processId, runtime, known, pems }) }
  const ends = [
    followCertificates(config, { pems, broker: embedded, known, clock, log }),
    everyInBackground(context, KEEPING_MS, KEEPING, revocations),
    ...(embedded
      ? [everyInBackground(context, followMs, 'the certificate authorities', () => follow(embedded))]
      : []),
  ]
  const endFollowing = () => ends.forEach((end) => end())
  // A renewed file changes it.
  const brokerCa = () => pems.MQTT_CA
  return { refusals, budgets, known, processId, broker, embedded, endFollowing, brokerCa }
}

/** A database may also lose revocations while the service runs, by a failover. */
const KEEPING_MS = 30_000
const KEEPING = 'the revocations of certificates, keys and roles'

/** The embedded broker checks for another authority this many times before the authority signs: by default every 30 s. */
const FOLLOWS = 120
/** A retired authority may be one with a stolen key. */
const MOST_FOLLOW_MS = 30_000

/** The address and the certificate of the embedded broker. */
const brokerAddress = (
  { HOST, MQTT_HOST = HOST, MQTT_PORT: port, MQTT_TLS_PORT, ...config }: CloudConfig,
  { MQTT_CERT: cert, MQTT_KEY: key }: Pems,
) => ({
  databaseUrl: config.databaseUrl,
  limits: config.limits.gateway,
  host: MQTT_HOST,
  // Others must not send passwords in clear.
  ...(MQTT_TLS_PORT !== undefined && config.NODE_ENV === 'production' && { plainHost: '127.0.0.1' }),
  port,
  ...(cert !== undefined && key !== undefined && MQTT_TLS_PORT === undefined && { tls: { cert, key } }),
})

/**
 * The certificates of the port on which hubs sign in with their certificates. Without MQTT_CERT its certificate is one of the own
 * authority. `name` changes with them.
 */
async function portCertificates(
  config: PortConfig,
  context: CloudContext,
  { MQTT_CERT: cert, MQTT_KEY: key }: Partial<Pems>,
): Promise<{ name: string; until?: number; make: () => Promise<PortCertificates> }> {
  const authorities = await openAuthorities(context)
  const ca = bundleOf(authorities)
  if (cert !== undefined && key !== undefined)
    return { name: ca + cert, make: () => Promise.resolve({ cert, key, ca }) }
  const now = context.runtime.clock.now()
  const by = await serverAuthority(context.db.kysely, authorities, now)
  // The board of a hub may have a date before today.
  const own = {
    from: by.createdAt - CLOCK_TOLERANCE_MS,
    until: Math.min(now + SERVER_LIFETIME_MS, by.until),
  }
  const make = async () => ({ ...(await by.makeServer(hostsOf(config), own)), ca })
  return { name: ca + by.id, until: own.until, make }
}

/**
 * Opens the port for certificates. Its certificates follow a rotation of the authority, and its own one is renewed when a third of
 * its time is left. New connections use them.
 */
export async function certificatePort(
  config: PortConfig,
  context: CloudContext,
  pems: Partial<Pems>,
): Promise<{
  port?: { certificates: { port: number } & PortCertificates }
  follow: (broker: Pick<EmbeddedBroker, 'renewPort'>) => Promise<void>
}> {
  const { MQTT_TLS_PORT: port, MQTT_URL } = config
  if (port === undefined || MQTT_URL !== undefined) return { follow: () => Promise.resolve() }
  const first = await portCertificates(config, context, pems)
  let { name: used, until: usedUntil } = first
  // The certificate of an authority that ends is not renewed: the next one would end at the same time.
  const isDue = (until = 0): boolean =>
    usedUntil !== undefined &&
    until > usedUntil &&
    context.runtime.clock.now() >= usedUntil - SERVER_LIFETIME_MS * (1 - RENEWAL_DUE)
  return {
    port: { certificates: { port, ...(await first.make()) } },
    async follow(broker) {
      const { name, until, make } = await portCertificates(config, context, pems)
      if (name === used && !isDue(until)) return
      broker.renewPort(await make())
      used = name
      usedUntil = until
      context.log.info({}, 'the broker uses other certificate authorities, or its next certificate')
    },
  }
}

type PortConfig = Pick<
  CloudConfig,
  'HOST' | 'MQTT_HOST' | 'MQTT_PUBLIC_URL' | 'MQTT_TLS_PORT' | 'MQTT_URL' | 'PUBLIC_URL'
>

/** The names under which hubs find the embedded broker. */
const hostsOf = (config: PortConfig): string[] => [
  ...new Set(
    [
      callableHost(config.MQTT_HOST ?? config.HOST),
      ...[config.MQTT_PUBLIC_URL, config.PUBLIC_URL]
        .flatMap((url) => url ?? [])
        .map((url) => new URL(url).hostname),
    ].map(bareHost),
  ),
]

/** The time of a server certificate of the own authority. Each start makes a new one. */
const SERVER_LIFETIME_MS = 825 * 86_400_000

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

/** The certificates and the key that settings name, as PEM. */
type Pems = Record<'MQTT_CERT' | 'MQTT_KEY' | 'MQTT_CA', string | undefined>

const readPems = ({ MQTT_CERT, MQTT_KEY, MQTT_CA }: CloudConfig): Pems => ({
  MQTT_CERT: MQTT_CERT && readNamed('MQTT_CERT', MQTT_CERT),
  MQTT_KEY: MQTT_KEY && readNamed('MQTT_KEY', MQTT_KEY),
  MQTT_CA: MQTT_CA && sendable(readNamed('MQTT_CA', MQTT_CA)),
})

/** A hub gets these authorities together with the cloud's own: two of them during a rotation. */
const MAX_BROKER_CA = MAX_AUTHORITIES - 4096

/** Why hubs would refuse the authorities of the broker. */
function unsendable(ca: string): string | undefined {
  if (ca.length <= MAX_BROKER_CA) return undefined
  const why = `has ${ca.length} characters, and hubs take at most ${MAX_BROKER_CA}`
  return `MQTT_CA: the file ${why}: name only the authorities of the broker`
}

/** Throws a `UsageError` if hubs would refuse them. */
function sendable(ca: string): string {
  const problem = unsendable(ca)
  if (problem !== undefined) throw new UsageError(problem)
  return ca
}

/** Reads renewed files without a restart: new connections use them. Keeps `pems` up to date. */
function followCertificates(
  { MQTT_CERT, MQTT_KEY, MQTT_CA }: CloudConfig,
  parts: {
    pems: Pems
    broker: EmbeddedBroker | undefined
    known: KnownCertificates
    clock: Clock
    log: Log
  },
): Cancel {
  const { pems, broker, known, clock, log } = parts
  return followFiles({
    paths: { MQTT_CERT, MQTT_KEY, MQTT_CA },
    texts: { ...pems },
    read: (path) => files.readFileSync(path, 'utf8'),
    clock,
    log,
    use(fresh) {
      const problem = fresh.MQTT_CA && unsendable(fresh.MQTT_CA)
      if (problem) log.error({}, `${problem}; the former authorities stay in use`)
      broker?.renewTls({ cert: fresh.MQTT_CERT, key: fresh.MQTT_KEY })
      Object.assign(pems, fresh, problem && { MQTT_CA: pems.MQTT_CA })
      known.renew({ MQTT_CERT: pems.MQTT_CERT, MQTT_CA: pems.MQTT_CA })
    },
  })
}
