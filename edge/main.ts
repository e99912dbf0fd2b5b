import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import * as files from 'node:fs'
import type { RequestListener } from 'node:http'
import { dirname } from 'node:path'
import { rootCertificates } from 'node:tls'
import { pino } from 'pino'
import { buildTimeOf } from '../protocol/model/build-time.ts'
import { isMetricsHost } from '../protocol/model/allowed-hosts.ts'
import type { Log } from '../protocol/model/log.ts'
import { logOutput } from '../protocol/model/log-output.ts'
import { quietly } from '../protocol/model/repeated-lines.ts'
import type { Clock, Runtime } from '../protocol/model/runtime.ts'
import { stopper } from '../protocol/model/stopping.ts'
import { certificateTime, HUB_CERTIFICATE } from '../protocol/mqtt/certificates.ts'
import type { NextCell } from '../protocol/mqtt/session.ts'
import { hubUser } from '../protocol/mqtt/topics.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { readConfig, readLockConfig, type EdgeConfig, type Unenrolled } from './config.ts'
import { DesiredStates } from './desired/desired-states.ts'
import { makeBundle, redactorOf } from './diagnosis/bundle.ts'
import { Diagnoser } from './diagnosis/diagnosis.ts'
import { LogLines } from './diagnosis/log-lines.ts'
import { erasing } from './enrolment/erase.ts'
import { reportLeft } from './enrolment/farewell.ts'
import { completeMove, MoveFailed } from './enrolment/complete-move.ts'
import { moving, type MoveState } from './enrolment/moving.ts'
import { reasonToStay, reasonToWait } from './enrolment/reason-to-stay.ts'
import { beginOf, Renewal } from './enrolment/renewal.ts'
import { readPrevious } from './enrolment/enrolment.ts'
import { Sqlite } from './journal/sqlite-driver.ts'
import { StorageError, storageReasonOf } from './journal/storage-error.ts'
import { JournalInUse, type StoreLock } from './journal/store-lock.ts'
import { followCertificates } from './follow-certificates.ts'
import { lockFirst, openLocked } from './lock-first.ts'
import { lastErrorFile } from './last-error.ts'
import { metricsListener } from './local-api/front.ts'
import { listenPatiently, type PatientListener } from './local-api/patient-listener.ts'
import { lockJournal } from './open-hub.ts'
import { doctorByProgram, moveByProgram, newKeyByProgram } from './programs.ts'
import { createRecent } from './recent.ts'
import { Resident } from './resident.ts'
import { runProgram } from './run-program.ts'
import { superviseBy, systemdNotify, watchdogMsOf } from './supervision.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import { mqttTransport } from './sync/mqtt-transport.ts'

/** Time between the answer to a restart and the end of the service. */
const RESTART_MS = 200

async function program(): Promise<void> {
  const runtime = systemRuntime()
  const log = pino({ base: { part: 'edge' } })
  const args = process.argv.slice(2)
  let desired: DesiredStates | undefined
  const read = () =>
    readConfig(args, process.env, (place) => {
      if (!desired) {
        completeMove(place, runtime.clock, log)
        desired = new DesiredStates(place.store)
        desired.start()
      }
      return desired.overrides()
    })
  let result = await orFailed(async () => {
    await lockFirst(readLockConfig(args, process.env), runtime, log)
    return read()
  })
  if (result.kind === 'problems' && desired?.trial()) {
    desired.fail(result.problems.join('; '))
    result = read()
  }
  return runProgram('edge', result, async (read) => {
    if (read.kind === 'config') return run(read.config, desired!)
    await untilEnrolled(read.settings)
    return program()
  })
}

/** A move that cannot be completed is a problem like a wrong setting, and so is another process with the journal. */
async function orFailed<T>(read: () => Promise<T>): Promise<T | { kind: 'problems'; problems: string[] }> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof MoveFailed || error instanceof JournalInUse)) throw error
    return { kind: 'problems', problems: [error.message] }
  }
}

/** Serves the page of a board that is not enrolled, until it is. */
async function untilEnrolled(settings: Unenrolled['settings']): Promise<void> {
  const { serveEnrolment } = await import('./enrolment/enrolment-page.ts')
  const runtime = systemRuntime()
  const log = quietly(pino({ level: settings.logLevel, base: { part: 'edge' } }), runtime.clock)
  if (process.channel) process.once('disconnect', () => process.exit(0))
  const notify = systemdNotify(process.env, log)
  const watchdogMs = watchdogMsOf(process.env, process.pid)
  return serveEnrolment({ local: settings.local, place: settings, runtime, log, notify, watchdogMs })
}

