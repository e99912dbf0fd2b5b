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
import { pruneJournal } from '../journal/journal.ts'
import { setAlarm } from './ledger.ts'
import type { Context } from './context.ts'
import { takeOver } from './recovery/strangers.ts'

const CLOCK_EVERY = 10
const PRUNE_EVERY = 60

/** What recurs, whatever happens: alarms that only time raises, the clock's estimate, the ballast, old rows. */
export function startHousekeeping(context: Context): Cancel {
  const { runtime, settings, store, journal, outbox, cloud, doors } = context
  let round = 0
  let unreadSince: number | undefined
  const openSince = new Map<string, number>()
  return every(runtime.clock, settings.housekeepingMs, () => {
    round++
    store.relieve()
    doors.reread()
    context.handle(() => {
      reportTemperatures(context)
      checkControllers(context)
      unreadSince = doors.areUnread ? (unreadSince ?? runtime.clock.monotonic()) : undefined
      checkLines(context, unreadSince)
      checkDoors(context, openSince)
      checkClock(context)
      watchStore(context)
      if (round % CLOCK_EVERY === 0) cloud.persist()
      if (round % PRUNE_EVERY === 0) pruneJournal(journal, settings.keptRows)
      // On a full disk apart from what else is due: it may fail alone.
      if (!store.isFull()) outbox.flush()
    })
    if (store.isFull()) outbox.flush()
  })
}

/** What was taken out of the hub's hardware is nobody's concern any more. Rows end theirs when nothing blocks them. */
export function endAlarmsOfAbsent(context: Context): void {
  const { journal, layout, doors } = context
  const there = new Set([
    HUB_SUBJECT,
    controllerSubject('gpio'),
    ...layout.controllers.map(controllerSubject),
    ...layout.bins.map(({ number }) => binSubject(number)),
    ...layout.cabinets.map(cabinetSubject),
    ...layout.fridges.map(({ number }) => fridgeSubject(number)),
    ...doors.health().map(({ door }) => doorSubject(door)),
  ])
  for (const { code, subject } of journal.alarms.all())
    if (code !== 'row_blocked' && !there.has(subject))
      setAlarm(context, code as HubAlarmCode, subject, false, '')
}

/** Whether there is room for what the hub has to report. */
export const watchStore = (context: Context): void =>
  setAlarm(context, 'store_full', HUB_SUBJECT, context.outbox.isLedgerFull(), 'the journal cannot grow')

function checkControllers(context: Context): void {
  const { layout, devices, runtime, settings, strangers } = context
  for (const controller of layout.controllers) {
    const stranger = strangers.get(controller)
    // It could not be taken over when its devices had spoken.
    if (stranger?.isForeign === false) takeOver(context, controller, stranger)
    const since = devices.awaySince(controller)
    if (since === undefined) setAlarm(context, 'controller_silent', controllerSubject(controller), false, '')
    else if (runtime.clock.monotonic() - since >= settings.silentAlarmMs)
      setAlarm(context, 'controller_silent', controllerSubject(controller), true, 'no answer on its line')
  }
}

/** The lines of locks and doors are a controller of their own. */
function checkLines(context: Context, unreadSince: number | undefined): void {
  const { runtime, settings } = context
  if (unreadSince === undefined) setAlarm(context, 'controller_silent', controllerSubject('gpio'), false, '')
  else if (runtime.clock.monotonic() - unreadSince >= settings.silentAlarmMs)
    setAlarm(
      context,
      'controller_silent',
      controllerSubject('gpio'),
      true,
      'no line of a lock or door can be read',
    )
}

/** What each fridge is at goes to the telemetry, whether it has changed or not: a history has no holes then. */
function reportTemperatures({ layout, devices, outbox, cloud }: Context): void {
  for (const { number } of layout.fridges) {
    const fridge = devices.fridge(number)
    const { celsius } = fridge
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

/** A door that somebody has forgotten. `openSince`: by door, on the monotonic clock. */
function checkDoors(context: Context, openSince: Map<string, number>): void {
  const { doors, runtime, settings } = context
  const now = runtime.clock.monotonic()
  for (const { door, status } of doors.health()) {
    if (status !== 'open') openSince.delete(door)
    else if (!openSince.has(door)) openSince.set(door, now)
    const since = openSince.get(door)
    if (since === undefined) setAlarm(context, 'door_left_open', doorSubject(door), false, '')
    else if (now - since >= settings.doorLeftOpenMs)
      setAlarm(context, 'door_left_open', doorSubject(door), true, 'nobody has closed it')
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
