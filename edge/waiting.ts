import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import type { GpioLines, HardwareDescription } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Clock, Runtime } from '../protocol/model/runtime.ts'
import { storageSentence, type StorageFault } from '../protocol/model/storage.ts'
import type { OpenTransport } from '../protocol/mqtt/transport.ts'
import type { HubCore, LocalOutcome } from './core/hub-core.ts'
import { createLayout } from './core/layout.ts'
import { storageAlarm } from './core/local.ts'
import { Doors } from './hardware/doors.ts'
import type { Serving } from './serving.ts'
import type { HubSettings } from './limits.ts'
import { StorageReporter, unreadHealth } from './sync/storage-reporter.ts'

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
 * journaled (I1). Doors are locked; people at the hub can unlock them for a bounded time. Page, health and
 * cloud show the reason.
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
      onRelocked() {},
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
  const core = waitingCore({ fault, since, startedAt, clock: runtime.clock, health, doors })
  doors.start()
  reporter.start()
  return {
    core,
    sync: {
      state: () => ({ ...reporter.state(), ledger: { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 } }),
    },
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
    outbox: { position: () => ({ epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 }) },
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
  clock: Clock
  health: Serving['core']['health']
  doors: Doors
}

/** A core without a journal: it shows the reason, refuses every action, and unlocks doors for people. */
function waitingCore({ fault, since, startedAt, clock, health, doors }: WaitingCoreParts): Serving['core'] {
  const no = (): LocalOutcome => ({ ok: false, reason: 'unavailable', why: storageSentence(fault()) })
  return {
    health,
    readings: () => [],
    quietMs: () => clock.monotonic() - startedAt,
    alarms: () => [storageAlarm(fault(), since)],
    held: () => ({ orders: false, bins: [] }),
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
      doors.unlock(door, forMs) ? { ok: true } : { ok: false, reason: 'unavailable' },
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
