import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Erase, MAX_ERROR, type Moved } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { isThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'
import { readAttempt, readLeaving, type Next } from './install.ts'
import type { MoveState } from './moving.ts'
import { renewalDueAt } from './renewal.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, moving, next, former, attempt, key, certificate, ca } = enrolmentFiles(store)
  // The board leaves for another cell while `moving` exists, and counts as enrolled while `enrolment` exists.
  for (const path of [
    moving,
    enrolment,
    next,
    former,
    attempt,
    key,
    nextKey(key),
    certificate,
    ca,
    desiredFile(store),
  ])
    rmSync(path, { force: true })
  erasePage(store)
}

/** The number of starts that could not read the former journal (`complete-move.ts`). */
export const unreadFile = (former: string): string => `${former}.unread`

/** Removes the tokens and logins of the board's page. */
export function erasePage(store: string): void {
  for (const name of ['token', 'people', 'sessions']) rmSync(`${store}.${name}`, { force: true })
}

/** Obeys the order to leave for another cell: the next start completes the move. Throws a sentence if the board must stay. */
function leave({ hubId, store, log, now, reasonToWait, state }: ErasingOptions, as: number): void {
  const { moving } = enrolmentFiles(store)
  // The answer to the order to move may be days old.
  const reason = state.isEnrolling ? 'it enrols in the other cell' : reasonToWait()
  if (reason !== undefined) throw new Error(reason)
  const found = readLeaving(store, log)
  const lacks = whatItLacks(found, { hubId, store, as, now: now() })
  if (!found || lacks !== undefined) {
    const { failed } = state
    throw new Error(failed ? `${lacks} (the last enrolment there failed: ${failed.error})` : lacks)
  }
  // From now on these files are of this move.
  const former = `${store}.former`
  for (const path of [former, `${former}-wal`, `${former}-shm`, unreadFile(former)])
    rmSync(path, { force: true })
  // It outlives a power failure from now on.
  replaceText(moving, JSON.stringify(found))
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

export interface ErasingOptions {
  hubId: number
  store: string
  log: Log
  state: MoveState
  /** The time of the cloud as the hub knows it: milliseconds since the Unix epoch. */
  now: () => number
  /** Why the hub must not leave for another cell now; undefined if it may. */
  reasonToWait: () => string | undefined
  restart: () => void
}

/** Connections on which the cloud can order a retired or revoked board to erase its secrets (MQTT SPEC §2). */
export const erasing =
  (parts: ErasingOptions, open: OpenTransport): OpenTransport =>
  (options, handlers) => {
    const { hubId, log, restart } = parts
    const transport: MqttTransport = open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (parseDownTopic(hubId, topic) !== 'erase') return handlers.onMessage(topic, payload)
        const order = Erase.safeParse(parseMessage(payload))
        if (!order.success)
          return log.warn({ error: order.error.message }, 'an order of the cloud is damaged')
        const { next } = order.data
        if (next === undefined) {
          if (erase(parts)) void transport.publish(upTopic(hubId, 'erased'), '{}').then(restart, restart)
          return
        }
        const waits = tryToLeave(parts, next)
        if (waits) void transport.publish(upTopic(hubId, 'moved'), JSON.stringify(waits))
        // The start reports that the board has left (`farewell.ts`).
        else restart()
      },
    })
    return transport
  }

/** Returns whether the service must restart. If not, the cloud repeats its order after the next hello. */
function erase({ store, log }: ErasingOptions): boolean {
  try {
    eraseSecrets(store)
    log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
    return true
  } catch (error) {
    log.error({ error: String(error) }, 'the secrets of this board could not be erased')
    return false
  }
}

/** Leaves for another cell, or returns the report why not. The cloud repeats its order after the next hello. */
function tryToLeave(parts: ErasingOptions, next: number): Moved | undefined {
  const { log, state } = parts
  try {
    leave(parts, next)
    log.warn({ as: next }, 'this board leaves for another cell')
    return undefined
  } catch (failure) {
    const error = problemOf(failure).slice(0, MAX_ERROR)
    log.error({ as: next, error }, 'this board does not leave for another cell yet')
    state.waits = error
    // It answers no order to move.
    return { order: 0, hub_id: next, error }
  }
}
