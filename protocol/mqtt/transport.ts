import type { Clock } from '../model/runtime.ts'
import { connectionProblem } from './connection-problem.ts'

/**
 * One connection to a broker. Like a serial port it is used once: after `onDisconnect` it is dead, and its owner opens a
 * new one (with a new session in its will) after a back-off.
 */
export interface MqttTransport {
  /**
   * Publishes with QoS 1. Resolves to true when the broker has accepted it, which proves nothing (I4): no state may
   * depend on it. Resolves to false where the connection ended before; never rejects.
   */
  publish(topic: string, payload: string, options?: { retain?: boolean }): Promise<boolean>
  /** Ends the connection cleanly (no will). `onDisconnect` is not called. */
  close(): void
}

/** The broker's answer to a subscription, filter by filter. */
export interface Grant {
  granted: readonly string[]
  refused: readonly string[]
}

/** A connection that changes its subscriptions: a cloud process, as hubs move to it and away. */
export interface ChangingTransport extends MqttTransport {
  /** The broker's answer; undefined if the connection ended before it came. Never rejects. */
  subscribe(filters: readonly string[]): Promise<Grant | undefined>
  /** What is on its way by these filters may still come. */
  unsubscribe(filters: readonly string[]): void
}

export interface TransportHandlers {
  /** Connected, and every subscription granted. */
  onConnect(): void
  onDisconnect(reason: string): void
  onMessage(topic: string, payload: string): void
}

export interface TransportOptions {
  /** The owner needs all of these: the connection ends if the broker refuses one. */
  subscribe: readonly string[]
  will?: { topic: string; payload: string; retain: boolean }
}

/** Handlers are never called before it returns. */
export type OpenTransport<T extends MqttTransport = MqttTransport> = (
  options: TransportOptions,
  handlers: TransportHandlers,
) => T

/** What is used of a client of mqtt.js; named here so that the protocol itself opens nothing. */
export interface ClientLike {
  /** What it writes to. It holds back what a turn of the event loop writes until that is over. */
  readonly stream?: { uncork(): void }
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  subscribe(
    filters: string[],
    options: { qos: 1 },
    /** `packet.granted`: a code for each filter, in their order; also if some are refused. */
    done: (error: Error | null, asked?: unknown, packet?: { granted?: unknown }) => void,
  ): unknown
  unsubscribe(filters: string[], done: (error?: Error) => void): unknown
  publish(
    topic: string,
    payload: string,
    options: { qos: 1; retain: boolean },
    done: (error?: Error) => void,
  ): unknown
  handleMessage(packet: { topic: string; payload: string | Buffer }, done: () => void): void
  end(force: boolean, done?: () => void): unknown
}

/** What such a client is told: MQTT 3.1.1, clean sessions, no connection but the one. */
export interface ClientOptions {
  protocolVersion: 4
  clean: true
  reconnectPeriod: 0
  resubscribe: false
  clientId: string
  username?: string
  password?: string
  keepalive: number
  connectTimeout: number
  will?: { topic: string; payload: Buffer; qos: 1; retain: boolean }
}

export interface ClientTransportOptions {
  clock: Clock
  /** Unique: the broker ends an older connection with the same id. */
  clientId: string
  username?: string | undefined
  password?: string | undefined
  keepaliveSeconds?: number | undefined
  connectTimeoutMs?: number | undefined
  /** How long the broker may take to grant a subscription; mqtt.js would wait for ever, and a silent broker keeps pings up. */
  grantTimeoutMs?: number | undefined
  /** Bytes that may await the broker's PUBACK; beyond them the connection is given up. */
  maxPendingBytes?: number | undefined
}

/** Bytes of one message around its payload, for the bound on what is pending. */
const OVERHEAD = 100
/** How long a clean end waits for what is still on its way. */
const CLOSE_MS = 2000
/** The bit that marks a refused filter in a broker's answer (MQTT 3.1.1 §3.9.3). */
const REFUSED = 0x80
/** Filters in one packet: brokers bound its size (SPEC §8), and serve nobody else while they go through it. */
const FILTERS_AT_ONCE = 1000

/**
 * Connections by mqtt.js, one client for each: QoS 1, clean sessions. Nothing is queued for a later connection: outboxes do
 * that. The PUBACK of a message goes out after its handler has returned.
 */
