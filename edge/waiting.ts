import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import type { GpioLines, HardwareDescription } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import { type Runtime, backoffMs, type Cancel } from '../protocol/model/runtime.ts'
import { storageSentence, type StorageFault } from '../protocol/model/storage.ts'
import type { OpenTransport, MqttTransport } from '../protocol/mqtt/transport.ts'
import type { HubCore, LocalOutcome } from './core/hub-core.ts'
import { turningOfFormerMs, unlockUnlessTurning } from './core/doors/doors.ts'
import { createLayout, type Layout } from './core/layout.ts'
import { outcomeOf, storageAlarm } from './core/local.ts'
import { Doors } from './hardware/doors.ts'
import type { Serving } from './serving.ts'
import { Heartbeat } from './sync/hello.ts'
import type { CoreSettings, HubSettings, SyncSettings } from '../protocol/settings/hub-limits.ts'
import { randomHex } from '../protocol/model/ids.ts'
import { RepeatedLine } from '../protocol/model/repeated-lines.ts'
import type { HubHealth } from '../protocol/model/hub-health.ts'
import type { Presence, StorageReport } from '../protocol/mqtt/session.ts'
import { downFilter, parseDownTopic, upTopic } from '../protocol/mqtt/topics.ts'
import { MQTT_PROTOCOL_VERSION } from '../protocol/mqtt/version.ts'

export interface WaitingOptions {
  runtime: Runtime
  log: Log
  hardware: HardwareDescription
  gpio: GpioLines
  openTransport: OpenTransport
  settings: HubSettings
  software: string
  /** The current failure; its reason may change. */
  fault: () => StorageFault
}

/** The stand-in for the hub while it cannot use its journal. */
export interface Waiting extends Serving {
  /** The reason of the failure has changed. */
  changed(): void
  /** Locks every door, and ends the connection to the cloud. */
  stop(): void
}

/**
 * Serves people and the cloud while the hub cannot use its journal. Nothing moves, because no intent can be
 * journaled (I1). Doors are locked; people at the hub can unlock them for a bounded time. The fridge doors stay locked
 * until a row that the hub turned before must have stopped. Page, health and cloud show the reason.
 */
export function startWaiting(options: WaitingOptions): Waiting {
  const { runtime, log, hardware, gpio, openTransport, settings, software, fault } = options
  const layout = createLayout(hardware)
  const startedAt = runtime.clock.monotonic()
  const since = runtime.clock.now()
  const doors = new Doors(
    {
      gpio,
      lines: hardware.gpio.lines.map(({ name }) => name),
      openBefore: [],
      clock: runtime.clock,
      settings: settings.core,
      checkpoint: noCheckpoint,
      log,
    },
    {
      onMoved: () => reporter.changed(),
      onChange: () => reporter.changed(),
      onSeen() {},
      onTrouble: () => reporter.changed(),
      onShut() {},
    },
  )
  const health = () => ({ ...unreadHealth(layout, doors.health()), storage: fault() })
  const reporter = new StorageReporter({
    runtime,
    log,
    hubId: hardware.hubId,
    openTransport,
    software,
    settings: settings.sync,
    health,
  })
  const position = { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 }
  const core = waitingCore({
    fault,
    since,
    startedAt,
    runtime,
    layout,
    settings: settings.core,
    health,
    doors,
  })
  doors.start()
  reporter.start()
  return {
    core,
    sync: { state: () => ({ ...reporter.state(), ledger: position }) },
    controllers: {
      links: () =>
        hardware.controllers.map(({ id, port }) => ({
          controller: id,
          port,
          up: false,
          firmware: null,
          protocol: null,
          reason: 'the hub waits for its storage',
        })),
      losses: () => new Map(),
    },
    outbox: { position: () => position },
    changed: () => reporter.changed(),
    stop() {
      reporter.stop()
      doors.stop()
    },
  }
}

interface WaitingCoreParts {
  fault: () => StorageFault
  /** Start of the failure, on the wall clock. */
  since: number
  /** Start of the waiting, on the monotonic clock. */
  startedAt: number
  runtime: Runtime
  layout: Layout
  settings: CoreSettings
  health: Serving['core']['health']
  doors: Doors
}

/** A core without a journal: it shows the reason, refuses every action, and unlocks doors for people. */
function waitingCore(parts: WaitingCoreParts): Serving['core'] {
  const { fault, since, startedAt, runtime, health } = parts
  const no = (): LocalOutcome => ({ ok: false, reason: 'unavailable', why: storageSentence(fault()) })
  return {
    health,
    readings: () => [],
    quietMs: () => runtime.clock.monotonic() - startedAt,
    alarms: () => [storageAlarm(fault(), since)],
    held: () => ({ orders: false, bins: [] }),
    people: () => [],
    orders: () => [],
    stock: () => [],
    unknownOperations: () => [],
    deadLetters: () => [],
    foreignControllers: () => [],
    operate: (_, reply) =>
      reply({
        command_id: '',
        session: '',
        outcome: 'refused',
        reason: 'fault',
        data: { why: storageSentence(fault()) },
      }),
    hold: no,
    settle: no,
    count: no,
    restock: no,
    confirmFridge: no,
    takeOverController: no,
    replayDeadLetters: no,
    dropDeadLetter: no,
    unlockDoor: (door, forMs) =>
      outcomeOf(unlockUnlessTurning(parts, door, { forMs, turningMs: turningOfFormerMs(parts, door) })),
    noteRestart: () => {},
    acceptance: noAcceptance(no),
  }
}

const noAcceptance = (no: () => LocalOutcome): HubCore['acceptance'] => ({
  begin: no,
  beginSteps: no,
  stop: no,
  decide: no,
  end: no,
  state: () => ({ id: null, revision: 0, hindrance: 'The hub cannot use its journal.', running: null }),
  protocol: () => null,
  parts: () => [],
  kept: () => [],
})

