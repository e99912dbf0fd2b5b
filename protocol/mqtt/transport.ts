import type { Clock } from '../model/runtime.ts'
import { connectionProblem } from './connection-problem.ts'

/**
 * One connection to a broker. It is used once, like a serial port: after `onDisconnect` its owner waits and opens a new
 * one, with a new session in its will.
 */
export interface MqttTransport {
  /**
   * Publishes with QoS 1. Resolves to true when the broker has accepted the message, which proves no delivery (I4): no
   * state may depend on it. Resolves to false if the connection ended before; never rejects.
   */
  publish(topic: string, payload: string, options?: { retain?: boolean }): Promise<boolean>
  /** Ends the connection cleanly (no will). `onDisconnect` is not called. */
  close(): void
}

/** The broker's answer to a subscription, for each filter. */
export interface Grant {
  granted: readonly string[]
  refused: readonly string[]
}

/** A connection whose subscriptions change, because hubs move between cloud processes. */
export interface ChangingTransport extends MqttTransport {
  /** The broker's answer; undefined if the connection ended before it arrived. Never rejects. */
  subscribe(filters: readonly string[]): Promise<Grant | undefined>
  /** Messages under way by these filters may still arrive. */
  unsubscribe(filters: readonly string[]): void
}

export interface TransportHandlers {
  /** The connection is up, and every subscription is granted. */
  onConnect(): void
  onDisconnect(reason: string): void
  onMessage(topic: string, payload: string): void
}

export interface TransportOptions {
  /** All of these are needed: the connection ends if the broker refuses one. */
  subscribe: readonly string[]
  will?: { topic: string; payload: string; retain: boolean }
}

/** Calls no handler before it returns. */
export type OpenTransport<T extends MqttTransport = MqttTransport> = (
  options: TransportOptions,
  handlers: TransportHandlers,
) => T

/** The used part of an mqtt.js client; declared here so that the protocol itself opens nothing. */
export interface ClientLike {
  /** The stream that it writes to. It holds back the writes of one turn of the event loop. */
  readonly stream?: { uncork(): void }
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  subscribe(
    filters: string[],
    options: { qos: 1 },
    /** `packet.granted`: a code for each filter, in order, also if some are refused. */
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

/** The options of an mqtt.js client: MQTT 3.1.1, clean sessions, no reconnection. */
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
  /**
   * Timeout of a subscription in milliseconds. mqtt.js would wait without end, because a silent broker may still answer
   * pings.
   */
  grantTimeoutMs?: number | undefined
  /** Maximum of bytes without a PUBACK; above it the connection ends. */
  maxPendingBytes?: number | undefined
}

/** Overhead of a message around its payload in bytes, for the bound on pending bytes. */
const OVERHEAD = 100
/** How long a clean end waits for messages that are under way. */
const CLOSE_MS = 2000
/** The bit that marks a refused filter in a broker's answer (MQTT 3.1.1 §3.9.3). */
const REFUSED = 0x80
/**
 * Filters in one packet. Brokers limit the packet's size (SPEC §8), and serve no other client while they process it.
 */
const FILTERS_AT_ONCE = 1000

/**
 * Connections by mqtt.js, one client for each: QoS 1, clean sessions. No message is queued for a later connection;
 * outboxes do that. The PUBACK of a message is sent after its handler has returned.
 */
export function clientTransport(
  settings: ClientTransportOptions,
  openClient: (options: ClientOptions) => ClientLike,
): OpenTransport<ChangingTransport> {
  return (options, handlers) => new ClientTransport(settings, options, handlers, openClient)
}

class ClientTransport implements ChangingTransport {
  readonly #settings: ClientTransportOptions
  readonly #handlers: TransportHandlers
  readonly #client: ClientLike
  readonly #pending = new Set<(accepted: boolean) => void>()
  #pendingBytes = 0
  /** Nothing is published before the subscriptions are granted: mqtt.js would store it. */
  #ready = false
  #ended = false
  #reason = 'closed'

