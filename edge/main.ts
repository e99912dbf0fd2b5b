import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import { mkdirSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { pino } from 'pino'
import { hostCheck } from '../protocol/model/allowed-hosts.ts'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import { hubUser } from '../protocol/mqtt/topics.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { readConfig, type EdgeConfig } from './config.ts'
import { lockAll } from './hardware/doors.ts'
import { openSerialPort } from './hardware/serialport-line-port.ts'
import { createHub } from './hub.ts'
import { lockStore } from './journal/store-lock.ts'
import { openStore } from './journal/store.ts'
import { createFront, listen } from './local-api/front.ts'
import { keptToken } from './local-api/token.ts'
import { superviseBy, systemdNotify, watchdogMsOf, type Probes } from './supervision.ts'
import { mqttTransport } from './sync/mqtt-transport.ts'

/** A motion's own limit, and the time to ask its controller what became of it. */
const MOTION_GRACE_MS = 5000

/** A hub without GPIO: nothing can be read, nothing is driven. */
const noGpio: GpioLines = {
  read: () => undefined,
  write: () => false,
  watch() {},
  close() {},
}

await main()

async function main(): Promise<void> {
  const result = readConfig(process.argv.slice(2), process.env)
  switch (result.kind) {
    case 'help':
      process.stdout.write(result.text)
      return
    case 'problems':
      return fail(result.problems)
    case 'config':
      try {
        return await run(result.config)
      } catch (error) {
        return fail([error instanceof Error ? error.message : String(error)])
      }
  }
}

function fail(problems: readonly string[]): never {
  for (const problem of problems) process.stderr.write(`larder edge: ${problem}\n`)
  process.exit(1)
}

async function run(config: EdgeConfig): Promise<void> {
  const { hardware, local, mqtt } = config
  const { hubId } = hardware
  const runtime = systemRuntime()
  const log = pino({ level: config.logLevel, base: { part: 'edge', hub: hubId } })

  // First of all: one process has the journal and the hardware, and another touches nothing of either.
  inStore(config.store, () => mkdirSync(dirname(config.store), { recursive: true }))
  const since = new Date(runtime.clock.now()).toISOString()
  const lock = lockStore(config.store, { pid: process.pid, since })
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()
  const listener = await listen({ ...local, clock: runtime.clock }, (request, response) =>
    answer(request, response),
  )

  const gpio = await openGpio(config, runtime, log)
  lockAll(gpio, hardware.gpio.lines, log)
  const store = inStore(config.store, () => openStore({ path: config.store, checkpoint: noCheckpoint, log }))
  const hub = createHub({
    runtime,
    log,
    store,
    hardware,
    openPort: openSerialPort,
    gpio,
    openTransport: mqttTransport({
      url: mqtt.url,
      user: hubUser(hubId),
      password: mqtt.password,
      clock: runtime.clock,
      ...(mqtt.ca !== undefined && { ca: mqtt.ca }),
    }),
    checkpoint: noCheckpoint,
    settings: config.hub,
  })
  const probes: Probes = {
    journal: () => store.isWritable(),
    core: () => hub.core.quietMs() < 3 * config.hub.core.housekeepingMs,
  }
  const token =
    local.token ?? keptToken(`${config.store}.token`, runtime.random, (sentence) => log.warn({}, sentence))
  answer = createFront({
    hubId,
    probes,
    sync: hub.sync,
    async load() {
      const { getRequestListener } = await import('@hono/node-server')
      const { getConnInfo } = await import('@hono/node-server/conninfo')
      const { createLocalApi } = await import('./local-api/local-api.ts')
      const api = createLocalApi({
        hubId,
        core: hub.core,
        sync: hub.sync,
        links: () => hub.controllers.links(),
        token,
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
  hub.start()
  log.info({ url: listener.url, store: config.store, broker: new URL(mqtt.url).host }, 'the hub runs')

  const leave = superviseBy({
    clock: runtime.clock,
    log,
    notify: systemdNotify(process.env['NOTIFY_SOCKET'], log),
    watchdogMs: watchdogMsOf(process.env, process.pid),
    probes,
  })
  let stopping = false
  const stop = (why: string): void => {
    if (stopping) return
    stopping = true
    log.info({ why }, 'the hub stops')
    leave()
    listener.close()
    hub.stop()
    gpio.close()
    store.close()
    lock.release()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  // Started by a program that holds a channel to it (the demo): it ends with that one.
  if (process.channel) process.once('disconnect', () => stop('disconnect'))
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