export function clientTransport(
  settings: ClientTransportOptions,
  openClient: (options: ClientOptions) => ClientLike,
): OpenTransport<ChangingTransport> {
  const { clock, grantTimeoutMs = 30_000, maxPendingBytes = 32 * 1024 * 1024 } = settings
  return (options, handlers): ChangingTransport => {
    const client = openClient(clientOptions(settings, options))
    const pending = new Set<(accepted: boolean) => void>()
    let pendingBytes = 0
    /** Before its subscriptions are granted nothing goes out: mqtt.js would keep it. */
    let ready = false
    let ended = false
    let reason = 'closed'

    function abandonPending(): void {
      for (const resolve of pending) resolve(false)
      pending.clear()
    }

    function fail(why: string): void {
      if (ended) return
      ended = true
      abandonPending()
      client.end(true)
      handlers.onDisconnect(why)
    }

    async function subscribe(filters: readonly string[]): Promise<Grant | undefined> {
      const grant = { granted: [] as string[], refused: [] as string[] }
      for (let at = 0; at < filters.length; at += FILTERS_AT_ONCE) {
        const some = filters.slice(at, at + FILTERS_AT_ONCE)
        const codes = await subscribeTo(some)
        if (ended || !codes) return undefined
        for (const [index, filter] of some.entries())
          grant[(codes[index]! & REFUSED) === 0 ? 'granted' : 'refused'].push(filter)
      }
      return ended ? undefined : grant
    }

    /** The broker's code for each filter; undefined if the connection has ended. */
    function subscribeTo(filters: string[]): Promise<readonly number[] | undefined> {
      if (ended) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const cancel = clock.after(grantTimeoutMs, () => fail('the broker does not grant a subscription'))
        const done = (codes?: readonly number[]): void => {
          cancel()
          pending.delete(abandon)
          resolve(codes)
        }
        const abandon = (): void => done()
        pending.add(abandon)
        client.subscribe(filters, { qos: 1 }, (error, _asked, packet) => {
          const codes = codesOf(packet, filters.length)
          if (!codes)
            fail(error ? connectionProblem(error) : 'the broker did not answer each filter of a subscription')
          done(codes)
        })
      })
    }

    // A connection that fails says why first, and that it is closed then.
    client.on('error', (error) => {
      reason = connectionProblem(error)
    })
    client.on('close', () => fail(reason))
    client.on('connect', () => {
      void subscribe(options.subscribe).then((grant) => {
        if (!grant) return
        const { granted, refused } = grant
        if (refused.length > 0)
          return fail(
            `Subscribe error: the broker refuses ${refused[0]} (granted ${granted.length} of ${options.subscribe.length})`,
          )
        ready = true
        handlers.onConnect()
      })
    })
    client.handleMessage = (packet, done) => {
      if (!ended) handlers.onMessage(packet.topic, packet.payload.toString())
      done()
    }

    return {
      subscribe,
      unsubscribe(filters) {
        if (ended) return
        for (let at = 0; at < filters.length; at += FILTERS_AT_ONCE)
          client.unsubscribe(filters.slice(at, at + FILTERS_AT_ONCE), () => {})
      },
      publish(topic, payload, { retain = false } = {}) {
        if (ended || !ready) return Promise.resolve(false)
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
          // Somebody waits for it, and this turn may have other work to do.
          client.stream?.uncork()
        })
      },
      close() {
        if (ended) return
        ended = true
        const cancel = clock.after(CLOSE_MS, () => client.end(true, abandonPending))
        client.end(false, () => {
          cancel()
          abandonPending()
        })
      },
    }
  }
}

function codesOf(packet: { granted?: unknown } | undefined, count: number): readonly number[] | undefined {
  const codes = packet?.granted
  return Array.isArray(codes) && codes.length === count ? (codes as number[]) : undefined
}

function clientOptions(settings: ClientTransportOptions, { will }: TransportOptions): ClientOptions {
  const { clientId, username, password, keepaliveSeconds = 30, connectTimeoutMs = 10_000 } = settings
  return {
    protocolVersion: 4,
    clean: true,
    reconnectPeriod: 0,
    resubscribe: false,
    clientId,
    ...(username && { username }),
    ...(password && { password }),
    keepalive: keepaliveSeconds,
    connectTimeout: connectTimeoutMs,
    ...(will && { will: { ...will, payload: Buffer.from(will.payload), qos: 1 as const } }),
  }
}
