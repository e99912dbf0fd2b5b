import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { Doors } from '../hardware/doors.ts'
import { correctTimes, latestTime } from '../journal/correct-times.ts'
import { createJournal, type Journal } from '../journal/journal.ts'
import type { Store } from '../journal/store.ts'
import { createActor } from './actor.ts'
import { createCloudClock, judgeTime } from './cloud-clock.ts'
import { endInterrupted } from './command-results.ts'
import { execute, operate } from './commands.ts'
import type { Context, CoreOptions } from './context.ts'
import { createDevices } from './devices.ts'
import { noteDoorMoved } from './doors/doors.ts'
import { applyCloudEntry, controllerEventsOf } from './events.ts'
import { healthOf, watchHealth, type HealthWatch } from './health.ts'
import { startHousekeeping } from './housekeeping.ts'
import type { HubCore } from './hub-core.ts'
import { createLayout } from './layout.ts'
import { createLedger } from './ledger.ts'
import * as local from './local.ts'
import { reportAgain } from './recovery/report-again.ts'

/**
 * The hub's core. Every event (a controller's word, the cloud's, a timer) is handled in one transaction that takes it into
 * the journal together with what the hub decides next, its ledger entries and the intents of its operations; the effects
 * follow after the commit. All that is known in memory alone is what devices say of themselves, and they say it again.
 */
export function createCore(options: CoreOptions): HubCore {
  const health = watchHealth(() => context)
  const actor = createActor(
    () => context,
    () => health.look(),
  )
  const controllerEvents = controllerEventsOf(() => context)
  const context: Context = {
    ...partsOf(options),
    controllers: options.openControllers(controllerEvents),
    doors: doorsOf(options, () => context, health),
    handle: actor.handle,
  }
  const { store, doors, controllers } = context
  let stopHousekeeping = (): void => {}
  let isDue = false
  return {
    controllerEvents,
    start() {
      doors.start()
      stopHousekeeping = startHousekeeping(context)
      actor.handle(() => endInterrupted(context))
      controllers.start()
    },
    stop() {
      health.stop()
      actor.stop()
      stopHousekeeping()
      for (const { cancel } of context.reconnecting.values()) cancel()
      controllers.stop()
      doors.stop()
    },
    applyCloudEntry(entry) {
      applyCloudEntry(context, entry)
      isDue = true
      // One event for a whole batch of entries.
      store.afterCommit(() => {
        if (!isDue) return
        isDue = false
        actor.handle(() => {})
      })
    },
    execute: (command, reply) => execute(context, command, reply),
    operate: (body, reply) => operate(context, body, reply),
    health: () => healthOf(context),
    quietMs: () => actor.quietMs(),
    onHealthChange: (listener) => health.onChange(listener),
    setCloudClock: (offsetMs, how) => followCloudClock(context, offsetMs, how),
    cloudNow: context.cloud.now,
    onWelcome(welcome) {
      if (welcome.ledger.restart) restartLedger(context, 'the cloud asked for a new epoch')
    },
    restartLedger: (reason) => restartLedger(context, reason),
    settle: (operationId, happened) => local.settleByPerson(context, operationId, happened),
    restock: (location, units) => local.restockByPerson(context, location, units),
    count: (location, units) => local.countByPerson(context, location, units),
    takeOverController: (controller) => local.takeOverByPerson(context, controller),
    foreignControllers: () => local.foreignControllers(context),
    unlockDoor: (door, forMs) =>
      doors.unlock(door, forMs) ? { ok: true } : { ok: false, reason: 'unavailable' },
    unknownOperations: () => local.unknownOperations(context),
    orders: () => local.orderSummaries(context),
    stock: () => local.stockOf(context),
  }
}

/** The parts that need no other but the options. */
function partsOf(options: CoreOptions) {
  const { runtime, store, outbox, hardware } = options
  const layout = createLayout(hardware)
  const journal = createJournal(
    store,
    layout.bins.map((bin) => bin.number),
  )
  const cloud = createCloudClock(runtime.clock, journal.meta, latestTime(store))
  return {
    ...options,
    layout,
    journal,
    cloud,
    devices: createDevices(layout, runtime.clock),
    ledger: createLedger(journal, outbox, cloud.now),
    storeId: storeIdOf(store, journal, runtime.random),
    strangers: new Map(),
    knownMemories: new Map(journal.controllers.all().map((known) => [known.id, known.memory_id])),
    startedAt: runtime.clock.monotonic(),
    waiters: new Map(),
    reconnecting: new Map(),
    cycling: new Map(),
    askAt: new Map(),
  } satisfies Partial<Context>
}

/** A store says which it is from its first start on. */
function storeIdOf(store: Store, { meta }: Journal, random: Random): string {
  const known = meta.storeId()
  if (known !== null) return known
  const id = randomHex(random, 4)
  store.transact(() => meta.setStoreId(id))
  return id
}

function doorsOf(options: CoreOptions, context: () => Context, health: HealthWatch): Doors {
  const { gpio, hardware, runtime, settings, checkpoint, log } = options
  const lines = hardware.gpio.lines.map((line) => line.name)
  return new Doors(
    { gpio, lines, clock: runtime.clock, settings, checkpoint, log },
    {
      onMoved: (door, change) => context().handle(() => noteDoorMoved(context(), door, change)),
      onChange: () => health.look(),
      // What waits for the door to be locked goes on.
      onRelocked: () => context().handle(() => {}),
    },
  )
}

/** Goes by the cloud's time from now on; what was dated by another belief is put right. */
function followCloudClock(
  { cloud, store, log, handle }: Context,
  offsetMs: number,
  how: { passing: boolean },
): void {
  const judged = judgeTime(cloud.errorOf(offsetMs), how)
  const isFirst = !cloud.isKnown()
  if (judged === 'same' && how.passing && !isFirst) return
  const correction = cloud.setOffset(offsetMs)
  const { since, byMs } = correction
  const isRight = handle(() => {
    if (isFirst || judged !== 'same') correctTimes(store, cloud.now(), { since, byMs })
    cloud.persist()
  })
  if (!isRight) return correction.undo()
  if (judged === 'stepped' && !isFirst)
    log.warn({ byMs }, "the cloud's clock has been put right, or is wrong: the hub follows it")
}

function restartLedger(context: Context, reason: string): void {
  const { log, outbox, journal, ledger, handle } = context
  log.warn({ reason }, 'a new epoch of the ledger')
  handle(() => {
    outbox.newEpoch('ledger')
    if (!journal.meta.isLive()) return
    ledger.reportSnapshot()
    reportAgain(context)
  })
}
