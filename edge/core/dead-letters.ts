import { HUB_SUBJECT } from '../../protocol/model/subject.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import type { Context } from './context.ts'
import type { DeadLetterSummary, LocalOutcome } from './hub-core.ts'
import { setAlarm } from './ledger.ts'
import { reportLocal } from './local-report.ts'

const SHOWN = 50
const MAX_DETAIL = 500

/** The alarm stays open while there is a dead letter: a person must check the cloud's entry. */
export function watchDeadLetters(context: Context): void {
  const { deadLetters } = context.state
  const [newest] = deadLetters.list(1)
  const detail = newest ? `${deadLetters.count()} entries of the cloud, the last: ${newest.error}` : ''
  setAlarm(context, 'dead_letter', HUB_SUBJECT, newest !== undefined, detail.slice(0, MAX_DETAIL))
}

export function deadLettersOf({ state }: Context): DeadLetterSummary[] {
  return state.deadLetters
    .list(SHOWN)
    .map(({ number: id, body, error, at }) => ({ id, kind: kindOf(body), error, body, at }))
}

function kindOf(body: string): string | null {
  const entry = JSON.parse(body) as { kind?: unknown } | null
  return typeof entry?.kind === 'string' ? entry.kind : null
}

/** Requests a snapshot from the cloud. Old entries may be outdated, so none is applied late. */
export function replayByPerson(context: Context, by?: LocalActor): LocalOutcome {
  if (context.state.deadLetters.count() === 0) return { ok: false, reason: 'not_found' }
  const isTaken = context.handle(() => {
    context.resetInbox()
    reportLocal(context, 'replay_dead_letters', HUB_SUBJECT, { by })
  })
  return isTaken ? { ok: true } : { ok: false, reason: 'unavailable' }
}

export function dropByPerson(context: Context, id: number, by?: LocalActor): LocalOutcome {
  if (!context.state.deadLetters.find(id)) return { ok: false, reason: 'not_found' }
  const isTaken = context.handle(() => {
    context.state.deadLetters.remove('WHERE number = ?', id)
    watchDeadLetters(context)
    reportLocal(context, 'drop_dead_letter', HUB_SUBJECT, { by })
  })
  return isTaken ? { ok: true } : { ok: false, reason: 'unavailable' }
}
