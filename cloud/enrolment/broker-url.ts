import { callableHost } from '../../protocol/model/address.ts'
import type { CloudConfig } from '../platform/settings/config.ts'

/** The settings that decide where hubs find the broker. */
export type BrokerSettings = Pick<
  CloudConfig,
  | 'MQTT_PUBLIC_URL'
  | 'MQTT_URL'
  | 'MQTT_CERT'
  | 'MQTT_HOST'
  | 'MQTT_PORT'
  | 'MQTT_TLS_PORT'
  | 'HOST'
  | 'PUBLIC_URL'
>

/** The broker's address for hubs, without user and password. */
export function hubBrokerUrl(settings: BrokerSettings): string {
  const { MQTT_PUBLIC_URL, MQTT_URL: [external] = [], MQTT_TLS_PORT, PUBLIC_URL } = settings
  if (MQTT_PUBLIC_URL !== undefined) return MQTT_PUBLIC_URL
  if (external !== undefined) {
    const url = new URL(external)
    url.username = ''
    url.password = ''
    return url.href
  }
  const host =
    PUBLIC_URL === undefined
      ? callableHost(settings.MQTT_HOST ?? settings.HOST)
      : new URL(PUBLIC_URL).hostname
  if (MQTT_TLS_PORT !== undefined) return `mqtts://${host}:${MQTT_TLS_PORT}`
  return `${settings.MQTT_CERT === undefined ? 'mqtt' : 'mqtts'}://${host}:${settings.MQTT_PORT}`
}
