import { MqttClient } from 'mqtt'
import { addressOf } from '../../protocol/model/address.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { holdsWithin, sleep, type Runtime } from '../../protocol/model/runtime.ts'
import {
  BROKER_PORTS,
  openBrokerSocket,
  type BrokerSocketOptions,
} from '../../protocol/mqtt/broker-socket.ts'
import { cloudTopic } from '../../protocol/mqtt/topics.ts'
import {
  clientTransport,
  type ChangingTransport,
  type TransportOptions,
} from '../../protocol/mqtt/transport.ts'
import { socketOptions } from './broker-external.ts'

/** Timeout of what must happen. */
const PATIENCE_MS = 5000
const QUIET_MS = 1000
export interface BrokerCheckOptions {
  runtime: Runtime
  ca?: BrokerSocketOptions['ca']
  /** Time without a message that counts as a refusal, in milliseconds. */
  quietMs?: number
}

/** One connection of a check. */
export interface Line extends ChangingTransport {
  /** The messages that arrived, each as `topic payload`. */
  heard: string[]
  /** Why the connection has ended; undefined while it is open. */
  ended: () => string | undefined
  /** Breaks the connection without a DISCONNECT. */
  cut: () => void
  /** Sends no more pings, like a client without a network. */
  fallSilent: () => void
}

export interface OpenOptions extends Partial<TransportOptions> {
  clientId?: string
  keepaliveSeconds?: number
}

/** A user of the broker: `mqtt://user:password@host:port` or `mqtts://…`. */
export class User {
  readonly name: string
  readonly #url: string
  readonly #options: BrokerCheckOptions
  readonly #lines: Line[]

  constructor(url: string, options: BrokerCheckOptions, lines: Line[]) {
    this.name = addressOf(url, BROKER_PORTS).username
    this.#url = url
    this.#options = options
    this.#lines = lines
  }

  /** Opens a connection. Rejects with the broker's reason. */
  open({ clientId, keepaliveSeconds, subscribe = [], will }: OpenOptions = {}): Promise<Line> {
    const { runtime, ca } = this.#options
    const { clock, random } = runtime
    const { username, password } = addressOf(this.#url, BROKER_PORTS)
    const settings = {
      clock,
      username,
      password,
      clientId: clientId ?? `check-${randomHex(random, 8)}`,
      connectTimeoutMs: PATIENCE_MS,
      // RabbitMQ needs seconds for 1,000 filters.
      grantTimeoutMs: 3 * PATIENCE_MS,
      ...(keepaliveSeconds !== undefined && { keepaliveSeconds }),
    }
    const heard: string[] = []
    let client: MqttClient | undefined
    let end: string | undefined
    const openTransport = clientTransport(settings, (options) => {
      client = new MqttClient(() => openBrokerSocket(this.#url, socketOptions(ca, clock)), options)
      return client
    })
    return new Promise((resolve, reject) => {
      const transport = openTransport(
        { subscribe, ...(will && { will }) },
        {
          onConnect: () => resolve(line),
          onDisconnect(reason) {
            end = reason
            reject(new Error(`the connection of ${username || 'no user'} ends: ${reason}`))
          },
          onMessage: (topic, payload) => void heard.push(`${topic} ${payload}`),
        },
      )
      const line: Line = {
        publish: (...args) => transport.publish(...args),
        subscribe: (filters) => transport.subscribe(filters),
        unsubscribe: (filters) => transport.unsubscribe(filters),
        close: () => transport.close(),
        heard,
        ended: () => end,
        cut: () => client?.stream.destroy(),
        fallSilent: () => client && (client.sendPing = () => {}),
      }
      this.#lines.push(line)
    })
  }

  /** The same user with another password, or without one. */
  with(password: string): User {
    const url = new URL(this.#url)
    url.password = password
    if (password === '') url.username = ''
    return new User(url.href, this.#options, this.#lines)
  }
}

/** The parts that all questions share. `close` ends every connection that a question has left open. */
export function checkTools(options: BrokerCheckOptions) {
  const { runtime, quietMs = QUIET_MS } = options
  const { clock } = runtime
  const lines: Line[] = []
  return {
    lines,
    clock,
    name: () => randomHex(runtime.random, 8),
    becomes: (holds: () => boolean) => holdsWithin(clock, PATIENCE_MS, () => Promise.resolve(holds())),
    quiet: () => sleep(clock, quietMs),
    user: (url: string) => new User(url, options, lines),
    close: () => {
      for (const line of lines) line.close()
    },
  }
}
export type CheckTools = ReturnType<typeof checkTools>

export const brokerAdvice = (need: string): string =>
  `Change the settings of the broker, or use another one: ${need}.`
export const rightsAdvice = 'Limit each hub to its own topics and client id (protocol/mqtt/SPEC.md §2).'

/** A topic of the cloud that no process subscribes to. */
export const privateTopic = (name: string): string =>
  `${cloudTopic('here').replace(/here$/, 'check-')}${name}`
