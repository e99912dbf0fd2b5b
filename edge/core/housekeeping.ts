import { every, type Cancel } from '../../protocol/model/runtime.ts'
import { pruneJournal } from '../journal/journal.ts'
import { setAlarm } from './ledger.ts'
import type { Context } from './context.ts'
import { takeOver } from './recovery/strangers.ts'

const CLOCK_EVERY = 10
const PRUNE_EVERY = 60

/** What recurs, whatever happens: alarms that only time raises, the clock's estimate, the ballast, old rows. */
export function startHousekeeping(context: Context): Cancel {
  const { runtime, settings, store, journal, cloud, doors } = context
  let round = 0
  let unreadSince: number | undefined
  return every(runtime.clock, settings.housekeepingMs, () => {
    round++
    store.relieve()
    doors.reread()
    context.handle(() => {
      checkControllers(context)
      checkFridges(context)
      unreadSince = doors.areUnread ? (unreadSince ?? runtime.clock.monotonic()) : undefined
      checkLines(context, unreadSince)
      checkClock(context)
      setAlarm(context, 'store_full', 'hub', context.outbox.isLedgerFull(), 'the journal cannot grow')
      if (round % CLOCK_EVERY === 0) cloud.persist()
      if (round % PRUNE_EVERY === 0) pruneJournal(journal, settings.keptRows)
    })
  })
}

function checkControllers(context: Context): void {
  const { layout, devices, runtime, settings, strangers } = context
  for (const controller of layout.controllers) {
    const stranger = strangers.get(controller)
    // It could not be taken over when its devices had spoken.
    if (stranger?.isForeign === false) takeOver(context, controller, stranger)
    const since = devices.downSince(controller)
    if (since !== undefined && runtime.clock.monotonic() - since >= settings.silentAlarmMs)
      setAlarm(context, 'controller_silent', controller, true, 'no answer on its line')
  }
}

/** The lines of locks and doors are a controller of their own. */
function checkLines(context: Context, unreadSince: number | undefined): void {
  const { runtime, settings } = context
  if (unreadSince === undefined) setAlarm(context, 'controller_silent', 'gpio', false, '')
  else if (runtime.clock.monotonic() - unreadSince >= settings.silentAlarmMs)
    setAlarm(context, 'controller_silent', 'gpio', true, 'no line of a lock or door can be read')
}

/** A fridge that stays warm is an alarm; one whose door was open for a moment is not. */
function checkFridges(context: Context): void {
  const { layout, devices, settings, runtime } = context
  const now = runtime.clock.monotonic()
  for (const { number, targetCelsius } of layout.fridges) {
    const fridge = devices.fridge(number)
    if (fridge.celsius === undefined) continue
    const device = `fridge-${number}`
    const isWarm = fridge.celsius > targetCelsius + settings.warmCelsius
    fridge.warmSince = isWarm ? (fridge.warmSince ?? now) : undefined
    if (fridge.warmSince === undefined) setAlarm(context, 'fridge_warm', device, false, '')
    else if (now - fridge.warmSince >= settings.warmAlarmMs)
      setAlarm(context, 'fridge_warm', device, true, `${fridge.celsius} °C`)
  }
}

/** The board's clock dates its logs, and facts while the cloud cannot be heard. */
function checkClock(context: Context): void {
  const { cloud, runtime, settings } = context
  if (!cloud.isKnown()) return
  const aheadMs = runtime.clock.now() - cloud.now()
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  const detail = `the hub's clock is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} the cloud's`
  setAlarm(context, 'clock_wrong', 'hub', Math.abs(aheadMs) > settings.clockWrongMs, detail)
}
