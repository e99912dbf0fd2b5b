import * as net from 'node:net'
import * as stream from 'node:stream'
import * as tls from 'node:tls'
import { MqttClient } from 'mqtt'
import { addressOf } from '../../protocol/model/address.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import {
  BROKER_PORTS,
  openBrokerSocket,
  type BrokerSocketOptions,
} from '../../protocol/mqtt/broker-socket.ts'
import { anyBroker } from '../../protocol/mqtt/brokers.ts'
import { certificateTime } from '../../protocol/mqtt/certificates.ts'
import { clientTransport, type ChangingTransport, type OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface BrokerAddress {
  /**
   * `mqtt://user:password@host:port` or `mqtts://…`, brokers of one cluster. The user needs the cloud's rights of SPEC
   * §2.
   */
  urls: readonly string[]
  /** Unique to this process: the broker ends an older connection with the same id. */
  clientId: string
  runtime: Runtime
  /** PEM of the authorities to trust with `mqtts:`; the system's by default. */
  ca?: BrokerSocketOptions['ca']
  /** The time for checking the broker's certificate; by default the system's clock. */
  time?: BrokerSocketOptions['time']
  /** Called with each accepted certificate of a broker. */
  onCertificate?: BrokerSocketOptions['onCertificate']
}

/** The cloud's connections to an external broker. */
export function externalBroker(options: BrokerAddress): OpenTransport<ChangingTransport> {
  const { urls, ca, runtime, time, onCertificate, ...settings } = options
  const { clock } = runtime
  const socket = { ...socketOptions(ca, clock), ...(time && { time }), onCertificate }
  return anyBroker(
    urls.map((url) => {
      const { username, password } = addressOf(url, BROKER_PORTS)
      return clientTransport(
        { ...settings, clock, username, password },
        (client) => new MqttClient(() => openBrokerSocket(url, socket), client),
      )
    }),
    runtime.random,
  )
}

export const socketOptions = (ca: BrokerSocketOptions['ca'], clock: Clock): BrokerSocketOptions => ({
  modules: { net, tls, stream },
  ca,
  time: () => certificateTime(clock.now(), 0),
})
