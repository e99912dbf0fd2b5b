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

/** What recurs, whatever happens: alarms that only time raises, the clock's estimate, the ballast, old rows. */
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
      // On a full disk apart from what else is due: it may fail alone.
      if (store.failure() === undefined) outbox.flush()
    })
    if (store.failure() !== undefined) outbox.flush()
  })
}

/** What was taken out of the hub's hardware is nobody's concern any more. Rows end theirs when nothing blocks them. */
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
    // Certificates end theirs when they are looked at next.
    if (code !== 'row_blocked' && code !== 'certificate_expiring' && !there.has(subject))
      setAlarm(context, code as HubAlarmCode, subject, false, '')
}

/** Whether too many entries wait for the cloud. Heartbeats report a failure of the storage (`health.ts`). */
export function watchStore(context: Context): void {
  const { outbox, store } = context
  const isCrowded = store.failure() === undefined && outbox.isLedgerFull()
  setAlarm(context, 'store_full', HUB_SUBJECT, isCrowded, 'too many entries wait for the cloud')
}

/** Boards that could not be taken over when their devices had spoken. */
function takeOverNew(context: Context): void {
  for (const [controller, stranger] of context.strangers)
    if (!stranger.isForeign) takeOver(context, controller, stranger)
}

/** What each fridge is at goes to the telemetry, whether it has changed or not: a history has no holes then. */
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
    // In this event's commit too.
    if (fridge.noted === 'lately') fridge.noted = 'before'
  }
}

/** The board's clock dates its logs, and facts while the cloud cannot be heard. */
function checkClock(context: Context): void {
  const { cloud, runtime, settings } = context
  if (!cloud.isKnown()) return
  const aheadMs = runtime.clock.now() - cloud.now()
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  const detail = `the hub's clock is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} the cloud's`
  setAlarm(context, 'clock_wrong', HUB_SUBJECT, Math.abs(aheadMs) > settings.clockWrongMs, detail)
}
