import * as net from 'node:net'
import * as stream from 'node:stream'
import * as tls from 'node:tls'
import { MqttClient } from 'mqtt'
import { writeToStream } from 'mqtt-packet'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { openBrokerSocket, type BrokerSocketOptions } from '../../protocol/mqtt/broker-socket.ts'
import { anyBroker } from '../../protocol/mqtt/brokers.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { clientTransport, type OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface MqttOptions {
  /** `mqtt://host:port` or `mqtts://host:port`, of one cluster. */
  urls: readonly string[]
  /** Also the client id: a new connection ends an older one that the broker still believes in (SPEC §2). */
  user: string
  password: string
  runtime: Runtime
  /** PEM of the authorities to trust with `mqtts:`; the system's by default. */
  ca?: BrokerSocketOptions['ca']
  /** By which the broker's certificate is judged; the system's clock by default. */
  time?: BrokerSocketOptions['time']
  /** Called with the certificate of each broker that is trusted. */
  onCertificate?: BrokerSocketOptions['onCertificate']
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
  const { urls, user, runtime, ca, time, onCertificate, ...settings } = options
  const { clock } = runtime
  const socket: BrokerSocketOptions = {
    modules: { net, tls, stream },
    ca,
    time: time ?? (() => certificateTime(clock.now(), 0)),
    onCertificate,
  }
  return anyBroker(
    urls.map((url) =>
      clientTransport(
        { ...settings, clock, clientId: user, username: user },
        (client) => new MqttClient(() => openBrokerSocket(url, socket), client),
      ),
    ),
    runtime.random,
  )
}
