import { randomHex } from '../../protocol/model/ids.ts'
import { RunningTime } from '../../protocol/model/running-time.ts'
import { every, type Cancel, type Random, type Runtime } from '../../protocol/model/runtime.ts'
import { Doors } from '../hardware/doors.ts'
import { correctTimes, latestTime } from '../journal/correct-times.ts'
import { loadState, type State } from '../journal/state.ts'
import type { Store } from '../journal/store.ts'
import { Acceptance } from './acceptance/acceptance.ts'
import { createActor } from './actor.ts'
import { createCloudClock, judgeTime, type TimeSource } from './cloud-clock.ts'
import { endInterrupted } from './command-results.ts'
import { execute, operate } from './commands.ts'
import { isWithoutCabinets, startUpGraceMs, type Context, type CoreOptions } from './context.ts'
import * as local from './local.ts'
import { deadLettersOf, dropByPerson, replayByPerson, watchDeadLetters } from './local.ts'
import { Devices } from './devices.ts'
import { noteDoorMoved } from './doors/doors.ts'
import { applyCloudEntry, controllerEventsOf } from './events.ts'
import { noteOutcome } from './firmware-verdicts.ts'
import { readingsOfFridges } from './fridges.ts'
import { healthOf, watchHealth, type HealthWatch } from './health.ts'
import { checkUpdates, endAlarmsOfAbsent, startHousekeeping, noteEnd, noteStart } from './housekeeping.ts'
import type { HubCore } from './hub-core.ts'
import { createLayout } from './layout.ts'
import { reasonToStay, reasonToWait } from './leaving.ts'
import { createLedger } from './ledger.ts'
import { giveUpMoved } from './operations/outcomes.ts'
import { reportAgain } from './recovery/orders.ts'
import { reportAbsent } from './states.ts'
import { refusingOnTrial } from './trial.ts'

/**
 * The hub's core. An event comes from a controller, the cloud or a timer. One transaction journals the event
 * with the resulting decisions, ledger entries and intents of operations. The effects follow after the
 * commit. Only the devices' reports and their connections are in memory alone: devices repeat them.
 */
export function createCore(options: CoreOptions): HubCore {
  const health = watchHealth(() => context)
  const actor = createActor(
    () => context,
    () => {
      health.check()
      acceptance.check()
      noteOutcome(context)
    },
  )
  const acceptance = new Acceptance(() => context)
  const controllerEvents = controllerEventsOf(() => context)
  const parts = partsOf(options)
  const context: Context = {
    ...parts,
    controllers: options.openControllers(controllerEvents),
    doors: doorsOf(parts, () => context, { health, onSeen: () => acceptance.check() }),
    handle: actor.handle,
    handleUnrepeated: actor.handleUnrepeated,
  }
  const { store, doors, controllers } = context
  let stopHousekeeping = (): void => {}
  let stopChecks: Cancel = () => {}
  let isDue = false
  const core: HubCore = {
    controllerEvents,
    start() {
      doors.start()
      stopHousekeeping = startHousekeeping(context)
      stopChecks = every(context.runtime.clock, context.settings.runningCheckMs, () => context.running.ms())
      startWork(context)
      controllers.start()
    },
    stop() {
      health.stop()
      actor.stop()
      acceptance.leave()
      stopHousekeeping()
      stopChecks()
      for (const { cancel } of context.reconnecting.values()) cancel()
      controllers.stop()
      doors.stop()
      noteEnd(context)
    },
    applyCloudEntry(entry, leaveOut) {
      applyCloudEntry(context, entry, leaveOut)
      isDue = true
      // One event for a whole batch of entries.
      store.afterCommit(() => {
        if (!isDue) return
        isDue = false
        actor.handleUnrepeated(() => watchDeadLetters(context))
      })
    },
    execute: (command, reply) => execute(context, command, reply),
    operate: (body, reply, by) => operate(context, body, reply, by),
    health: () => healthOf(context),
    noteStall: () => health.check(),
    noteDesired: () => actor.handleUnrepeated(() => checkUpdates(context)),
    reasonToWait: () => reasonToWait(context),
    reasonToStay: () => reasonToStay(context),
    readings: () => readingsOfFridges(context),
    quietMs: () => actor.quietMs(),
    onHealthChange: (listener) => health.onChange(listener),
    setCloudClock: (offsetMs, how) => followCloudClock(context, offsetMs, how),
    cloudNow: context.cloud.now,
    certainNow: context.cloud.certain,
    restartLedger: (reason, cloud) => restartLedger(context, reason, cloud),
    ...atTheHub(context),
    acceptance,
  }
  return options.isOnTrial ? refusingOnTrial(core, options.isOnTrial) : core
}

