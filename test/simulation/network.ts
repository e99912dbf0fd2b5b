import type {
  ChangingTransport,
  Grant,
  OpenTransport,
  TransportHandlers,
  TransportOptions,
} from '../../protocol/mqtt/transport.ts'
import type { Chance } from './chance.ts'
import type { Life, Scheduler } from './scheduler.ts'

/** Faults that the simulated network causes, as probabilities for each message or minute. */
export interface Weather {
  loss: number
  duplicate: number
  /** A message is delayed and overtaken by others. */
  delay: number
  maxDelayMs: number
}

export const fairWeather: Weather = { loss: 0, duplicate: 0, delay: 0, maxDelayMs: 0 }

/** A topic or a filter, level by level. */
type Levels = readonly string[]
const levelsOf = (topic: string): Levels => topic.split('/')

interface Connection {
  life: Life
  clientId: string
  options: TransportOptions
  filters: Levels[]
  handlers: TransportHandlers
  open: boolean
  /** The client certificate with which it signed in, PEM. */
  certificate: string | undefined
  /** When the last message in flight arrives. */
  lastAt: number
}

/** How a client signs in. `certificate`: the present one, PEM; a client without one has a password that never changes. */
interface Login {
  clientId?: string
  certificate?: () => string | undefined
}

export interface NetworkCounts {
  delivered: number
  lost: number
  duplicated: number
  delayed: number
  cut: number
  brokerRestarts: number
}

/**
 * An MQTT broker and the network around it, in memory. It promises no more than a real broker: it may lose
 * accepted messages at a restart, deliver them twice, or late. It stores retained messages and wills.
 */
export class Network {
  #scheduler: Scheduler
  #chance: Chance
  #connections = new Set<Connection>()
  #retained = new Map<string, string>()
  weather: Weather = fairWeather
  /** Whether messages of a connection arrive in order, as over TCP, except messages that a fault delays. */
  ordered = false
  /** Whether the broker grants one more filter to a client that already has `held`. */
  grants: (filter: string, held: readonly string[], clientId: string) => boolean = () => true
  /** Why the broker refuses a client certificate (PEM); undefined: it is valid. */
  judge: (clientId: string, certificate: string) => Promise<string | undefined> = () =>
    Promise.resolve(undefined)
  /** Lives without a line to the broker. */
  severed = new Set<string>()
  brokerUp = true
  counts: NetworkCounts = { delivered: 0, lost: 0, duplicated: 0, delayed: 0, cut: 0, brokerRestarts: 0 }

  constructor(scheduler: Scheduler, chance: Chance) {
    this.#scheduler = scheduler
    this.#chance = chance
  }

