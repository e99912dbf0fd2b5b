import { every, type Cancel } from '../../protocol/model/runtime.ts'
import type { HubAlarmCode } from '../../protocol/model/alarms.ts'
import {
  binSubject,
  cabinetSubject,
  certificateSubject,
  controllerSubject,
  doorSubject,
  fridgeSubject,
  HUB_SUBJECT,
  settingsSubject,
  versionSubject,
} from '../../protocol/model/subject.ts'
import { reportIncident, setAlarm, setAlarms } from './ledger.ts'
import type { Context } from './context.ts'
import type { FirmwareAttempt } from './firmware-step.ts'
import { readingOf } from './fridges.ts'
import { earliest } from './step.ts'
import { takeOver } from './recovery/controllers.ts'
import { BROKER_CERTIFICATE as BROKER } from '../../protocol/mqtt/certificates.ts'

/** In rounds. Each commit costs the card some 20 kB (README, Decisions); the other writes fall into the same rounds. */
const WRITE_EVERY = 3
const CLOCK_EVERY = 3 * WRITE_EVERY
const PRUNE_EVERY = 20 * WRITE_EVERY

/** Periodic work: alarms that depend on time, the clock's estimate, the ballast, pruning of old rows. */
export function startHousekeeping(context: Context): Cancel {
  const { runtime, settings, store, state, outbox, cloud, doors } = context
  let round = 0
  return every(runtime.clock, settings.housekeepingMs, () => {
    round++
    const writes = round % WRITE_EVERY === 0
    store.relieve()
    doors.reread()
    context.handle(() => {
      reportTemperatures(context)
      if (writes) noteFridges(context)
      takeOverNew(context)
      checkClock(context)
      watchStore(context)
      checkRestarts(context)
      checkCertificates(context)
      if (round % CLOCK_EVERY === 0) cloud.persist()
      if (round % PRUNE_EVERY === 0) state.prune(settings.kept)
      // On a full disk the outbox is flushed separately, because the flush may fail on its own.
      if (writes && store.failure() === undefined) outbox.flush()
    })
    if (store.failure() !== undefined) outbox.flush()
  })
}

const ENDED_ELSEWHERE: ReadonlySet<string> = new Set(['row_blocked', 'certificate_expiring', 'update_failed'])

/**
 * Clears alarms of hardware that was removed from the hub's description. Alarms of rows are cleared when
 * nothing blocks the rows.
 */
export function endAlarmsOfAbsent(context: Context): void {
  const { state, layout, doors } = context
  const there = new Set([
    HUB_SUBJECT,
    controllerSubject('gpio'),
    ...layout.controllers.map(controllerSubject),
    ...layout.bins.map(({ number }) => binSubject(number)),
    ...layout.cabinets.map(cabinetSubject),
    ...layout.fridges.map(({ number }) => fridgeSubject(number)),
    ...doors.health().map(({ door }) => doorSubject(door)),
  ])
  for (const { code, subject } of state.alarms.all())
    if (!ENDED_ELSEWHERE.has(code) && !there.has(subject))
      setAlarm(context, code as HubAlarmCode, subject, false, '')
}

/** Raises an alarm if too many entries wait for the cloud. Heartbeats report storage failures (`health.ts`). */
export function watchStore(context: Context): void {
  const { outbox, store } = context
  const isCrowded = store.failure() === undefined && outbox.isLedgerFull()
  setAlarm(context, 'store_full', HUB_SUBJECT, isCrowded, 'too many entries wait for the cloud')
}

/** Takes over boards that could not be taken over when their devices first reported. */
function takeOverNew(context: Context): void {
  for (const [controller, otherBoard] of context.otherBoards)
    if (!otherBoard.isForeign) takeOver(context, controller, otherBoard)
}

/** Sends each fridge's temperature to the telemetry, changed or not, so that the history has no gaps. */
function reportTemperatures(context: Context): void {
  const { layout, devices, outbox, cloud } = context
  for (const { number } of layout.fridges) {
    const fridge = devices.fridge(number)
    const celsius = readingOf(context, number)?.celsius
    if (celsius === undefined) continue
    const { min = celsius, max = celsius } = fridge
    const about = { fridge_number: number, celsius, min, max }
    outbox.append('telemetry', { kind: 'temperature', at: cloud.now(), ...about })
    fridge.min = celsius
    fridge.max = celsius
  }
}

