import { every, type Cancel } from '../../protocol/model/runtime.ts'
import type { HubAlarmCode } from '../../protocol/model/alarms.ts'
import {
  binSubject,
  cabinetSubject,
  controllerSubject,
  doorSubject,
  fridgeSubject,
  HUB_SUBJECT,
} from '../../protocol/model/subject.ts'
import { checkCertificates } from './certificates.ts'
import { setAlarm } from './ledger.ts'
import type { Context } from './context.ts'
import { readingOf } from './fridges.ts'
import { checkRestarts } from './starts.ts'
import { takeOver } from './recovery/strangers.ts'

const CLOCK_EVERY = 10
const PRUNE_EVERY = 60

/** Periodic work: alarms that depend on time, the clock's estimate, the ballast, pruning of old rows. */
export function startHousekeeping(context: Context): Cancel {
  const { runtime, settings, store, state, outbox, cloud, doors } = context
  let round = 0
  return every(runtime.clock, settings.housekeepingMs, () => {
    round++
    store.relieve()
    doors.reread()
    context.handle(() => {
      reportTemperatures(context)
      takeOverNew(context)
      checkClock(context)
      watchStore(context)
      checkRestarts(context)
      checkCertificates(context)
      if (round % CLOCK_EVERY === 0) cloud.persist()
      if (round % PRUNE_EVERY === 0) state.prune(settings.keptRows)
      // On a full disk the outbox is flushed separately, because the flush may fail on its own.
      if (store.failure() === undefined) outbox.flush()
    })
    if (store.failure() !== undefined) outbox.flush()
  })
}

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
    // `checkCertificates` clears alarms of certificates.
    if (code !== 'row_blocked' && code !== 'certificate_expiring' && !there.has(subject))
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
  for (const [controller, stranger] of context.strangers)
    if (!stranger.isForeign) takeOver(context, controller, stranger)
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
    // The proof is then journaled in this event's commit too.
    if (fridge.noted === 'lately') fridge.noted = 'before'
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
