import { HUB_SUBJECT } from '../../protocol/model/subject.ts'
import type { Context } from './context.ts'
import { setAlarm } from './ledger.ts'

/** What is known of why an earlier life ended; longer texts are cut. */
const MAX_WORDS = 300

/**
 * A life of the service begins. If the one before has not ended in good order (it crashed, was killed, or lost power), that is
 * counted. A supervisor starts the hub again within a second, so that nobody would notice a crash otherwise.
 */
export function noteStart(context: Context): void {
  const { journal, cloud, lastWords, isStart = true } = context
  const { isOpen, crashes, words } = journal.meta.life()
  const isCrash = isOpen && isStart
  const latest = lastWords?.slice(0, MAX_WORDS) ?? null
  journal.meta.setLife({
    isOpen: true,
    crashes: isCrash ? [...recent(context, crashes), cloud.now()] : recent(context, crashes),
    words: isCrash ? (latest ?? words) : words,
  })
  checkRestarts(context)
}

/** The service ends in good order. */
export function noteEnd({ journal, store, log }: Context): void {
  try {
    store.transact(() => journal.meta.setLife({ ...journal.meta.life(), isOpen: false }))
  } catch (error) {
    // On a full disk this end counts as a crash; it must not keep the service from ending.
    log.warn({ error: String(error) }, 'the orderly end of the service cannot be noted')
  }
}

/** Raises the alarm of a hub that starts again and again, and ends it when it has run for a while. */
export function checkRestarts(context: Context): void {
  const { journal, settings } = context
  const { crashes, words } = journal.meta.life()
  const count = recent(context, crashes).length
  const minutes = Math.round(settings.restartsWithinMs / 60_000)
  const last = words === null ? 'killed, or without power: there is no last error' : `last error: ${words}`
  const detail = `${count} times in ${minutes} min without an orderly end; ${last}`
  setAlarm(context, 'hub_restarting', HUB_SUBJECT, count >= settings.restarts, detail)
}

/** The crashes that still count. Clocks may have been put right since: what lies in the future does not. */
function recent({ cloud, settings }: Context, crashes: readonly number[]): number[] {
  const now = cloud.now()
  return crashes.filter((at) => at <= now && now - at < settings.restartsWithinMs)
}
