import * as files from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { hostCheck } from '../protocol/model/allowed-hosts.ts'
import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Cancel, Clock, Runtime } from '../protocol/model/runtime.ts'
import { storageSentence, storageText, type StorageFault } from '../protocol/model/storage.ts'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import type { EdgeConfig } from './config.ts'
import { startApplying } from './applying.ts'
import type { CertificateEnd } from './core/context.ts'
import type { HubCore } from './core/hub-core.ts'
import type { DesiredStates } from './desired/desired-states.ts'
import { boardVitals } from './diagnosis/vitals.ts'
import { readImages } from './hardware/firmware-images.ts'
import { StorageError } from './journal/storage-error.ts'
import type { StoreLock } from './journal/store-lock.ts'
import { createFront } from './local-api/front.ts'
import { tokenKeeper } from './local-api/token.ts'
import type { HubMetricsOptions } from './metrics.ts'
import { checkingMs, openHub, type OpenHub } from './open-hub.ts'
import type { createRecent } from './recent.ts'
import { createRunner } from './runner.ts'
import type { Serving } from './serving.ts'
import { extendTimeouts, failingProbes, restoreTimeouts, type Notify } from './supervision.ts'
import { updateFiles } from './update/files.ts'
import { UpdateTrial } from './update/trial.ts'
import { startWaiting, type Waiting } from './waiting.ts'

/** Added to a motion's limit: the time to ask its controller for the result. */
const MOTION_GRACE_MS = 5000

export interface ResidentOptions {
  config: EdgeConfig
  runtime: Runtime
  log: Log
  recent: ReturnType<typeof createRecent>
  gpio: GpioLines
  openTransport: OpenTransport
  /** The journal's lock, or the storage error that prevented it at the start. */
  lock: StoreLock | StorageError
  notify: Notify
  watchdogMs: number | undefined
  /** See `CoreOptions`. */
  lastError: string | undefined
  certificates: () => readonly CertificateEnd[]
  desired: DesiredStates
  /** Ends the service; its supervisor starts it again. */
  restart: () => void
  /** Why a retired hub cannot leave for another cell yet. */
  waitsToLeave: () => string | undefined
  /** The journal is readable again after a failure, but must not be used: the service must end. */
  onRefused: (error: unknown) => void
}

/**
 * The parts that stay while the hub starts and stops with its storage: local API, health, metrics. Composes
 * the hub, and its stand-in while the storage fails.
 */
export class Resident {
  readonly #options: ResidentOptions
  readonly #software = `larder-edge ${PRODUCT_VERSION}`
  readonly #probes = { journal: () => this.#isJournalWritable(), core: () => this.isAlive() }
  readonly #tokens: ReturnType<typeof tokenKeeper>
  readonly #trial: UpdateTrial
  readonly #runner: ReturnType<typeof createRunner<OpenHub>>
  #endApplying: Cancel = () => {}
  #lock: StoreLock | undefined
  #serving: Serving | undefined
  #front: RequestListener = (_request, response) => void response.writeHead(503).end()
  /** Reopening the journal within one process is not a new start of the service. */
  #isStart = true
  /** The last time that the hub knew, and its instant on the monotonic clock. */
  #known: { at: number; estimate: number; certain: number | undefined } | undefined

