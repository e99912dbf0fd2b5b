import { HUB_SUBJECT } from '../../protocol/model/subject.ts'
import type { Context } from './context.ts'
import { setAlarm } from './ledger.ts'

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
export function checkRestarts(context: Context): void {
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