/** The first event of a process. On a full disk it waits for space. */
function startWork(context: Context): void {
  const former = context.state.commands.open()
  context.handleUnrepeated(() => {
    noteStart(context)
    askForConfig(context)
    checkUpdates(context)
    giveUpMoved(context)
    endInterrupted(context, former)
    endAlarmsOfAbsent(context)
    reportAbsent(context)
  })
}

/** Actions of people at the hub, and the data of the hub's page. */
function atTheHub(context: Context) {
  return {
    settle: (operationId, happened, by) => local.settleByPerson(context, operationId, happened, by),
    restock: (location, units, entered) => local.restockByPerson(context, location, units, entered),
    count: (location, units, entered) => local.countByPerson(context, location, units, entered),
    confirmFridge: (fridge, by) => local.confirmFridgeByPerson(context, fridge, by),
    hold: (what, isHeld, by) => local.holdByPerson(context, what, isHeld, by),
    noteRestart: (by) => local.noteRestart(context, by),
    held: () => context.state.facts.get('held'),
    people: () => context.state.facts.config()?.people ?? [],
    life: () => context.state.facts.get('life'),
    alarms: () => local.alarmsOf(context),
    takeOverController: (controller, by) => local.takeOverByPerson(context, controller, by),
    foreignControllers: () => local.foreignControllers(context),
    unlockDoor: (door, forMs, by) => local.unlockByPerson(context, door, forMs, by),
    unknownOperations: () => local.unknownOperations(context),
    deadLetters: () => deadLettersOf(context),
    noteDeadLetters: () => context.handleUnrepeated(() => watchDeadLetters(context)),
    replayDeadLetters: (by) => replayByPerson(context, by),
    dropDeadLetter: (id, by) => dropByPerson(context, id, by),
    orders: () => local.orderSummaries(context),
    stock: () => local.stockOf(context),
  } satisfies Partial<HubCore>
}

/**
 * Requests a snapshot if another version stored a cloud configuration that this version cannot read, or if the file of the
 * desired state is absent.
 */
function askForConfig({ state, log, desired, resetInbox }: Context): void {
  if (!state.facts.isConfigWhole())
    log.warn(
      {},
      'another version stored the configuration: nothing is sold before the cloud has sent it again',
    )
  else if (desired?.isMissing() !== true || !state.facts.get('live')) return
  resetInbox()
}

/** A process that has not checked for this number of rounds did not run. */
const SUSPENDED_ROUNDS = 3

/** The parts that depend only on the options. */
function partsOf(options: CoreOptions) {
  const { store, outbox, hardware, settings } = options
  const { clock, random } = options.runtime
  const running = new RunningTime(clock, SUSPENDED_ROUNDS * settings.runningCheckMs)
  const runtime: Runtime = {
    random,
    clock: {
      now: () => clock.now(),
      monotonic: () => running.ms(),
      after: (delayMs, task) => clock.after(delayMs, task),
    },
  }
  const layout = createLayout(hardware)
  const state = loadState(
    store,
    layout.bins.map((bin) => bin.number),
  )
  const cloud = createCloudClock(clock, state.facts, latestTime(store))
  return {
    ...options,
    runtime,
    running,
    layout,
    state,
    cloud,
    devices: new Devices(layout, runtime.clock, settings),
    ledger: createLedger(state, outbox, { now: cloud.now, againMs: settings.reportAgainMs }),
    storeId: storeIdOf(store, state, random),
    images: options.images ?? [],
    firmware: new Map(),
    firmwareSeenAt: new Map(),
    firmwareLostAt: new Map(),
    firmwareOutcome: undefined,
    otherBoards: new Map(),
    ownBoots: new Map(),
    knownMemories: new Map(state.controllers.all().map((known) => [known.id, known.memory_id])),
    startedAt: runtime.clock.monotonic(),
    failingSince: undefined,
    waiters: new Map(),
    reconnecting: new Map(),
    cycling: new Map(),
    askAt: new Map(),
    openSince: new Map(),
    silentSince: new Map(),
  } satisfies Partial<Context>
}

