import type { Cancel } from '../../protocol/model/runtime.ts'
import type { ControllerEvents } from '../hardware/controllers.ts'
import { correctTimes, latestTime } from '../journal/correct-times.ts'
import { createJournal } from '../journal/journal.ts'
import { importListed, meetController } from './recovery/adoption.ts'
import { applyCloudEntry } from './cloud-entries.ts'
import { createCloudClock } from './cloud-clock.ts'
import { endInterrupted } from './command-results.ts'
import { execute, operate } from './commands.ts'
import type { Context } from './context.ts'
import type { CoreOptions, HubCore } from './hub-core.ts'
import { applyDeviceEvent } from './device-events.ts'
import { createDevices } from './devices.ts'
import { Doors } from '../hardware/doors.ts'
import { noteDoorMoved } from './doors/doors.ts'
import { healthOf } from './health.ts'
import { startHousekeeping } from './housekeeping.ts'
import { createLayout } from './layout.ts'
import { createLedger } from './ledger.ts'
import {
  countByPerson,
  orderSummaries,
  restockByPerson,
  settleByPerson,
  stockOf,
  unknownOperations,
} from './local.ts'
import { applyOutcome, applyRefusal } from './operations/outcomes.ts'
import { endReconnects } from './reconnects.ts'
import { createTurns } from './actor.ts'

/** A change of health is noticed this long after it; its report waits longer anyway. */
const LOOK_MS = 50

/**
 * The hub's core. Every event (a controller's word, the cloud's, a timer) is one turn: a transaction that takes it into
 * the journal together with what the hub decides next, its ledger entries and the intents of its operations; then, after
 * the commit, the effects. All that is known in memory alone is what devices say of themselves, and they say it again.
 */
export function createCore(options: CoreOptions): HubCore {
  const { runtime, store, outbox, hardware } = options
  const layout = createLayout(hardware)
  const journal = createJournal(
    store,
    layout.bins.map((bin) => bin.number),
  )
  const devices = createDevices(layout, runtime.clock)
  const cloud = createCloudClock(runtime.clock, journal.meta, latestTime(store))
  const listeners: (() => void)[] = []
  const turns = createTurns(() => context, lookAtHealth)
  const { turn } = turns
  const controllerEvents = eventsOf(() => context)
  const doors = new Doors(
    {
      gpio: options.gpio,
      lines: hardware.gpio.lines.map((line) => line.name),
      clock: runtime.clock,
      settings: options.settings,
      checkpoint: options.checkpoint,
      log: options.log,
    },
    {
      onMoved: (door, change) => turn(() => noteDoorMoved(context, door, change)),
      onChange: lookAtHealth,
      // What waits for the door to be locked goes on.
      onRelocked: () => turn(() => {}),
    },
  )
  const context: Context = {
    ...options,
    controllers: options.openControllers(controllerEvents),
    journal,
    layout,
    devices,
    doors,
    cloud,
    ledger: createLedger(journal, outbox, cloud.now),
    knownMemories: new Map(journal.adoptions.all().map((known) => [known.id, known.memory_id])),
    startedAt: runtime.clock.monotonic(),
    waiters: new Map(),
    reconnecting: new Map(),
    cycling: new Map(),
    askAt: new Map(),
    turn,
  }
  let lastHealth = ''
  let isDue = false
  let stopHousekeeping: Cancel | undefined
  let cancelLook: Cancel | undefined
  let isStopped = false

  /** Soon, and once for all that happens until then: whoever waits for what a turn was about comes first. */
  function lookAtHealth(): void {
    if (isStopped) return
    cancelLook ??= runtime.clock.after(LOOK_MS, () => {
      cancelLook = undefined
      announceHealth()
    })
  }

  function announceHealth(): void {
    const { fridges, ...rest } = healthOf(context, doors)
    const health = JSON.stringify([rest, fridges.map((fridge) => ({ ...fridge, temperature: null }))])
    if (health === lastHealth) return
    lastHealth = health
    for (const listener of listeners) listener()
  }

  return {
    controllerEvents,
    start() {
      doors.start()
      stopHousekeeping = startHousekeeping(context, doors)
      turn(() => endInterrupted(context))
      context.controllers.start()
    },
    stop() {
      isStopped = true
      cancelLook?.()
      turns.stop()
      stopHousekeeping?.()
      for (const { cancel } of context.reconnecting.values()) cancel()
      context.controllers.stop()
      doors.stop()
    },
    applyCloudEntry(entry) {
      applyCloudEntry(context, entry)
      isDue = true
      // One turn for a whole batch of entries.
      store.afterCommit(() => {
        if (!isDue) return
        isDue = false
        turn(() => {})
      })
    },
    execute: (command, reply) => execute(context, command, reply),
    operate: (body, reply) => operate(context, body, reply),
    health: () => healthOf(context, doors),
    quietMs: () => turns.quietMs(),
    onHealthChange: (listener) => void listeners.push(listener),
    setCloudClock(offsetMs) {
      const correction = cloud.setOffset(offsetMs)
      turn(() => {
        correctTimes(store, cloud.now(), correction)
        cloud.persist()
      })
    },
    cloudNow: cloud.now,
    onWelcome(welcome) {
      if (welcome.ledger.restart) restartLedger('the cloud asked for a new epoch')
    },
    restartLedger,
    settle: (operationId, happened) => settleByPerson(context, operationId, happened),
    restock: (location, units) => restockByPerson(context, location, units),
    count: (location, units) => countByPerson(context, location, units),
    unlockDoor: (door, forMs) =>
      doors.unlock(door, forMs) ? { ok: true } : { ok: false, reason: 'unavailable' },
    unknownOperations: () => unknownOperations(context),
    orders: () => orderSummaries(context),
    stock: () => stockOf(context),
  }

  function restartLedger(reason: string): void {
    options.log.warn({ reason }, 'a new epoch of the ledger')
    turn(() => {
      outbox.newEpoch('ledger')
      if (journal.meta.isLive()) context.ledger.reportSnapshot()
    })
  }
}

function eventsOf(context: () => Context): ControllerEvents {
  const turn = (work: (context: Context) => void): void => context().turn(() => work(context()))
  return {
    onUp: (controller, identity) =>
      turn((context) => {
        meetController(context, controller, identity)
        endReconnects(context, controller)
      }),
    onDown(controller, reason) {
      context().log.warn({ controller, reason }, 'controller is not connected')
      turn(({ devices }) => devices.down(controller))
    },
    onResult: (_, outcome) =>
      turn((context) => {
        const operation = context.journal.operations.find(outcome.operationId)
        if (operation) applyOutcome(context, operation, outcome)
      }),
    onRefused: (_, operationId, why) =>
      turn((context) => {
        const operation = context.journal.operations.find(operationId)
        if (operation) applyRefusal(context, operation, why)
      }),
    onListed: (controller, operations) => turn((context) => importListed(context, controller, operations)),
    onDevice: (controller, event) => turn((context) => applyDeviceEvent(context, controller, event)),
  }
}