/** The event's commit then contains the last proof that a fridge is cold. */
function noteFridges(context: Context): void {
  const { layout, devices } = context
  for (const { number } of layout.fridges) {
    const fridge = devices.fridge(number)
    if (fridge.noted === 'lately' && readingOf(context, number)) fridge.noted = 'before'
  }
}

/** Checks the board's clock. It dates logs, and facts while the cloud is not connected. */
function checkClock(context: Context): void {
  const { cloud, runtime, settings } = context
  if (!cloud.isKnown()) return
  const aheadMs = runtime.clock.now() - cloud.now()
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  const detail = `the hub's clock is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} the cloud's`
  setAlarm(context, 'clock_wrong', HUB_SUBJECT, Math.abs(aheadMs) > settings.clockWrongMs, detail)
}

const WARN_PART = 1 / 6

/** Raises an alarm for each certificate that expires soon, and clears it after the renewal. */
function checkCertificates(context: Context): void {
  const { cloud, settings, certificates } = context
  if (!certificates) return
  const known = certificates()
  const ending = known
    // A short-lived certificate is renewed with less time left.
    .filter(
      ({ endsAt, lifetimeMs = Infinity }) =>
        endsAt - cloud.now() < Math.min(settings.certificateWarnMs, lifetimeMs * WARN_PART),
    )
    .map(({ name, endsAt }): [string, string] => [
      certificateSubject(name),
      `on ${new Date(endsAt).toISOString().slice(0, 10)}`,
    ])
  // After a start, the broker's certificate is unknown until the hub has connected to the broker.
  const isBrokerKnown = known.some(({ name }) => name === BROKER)
  const isUnknown = (subject: string): boolean => !isBrokerKnown && subject === certificateSubject(BROKER)
  setAlarms(context, 'certificate_expiring', new Map(ending), isUnknown)
}

/**
 * Raises an alarm for the version of the desired state, the release, and the firmware of a controller, that the hub has left
 * again, until it uses another one.
 */
export function checkUpdates(context: Context): void {
  const { desired } = context
  const [settings, release] = [desired?.failed(), desired?.failedUpdate()]
  const failed = new Map([
    ...(settings ? [[settingsSubject(settings.version), settings.error] as const] : []),
    ...(release ? [[versionSubject(release.version), release.error] as const] : []),
    ...failedFirmware(context),
  ])
  setAlarms(context, 'update_failed', failed)
}

/** The updates of the controllers that the hub's description contains, by controller. */
export const firmwareAttempts = ({ state, layout }: Context): [controller: string, FirmwareAttempt][] =>
  Object.entries(state.facts.get('firmware')).filter(([id]) => layout.controllers.includes(id))

/** The controllers that the present images have failed at, with the reasons. */
const failedFirmware = (context: Context): [subject: string, error: string][] =>
  firmwareAttempts(context).flatMap(([controller, { build, sum, error }]) =>
    error !== null && context.images.some((image) => image.sum === sum)
      ? [[controllerSubject(controller), `firmware ${build}: ${error}`]]
      : [],
  )

/**
 * Alarms that depend on time: silent controllers, unreadable lines, doors that stay open. The actor checks
 * them at each event. Each function returns the milliseconds until time alone changes its result.
 */
export function watchHardware(context: Context): number | undefined {
  return ahead([watchControllers(context), watchLines(context), watchDoors(context)])
}

/** The next time, of those that have not passed. */
const ahead = (waits: readonly (number | undefined)[]): number | undefined =>
  earliest(waits.filter((ms) => ms !== undefined && ms > 0))

/**
 * A silent controller's alarm is not raised if the controller answers again. An open alarm is cleared after
 * the controller has stayed for `steadyMs`.
 */
function watchControllers(context: Context): number | undefined {
  const { layout, devices, runtime, settings } = context
  const now = runtime.clock.monotonic()
  const waits = layout.controllers.map((controller) => {
    const subject = controllerSubject(controller)
    const since = devices.awaySince(controller)
    if (since === undefined) {
      setAlarm(context, 'controller_silent', subject, false, '')
      return undefined
    }
    if (!devices.isAway(controller)) return devices.steadyInMs(controller)
    const leftMs = since + settings.silentAlarmMs - now
    if (leftMs <= 0) setAlarm(context, 'controller_silent', subject, true, reasonOf(context, controller))
    return leftMs
  })
  return ahead(waits)
}

