import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Erase } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { isThere } from '../is-there.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'
import { readLeaving } from './install.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, moving, next, attempt, key, certificate, ca } = enrolmentFiles(store)
  // The board leaves for another cell while `moving` exists, and counts as enrolled while `enrolment` exists.
  for (const path of [
    moving,
    enrolment,
    next,
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

/** Removes the tokens and logins of the board's page. */
export function erasePage(store: string): void {
  for (const name of ['token', 'people', 'sessions']) rmSync(`${store}.${name}`, { force: true })
}

/** Obeys the order to leave for another cell: the next start completes the move. Throws a sentence if the board must stay. */
function leave({ hubId, store, log, reasonToStay }: ErasingOptions, as: number): void {
  const { next, moving } = enrolmentFiles(store)
  const found = readLeaving(store, log)
  if (!found && isThere(next)) throw new Error(`${next} is damaged`)
  if (found?.answer.hub_id !== as || found.former_hub_id !== hubId)
    throw new Error(`it is not enrolled in the other cell as hub ${as}`)
  // The answer to the order to move may be days old.
  const reason = reasonToStay()
  if (reason !== undefined) throw new Error(reason)
  // From now on these files are of this move.
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${store}.former${suffix}`, { force: true })
  // It outlives a power failure from now on.
  replaceText(moving, JSON.stringify(found))
}

export interface ErasingOptions {
  hubId: number
  store: string
  log: Log
  /** Why the hub must not leave for another cell now; undefined if it may. */
  reasonToStay: () => string | undefined
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
        if (obey(parts, order.data))
          void transport.publish(upTopic(hubId, 'erased'), '{}').then(restart, restart)
      },
    })
    return transport
  }

/** Returns whether the service must restart. If not, the cloud repeats its order after the next hello. */
function obey(parts: ErasingOptions, { next }: Erase): boolean {
  const { store, log } = parts
  if (next === undefined)
    try {
      eraseSecrets(store)
      log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
      return true
    } catch (error) {
      log.error({ error: String(error) }, 'the secrets of this board could not be erased')
      return false
    }
  try {
    leave(parts, next)
    log.warn({ as: next }, 'this board leaves for another cell')
    return true
  } catch (error) {
    log.error({ as: next, error: problemOf(error) }, 'this board does not leave for another cell yet')
    return false
  }
}
