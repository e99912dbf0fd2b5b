import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import * as files from 'node:fs'
import type { RequestListener } from 'node:http'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { buildTimeOf } from '../protocol/model/build-time.ts'
import { hostCheck, isMetricsHost } from '../protocol/model/allowed-hosts.ts'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import { quietly } from '../protocol/model/repeated-lines.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import { stopper } from '../protocol/model/stopping.ts'
import { VERSION } from '../protocol/model/version.ts'
import { certificateTime } from '../protocol/mqtt/certificates.ts'
import { hubUser } from '../protocol/mqtt/topics.ts'
import { pageAssets } from '../protocol/page-assets.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { readConfig, type EdgeConfig } from './config.ts'
import { lockAll } from './hardware/doors.ts'
import { openSerialPort } from './hardware/serialport-line-port.ts'
import { createHub, type Hub } from './hub.ts'
import { lockStore } from './journal/store-lock.ts'
import { openStore, type Store } from './journal/store.ts'
import { createFront, listen, metricsListener, type Listener } from './local-api/front.ts'
import { keptToken } from './local-api/token.ts'
import { createRecent } from './recent.ts'
import { runProgram } from './run-program.ts'
import { superviseBy, systemdNotify, watchdogMsOf, type Probes } from './supervision.ts'
import { mqttTransport } from './sync/mqtt-transport.ts'

/** A motion's own limit, and the time to ask its controller what became of it. */
const MOTION_GRACE_MS = 5000

/** How long the answer to a restart has until the service ends. */
const RESTART_MS = 200

/** A hub without GPIO: nothing can be read, nothing is driven. */
const noGpio: GpioLines = {
  read: () => undefined,
  write: () => false,
  watch() {},
  close() {},
}

await runProgram('edge', readConfig(process.argv.slice(2), process.env), ({ config }) => run(config))

