import { rmSync } from 'node:fs'
import { problemOf } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Erase } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'
import { obeyToLeave, type LeavingOptions } from './leave.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, moving, next, former, attempt, key, certificate, previous, ca } = enrolmentFiles(store)
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
    previous,
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

/** Connections on which the cloud can order a retired or revoked board to erase its secrets (MQTT SPEC §2). */
export const erasing =
  (parts: LeavingOptions, open: OpenTransport): OpenTransport =>
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
        obeyToLeave(
          parts,
          next,
          (waits) => void transport.publish(upTopic(hubId, 'moved'), JSON.stringify(waits)),
        ).catch((error: unknown) =>
          // The cloud repeats its order.
          log.error({ error: problemOf(error) }, 'an order to leave for another cell is not obeyed'),
        )
      },
    })
    return transport
  }

/** Returns whether the service must restart. If not, the cloud repeats its order after the next hello. */
function erase({ store, log }: Pick<LeavingOptions, 'store' | 'log'>): boolean {
  try {
    eraseSecrets(store)
    log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
    return true
  } catch (error) {
    log.error({ error: String(error) }, 'the secrets of this board could not be erased')
    return false
  }
}