  constructor(options: ResidentOptions) {
    const { config, runtime, log, lock, onRefused } = options
    this.#options = options
    this.#tokens = tokenKeeper(config, runtime, log)
    this.#trial = new UpdateTrial(config.store, config.update.confirmMs)
    this.#lock = lock instanceof StorageError ? undefined : lock
    this.#runner = createRunner<OpenHub>({
      runtime,
      log,
      path: config.store,
      retry: config.hub.storage,
      open: (life) => this.#open(life),
      wait: (life, fault) => this.#wait(life, fault),
      onChange: (phase) => this.#serve(phase.kind === 'running' ? phase.hub.hub : phase.waiting),
      onRefused,
    })
  }

  /** Throws if the journal is refused. */
  start(): void {
    this.#runner.start()
    const { config, runtime, log, desired, restart } = this.#options
    this.#endApplying = startApplying({
      desired,
      clock: runtime.clock,
      log,
      confirmMs: config.applyConfirmMs,
      hub: () => this.#opened()?.hub,
      isReady: () => failingProbes(this.#probes).length === 0,
      restart,
    })
  }

  stop(): void {
    this.#endApplying()
    this.#options.desired.interrupt()
    this.#runner.stop()
  }

  /** Stops the current hub because of a storage failure. */
  lose(error: StorageError): void {
    this.#runner.lose(error)
  }

  /** Answers with the current local API. */
  answer(request: IncomingMessage, response: ServerResponse): void {
    this.#front(request, response)
  }

  /** The hub's core; undefined while it cannot use its journal. */
  core(): HubCore | undefined {
    return this.#opened()?.hub.core
  }

  /** Whether the core makes progress. True while the hub waits for its storage. */
  isAlive(): boolean {
    const { housekeepingMs } = this.#options.config.hub.core
    return (this.#opened()?.hub.core.quietMs() ?? 0) < 3 * housekeepingMs
  }

  /** The estimated cloud time, and its certain lower bound; while the hub waits, extrapolated from the last values. */
  cloudTime(): { estimate?: number | undefined; certain?: number | undefined } {
    const at = this.#options.runtime.clock.monotonic()
    const core = this.#opened()?.hub.core
    if (core) this.#known = { at, estimate: core.cloudNow(), certain: core.certainNow() }
    if (!this.#known) return {}
    const { estimate, certain } = this.#known
    const passedMs = at - this.#known.at
    return { estimate: estimate + passedMs, certain: certain === undefined ? undefined : certain + passedMs }
  }

  /** For the metrics: the hub, or its stand-in. */
  readonly hub = (): Serving => ({ ...this.#serving!, certificates: this.#options.certificates })

  /** For the metrics. */
  readonly store: HubMetricsOptions['store'] = {
    commits: () => this.#opened()?.store.commits() ?? 0,
    isFull: () => this.#opened()?.store.isFull() ?? false,
    failure: () => this.#fault(),
    bytes: () => this.#opened()?.store.bytes() ?? 0,
  }

  #open(life: Runtime): OpenHub {
    const { config, log, gpio, openTransport, recent, notify, watchdogMs } = this.#options
    const { lastError, certificates, desired } = this.#options
    const held = this.#lock
    const isStart = this.#isStart
    this.#lock = undefined
    this.#isStart = false
    // Checking a large journal takes long on a slow card: neither the start timeout nor the watchdog may end
    // it.
    const checkMs = checkingMs(config.store)
    extendTimeouts(notify, checkMs, watchdogMs)
    try {
      return openHub(config, {
        runtime: life,
        log,
        gpio,
        openTransport,
        software: this.#software,
        recent,
        held,
        lastError,
        certificates,
        desired,
        trial: this.#trial,
        isStart,
        board: () => boardVitals(dirname(config.store)),
        // The program's own folder, and a folder for files of a person.
        images: readImages(
          [join(import.meta.dirname, '../firmware'), updateFiles(config.store).firmware],
          log,
        ),
      })
    } finally {
      restoreTimeouts(notify, checkMs, watchdogMs)
    }
  }

  #wait(life: Runtime, fault: () => StorageFault): Waiting {
    const { config, log, gpio, openTransport } = this.#options
    return startWaiting({
      runtime: life,
      log,
      hardware: config.hardware,
      gpio,
      openTransport,
      settings: config.hub,
      software: this.#software,
      fault,
    })
  }

  #reasonToWait(): string | undefined {
    if (this.#options.desired.trial()) return 'settings or a hardware description are being tried'
    return this.core()?.reasonToWait()
  }

  /** Switches the local API to the hub or to its stand-in. */
  #serve(serving: Serving): void {
    // Created at the first start, and read again after each failure, because it is on the same card.
    const token = this.#tokens.read()
    this.#serving = serving
    this.#front = createFront({
      hubId: this.#options.config.hardware.hubId,
      probes: this.#probes,
      sync: serving.sync,
      version: PRODUCT_VERSION,
      links: () => serving.controllers.links(),
      storage: () => this.#fault(),
      reasonToWait: () => this.#reasonToWait(),
      cloudTime: () => this.cloudTime().certain,
      load: () =>
        loadLocalApi(this.#options, {
          serving,
          software: this.#software,
          token,
          // Cloud time dates logins, which outlive the process: the board's clock may be wrong.
          now: () => Math.floor(this.cloudTime().estimate ?? this.#options.runtime.clock.now()),
          isOver: () => this.#serving !== serving,
        }),
    })
  }

  #opened(): OpenHub | undefined {
    const phase = this.#runner.phase()
    return phase?.kind === 'running' ? phase.hub : undefined
  }

  #fault(): StorageFault | undefined {
    return this.#runner.fault() ?? this.#opened()?.store.failure()
  }

  /** Throws if the storage fails. */
  #isJournalWritable(): boolean {
    const fault = this.#fault()
    if (fault === undefined) return this.#opened()?.store.isWritable() ?? false
    // People can still work at a hub with a full disk.
    if (storageText(fault.reason).alarm === 'store_full') return true
    throw new Error(storageSentence(fault))
  }
}

interface LocalApiParts {
  serving: Serving
  software: string
  token: string
  /** Milliseconds since the Unix epoch. */
  now: () => number
  isOver: () => boolean
}

/** Loads the web framework at the first request, and creates the local API. */
async function loadLocalApi(
  { config, runtime, log, recent, restart, waitsToLeave }: ResidentOptions,
  { serving, software, token, now, isOver }: LocalApiParts,
): Promise<RequestListener> {
  const { hardware, local } = config
  const { getRequestListener } = await import('@hono/node-server')
  const { getConnInfo } = await import('@hono/node-server/conninfo')
  const { createLocalApi } = await import('./local-api/local-api.ts')
  const { sessionFile } = await import('./local-api/access-files.ts')
  const clock: Clock = {
    now,
    monotonic: () => runtime.clock.monotonic(),
    after: (delayMs, task) => runtime.clock.after(delayMs, task),
  }
  const api = createLocalApi({
    hubId: hardware.hubId,
    core: serving.core,
    sync: serving.sync,
    links: () => serving.controllers.links(),
    recent: () => recent.read(),
    token,
    sessionFile: sessionFile(`${config.store}.sessions`, log),
    sessionMs: local.sessionMs,
    sessions: local.sessions,
    guesses: local.guesses,
    runtime: { ...runtime, clock },
    hardware,
    software,
    page: pageAssets(files, join(import.meta.dirname, 'local-api/assets')),
    liveMs: local.liveMs,
    isOver,
    restart,
    waitsToLeave,
    isAllowedHost: hostCheck([hostname(), `${hostname()}.local`, ...(local.allowedHosts?.split(',') ?? [])]),
    clock,
    log,
    addressOf: (c) => getConnInfo(c).remote.address ?? 'unknown',
    motionTimeoutMs: Math.max(...Object.values(config.hub.core.maxMs)) + MOTION_GRACE_MS,
  })
  const listener = getRequestListener((request, env) => api.fetch(request, env))
  return (request, response) => void listener(request, response)
}
