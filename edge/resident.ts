import * as files from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { hostCheck } from '../protocol/model/allowed-hosts.ts'
import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Clock, Runtime } from '../protocol/model/runtime.ts'
import { storageSentence, storageText, type StorageFault } from '../protocol/model/storage.ts'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import type { EdgeConfig } from './config.ts'
import type { HubOptions } from './hub.ts'
import { StorageError } from './journal/storage-error.ts'
import type { StoreLock } from './journal/store-lock.ts'
import { createFront } from './local-api/front.ts'
import { tokenKeeper } from './local-api/token.ts'
import type { HubMetricsOptions } from './metrics.ts'
import { checkingMs, openHub, type OpenHub } from './open-hub.ts'
import type { createRecent } from './recent.ts'
import { createRunner } from './runner.ts'
import type { Serving } from './serving.ts'
import { extendTimeouts, restoreTimeouts, type Notify, type Probes } from './supervision.ts'
import { startWaiting } from './waiting.ts'

/** A motion's own limit, and the time to ask its controller what became of it. */
const MOTION_GRACE_MS = 5000

export interface ResidentOptions {
  config: EdgeConfig
  runtime: Runtime
  log: Log
  recent: ReturnType<typeof createRecent>
  gpio: GpioLines
  openTransport: OpenTransport
  /** The journal's lock, or why the storage did not give it at the start. */
  lock: StoreLock | StorageError
  notify: Notify
  watchdogMs: number | undefined
  /** See `CoreOptions`. */
  lastWords: string | undefined
  certificates: () => readonly { name: string; endsAt: number }[]
  /** Ends the service; whoever supervises it starts it again. */
  restart: () => void
  /** The journal was there again after a failure, and is refused: the service has to end. */
  onRefused: (error: unknown) => void
}

/** The parts that stay while the hub comes and goes with its storage: local API, health, metrics. */
export interface Resident extends Pick<HubMetricsOptions, 'hub' | 'store'> {
  /** Throws if the journal is refused. */
  start(): void
  /** The local API of what answers at present. */
  answer(request: IncomingMessage, response: ServerResponse): void
  /** Ends the hub's present life because of a failure of the storage. */
  lose(error: StorageError): void
  /** The cloud's time as the hub estimates it, and the part of it that is certain; while it waits, as it last did. */
  cloudTime(): { estimate?: number | undefined; certain?: number | undefined }
  /** Whether the core makes progress. True while the hub waits for its storage. */
  isAlive(): boolean
  stop(): void
}