  constructor(
    settings: ClientTransportOptions,
    options: TransportOptions,
    handlers: TransportHandlers,
    openClient: (options: ClientOptions) => ClientLike,
  ) {
    this.#settings = settings
    this.#handlers = handlers
    const client = openClient(clientOptions(settings, options))
    this.#client = client
    // A failing connection emits its reason first, and then its end.
    client.on('error', (error) => {
      this.#reason = connectionProblem(error)
    })
    client.on('close', () => this.#fail(this.#reason))
    client.on('connect', () => void this.#connected(options.subscribe))
    client.handleMessage = (packet, done) => {
      if (!this.#ended) handlers.onMessage(packet.topic, packet.payload.toString())
      done()
    }
  }

  publish(topic: string, payload: string, { retain = false }: { retain?: boolean } = {}): Promise<boolean> {
    const { maxPendingBytes = 32 * 1024 * 1024 } = this.#settings
    if (this.#ended || !this.#ready) return Promise.resolve(false)
    const bytes = Buffer.byteLength(payload) + OVERHEAD
    if (this.#pendingBytes + bytes > maxPendingBytes) {
      // After this call has returned, like every other end of the connection.
      queueMicrotask(() => this.#fail('the broker acknowledges no messages'))
      return Promise.resolve(false)
    }
    return new Promise((resolve) => {
      this.#pendingBytes += bytes
      this.#pending.add(resolve)
      this.#client.publish(topic, payload, { qos: 1, retain }, (error) => {
        this.#pendingBytes -= bytes
        this.#pending.delete(resolve)
        resolve(!error)
      })
      // A caller waits for this message, and this turn may have other work to do.
      this.#client.stream?.uncork()
    })
  }

  async subscribe(filters: readonly string[]): Promise<Grant | undefined> {
    const grant = { granted: [] as string[], refused: [] as string[] }
    for (let at = 0; at < filters.length; at += FILTERS_AT_ONCE) {
      const some = filters.slice(at, at + FILTERS_AT_ONCE)
      const codes = await this.#subscribeTo(some)
      if (this.#ended || !codes) return undefined
      for (const [index, filter] of some.entries())
        grant[(codes[index]! & REFUSED) === 0 ? 'granted' : 'refused'].push(filter)
    }
    return this.#ended ? undefined : grant
  }

  unsubscribe(filters: readonly string[]): void {
    if (this.#ended) return
    for (let at = 0; at < filters.length; at += FILTERS_AT_ONCE)
      this.#client.unsubscribe(filters.slice(at, at + FILTERS_AT_ONCE), () => {})
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    const { clock } = this.#settings
    const cancel = clock.after(CLOSE_MS, () => this.#client.end(true, () => this.#abandonPending()))
    this.#client.end(false, () => {
      cancel()
      this.#abandonPending()
    })
  }

  async #connected(filters: readonly string[]): Promise<void> {
    const grant = await this.subscribe(filters)
    if (!grant) return
    const { granted, refused } = grant
    if (refused.length > 0)
      return this.#fail(
        `Subscribe error: the broker refuses ${refused[0]} (granted ${granted.length} of ${filters.length})`,
      )
    this.#ready = true
    this.#handlers.onConnect()
  }

  /** The broker's code for each filter; undefined if the connection has ended. */
  #subscribeTo(filters: string[]): Promise<readonly number[] | undefined> {
    const { clock, grantTimeoutMs = 30_000 } = this.#settings
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const cancel = clock.after(grantTimeoutMs, () => this.#fail('the broker does not grant a subscription'))
      const done = (codes?: readonly number[]): void => {
        cancel()
        this.#pending.delete(abandon)
        resolve(codes)
      }
      const abandon = (): void => done()
      this.#pending.add(abandon)
      this.#client.subscribe(filters, { qos: 1 }, (error, _asked, packet) => {
        const codes = codesOf(packet, filters.length)
        if (!codes)
          this.#fail(
            error ? connectionProblem(error) : 'the broker did not answer each filter of a subscription',
          )
        done(codes)
      })
    })
  }

  #fail(reason: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#abandonPending()
    this.#client.end(true)
    this.#handlers.onDisconnect(reason)
  }

  #abandonPending(): void {
    for (const resolve of this.#pending) resolve(false)
    this.#pending.clear()
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
