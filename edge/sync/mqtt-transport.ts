import { connect as connectTcp, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { MqttClient } from 'mqtt'
import { writeToStream } from 'mqtt-packet'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { anyBroker } from '../../protocol/mqtt/brokers.ts'
import { clientTransport, type OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface MqttOptions {
  /** `mqtt://host:port` or `mqtts://host:port`, of one cluster. */
  urls: readonly string[]
  /** Also the client id: a new connection ends an older one that the broker still believes in (SPEC §2). */
  user: string
  password: string
  runtime: Runtime
  /** PEM of the authorities to trust with `mqtts:`; the system's by default. */
  ca?: string
  keepaliveSeconds?: number
  connectTimeoutMs?: number
  /** How long the broker may take to grant a subscription. */
  grantTimeoutMs?: number
  /** Bytes that may await the broker's PUBACK; beyond them the connection is given up. */
  maxPendingBytes?: number
}

// mqtt.js would keep a buffer for each of the 65,536 packet ids: a tenth of the hub's memory.
writeToStream.cacheNumbers = false
// And it keeps the bytes of each length that a message has ever had, up to 16,384 of them. Cut from Node's pool each would hold a
// slab of 8 KB (64 KB in newer Nodes): a megabyte after 500 orders, and more for ever.
Buffer.poolSize = 0

/** The hub's connections to its broker. */
export function mqttTransport(options: MqttOptions): OpenTransport {
  const { urls, user, runtime, ca, ...settings } = options
  const { clock } = runtime
  return anyBroker(
    urls.map((url) =>
      clientTransport(
        { ...settings, clock, clientId: user, username: user },
        (client) => new MqttClient(() => openSocket(url, ca), client),
      ),
    ),
    runtime.random,
  )
}

function openSocket(url: string, ca: string | undefined): Socket {
  const { protocol, hostname: host, port } = new URL(url)
  if (protocol === 'mqtt:') return connectTcp({ host, port: Number(port || 1883), noDelay: true })
  if (protocol !== 'mqtts:') throw new Error(`not an address of a broker: ${url}`)
  const socket = connectTls({
    host,
    port: Number(port || 8883),
    // A certificate may name an address too; then there is no name to ask for.
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca && { ca }),
  })
  // Without it Nagle costs some 40 ms a round trip.
  return socket.setNoDelay(true)
}