/** Composes the hub, what waits in its place while its storage fails, and the local API of both. */
export function createResident(options: ResidentOptions): Resident {
  const { config, runtime, log, recent, gpio, openTransport, notify, watchdogMs } = options
  const { hardware } = config
  const software = `larder-edge ${PRODUCT_VERSION}`
  const tokens = tokenKeeper(config, runtime, log)
  let lock: StoreLock | undefined = options.lock instanceof StorageError ? undefined : options.lock
  let answering: Serving | undefined
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()

  /** A journal that is opened again within one process is no new start of the service. */
  let isStart = true
  function ofLife(): Pick<HubOptions, 'lastWords' | 'certificates' | 'isStart'> {
    const { lastWords, certificates } = options
    const first = isStart
    isStart = false
    return { lastWords, certificates, isStart: first }
  }

  const runner = createRunner<OpenHub>({
    runtime,
    log,
    path: config.store,
    retry: config.hub.storage,
    open(life) {
      const held = lock
      lock = undefined
      // A large journal on a slow card takes its time to be checked: neither the start nor the watchdog ends that.
      const checkMs = checkingMs(config.store)
      extendTimeouts(notify, checkMs, watchdogMs)
      try {
        return openHub(config, { life, log, gpio, openTransport, software, recent, held, ...ofLife() })
      } finally {
        restoreTimeouts(notify, checkMs, watchdogMs)
      }
    },
    wait: (life, present) =>
      startWaiting({
        runtime: life,
        log,
        hardware,
        gpio,
        openTransport,
        settings: config.hub,
        software,
        fault: present,
      }),
    onChange(phase) {
      // Made at the first start, and read again after each failure: it is on the same card.
      const token = tokens.read()
      const serving: Serving = phase.kind === 'running' ? phase.hub.hub : phase.waiting
      answering = serving
      answer = createFront({
        hubId: hardware.hubId,
        probes,
        sync: serving.sync,
        storage: fault,
        load: () =>
          loadLocalApi(options, { serving, software, token, now, isOver: () => answering !== serving }),
      })
    },
    onRefused: options.onRefused,
  })

  const opened = (): OpenHub | undefined => {
    const phase = runner.phase()
    return phase?.kind === 'running' ? phase.hub : undefined
  }
  const fault = (): StorageFault | undefined => runner.fault() ?? opened()?.store.failure()
  const isAlive = (): boolean => (opened()?.hub.core.quietMs() ?? 0) < 3 * config.hub.core.housekeepingMs
  const probes: Probes = {
    journal() {
      const present = fault()
      if (present === undefined) return opened()?.store.isWritable() ?? false
      // People can still work at a hub with a full disk.
      if (storageText(present.reason).alarm === 'store_full') return true
      throw new Error(storageSentence(present))
    },
    core: isAlive,
  }
  /** On the monotonic clock. */
  let known: { at: number; estimate: number; certain: number | undefined } | undefined
  function cloudTime(): ReturnType<Resident['cloudTime']> {
    const at = runtime.clock.monotonic()
    const core = opened()?.hub.core
    if (core) known = { at, estimate: core.cloudNow(), certain: core.certainNow() }
    if (!known) return {}
    const { estimate, certain } = known
    const passedMs = at - known.at
    return { estimate: estimate + passedMs, certain: certain === undefined ? undefined : certain + passedMs }
  }
  /** Cloud time dates logins, which outlive the process: the board's clock may be wrong. */
  const now = (): number => Math.floor(cloudTime().estimate ?? runtime.clock.now())
  return {
    cloudTime,
    start: () => runner.start(),
    answer: (request, response) => answer(request, response),
    lose: (error) => runner.lose(error),
    isAlive,
    stop: () => runner.stop(),
    hub: {
      get core() {
        return answering!.core
      },
      get sync() {
        return answering!.sync
      },
      get controllers() {
        return answering!.controllers
      },
      get outbox() {
        return answering!.outbox
      },
      certificates: options.certificates,
    },
    store: {
      commits: () => opened()?.store.commits() ?? 0,
      isFull: () => opened()?.store.isFull() ?? false,
      failure: fault,
      bytes: () => opened()?.store.bytes() ?? 0,
    },
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
  { config, runtime, log, recent, restart }: ResidentOptions,
  { serving, software, token, now, isOver }: LocalApiParts,
): Promise<RequestListener> {
  const { hardware, local } = config
  const { getRequestListener } = await import('@hono/node-server')
  const { getConnInfo } = await import('@hono/node-server/conninfo')
  const { createLocalApi } = await import('./local-api/local-api.ts')
  const { peopleIn, sessionFile } = await import('./local-api/access-files.ts')
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
    people: peopleIn(`${config.store}.people`, clock, log),
    sessionFile: sessionFile(`${config.store}.sessions`, log),
    sessionMs: local.sessionMs,
    guesses: local.guesses,
    runtime: { ...runtime, clock },
    hardware,
    software,
    page: pageAssets(files, join(import.meta.dirname, 'local-api/assets')),
    liveMs: local.liveMs,
    isOver,
    restart,
    isAllowedHost: hostCheck([hostname(), `${hostname()}.local`, ...(local.allowedHosts?.split(',') ?? [])]),
    clock,
    log,
    addressOf: (c) => getConnInfo(c).remote.address ?? 'unknown',
    motionTimeoutMs: Math.max(...Object.values(config.hub.core.maxMs)) + MOTION_GRACE_MS,
  })
  const listener = getRequestListener((request, env) => api.fetch(request, env))
  return (request, response) => void listener(request, response)
}