interface StorageReporterOptions {
  runtime: Runtime
  log: Log
  hubId: number
  openTransport: OpenTransport
  software: string
  settings: Pick<SyncSettings, 'backoff' | 'heartbeatMs' | 'healthMs' | 'hailMs'>
  health: () => StorageReport['health']
}

interface Connection {
  session: string
  transport: MqttTransport
  heartbeat: Heartbeat
  isOpen: boolean
}

/**
 * The hub's connection to the cloud while it cannot read its journal (SPEC §3). The hub does not know its
 * stream positions, so it sends no hello and accepts no command. It reports the cause every 15 s.
 */
class StorageReporter {
  readonly #options: StorageReporterOptions
  readonly #instance: string
  #connection: Connection | undefined
  #cancelRetry: Cancel | undefined
  #attempts = 0
  #reportedAt = -Infinity
  #receivedAt: number | undefined
  readonly #outage: RepeatedLine
  #isRunning = false

  constructor(options: StorageReporterOptions) {
    this.#options = options
    this.#instance = randomHex(options.runtime.random, 16)
    this.#outage = new RepeatedLine({ log: options.log, clock: options.runtime.clock })
  }

  start(): void {
    this.#isRunning = true
    this.#connect()
  }

  stop(): void {
    this.#isRunning = false
    this.#cancelRetry?.()
    const connection = this.#connection
    this.#connection = undefined
    connection?.heartbeat.stop()
    if (connection?.isOpen) this.#publishPresence(connection, false)
    connection?.transport.close()
  }

  /** The health has changed. */
  changed(): void {
    this.#connection?.heartbeat.changed()
  }

  state(): {
    phase: 'waiting' | 'connecting' | 'greeting'
    session: string | null
    receivedMsAgo: number | null
    reason: string | undefined
  } {
    const { clock } = this.#options.runtime
    const connection = this.#connection
    return {
      phase: connection === undefined ? 'waiting' : connection.isOpen ? 'greeting' : 'connecting',
      session: connection?.session ?? null,
      receivedMsAgo: this.#receivedAt === undefined ? null : clock.monotonic() - this.#receivedAt,
      reason: this.#outage.failing?.reason,
    }
  }

  #connect(): void {
    const { runtime, hubId, openTransport, settings } = this.#options
    const session = randomHex(runtime.random, 16)
    const offline: Presence = { session, online: false }
    const transport = openTransport(
      {
        subscribe: [downFilter(hubId)],
        will: { topic: upTopic(hubId, 'presence'), payload: JSON.stringify(offline), retain: true },
      },
      {
        onConnect: () => this.#onConnect(session),
        onDisconnect: (reason) => this.#onDisconnect(session, reason),
        onMessage: (topic) => this.#onMessage(topic),
      },
    )
    const heartbeat = new Heartbeat(runtime, settings, () => this.#report())
    this.#connection = { session, transport, heartbeat, isOpen: false }
  }

  #onConnect(session: string): void {
    const connection = this.#connection
    if (connection?.session !== session) return
    connection.isOpen = true
    this.#attempts = 0
    this.#outage.succeeded({}, 'connected to the broker')
    this.#publishPresence(connection, true)
    connection.heartbeat.start()
  }

  #onDisconnect(session: string, reason: string): void {
    if (this.#connection?.session !== session || !this.#isRunning) return
    const { runtime, settings } = this.#options
    this.#connection.heartbeat.stop()
    this.#connection = undefined
    const delayMs = backoffMs(this.#attempts++, settings.backoff, runtime.random)
    this.#outage.failed(reason, { delayMs }, 'no connection to the cloud', 'warn')
    this.#cancelRetry = runtime.clock.after(delayMs, () => this.#connect())
  }

  /** A cloud that does not know the session requests a hello. The hub can only answer with a report. */
  #onMessage(topic: string): void {
    const { runtime, hubId, settings } = this.#options
    this.#receivedAt = runtime.clock.monotonic()
    if (parseDownTopic(hubId, topic) !== 'hail') return
    if (this.#receivedAt - this.#reportedAt >= settings.hailMs) this.#report()
  }

  #report(): void {
    const connection = this.#connection
    if (!connection?.isOpen) return
    const { runtime, hubId, software, health } = this.#options
    this.#reportedAt = runtime.clock.monotonic()
    const report: StorageReport = {
      protocol: MQTT_PROTOCOL_VERSION,
      session: connection.session,
      instance: this.#instance,
      software,
      monotonic: this.#reportedAt,
      health: health(),
    }
    void connection.transport.publish(upTopic(hubId, 'storage'), JSON.stringify(report))
  }

  #publishPresence({ session, transport }: Connection, online: boolean): void {
    const presence: Presence = { session, online }
    void transport.publish(upTopic(this.#options.hubId, 'presence'), JSON.stringify(presence), {
      retain: true,
    })
  }
}

/** The health of a hub without connections to its controllers. */
const unreadHealth = (
  {
    bins,
    fridges,
  }: { bins: readonly { number: number; capacity: number }[]; fridges: readonly { number: number }[] },
  doors: HubHealth['doors'],
): HubHealth => ({
  accepting_orders: false,
  bins: bins.map(({ number, capacity }) => ({
    bin_number: number,
    capacity,
    enabled: true,
    status: 'offline',
    door: 'unknown',
    lift: 'unknown',
    occupied: null,
    fault_code: null,
    order_id: null,
  })),
  fridges: fridges.map(({ number }) => ({
    fridge_number: number,
    enabled: true,
    status: 'offline',
    temperature: null,
    shutoff: false,
  })),
  doors,
  unknown_operations: 0,
})
