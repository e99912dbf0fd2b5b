import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { MAX_ERROR, type Moved } from '../../protocol/mqtt/session.ts'
import { isThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles } from './enrolment.ts'
import { readAttempt, readLeaving, type Next } from './install.ts'
import type { MoveState } from './moving.ts'
import { renewalDueAt } from './renewal.ts'
import { askNextCell } from './visit-broker.ts'

export interface LeavingOptions {
  hubId: number
  store: string
  log: Log
  state: MoveState
  runtime: Runtime
  /** The time of the cloud as the hub knows it: milliseconds since the Unix epoch. */
  now: () => number
  /** Why the hub must not leave for another cell now; undefined if it may. */
  reasonToWait: () => string | undefined
  restart: () => void
  ask?: typeof askNextCell
}

/** The cloud repeats its order every few seconds. The next cell is asked again after this time. */
const ASK_AGAIN_MS = 60_000

/** The number of starts that could not read the former journal (`complete-move.ts`). */
export const unreadFile = (former: string): string => `${former}.unread`

/**
 * Obeys the order to leave for another cell: the next start completes the move. If the board must stay, it reports the reason. The
 * cloud repeats its order after the next hello.
 */
export async function obeyToLeave(
  options: LeavingOptions,
  as: number,
  report: (waits: Moved) => void,
): Promise<void> {
  const { store, log, state, restart } = options
  // The first order is obeyed, or answered, when the next cell has answered.
  if (state.step === 'asks') return
  try {
    let found = readyToLeave(options, as)
    if (!isThere(enrolmentFiles(store).moving)) {
      await askAgain(options, found)
      // Time has passed.
      found = readyToLeave(options, as)
    }
    leave(store, found)
  } catch (failure) {
    const error = problemOf(failure).slice(0, MAX_ERROR)
    log.error({ as, error }, 'this board does not leave for another cell yet')
    state.waits = error
    // It answers no order to move.
    return report({ order: 0, hub_id: as, error })
  }
  log.warn({ as }, 'this board leaves for another cell')
  // The start reports that the board has left (`farewell.ts`).
  restart()
}

/** The enrolment with which this board may leave now, as far as it knows by itself. Throws a sentence if it must stay. */
function readyToLeave({ hubId, store, log, now, reasonToWait, state }: LeavingOptions, as: number): Next {
  // The answer to the order to move may be days old.
  const reason = state.step === 'enrols' ? 'it enrols in the other cell' : reasonToWait()
  if (reason !== undefined) throw new Error(reason)
  const found = readLeaving(store, log)
  const lacks = whatItLacks(found, { hubId, store, as, now: now() })
  if (found && lacks === undefined) return found
  const { failed } = state
  throw new Error(failed ? `${lacks} (the last enrolment there failed: ${failed.error})` : lacks)
}

/** Throws a sentence if the next cell does not take this hub any more, for example because it was retired there. */
async function askAgain({ state, runtime, ask = askNextCell }: LeavingOptions, next: Next): Promise<void> {
  const { clock } = runtime
  const { certificate } = next.answer
  const { refused } = state
  if (refused?.certificate === certificate && clock.monotonic() < refused.until)
    throw new Error(refused.reason)
  state.step = 'asks'
  const reason = await ask(next, runtime).finally(() => (state.step = undefined))
  if (reason === undefined) return
  state.refused = { certificate, reason, until: clock.monotonic() + ASK_AGAIN_MS }
  throw new Error(reason)
}

/** The board belongs to the next cell from now on. */
function leave(store: string, next: Next): void {
  // These files are of this move then.
  const former = `${store}.former`
  for (const path of [former, `${former}-wal`, `${former}-shm`, unreadFile(former)])
    rmSync(path, { force: true })
  // It outlives a power failure.
  replaceText(enrolmentFiles(store).moving, JSON.stringify(next))
}

/** Why the board could not sign in at the other cell: it would belong to no cell. Undefined if it can. */
function whatItLacks(
  found: Next | undefined,
  { hubId, store, as, now }: { hubId: number; store: string; as: number; now: number },
): string | undefined {
  const { next, attempt } = enrolmentFiles(store)
  if (!found && isThere(next)) return `${next} is damaged: it needs another claim code of the other cell`
  if (found?.answer.hub_id !== as || found.former_hub_id !== hubId)
    return `it is not enrolled in the other cell as hub ${as}`
  // The other cell may have used the code of an attempt without an answer, and then has revoked this certificate.
  if ((readAttempt(attempt)?.code ?? found.code) !== found.code)
    return 'it is not known whether the other cell has enrolled it again: it needs the order to move again'
  // Its renewal must not be urgent when it arrives there.
  if (renewalDueAt(found.answer.certificate) < now)
    return 'its certificate of the other cell has expired, or expires soon: it needs another claim code of that cell'
  return undefined
}
