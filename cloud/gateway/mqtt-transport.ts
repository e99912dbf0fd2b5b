import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { MqttClient } from 'mqtt'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface BrokerAddress {
  /** `mqtt://user:password@host:port` or `mqtts://…`; the user needs the cloud's rights of SPEC §2. */
  url: string
  /** Unique to this process: the broker ends an older connection with the same id. */
  clientId: string
  connectTimeoutMs?: number
}

/**
 * The cloud's connections to an external broker, by mqtt.js: MQTT 3.1.1, QoS 1, clean sessions, a new client for each
 * connection. It never reconnects by itself, and keeps nothing for later (facts, MQTT).
 */
export function externalBroker({ url, clientId, connectTimeoutMs = 10_000 }: BrokerAddress): OpenTransport {
  const address = new URL(url)
  return ({ subscribe, will }, handlers) => {
    let ended = false
    let reason = 'closed'
    const client = new MqttClient(() => openSocket(address), {
      protocolVersion: 4,
      clean: true,
      clientId,
      ...(address.username && { username: decodeURIComponent(address.username) }),
      ...(address.password && { password: decodeURIComponent(address.password) }),
      keepalive: 30,
      connectTimeout: connectTimeoutMs,
      reconnectPeriod: 0,
      resubscribe: false,
      ...(will && { will: { ...will, payload: Buffer.from(will.payload), qos: 1 as const } }),
    })
    function fail(why: string): void {
      if (ended) return
      ended = true
      client.end(true)
      handlers.onDisconnect(why)
    }
    // A connection that fails says why first, and that it is closed then.
    client.on('error', (error) => {
      reason = error.message
    })
    client.on('close', () => fail(reason))
    client.on('connect', () =>
      client.subscribe([...subscribe], { qos: 1 }, (error, granted) => {
        if (ended) return
        if (error ?? granted?.some(({ qos }) => qos === 128))
          return fail(error?.message ?? 'a subscription was refused')
        handlers.onConnect()
      }),
    )
    client.handleMessage = (packet, done) => {
      if (!ended) handlers.onMessage(packet.topic, packet.payload.toString())
      done()
    }
    return {
      publish(topic, payload, { retain = false } = {}) {
        if (ended || !client.connected) return Promise.resolve(false)
        return new Promise((resolve) => {
          client.publish(topic, payload, { qos: 1, retain }, (error) => resolve(!error))
        })
      },
      close() {
        ended = true
        client.end()
      },
    }
  }
}

/** With TCP_NODELAY: without it Nagle costs some 40 ms a round trip (facts, MQTT). */
function openSocket({ protocol, hostname: host, port }: URL): Socket {
  if (protocol === 'mqtt:') return connectTcp({ host, port: Number(port || 1883), noDelay: true })
  if (protocol !== 'mqtts:') throw new Error(`not an address of a broker: ${protocol}//${host}`)
  return connectTls({ host, port: Number(port || 8883), servername: host }).setNoDelay(true)
}
