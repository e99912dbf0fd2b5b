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
import { readLeaving, type Next } from './install.ts'

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

/** A certificate of the other cell that ends earlier may not last until the hub can renew it there. */
const LEAST_LIFETIME_MS = 3_600_000

/** Obeys the order to leave for another cell: the next start completes the move. Throws a sentence if the board must stay. */
function leave({ hubId, store, log, now, reasonToStay }: ErasingOptions, as: number): Next {
  const { next, moving } = enrolmentFiles(store)
  const found = readLeaving(store, log)
  if (!found && isThere(next)) throw new Error(`${next} is damaged`)
  if (found?.answer.hub_id !== as || found.former_hub_id !== hubId)
    throw new Error(`it is not enrolled in the other cell as hub ${as}`)
  // It could not sign in there, and would belong to no cell.
  if (Date.parse(found.answer.expires_at) < now() + LEAST_LIFETIME_MS)
    throw new Error('its certificate of the other cell has expired: it needs another claim code of that cell')
  // The answer to the order to move may be days old.
  const reason = reasonToStay()
  if (reason !== undefined) throw new Error(reason)
  // From now on these files are of this move.
  const former = `${store}.former`
  for (const path of [former, `${former}-wal`, `${former}-shm`, unreadFile(former)])
    rmSync(path, { force: true })
  // It outlives a power failure from now on.
  replaceText(moving, JSON.stringify(found))
  return found
}

export interface ErasingOptions {
  hubId: number
  store: string
  log: Log
  /** The time of the cloud as the hub knows it: milliseconds since the Unix epoch. */
  now: () => number
  /** Why the hub must not leave for another cell now; undefined if it may. */
  reasonToStay: () => string | undefined
  /** Gets the reason each time that the hub must not leave. */
  onWaiting: (reason: string) => void
  restart: () => void
}

/** Connections on which the cloud can order a retired or revoked board to erase its secrets (MQTT SPEC §2). */
export const erasing =
  (parts: ErasingOptions, open: OpenTransport): OpenTransport =>
  (options, handlers) => {
    const { hubId, log, restart } = parts
    const report = (): Promise<boolean> => transport.publish(upTopic(hubId, 'erased'), '{}')
    const transport: MqttTransport = open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (parseDownTopic(hubId, topic) !== 'erase') return handlers.onMessage(topic, payload)
        const order = Erase.safeParse(parseMessage(payload))
        if (!order.success)
          return log.warn({ error: order.error.message }, 'an order of the cloud is damaged')
        const { next } = order.data
        if (next === undefined) {
          if (erase(parts)) void report().then(restart, restart)
          return
        }
        const { left, waits } = tryToLeave(parts, next)
        if (waits) void transport.publish(upTopic(hubId, 'moved'), JSON.stringify(waits))
        if (left)
          void report()
            .then((isReported) => noteReported(parts, left, isReported))
            .then(restart, restart)
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
function tryToLeave(parts: ErasingOptions, next: number): { left?: Next; waits?: Moved } {
  const { log, onWaiting } = parts
  try {
    const left = leave(parts, next)
    log.warn({ as: next }, 'this board leaves for another cell')
    return { left }
  } catch (failure) {
    const error = problemOf(failure).slice(0, MAX_ERROR)
    log.error({ as: next, error }, 'this board does not leave for another cell yet')
    onWaiting(error)
    // The cloud knows the order.
    return { waits: { order: 0, hub_id: next, error } }
  }
}

/** The start need not report it again (`farewell.ts`). */
function noteReported({ store }: ErasingOptions, left: Next, is_reported: boolean): void {
  const { moving } = enrolmentFiles(store)
  // A revocation in the meantime has erased it.
  if (is_reported && isThere(moving))
    replaceText(moving, JSON.stringify({ ...left, is_reported } satisfies Next))
}