  /**
   * The connection of one life of the program `node` to the broker. The broker closes an older connection
   * with the same client id.
   */
  transportFor(node: string, life: Life, login: Login = {}): OpenTransport<ChangingTransport> {
    const { clientId = node } = login
    return (options, handlers) => {
      const connection: Connection = {
        life,
        clientId,
        options,
        filters: options.subscribe.map(levelsOf),
        handlers,
        open: false,
        certificate: undefined,
        lastAt: 0,
      }
      const connect = (): void => {
        if (!this.brokerUp || this.severed.has(node)) {
          handlers.onDisconnect('unreachable')
          return
        }
        this.#end((one) => one.clientId === clientId, 'taken over')
        const refused = options.subscribe.find(
          (filter, at) => !this.grants(filter, options.subscribe.slice(0, at), clientId),
        )
        if (refused !== undefined)
          return handlers.onDisconnect(`the broker refuses the subscription to ${refused}`)
        connection.open = true
        this.#connections.add(connection)
        for (const [topic, payload] of this.#retained)
          if (isHeard(connection, levelsOf(topic))) this.#deliver(connection, topic, payload)
        handlers.onConnect()
      }
      this.#scheduler.plan(life, this.#chance.between(1, 20), async () => {
        connection.certificate = login.certificate?.()
        if (connection.certificate === undefined) return connect()
        const refusal = await this.judge(clientId, connection.certificate)
        return refusal === undefined ? connect() : handlers.onDisconnect(refusal)
      })
      return this.#transport(connection)
    }
  }

  #transport(connection: Connection): ChangingTransport {
    return {
      subscribe: (filters) => this.#subscribe(connection, filters),
      unsubscribe: (filters) => {
        connection.filters = connection.filters.filter((levels) => !filters.includes(levels.join('/')))
      },
      publish: (topic, payload, options) => {
        if (!connection.open || !connection.life.alive) return Promise.resolve(false)
        this.#carry(() => this.#accept(topic, payload, options?.retain ?? false))
        return Promise.resolve(true)
      },
      close: () => {
        connection.open = false
        this.#connections.delete(connection)
      },
    }
  }

  #subscribe(connection: Connection, filters: readonly string[]): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      this.#scheduler.plan(connection.life, this.#chance.between(1, 3), () => {
        const grant = { granted: [] as string[], refused: [] as string[] }
        for (const filter of filters) {
          const held = connection.filters.map((levels) => levels.join('/'))
          const isGranted = held.includes(filter) || this.grants(filter, held, connection.clientId)
          grant[isGranted ? 'granted' : 'refused'].push(filter)
          if (isGranted && !held.includes(filter)) connection.filters.push(levelsOf(filter))
        }
        const added = { ...connection, filters: grant.granted.map(levelsOf) }
        if (connection.open)
          for (const [topic, payload] of this.#retained)
            if (isHeard(added, levelsOf(topic))) this.#deliver(connection, topic, payload)
        resolve(connection.open ? grant : undefined)
      })
    })
  }

  /** Delivers a message to the broker, possibly when its sender or receiver has a new session. */
  #carry(accept: () => void): void {
    if (!this.#chance.happens(this.weather.delay / 3)) return accept()
    this.counts.delayed++
    this.#scheduler.plan(FOREVER, this.#chance.between(1, this.weather.maxDelayMs), () => {
      if (this.brokerUp) accept()
    })
  }

  #accept(topic: string, payload: string, retain: boolean): void {
    if (retain) this.#retained.set(topic, payload)
    const levels = levelsOf(topic)
    for (const connection of this.#connections) {
      if (!isHeard(connection, levels)) continue
      if (this.#chance.happens(this.weather.loss)) this.counts.lost++
      else this.#deliver(connection, topic, payload)
      if (this.#chance.happens(this.weather.duplicate)) {
        this.counts.duplicated++
        this.#deliver(connection, topic, payload)
      }
    }
  }

  #deliver(connection: Connection, topic: string, payload: string): void {
    let delayMs = this.#chance.between(1, 3)
    const { time } = this.#scheduler
    if (this.ordered) connection.lastAt = Math.max(connection.lastAt, time + delayMs)
    if (this.ordered) delayMs = connection.lastAt - time
    if (this.#chance.happens(this.weather.delay)) {
      this.counts.delayed++
      delayMs += this.#chance.between(1, this.weather.maxDelayMs)
    }
    this.#scheduler.plan(connection.life, delayMs, () => {
      if (!connection.open) return
      this.counts.delivered++
      return connection.handlers.onMessage(topic, payload)
    })
  }

  /** Closes the connections that `which` selects, like a cut cable: wills are published. */
  cut(which: (life: Life) => boolean, reason: string): void {
    this.#end(({ life }) => which(life), reason)
  }

  #end(which: (connection: Connection) => boolean, reason: string): void {
    for (const connection of this.#connections)
      if (which(connection)) {
        this.counts.cut++
        connection.open = false
        this.#connections.delete(connection)
        const { will } = connection.options
        if (will && this.brokerUp)
          this.#scheduler.plan(FOREVER, 1, () => this.#accept(will.topic, will.payload, will.retain))
        this.#scheduler.plan(connection.life, 1, () => connection.handlers.onDisconnect(reason))
      }
  }

  isConnected(clientId: string): boolean {
    return [...this.#connections].some((one) => one.clientId === clientId)
  }

  /** Ends the sessions of certificates that are no longer valid. Returns their client ids. */
  async endLogins(): Promise<string[]> {
    const ended = new Set<Connection>()
    for (const connection of this.#connections)
      if (connection.certificate !== undefined)
        if ((await this.judge(connection.clientId, connection.certificate)) !== undefined)
          ended.add(connection)
    this.#end((one) => ended.has(one), 'the certificate is revoked')
    return [...ended].map(({ clientId }) => clientId)
  }

  severe(node: string, severed: boolean): void {
    if (severed) this.severed.add(node)
    else this.severed.delete(node)
    this.cut((life) => life.name === node, 'cut')
  }

  /** Kills the broker: connections, retained messages and messages in flight are lost. */
  killBroker(): void {
    this.brokerUp = false
    this.counts.brokerRestarts++
    this.#retained.clear()
    this.cut(() => true, 'broker gone')
  }

  startBroker(): void {
    this.brokerUp = true
  }
}

const FOREVER: Life = { name: 'world', alive: true, onCrash() {} }

const isHeard = ({ filters }: Connection, topic: Levels): boolean =>
  filters.some((filter) => matches(filter, topic))

/** MQTT topic filter matching (`+`, `#`). */
function matches(wanted: Levels, levels: Levels): boolean {
  for (const [index, part] of wanted.entries()) {
    if (part === '#') return true
    if (part !== '+' && part !== levels[index]) return false
    if (levels[index] === undefined) return false
  }
  return wanted.length === levels.length
}