const reasonOf = ({ controllers }: Context, controller: string): string =>
  controllers.links().find((link) => link.controller === controller)?.reason ?? 'no answer on its line'

/** The GPIO lines of locks and doors count as one controller. */
function watchLines(context: Context): number | undefined {
  const { doors, runtime, settings } = context
  const subject = controllerSubject('gpio')
  const since = doors.unreadSince
  if (since === undefined) {
    setAlarm(context, 'controller_silent', subject, false, '')
    return undefined
  }
  const problem = doors.linesProblem
  const waitMs = problem?.isFinal === true ? 0 : settings.silentAlarmMs
  const leftMs = since + waitMs - runtime.clock.monotonic()
  if (leftMs <= 0)
    setAlarm(
      context,
      'controller_silent',
      subject,
      true,
      (problem?.reason ?? 'no line of a lock or door can be read').slice(0, 400),
    )
  return leftMs
}

/** Raises `door_left_open`: the door stays open, its lock does not lock, or its contact cannot be read. */
function watchDoors(context: Context): number | undefined {
  const { doors, runtime, settings, openSince } = context
  const now = runtime.clock.monotonic()
  const troubles = new Map(doors.troubles().map(({ door, why }) => [door, why]))
  const waits = doors.contacts().map(({ door, isOpen }) => {
    if (!isOpen) openSince.delete(door)
    else if (!openSince.has(door)) openSince.set(door, now)
    const since = openSince.get(door)
    const leftMs = since === undefined ? undefined : since + settings.doorLeftOpenMs - now
    const why = troubles.get(door) ?? (leftMs !== undefined && leftMs <= 0 ? 'it was not closed' : undefined)
    setAlarm(context, 'door_left_open', doorSubject(door), why !== undefined, why ?? '')
    return leftMs
  })
  return ahead([...waits, doors.troublesInMs()])
}

/** Characters of the last error in an alarm. */
const MAX_WORDS = 300

/**
 * Counts a start of the service as a crash if the service did not shut down cleanly before: it crashed, was
 * killed, or lost power. Without this count a crash is invisible, because a supervisor restarts the hub
 * within a second.
 */
export function noteStart(context: Context): void {
  const { state, cloud, lastError, isStart = true } = context
  const { isOpen, crashes, words, restarts, last } = state.facts.get('life')
  const isCrash = isOpen && isStart
  const latest = lastError?.slice(0, MAX_WORDS) ?? null
  state.facts.set('life', {
    isOpen: true,
    crashes: isCrash ? [...recent(context, crashes), cloud.now()] : recent(context, crashes),
    words: isCrash ? (latest ?? words) : words,
    restarts: isCrash ? restarts + 1 : restarts,
    last: isCrash ? { at: cloud.now(), error: latest } : last,
  })
  checkRestarts(context)
  reportLoss(context)
}

/** The first start after a move to another cell without the times of the former journal. */
function reportLoss(context: Context): void {
  const { state, log } = context
  const loss = state.facts.get('former_loss')
  if (loss === null) return
  log.error({}, `${loss}: the fridges must first be proven cold`)
  reportIncident(context, 'journal_lost', HUB_SUBJECT, loss)
  state.facts.set('former_loss', null)
}

/** Notes a clean shutdown of the service. */
export function noteEnd({ state, store, log }: Context): void {
  try {
    store.transact(() => state.facts.set('life', { ...state.facts.get('life'), isOpen: false }))
  } catch (error) {
    // On a full disk this shutdown counts as a crash; it must not prevent the service from ending.
    log.warn({ error: String(error) }, 'the orderly end of the service cannot be noted')
  }
}

/** Raises the alarm of a hub that restarts repeatedly, and clears it when the hub has run for a while. */
function checkRestarts(context: Context): void {
  const { state, settings } = context
  const { crashes, words } = state.facts.get('life')
  const count = recent(context, crashes).length
  const minutes = Math.round(settings.restartsWithinMs / 60_000)
  const last = words === null ? 'killed, or without power: there is no last error' : `last error: ${words}`
  const detail = `${count} times in ${minutes} min without an orderly end; ${last}`
  setAlarm(context, 'hub_restarting', HUB_SUBJECT, count >= settings.restarts, detail)
}

/** The crashes within the period. A corrected clock may leave times in the future; they do not count. */
function recent({ cloud, settings }: Context, crashes: readonly number[]): number[] {
  const now = cloud.now()
  return crashes.filter((at) => at <= now && now - at < settings.restartsWithinMs)
}
