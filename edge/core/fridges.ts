import { fridgeDoor, fridgeSides } from '../../protocol/model/hardware.ts'
import { fridgeSubject } from '../../protocol/model/subject.ts'
import type { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import { LONG_AGO, type FridgeRow } from '../journal/tables.ts'
import { isUsable, type Context } from './context.ts'
import { unknownFridge, type FridgeState } from './devices.ts'
import { fridgeDevice } from './layout.ts'
import { setAlarm } from './ledger.ts'
import { earliest } from './step.ts'
import type { FridgeReading } from './summaries.ts'
import { isFrozen, newThermometer, proofOf } from './thermometer.ts'

/**
 * The health shutoff. The hub does not sell goods without recent proof of being cold, online or offline,
 * until a person has checked them. An unreadable fridge counts as warm.
 */

/** The inputs of the decision about a fridge. Durations are in milliseconds. */
export interface FridgeFacts {
  /** The proof by readings of this process. */
  proof: 'cold' | 'warm' | undefined
  /** There has been no valid reading for too long. */
  isUnread: boolean
  /** Time since the last proof that the fridge was cold, in this process or an earlier one. */
  unprovenForMs: number
  /** The last judgement was not cold. */
  wasUnproven: boolean
  /** The last proof comes from an earlier process; this process has none yet. */
  isInherited: boolean
  /**
   * Part of `unprovenForMs` lies before this process started, and its length is unknown until the cloud sends
   * its time.
   */
  isLengthUnknown: boolean
  /** Time since this process started to watch the fridge. */
  watchedForMs: number
}

/**
 * `clockWaitMs`: how long to wait for the cloud's time, which shows the length of the power failure.
 * `proofMs`: the longest time without proof.
 */
interface FridgeLimits {
  healthShutoffMs: number
  clockWaitMs: number
  proofMs: number
}

type FridgeVerdict =
  /** `isProven`: by current readings. Otherwise the last proof is recent enough. */
  | { kind: 'cold'; isProven: boolean; ms: number }
  /**
   * At the start after an absence that was long or of unknown length: the hub sells nothing until readings prove that
   * the fridge is cold.
   */
  | { kind: 'unproven'; ms: number }
  | { kind: 'doubt'; ms: number }
  | { kind: 'shutoff' }

/** Judges a fridge. `ms`: milliseconds until time alone may change the verdict. */
export function judgeFridge(facts: FridgeFacts, limits: FridgeLimits): FridgeVerdict {
  const { proof, isUnread, unprovenForMs, wasUnproven, isInherited, isLengthUnknown, watchedForMs } = facts
  const { healthShutoffMs, clockWaitMs, proofMs } = limits
  const leftMs = healthShutoffMs - unprovenForMs
  if (proof === 'cold' && !isUnread) return { kind: 'cold', isProven: true, ms: proofMs }
  const isUncertain = isInherited && isLengthUnknown
  // After an absence that was long, or may have been, the first readings decide: a fridge that stayed cold is still cold.
  const isBeingRead = isInherited && proof === undefined && !isUnread && watchedForMs < proofMs
  if (isBeingRead && (leftMs <= 0 || isUncertain)) return { kind: 'unproven', ms: proofMs - watchedForMs }
  if (proof === undefined && !isUnread && !wasUnproven && unprovenForMs < proofMs)
    return { kind: 'cold', isProven: false, ms: proofMs - unprovenForMs }
  if (isBeingRead) return { kind: 'doubt', ms: leftMs }
  const ms = isUncertain ? Math.min(leftMs, clockWaitMs - watchedForMs) : leftMs
  if (ms <= 0) return { kind: 'shutoff' }
  return { kind: isUncertain ? 'unproven' : 'doubt', ms }
}

/** Judges every fridge. Returns the milliseconds until time alone may change a verdict. */
export function watchFridges(context: Context): number | undefined {
  const waits = context.layout.fridges.map(({ number }) => watchFridge(context, number))
  return earliest(waits.filter((ms) => ms !== undefined && ms > 0))
}

function watchFridge(context: Context, number: number): number | undefined {
  const { state, devices, cloud, settings, runtime, log } = context
  const memory = devices.fridge(number)
  const nowMs = runtime.clock.monotonic()
  noteSuspension(context, memory)
  memory.watchedSince ??= nowMs
  const row = state.fridges.find(number)
  // An earlier process wrote the row.
  if (memory.noted === 'never') {
    memory.isInherited = row !== undefined
    inheritFrozen(context, number)
  }
  const unread = unreadOf(context, number)
  const proof = unread.why === undefined ? proofOf(memory.meter, proofRules(context, memory)) : undefined
  if (unread.why !== undefined) memory.unreadable = unread.why
  else if (proof !== undefined) memory.unreadable = undefined
  const now = cloud.now()
  const lastCold = lastColdAt(memory, row, now, nowMs)
  const verdict = judgeFridge(
    {
      proof,
      isUnread: memory.unreadable !== undefined,
      unprovenForMs: now - lastCold,
      wasUnproven: row !== undefined && row.warm_since !== null,
      isInherited: memory.isInherited,
      isLengthUnknown: !cloud.isKnown(),
      watchedForMs: nowMs - memory.watchedSince,
    },
    { ...settings, proofMs: maxAgeMs(context, number) },
  )
  if (verdict.kind === 'shutoff' || hasColdGap(memory, settings.healthShutoffMs)) memory.shutoffAt ??= now
  if (verdict.kind === 'cold' && verdict.isProven) {
    memory.isInherited = false
    memory.isLost = false
    memory.provenAt = memory.meter.last!.at
  }
  memory.isUnproven = verdict.kind === 'unproven'
  const coldAt = lastColdAt(memory, row, now, nowMs)
  const warm_since =
    verdict.kind === 'cold' ? null : verdict.kind === 'unproven' ? (row?.warm_since ?? null) : coldAt
  const shutoff_at = row?.shutoff_at ?? memory.shutoffAt ?? null
  // The proof is journaled from time to time, so that the next process can count from it.
  if (memory.noted !== 'lately' || row?.warm_since !== warm_since || row.shutoff_at !== shutoff_at) {
    memory.noted = 'lately'
    const next = { number, warm_since, read_at: coldAt, shutoff_at } satisfies FridgeRow
    if (JSON.stringify(next) !== JSON.stringify(row)) state.fridges.put(next)
  }
  if (shutoff_at !== null && row?.shutoff_at !== shutoff_at)
    log.warn(
      { fridge: number, celsius: memory.meter.last?.celsius, unreadable: memory.unreadable },
      'a fridge was without proof of being cold for too long: nothing of it is sold',
    )
  noteAlarms(context, number, { proof, unprovenForMs: warm_since === null ? undefined : now - warm_since })
  return verdict.kind === 'shutoff' ? unread.ms : Math.min(verdict.ms, unread.ms ?? verdict.ms)
}

/** A suspension of the process is like an absence: no reading from before it proves anything. A frozen probe stays frozen. */
function noteSuspension({ running }: Context, memory: FridgeState): void {
  const { suspensions } = running
  if (memory.suspensions === suspensions) return
  const { meter, openSince, openedAt, unreadable, frozenAt, shutoffAt } = memory
  const { same, moves, movedFrom } = meter
  Object.assign(memory, {
    ...unknownFridge(),
    meter: { ...newThermometer, same, moves, movedFrom },
    openSince,
    openedAt,
    unreadable,
    frozenAt,
    shutoffAt,
    suspensions,
  } satisfies FridgeState)
}

/** The reason of a probe that repeats a value for hours. The next process reads the value in it. */
const frozenAtText = (celsius: number): string => `its probe has repeated ${celsius} °C for hours`
const FROZEN_AT = /^its probe has repeated (\S+) °C/

/** An earlier process found the probe frozen: a value that stays the same proves nothing after a restart, either. */
function inheritFrozen({ state, devices }: Context, number: number): void {
  const alarm = state.alarms.find({ code: 'fridge_unreadable', subject: fridgeSubject(number) })
  const found = FROZEN_AT.exec(alarm?.detail ?? '')
  if (found) devices.fridge(number).frozenAt = Number(found[1])
}

/** Whether the probe repeats one value since an earlier process found it frozen. */
function isStillFrozen({ frozenAt, meter }: FridgeState): boolean {
  return frozenAt !== undefined && (meter.same === undefined || meter.same.celsius === frozenAt)
}

/**
 * The last proof of cold in cloud time. Without a proof or a record of an earlier process, the time counts since this
 * process watches the fridge. Times of this process are monotonic, so that a step of the cloud's clock changes none.
 */
function lastColdAt(
  { provenAt, isInherited, watchedSince }: FridgeState,
  row: FridgeRow | undefined,
  now: number,
  nowMs: number,
): number {
  const since = provenAt ?? (isInherited ? undefined : watchedSince)
  if (since !== undefined) return now - (nowMs - since)
  return row?.warm_since ?? row?.read_at ?? now
}

/**
 * The current readings began too long after the last proof, and nothing was judged meanwhile: no transaction began, because
 * the storage failed.
 */
const hasColdGap = ({ provenAt, meter: { run } }: FridgeState, healthShutoffMs: number): boolean =>
  provenAt !== undefined && run !== undefined && run.since - provenAt >= healthShutoffMs

/**
 * The former journal of this hub was lost. It may have contained a shutoff, so the hub sells nothing from a fridge before it
 * reads cold, and shuts off a fridge that it finds warm. A proof of this process stays.
 */
export function loseProofs({ layout, devices, state }: Context): void {
  for (const { number } of layout.fridges) {
    const memory = devices.fridge(number)
    if (memory.provenAt !== undefined) continue
    memory.isInherited = true
    memory.isLost = true
    const shutoff_at = state.fridges.find(number)?.shutoff_at ?? null
    state.fridges.put({ number, warm_since: LONG_AGO, read_at: LONG_AGO, shutoff_at })
  }
}

function proofRules({ settings }: Context, { isLost }: FridgeState) {
  // Without a former journal nothing says that the fridge was warm: one cold reading is enough.
  if (isLost) return { ...settings.proof, coldReadings: 1, coldMs: 0 }
  // A shorter shutoff also needs a shorter proof.
  return { ...settings.proof, coldMs: Math.min(settings.fridgeProofMs, settings.healthShutoffMs / 4) }
}

/**
 * Milliseconds for which a reading is valid. Boards with version 2 of the serial protocol report only
 * changes, so their silence raises no alarm yet.
 */
export function maxAgeMs({ devices, settings, layout }: Context, fridge: number): number {
  const controller = layout.controllerOf(fridgeDevice(fridge)) ?? ''
  return devices.reportsOnlyChanges(controller) ? settings.fridgeUnreadableOldMs : settings.fridgeUnreadableMs
}

/** Why the fridge has no valid reading, as text. `ms`: milliseconds until the last reading expires. */
function unreadOf(context: Context, number: number): { why: string | undefined; ms: number | undefined } {
  const { devices, layout, runtime, settings } = context
  const fridge = devices.fridge(number)
  const { meter, watchedSince, openedAt } = fridge
  const now = runtime.clock.monotonic()
  const others = layout.fridges
    .filter((other) => other.number !== number)
    .map((other) => devices.fridge(other.number).meter)
  if (isStillFrozen(fridge) || isFrozen(meter, { now, others, openedAt }, settings.frozen)) {
    // Later readings must start a new proof.
    fridge.meter = { ...meter, run: undefined }
    return { why: frozenAtText(fridge.frozenAt ?? meter.same!.celsius), ms: undefined }
  }
  fridge.frozenAt = undefined
  const validUntil = (meter.last?.at ?? watchedSince ?? now) + maxAgeMs(context, number)
  const reliableUntil = (meter.unreliableSince ?? Infinity) + maxAgeMs(context, number)
  const ms = Math.min(validUntil, reliableUntil) - now
  return ms > 0 ? { why: undefined, ms } : { why: whyUnread(context, number), ms: undefined }
}

function whyUnread(context: Context, number: number): string {
  const { fault, unreliableSince } = context.devices.fridge(number).meter
  if (!isUsable(context, fridgeDevice(number))) return 'its controller does not answer'
  switch (fault ?? (unreliableSince === undefined ? undefined : 'implausible')) {
    case 'none':
      return 'its probe gives no reading'
    case 'implausible':
      return 'its probe reads nonsense'
    case undefined:
      return 'its controller reports no temperature'
  }
}

/**
 * Notes open and closed fridge doors. A working probe must react to a door that stays open. Returns the
 * milliseconds until a door has been open for long.
 */
export function noteFridgeDoors({ layout, doors, devices, runtime, settings }: Context): number | undefined {
  const now = runtime.clock.monotonic()
  const open = new Set(doors.contacts().flatMap(({ door, isOpen }) => (isOpen ? [door] : [])))
  const waits = layout.fridges.flatMap(({ number }) => {
    const memory = devices.fridge(number)
    const isOpen = fridgeSides.some((side) => open.has(fridgeDoor(number, side)))
    memory.openSince = isOpen ? (memory.openSince ?? now) : undefined
    if (memory.openSince === undefined) return []
    const leftMs = memory.openSince + settings.frozen.openMs - now
    if (leftMs > 0) return [leftMs]
    memory.openedAt = now
    return []
  })
  return earliest(waits)
}

/**
 * Raises and clears the alarms of a fridge. A door that was open for a moment raises none. After a start nothing is
 * known until readings prove something: the alarms of the earlier process stay.
 */
function noteAlarms(
  context: Context,
  number: number,
  { proof, unprovenForMs }: { proof: ReturnType<typeof proofOf>; unprovenForMs: number | undefined },
): void {
  const subject = fridgeSubject(number)
  const { unreadable, meter, isInherited } = context.devices.fridge(number)
  const isKnown = unreadable !== undefined || proof !== undefined
  const raised = context.state.alarms.find({ code: 'fridge_unreadable', subject })
  // The next process reads in the alarm that the probe is frozen: an alarm for another reason is raised again.
  if (raised && FROZEN_AT.test(unreadable ?? '') && !FROZEN_AT.test(raised.detail))
    setAlarm(context, 'fridge_unreadable', subject, false, '')
  if (isKnown) setAlarm(context, 'fridge_unreadable', subject, unreadable !== undefined, unreadable ?? '')
  if (unprovenForMs === undefined) setAlarm(context, 'fridge_warm', subject, false, '')
  else if (
    unreadable === undefined &&
    (proof !== undefined || !isInherited) &&
    meter.last !== undefined &&
    unprovenForMs >= context.settings.warmAlarmMs
  )
    setAlarm(context, 'fridge_warm', subject, true, `${meter.last.celsius} °C`)
}

/** The valid reading of a fridge; undefined past its maximum age. */
export function readingOf(context: Context, number: number): { celsius: number; ageMs: number } | undefined {
  const { meter, unreadable } = context.devices.fridge(number)
  if (unreadable !== undefined || meter.last === undefined) return undefined
  const ageMs = context.runtime.clock.monotonic() - meter.last.at
  return ageMs < maxAgeMs(context, number) ? { celsius: meter.last.celsius, ageMs } : undefined
}

/** The reading of each fridge with its age, for people at the hub. */
export function readingsOfFridges(context: Context): FridgeReading[] {
  const { layout, devices, runtime } = context
  const now = runtime.clock.monotonic()
  return layout.fridges.map(({ number }) => {
    const { meter, unreadable } = devices.fridge(number)
    const reading = isUsable(context, fridgeDevice(number)) ? readingOf(context, number) : undefined
    return {
      fridge_number: number,
      celsius: reading?.celsius ?? null,
      age_min: meter.last === undefined ? null : Math.floor((now - meter.last.at) / 60_000),
      why: reading === undefined ? (unreadable ?? whyUnread(context, number)) : null,
    }
  })
}

/** The fridges from which the hub sells nothing until a person has checked them. */
export const shutFridges = ({ state }: Pick<Context, 'state'>): number[] =>
  state.fridges
    .all()
    .filter(({ shutoff_at }) => shutoff_at !== null)
    .map(({ number }) => number)

/** The fridges from which the hub sells nothing until readings prove that they are cold. */
export const unprovenFridges = ({ layout, devices }: Pick<Context, 'layout' | 'devices'>): number[] =>
  layout.fridges.flatMap(({ number }) => (devices.fridge(number).isUnproven ? [number] : []))

/** A person has checked the goods in a fridge: the hub sells from it again. Returns false if it was not shut off. */
export function confirmFridge({ state, devices, cloud, runtime }: Context, number: number): boolean {
  const row = state.fridges.find(number)
  if (row === undefined || row.shutoff_at === null) return false
  const memory = devices.fridge(number)
  memory.isInherited = false
  memory.shutoffAt = undefined
  memory.provenAt = runtime.clock.monotonic()
  // Earlier readings no longer prove anything.
  memory.meter = { ...newThermometer, last: memory.meter.last, same: memory.meter.same }
  state.fridges.put({
    number,
    warm_since: null,
    read_at: cloud.now(),
    shutoff_at: null,
  } satisfies FridgeRow)
  return true
}

/**
 * Stores the cloud's configuration, and applies new confirmations of people in the cloud: fridges that were shut off
 * before the confirmation sell again. Each configuration repeats the latest confirmations. A repeated one ends no
 * shutoff, because a wrong clock of the cloud may have dated it in the future.
 */
export function applyConfig(context: Context, config: HubConfig): void {
  const { state } = context
  const known = state.facts.config()?.confirmed_fridges ?? []
  state.facts.setConfig(config)
  for (const { fridge_number, at } of config.confirmed_fridges) {
    const isRepeated = known.some((each) => each.fridge_number === fridge_number && each.at === at)
    const shutoffAt = state.fridges.find(fridge_number)?.shutoff_at ?? null
    if (!isRepeated && shutoffAt !== null && shutoffAt <= at) confirmFridge(context, fridge_number)
  }
}
