import * as files from 'node:fs'
import { followFiles } from '../protocol/model/fresh-files.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Cancel, Clock } from '../protocol/model/runtime.ts'
import type { KnownCertificates } from '../protocol/mqtt/certificates.ts'
import type { EmbeddedBroker } from './gateway/broker-embedded.ts'
import type { CloudConfig } from './platform/settings/config.ts'

/** The certificates and the key that settings name, as PEM. */
export type Pems = Record<'MQTT_CERT' | 'MQTT_KEY' | 'MQTT_CA', string | undefined>

/** Takes renewed files without a restart: new connections use them. Keeps `pems` up to date. */
export function followCertificates(
  { MQTT_CERT, MQTT_KEY, MQTT_CA }: CloudConfig,
  parts: {
    pems: Pems
    broker: EmbeddedBroker | undefined
    known: KnownCertificates
    clock: Clock
    log: Log
  },
): Cancel {
  const { pems, broker, known, clock, log } = parts
  return followFiles({
    paths: { MQTT_CERT, MQTT_KEY, MQTT_CA },
    texts: { ...pems },
    read: (path) => files.readFileSync(path, 'utf8'),
    clock,
    log,
    use(fresh) {
      broker?.renewTls({ cert: fresh.MQTT_CERT, key: fresh.MQTT_KEY })
      Object.assign(pems, fresh)
      known.renew({ MQTT_CERT: fresh.MQTT_CERT, MQTT_CA: fresh.MQTT_CA })
    },
  })
}
