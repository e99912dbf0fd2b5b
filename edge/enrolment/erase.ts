import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, attempt, key, certificate, ca } = enrolmentFiles(store)
  const ofPage = ['token', 'people', 'sessions'].map((name) => `${store}.${name}`)
  // The board counts as enrolled while the first file exists.
  for (const path of [enrolment, attempt, key, nextKey(key), certificate, ca, desiredFile(store), ...ofPage])
    rmSync(path, { force: true })
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
        try {
          eraseSecrets(store)
        } catch (error) {
          // The cloud orders it again when it receives the next message.
          return log.error({ error: String(error) }, 'the secrets of this board could not be erased')
        }
        log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
        void transport.publish(upTopic(hubId, 'erased'), '{}').then(restart)
      },
    })
    return transport
  }
