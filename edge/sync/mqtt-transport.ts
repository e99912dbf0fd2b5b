import { connect as connectTcp } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { MqttClient } from 'mqtt'
import type { IClientOptions } from 'mqtt'
import { writeToStream } from 'mqtt-packet'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'

export interface MqttOptions {
  /** `mqtt://host:port` or `mqtts://host:port`. */
  url: string
  /** Also the client id: a new connection ends an older one that the broker still believes in (SPEC §2). */
  user: string
  password: string
  clock: Clock
  /** PEM of the authorities to trust with `mqtts:`; the system's by default. */
  ca?: string
  keepaliveSeconds?: number
  connectTimeoutMs?: number
  /** Bytes that may await the broker's PUBACK; beyond them the connection is given up. */
  maxPendingBytes?: number
}

// mqtt.js would keep a buffer for each of the 65,536 packet ids: a tenth of the hub's memory.
writeToStream.cacheNumbers = false

/** Bytes of one message around its payload, for the bound on what is pending. */
const OVERHEAD = 100
/** How long a clean end waits for what is still on its way. */
const CLOSE_MS = 2000

/**
 * Connections by mqtt.js: MQTT 3.1.1, QoS 1, clean sessions. Nothing is queued for a later connection (facts, MQTT): the
 * outbox does that. The PUBACK of a message goes out after its handler has returned.
 */
export function mqttTransport(settings: MqttOptions): OpenTransport {
  const { clock, maxPendingBytes = 32 * 1024 * 1024, connectTimeoutMs = 10_000 } = settings
  return (options, handlers): MqttTransport => {
    const client = new MqttClient(() => openSocket(settings), clientOptions(settings, connectTimeoutMs))
    const pending = new Set<(accepted: boolean) => void>()
    let pendingBytes = 0
    let ended = false
    let reason = 'closed'

    /** Nothing happens on this connection any more. */
    function end(): boolean {
      if (ended) return false
      ended = true
      for (const resolve of pending) resolve(false)
      pending.clear()
      return true
    }

    function fail(why: string): void {
      if (!end()) return
      client.end(true)
      handlers.onDisconnect(why)
    }

    // A connection that fails says why first, and that it is closed then.
    client.on('error', (error) => {
      reason = error.message
    })
    client.on('close', () => fail(reason))
    client.on('connect', () => {
      client.subscribe([...options.subscribe], { qos: 1 }, (error) => {
        if (ended) return
        if (error) return fail(error.message)
        handlers.onConnect()
      })
    })
    client.handleMessage = (packet, done) => {
      if (!ended) handlers.onMessage(packet.topic, packet.payload.toString())
      done()
    }

    return {
      publish(topic, payload, { retain = false } = {}) {
        if (ended) return Promise.resolve(false)
        const bytes = Buffer.byteLength(payload) + OVERHEAD
        if (pendingBytes + bytes > maxPendingBytes) {
          // Told after this call has returned, as any other end of the connection is.
          queueMicrotask(() => fail('the broker takes nothing any more'))
          return Promise.resolve(false)
        }
        return new Promise((resolve) => {
          pendingBytes += bytes
          pending.add(resolve)
          client.publish(topic, payload, { qos: 1, retain }, (error) => {
            pendingBytes -= bytes
            pending.delete(resolve)
            resolve(!error)
          })
        })
      },
      close() {
        if (ended) return
        ended = true
        const finish = (): void => {
          for (const resolve of pending) resolve(false)
          pending.clear()
        }
        const cancel = clock.after(CLOSE_MS, () => client.end(true, finish))
        client.end(false, () => {
          cancel()
          finish()
        })
      },
    }

    function clientOptions(settings: MqttOptions, connectTimeout: number): IClientOptions {
      const { user, password, keepaliveSeconds = 30 } = settings
      const { will } = options
      return {
        protocolVersion: 4,
        clean: true,
        clientId: user,
        username: user,
        password,
        keepalive: keepaliveSeconds,
        connectTimeout,
        reconnectPeriod: 0,
        resubscribe: false,
        ...(will && { will: { ...will, payload: Buffer.from(will.payload), qos: 1 as const } }),
      }
    }
  }
}

function openSocket({ url, ca }: MqttOptions): Socket {
  const { protocol, hostname: host, port } = new URL(url)
  if (protocol === 'mqtt:') return connectTcp({ host, port: Number(port || 1883), noDelay: true })
  if (protocol !== 'mqtts:') throw new Error(`not an address of a broker: ${url}`)
  const socket = connectTls({ host, port: Number(port || 8883), servername: host, ...(ca && { ca }) })
  // Without it Nagle costs some 40 ms a round trip (facts, MQTT).
  return socket.setNoDelay(true)
}
