import { readFileSync } from 'node:fs'
import { followFiles } from '../protocol/model/fresh-files.ts'
import type { Log } from '../protocol/model/log.ts'
import { reasonOf } from '../protocol/model/repeated-lines.ts'
import type { Clock } from '../protocol/model/runtime.ts'
import { HUB_CERTIFICATE, KnownCertificates } from '../protocol/mqtt/certificates.ts'
import type { EdgeConfig } from './config.ts'
import type { Listener } from './local-api/front.ts'

/**
 * Reads renewed certificates without a restart; new connections use them. A damaged file ends no hub: its doors and orders need neither
 * the page nor the cloud.
 */
export function followCertificates(
  { local, mqtt, pemPaths }: EdgeConfig,
  listener: Pick<Listener, 'renew'>,
  clock: Clock,
  log: Log,
) {
  const known = new KnownCertificates({ [HUB_CERTIFICATE]: mqtt.client?.cert })
  for (const [setting, pem] of Object.entries({
    LOCAL_CERT: local.cert,
    MQTT_CA: mqtt.ca ?? mqtt.client?.ca,
  }))
    try {
      known.renew({ [setting]: pem })
    } catch (error) {
      log.error({ setting, reason: reasonOf(error) }, 'a certificate cannot be read')
    }
  const pems = { MQTT_CA: mqtt.ca, LOCAL_CERT: local.cert, LOCAL_KEY: local.key }
  const endFollowing = followFiles({
    paths: pemPaths,
    texts: { ...pems },
    read: (path) => readFileSync(path, 'utf8'),
    clock,
    log,
    use(fresh) {
      listener.renew({ cert: fresh.LOCAL_CERT, key: fresh.LOCAL_KEY })
      known.renew({ LOCAL_CERT: fresh.LOCAL_CERT, MQTT_CA: fresh.MQTT_CA })
      Object.assign(pems, fresh)
    },
  })
  return { known, pems, endFollowing }
}