async function run(config: EdgeConfig, desired: DesiredStates): Promise<void> {
  const { local, mqtt } = config
  const runtime = systemRuntime()
  const { recent, lines, log } = openLog(config, runtime)

  // Locked first: only one process may use the journal and the hardware.
  const lock = tryLock(config.store, runtime)
  // Again: these settings may name other lines than those of the former start.
  const gpio = await openLocked(config, runtime, log)
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()
  const front: RequestListener = (request, response) => answer(request, response)
  const listener = await listenPatiently({ ...local, runtime, log }, front)

  const notify = systemdNotify(process.env, log)
  const words = lastErrorFile(`${config.store}.last-error`, files)
  const certificates = followCertificates(config, listener, runtime.clock, log)
  const watchdogMs = watchdogMsOf(process.env, process.pid)
  const { clock } = runtime
  const diagnoser = diagnoserOf(config, { log, clock, lines, recent, certificates }, () => resident)
  // The supervisor starts the service again. The delay lets the answer be sent first.
  const restart = (): void => void clock.after(RESTART_MS, () => stop('restart'))
  const state: MoveState = {}
  const parts = { runtime, log, certificates, restart, desired, state, resident: () => resident }
  const open = hubTransport(config, parts)
  const resident: Resident = new Resident({
    config,
    runtime,
    log,
    recent,
    gpio,
    openTransport: diagnoser.over(open),
    lastError: words.take(),
    certificates: certificates.known.all,
    desired,
    lock,
    notify,
    watchdogMs,
    restart,
    waitsToLeave: () => state.waits,
    onRefused(error) {
      process.stderr.write(`larder edge: ${startProblem(config.store, error)}\n`)
      process.exit(1)
    },
  })
  answer = (request, response) => resident.answer(request, response)
  surviveStorage(resident, config.store, log, (error) => {
    words.keep(error)
    lines.keep()
  })
  start(resident, config.store)
  const cloudTime = () => resident.cloudTime().certain
  reportLeft({ store: config.store, runtime, log, ca: mqtt.ca, cloudTime }).catch((error: unknown) =>
    log.error({ error: String(error) }, 'the enrolment in the former cell cannot be used'),
  )
  const metrics = await listenForMetrics(config, { runtime, log }, answer, resident)
  const brokers = mqtt.url.map((url) => new URL(url).host)
  log.info({ url: listener.url(), metrics: metrics?.url(), store: config.store, brokers }, 'the hub runs')

  const leave = superviseBy({
    clock: runtime.clock,
    log,
    notify,
    watchdogMs,
    // A restart cannot repair a card, so a storage failure does not trigger one.
    probes: { core: () => resident.isAlive() },
  })
  const stop = stopper({
    clock: runtime.clock,
    log,
    timeoutMs: config.shutdownTimeoutMs,
    stop() {
      leave()
      certificates.endFollowing()
      void metrics?.close()
      void listener.close()
      resident.stop()
      gpio.close()
      log.flush()
      lines.keep()
      return Promise.resolve()
    },
    exit: (code) => process.exit(code),
  })
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // If a parent program with a channel started this process (the demo), the process ends with its parent.
  if (process.channel) process.once('disconnect', () => stop('disconnect'))
}

/** The log of the service: standard output, and memory for people at the hub and afar. */
function openLog({ hardware, local, logLevel, store }: EdgeConfig, runtime: Runtime) {
  const { clock } = runtime
  const recent = createRecent({ clock, hardware, kept: local.recentKept })
  const lines = new LogLines(`${store}.last-log`, runtime, files)
  const output = logOutput((bytes) => files.writeSync(1, bytes))
  const base = { part: 'edge', hub: hardware.hubId }
  const log = quietly(lines.log(recent.log(pino({ level: logLevel, base }, output))), clock)
  return { recent, lines, log }
}

/** Throws an error that names the setting of a refused journal. */
function start(resident: Resident, path: string): void {
  try {
    resident.start()
  } catch (error) {
    throw new Error(startProblem(path, error), { cause: error })
  }
}