/** A store has an id from its first start on. */
function storeIdOf(store: Store, { facts }: State, random: Random): string {
  const known = facts.get('store_id')
  if (known !== null) return known
  const id = randomHex(random, 4)
  store.transact(() => facts.set('store_id', id))
  return id
}

function doorsOf(
  options: Omit<CoreOptions, 'openControllers'> & Pick<Context, 'state'>,
  context: () => Context,
  { health, onSeen }: { health: HealthWatch; onSeen: () => void },
): Doors {
  const { gpio, hardware, runtime, settings, checkpoint, log, state } = options
  const lines = hardware.gpio.lines.map((line) => line.name)
  return new Doors(
    {
      gpio,
      lines,
      openBefore: state.facts.get('open_doors'),
      clock: runtime.clock,
      settings,
      checkpoint,
      log,
    },
    {
      onMoved: (door, change) => context().handleUnrepeated(() => noteDoorMoved(context(), door, change)),
      onChange: () => health.check(),
      onSeen,
      // Continues the steps that wait for the door.
      onShut: () => context().handle(() => {}),
      onTrouble: () => context().handle(() => {}),
    },
  )
}

/** Follows the cloud's time from now on, and corrects the times that were dated by another estimate. */
function followCloudClock(
  { cloud, store, log, handle, state, outbox }: Context,
  offsetMs: number,
  how: TimeSource,
): void {
  const judged = judgeTime(cloud.errorOf(offsetMs), how)
  const isFirst = !cloud.isKnown()
  if (judged === 'delayed' && !isFirst) return
  if (judged === 'same' && !isFirst) {
    // Nothing was dated wrongly, and housekeeping stores the clock: an idle hub is welcomed every minute, and writes nothing then.
    if (!how.passing) cloud.setOffset(offsetMs)
    return
  }
  const correction = cloud.setOffset(offsetMs)
  const { byMs } = correction
  // A store that never received the cloud's time was dated by the board's clock alone, in every process. The times of a former
  // journal are right.
  const isUndated = !state.facts.get('live') && !state.facts.get('carried')
  const since = isFirst && isUndated ? -Infinity : correction.since
  const isRight = handle(() => {
    correctTimes(store, cloud.now(), { since, byMs })
    outbox.redate((at) => Math.min(at + (at >= since ? byMs : 0), cloud.now()))
    cloud.persist()
  })
  if (!isRight) return correction.undo()
  if (judged === 'stepped' && !isFirst)
    log.warn({ byMs }, "the cloud's clock has been put right, or is wrong: the hub follows it")
}

function restartLedger(context: Context, reason: string, cloud?: 'ahead'): boolean {
  const { log, outbox, state, ledger, handle } = context
  // This store's stock would replace the cloud's newer numbers.
  if (cloud === 'ahead' && startUpGraceMs(context) > 0) {
    log.warn(
      { reason },
      'the cloud has more reports of this hub than its journal: the hub waits for its controllers',
    )
    return false
  }
  log.warn({ reason }, 'a new epoch of the ledger')
  const { facts } = state
  const isUnproven = (cloud === 'ahead' || facts.get('owes_snapshot')) && isWithoutCabinets(context)
  return handle(() => {
    const isAccount = facts.get('live') && !isUnproven
    outbox.newEpoch('ledger', isAccount ? ledger.dropsAgain() : [])
    if (!facts.get('live')) return
    if (isAccount) ledger.reportSnapshot()
    else facts.set('owes_snapshot', true)
    reportAgain(context)
  })
}
