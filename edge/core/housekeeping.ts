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
  return every(runtime.clock, settings.housekeepingMs, () => {
    round++
    store.relieve()
    doors.reread()
    context.handle(() => {
      checkControllers(context)
      checkFridges(context)
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
