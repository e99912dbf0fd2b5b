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

interface MqttOptions {
  /** `mqtt://host:port` or `mqtts://host:port`, all of one cluster. */
  urls: readonly string[]
  /** Also the client id: a new connection ends an older one that the broker still considers open (SPEC §2). */
  user: string
  /** Absent: the client's certificate is the credential. */
  password: string | undefined
  client?: BrokerSocketOptions['client']
  runtime: Runtime
  /** PEM of the trusted authorities for `mqtts:` (default: the system's). */
  ca?: BrokerSocketOptions['ca']
  /** The time for checks of the broker's certificate (default: the system's clock). */
  time?: BrokerSocketOptions['time']
  /** Called with the certificate of each trusted broker. */
  onCertificate?: BrokerSocketOptions['onCertificate']
  keepaliveSeconds?: number
  connectTimeoutMs?: number
  /** Maximum time for the broker to grant a subscription. */
  grantTimeoutMs?: number
  /** Maximum bytes that wait for the broker's PUBACK; if there are more, the connection is closed. */
  maxPendingBytes?: number
}

// mqtt.js would cache a buffer for each of the 65,536 packet ids: a tenth of the hub's memory.
writeToStream.cacheNumbers = false
// mqtt.js also caches the bytes of each message length that it has used, up to 16,384 lengths. If they were
// cut from Node's pool, each would hold a slab of 8 KB (64 KB in newer Nodes). That is a megabyte after 500
// orders, and it grows without end.
Buffer.poolSize = 0

/** The hub's connections to its broker. */
export function mqttTransport(options: MqttOptions): OpenTransport {
  const { urls, user, runtime, ca, client, time, onCertificate, ...settings } = options
  const { clock } = runtime
  const socket: BrokerSocketOptions = {
    modules: { net, tls, stream },
    ca,
    client,
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
