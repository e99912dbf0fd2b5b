import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Erase } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { replaceText } from '../replace-text.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'
import { readNext } from './install.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, next, attempt, key, certificate, ca } = enrolmentFiles(store)
  // The board counts as enrolled while the first file exists.
  for (const path of [enrolment, next, attempt, key, nextKey(key), certificate, ca, desiredFile(store)])
    rmSync(path, { force: true })
  erasePage(store)
}

/** Removes the tokens and logins of the board's page. */
export function erasePage(store: string): void {
  for (const name of ['token', 'people', 'sessions']) rmSync(`${store}.${name}`, { force: true })
}

/** Obeys the order to leave for another cell: the next start completes the move. Returns false if the board is not enrolled there. */
function leave(store: string, as: number): boolean {
  const { next, moving } = enrolmentFiles(store)
  const found = readNext(next)
  if (found?.answer.hub_id !== as) return false
  // It outlives a power failure from now on.
  replaceText(moving, JSON.stringify(found))
  rmSync(next)
  return true
}

export interface ErasingOptions {
  hubId: number
  store: string
  log: Log
  restart: () => void
}

/** Connections on which the cloud can order a retired or revoked board to erase its secrets (MQTT SPEC §2). */
export const erasing =
  ({ hubId, store, log, restart }: ErasingOptions, open: OpenTransport): OpenTransport =>
  (options, handlers) => {
    const transport: MqttTransport = open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (parseDownTopic(hubId, topic) !== 'erase') return handlers.onMessage(topic, payload)
        const order = Erase.safeParse(parseMessage(payload))
        if (!order.success)
          return log.warn({ error: order.error.message }, 'an order of the cloud is damaged')
        const { next } = order.data
        try {
          if (next !== undefined && leave(store, next))
            log.warn({ as: next }, 'this board leaves for another cell')
          else {
            eraseSecrets(store)
            log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
          }
        } catch (error) {
          // The cloud orders it again when it receives the next message.
          return log.error({ error: String(error) }, 'the secrets of this board could not be erased')
        }
        void transport.publish(upTopic(hubId, 'erased'), '{}').then(restart)
      },
    })
    return transport
  }
