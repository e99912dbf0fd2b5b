import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { MqttClient } from 'mqtt'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { anyBroker } from '../../protocol/mqtt/brokers.ts'
import { clientTransport, type ChangingTransport, type OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface BrokerAddress {
  /** `mqtt://user:password@host:port` or `mqtts://…`, of one cluster; the user needs the cloud's rights of SPEC §2. */
  urls: readonly string[]
  /** Unique to this process: the broker ends an older connection with the same id. */
  clientId: string
  runtime: Runtime
  /** PEM of the authorities to trust with `mqtts:`; the system's by default. */
  ca?: string
  connectTimeoutMs?: number
}

/** The cloud's connections to an external broker. */
export function externalBroker(options: BrokerAddress): OpenTransport<ChangingTransport> {
  const { urls, ca, runtime, ...settings } = options
  const { clock } = runtime
  return anyBroker(
    urls.map((url) => {
      const address = new URL(url)
      const username = decodeURIComponent(address.username)
      const password = decodeURIComponent(address.password)
      return clientTransport(
        { ...settings, clock, username, password },
        (client) => new MqttClient(() => openSocket(address, ca), client),
      )
    }),
    runtime.random,
  )
}

/** With TCP_NODELAY: without it Nagle costs some 40 ms a round trip (SPEC §2). */
function openSocket({ protocol, hostname: host, port }: URL, ca: string | undefined): Socket {
  if (protocol === 'mqtt:') return connectTcp({ host, port: Number(port || 1883), noDelay: true })
  if (protocol !== 'mqtts:') throw new Error(`not an address of a broker: ${protocol}//${host}`)
  const socket = connectTls({
    host,
    port: Number(port || 8883),
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca && { ca }),
  })
  return socket.setNoDelay(true)
}