function hubTransport(
  config: EdgeConfig,
  parts: {
    runtime: Runtime
    log: Log
    certificates: ReturnType<typeof followCertificates>
    restart: () => void
    desired: DesiredStates
    state: MoveState
    /** Exists by the first message. */
    resident: () => Resident
  },
): OpenTransport {
  const { mqtt, hardware, store, certificateAgainMs } = config
  const { runtime, log, certificates, restart, desired, state, resident } = parts
  const { known, pems } = certificates
  const builtAt = buildTimeOf(import.meta.dirname, (path) => files.readFileSync(path, 'utf8'))
  // A board without a battery boots with a wrong date. The journal, this build or the hub's own certificate may prove a
  // later date, which is then used.
  const provenAt = (): number => Math.max(builtAt, renewal ? beginOf(renewal.client().cert) : 0)
  const time = () => certificateTime(runtime.clock.now(), provenAt(), resident().cloudTime())
  const renewal: Renewal | undefined =
    mqtt.client &&
    new Renewal({
      hubId: hardware.hubId,
      store,
      client: mqtt.client,
      previous: readPrevious(store),
      ca: mqtt.client.ca,
      clock: runtime.clock,
      log,
      now: () => time().certain,
      newKey: newKeyByProgram,
      onRenewed: (cert) => known.renew({ [HUB_CERTIFICATE]: cert }),
      onAuthorities: (ca) => known.renew({ MQTT_CA: mqtt.ca ?? ca }),
      againMs: certificateAgainMs,
    })
  const open = mqttTransport({
    urls: mqtt.url,
    user: hubUser(hardware.hubId),
    password: mqtt.password,
    client: renewal && (() => renewal.client()),
    runtime,
    time,
    // The broker of an enrolled hub has a certificate of the cloud's authority, of MQTT_CA, or of a public authority.
    ca: () => (renewal ? [pems.MQTT_CA, renewal.ca(), ...rootCertificates].join('\n') : pems.MQTT_CA),
    onCertificate: known.sawBroker,
  })
  const { hubId } = hardware
  const hub = { config, desired, core: () => resident().core(), outbox: () => resident().hub().outbox }
  // The next start compares with its clock.
  const now = (): number => Math.max(resident().cloudTime().estimate ?? 0, runtime.clock.now())
  const leave = { hubId, store, log, runtime, state, now, restart, reasonToWait: () => reasonToWait(hub) }
  const move = (next: NextCell): Promise<string> => moveByProgram(next, config.description)
  return moving(
    { hubId, store, log, state, reasonToStay: () => reasonToStay(hub), enrol: move },
    erasing(leave, renewal ? renewal.over(open) : open),
  )
}

/** Answers requests for the log and for archives. `resident`: exists by the first request. */
function diagnoserOf(
  config: EdgeConfig,
  parts: {
    log: Log
    clock: Clock
    lines: LogLines
    recent: ReturnType<typeof createRecent>
    certificates: ReturnType<typeof followCertificates>
  },
  resident: () => Resident,
): Diagnoser {
  const { log, clock, lines, recent, certificates } = parts
  const redact = redactorOf(() => secretsOf(config, certificates.pems.LOCAL_KEY))
  const bundle = () =>
    makeBundle({
      clock,
      settings: config.shown,
      lines,
      redact,
      recent: () => recent.read(),
      hub: () => resident().hub(),
      fault: () => resident().store.failure?.(),
      doctor: doctorByProgram,
    })
  return new Diagnoser({ hubId: config.hardware.hubId, log, lines, redact, bundle })
}

/** The secrets that no diagnosis contains. */
function secretsOf({ mqtt, local, store }: EdgeConfig, localKey: string | undefined): (string | undefined)[] {
  let token: string | undefined
  try {
    token = files.readFileSync(`${store}.token`, 'utf8').trim()
  } catch {
    // There is none, or the card fails.
  }
  return [mqtt.password, local.token, token, mqtt.client?.key, localKey]
}

/** The listener for monitoring. Its modules are loaded only if it is configured, to save a small hub's memory. */
async function listenForMetrics(
  { hardware, local, metrics, store: path }: EdgeConfig,
  parts: { runtime: Runtime; log: Log },
  front: RequestListener,
  resident: Pick<Resident, 'hub' | 'store'>,
): Promise<PatientListener | undefined> {
  const { METRICS_PORT: port, METRICS_HOST: host } = metrics
  if (port === undefined) return undefined
  const { createHubMetrics } = await import('./metrics.ts')
  const { hub, store } = resident
  const read = createHubMetrics({ hubId: hardware.hubId, folder: dirname(path), hub, store })
  const address = { host, port, setting: 'METRICS_PORT', bounds: local.bounds, ...parts }
  return listenPatiently(address, metricsListener(front, read, isMetricsHost(host)))
}

/** The journal's lock, or the storage error that prevents it. Throws if another service has the lock. */
function tryLock(path: string, runtime: Runtime): StoreLock | StorageError {
  try {
    return lockJournal(path, runtime)
  } catch (error) {
    if (error instanceof StorageError) return error
    throw new Error(startProblem(path, error), { cause: error })
  }
}

/** Names the setting of a journal that cannot be used. */
function startProblem(path: string, error: unknown): string {
  if (error instanceof JournalInUse) return error.message
  return `STORE: ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}`
}

/**
 * A row that cannot be read throws in any caller. That stops the current hub but not the service. Any other
 * error ends the process, and is stored for the next start.
 */
function surviveStorage(
  resident: Pick<Resident, 'lose'>,
  path: string,
  log: Log,
  keep: (error: unknown) => void,
): void {
  process.on('uncaughtException', (error) => {
    const reason =
      error instanceof Sqlite.SqliteError || error instanceof StorageError
        ? storageReasonOf(error, path)
        : undefined
    if (reason !== undefined) return resident.lose(new StorageError(reason, error.message, { cause: error }))
    // A caller of the previous hub uses a journal that is closed.
    if (error instanceof TypeError && error.message === 'The database connection is not open')
      return log.debug({ error: error.message }, 'a call came after the end of its hub')
    keep(error)
    process.stderr.write(`${error.stack ?? String(error)}\n`)
    process.exit(1)
  })
}

await program()