async function run(config: EdgeConfig): Promise<void> {
  const { hardware, local, mqtt } = config
  const { hubId } = hardware
  const runtime = systemRuntime()
  const software = `larder-edge ${VERSION}`
  const recent = createRecent({ clock: runtime.clock, hardware, kept: local.recentKept })
  const log = quietly(
    recent.log(pino({ level: config.logLevel, base: { part: 'edge', hub: hubId } })),
    runtime.clock,
  )

  // First of all: one process has the journal and the hardware, and another touches nothing of either.
  inStore(config.store, () => files.mkdirSync(dirname(config.store), { recursive: true }))
  const since = new Date(runtime.clock.now()).toISOString()
  const lock = lockStore(config.store, { pid: process.pid, since })
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()
  const listener = await listen({ ...local, runtime }, (request, response) => answer(request, response))

  const gpio = await openGpio(config, runtime, log)
  lockAll(gpio, hardware.gpio.lines, log)
  const store = inStore(config.store, () =>
    openStore({ path: config.store, cacheKb: config.storeCacheKb, checkpoint: noCheckpoint, log }),
  )
  const builtAt = buildTimeOf(import.meta.dirname, (path) => files.readFileSync(path, 'utf8'))
  const hub: Hub = createHub({
    runtime,
    log,
    store,
    hardware,
    openPort: recent.port(openSerialPort),
    gpio,
    openTransport: mqttTransport({
      urls: mqtt.url,
      user: hubUser(hubId),
      password: mqtt.password,
      runtime,
      // A board without a battery boots with a wrong date: what the journal and this build prove is later than that counts.
      time: () =>
        certificateTime(runtime.clock.now(), builtAt, {
          estimate: hub.core.cloudNow(),
          certain: hub.core.certainNow(),
        }),
      ...(mqtt.ca !== undefined && { ca: mqtt.ca }),
    }),
    checkpoint: noCheckpoint,
    settings: config.hub,
    software,
  })
  const probes: Probes = {
    journal: () => store.isWritable(),
    core: () => hub.core.quietMs() < 3 * config.hub.core.housekeepingMs,
  }
  const token =
    local.token ?? keptToken(`${config.store}.token`, runtime.random, (sentence) => log.warn({}, sentence))
  const front = createFront({
    hubId,
    probes,
    sync: hub.sync,
    async load() {
      const { getRequestListener } = await import('@hono/node-server')
      const { getConnInfo } = await import('@hono/node-server/conninfo')
      const { createLocalApi } = await import('./local-api/local-api.ts')
      const { peopleIn, sessionFile } = await import('./local-api/access-files.ts')
      const api = createLocalApi({
        hubId,
        core: hub.core,
        sync: hub.sync,
        links: () => hub.controllers.links(),
        recent: () => recent.read(),
        token,
        people: peopleIn(`${config.store}.people`, runtime.clock, log),
        sessionFile: sessionFile(`${config.store}.sessions`, log),
        sessionMs: local.sessionMs,
        guesses: local.guesses,
        runtime,
        hardware,
        software,
        page: pageAssets(files, join(import.meta.dirname, 'local-api/assets')),
        liveMs: local.liveMs,
        // Its supervisor starts it again. The answer goes out first.
        restart: () => void runtime.clock.after(RESTART_MS, () => stop('restart')),
        isAllowedHost: hostCheck([
          hostname(),
          `${hostname()}.local`,
          ...(local.allowedHosts?.split(',') ?? []),
        ]),
        clock: runtime.clock,
        log,
        addressOf: (c) => getConnInfo(c).remote.address ?? 'unknown',
        motionTimeoutMs: Math.max(...Object.values(config.hub.core.maxMs)) + MOTION_GRACE_MS,
      })
      const listener = getRequestListener((request, env) => api.fetch(request, env))
      return (request, response) => void listener(request, response)
    },
  })
  answer = front
  const metrics = await listenForMetrics(config, runtime, front, { hub, store })
  hub.start()
  log.info(
    {
      url: listener.url,
      metrics: metrics?.url,
      store: config.store,
      brokers: mqtt.url.map((url) => new URL(url).host),
    },
    'the hub runs',
  )

  const leave = superviseBy({
    clock: runtime.clock,
    log,
    notify: systemdNotify(process.env, log),
    watchdogMs: watchdogMsOf(process.env, process.pid),
    probes,
  })
  const stop = stopper({
    clock: runtime.clock,
    log,
    timeoutMs: config.shutdownTimeoutMs,
    stop() {
      leave()
      metrics?.close()
      listener.close()
      hub.stop()
      gpio.close()
      store.close()
      lock.release()
      log.flush()
      return Promise.resolve()
    },
    exit: (code) => process.exit(code),
  })
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // Started by a program that holds a channel to it (the demo): it ends with that one.
  if (process.channel) process.once('disconnect', () => stop('disconnect'))
}

/** The listener of those who watch over the hub. What it needs is loaded where it is wanted alone: a hub is small. */
async function listenForMetrics(
  { hardware, local, metrics }: EdgeConfig,
  runtime: Runtime,
  front: RequestListener,
  parts: { hub: Hub; store: Store },
): Promise<Listener | undefined> {
  const { METRICS_PORT: port, METRICS_HOST: host } = metrics
  if (port === undefined) return undefined
  const { createHubMetrics } = await import('./metrics.ts')
  const read = createHubMetrics({ hubId: hardware.hubId, ...parts })
  const address = { host, port, setting: 'METRICS_PORT', bounds: local.bounds, runtime }
  return listen(address, metricsListener(front, read, isMetricsHost(host)))
}

/** Names the setting where the journal's folder or file cannot be used. */
function inStore<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`STORE: ${path} cannot be used: ${reason}`, { cause: error })
  }
}

async function openGpio({ gpio, hardware }: EdgeConfig, runtime: Runtime, log: Log): Promise<GpioLines> {
  switch (gpio.kind) {
    case 'none':
      return noGpio
    case 'socket': {
      const { createSocketLines } = await import('./hardware/gpio/socket-lines.ts')
      return createSocketLines({ address: gpio.address, runtime, log })
    }
    case 'onoff': {
      // Only here: its native part is not needed otherwise, nor to be had everywhere.
      const { createOnoffLines } = await import('./hardware/gpio/onoff-lines.ts')
      return createOnoffLines({ hardware: hardware.gpio, runtime, log })
    }
  }
}
