import type { Handed, HubClock } from '../../protocol/mqtt/between-clouds.ts'
import {
  cloudTopic,
  hubFilter,
  upFilter,
  upTopic,
  type CloudChannel,
  type UpChannel,
} from '../../protocol/mqtt/topics.ts'
import type { ChangingTransport } from '../../protocol/mqtt/transport.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import type { Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'
import { background } from '../platform/work/background.ts'
import { isToErase, maySpeak } from './draining.ts'
import type { HeldHub, LeaseKeeper } from './leases.ts'
import type { Peers } from './peers.ts'

export interface SharesPorts {
  context: CloudContext
  settings: GatewayLimits
  processId: string
  leases: LeaseKeeper
  /** The other processes at the broker; undefined for an embedded broker. */
  peers: Peers | undefined
  /** The open connection to a shared broker. */
  transport: () => ChangingTransport | undefined
  publish: (channel: CloudChannel, message: object) => void
  /** The hub's clock, if this process knows it. */
  clockOf: (hubId: number) => HubClock | undefined
  /** Whether a caller waits for an answer of the hub. */
  isAwaited: (hubId: number) => boolean
  /** The broker has granted the whole share: this connection is usable. */
  onSubscribed: () => void
  /** This process has the leases of these hubs, and may know nothing about them yet. */
  onHeld: (hubs: readonly HeldHub[]) => void
  /** The leases of these hubs were handed over. */
  onHandedOver: (hubIds: readonly number[]) => void
  /** This process holds these hubs, and may have missed their recent messages. */
  onUnheard: (hubIds: readonly number[]) => void
}

/** Subscribed only to a hub's answers, until this time. */
interface Listening {
  untilMs: number
  granted: Promise<boolean>
}

const allHubs = statement((q: Queries, { now }: { now: number }) =>
  q
    .selectFrom('hubs')
    .select('id')
    .where((eb) => eb.or([maySpeak(eb, now), isToErase(eb)])),
)

/**
 * Decides which hubs this process receives and serves (SPEC §7): all, or its share by rendezvous hashing if there are
 * several processes. An update subscribes to new hubs, then hands over the hubs of other processes, and last
 * unsubscribes from those. So two processes receive a moving hub's messages for a moment, but only one holds it at any
 * time.
 */
export class Shares {
  readonly #ports: SharesPorts
  /** The hubs with a subscription. */
  readonly #heard = new Set<number>()
  /** The hubs without a subscription at the last complete update. */
  readonly #fresh = new Set<number>()
  readonly #listening = new Map<number, Listening>()
  /** The connection that `#heard` refers to. */
  #line: ChangingTransport | undefined
  #lineSinceMs = 0
  /**
   * The broker refused filters of single hubs: this connection subscribes to all hubs and ignores those of other
   * processes.
   */
  #isBroad = false
  /** Whether the broker has granted the whole share on this connection. */
  #isComplete = false
  readonly #refusal: RepeatedLine
  #isLooking = false
  #isOutdated = false
  #hasStopped = false
  /** When updates began to fail. */
  #failingSinceMs: number | undefined

  constructor(ports: SharesPorts) {
    this.#ports = ports
    const { log, runtime } = ports.context
    this.#refusal = new RepeatedLine({ log, clock: runtime.clock })
  }

  /** Subscriptions that a new connection needs, in addition to those between processes. */
  get filters(): string[] {
    return this.#ports.peers ? [] : [upFilter]
  }

  /** Whether the current connection receives the messages of every hub of the share. */
  get isComplete(): boolean {
    return !this.#ports.peers || (this.#isComplete && this.#ports.transport() === this.#line)
  }

  /** Whether this process handles a message of the hub; a broad subscription delivers those of all hubs. */
  takes(hubId: number, channel: UpChannel): boolean {
    return (
      !this.#isBroad ||
      this.#heard.has(hubId) ||
      (answerChannels.includes(channel) && this.#listening.has(hubId))
    )
  }

  hears(hubId: number): boolean {
    return !this.#ports.peers || this.#heard.has(hubId)
  }

  /** Processes, hubs or leases changed: updates soon, and again if that fails. */
  look(): void {
    this.#isOutdated = true
    if (this.#isLooking) return
    const { context, settings } = this.#ports
    this.#isLooking = true
    background(context, 'share of the hubs', async () => {
      try {
        while (this.#isOutdated && !this.#hasStopped) {
          this.#isOutdated = false
          await this.#lookOnce()
        }
      } catch (error) {
        this.#onFailure()
        context.runtime.clock.after(settings.beatMs, () => this.look())
        throw error
      } finally {
        this.#isLooking = false
      }
    })
  }

  /** Subscribes to the answers of a hub, whichever process serves it. False if there is no connection. */
  async listen(hubId: number): Promise<boolean> {
    const { context, settings, transport } = this.#ports
    if (this.hears(hubId)) return true
    const untilMs = context.runtime.clock.monotonic() + settings.listenMs
    const known = this.#listening.get(hubId)
    const granted = known?.granted ?? this.#grantsResults(transport(), hubId)
    this.#listening.set(hubId, { untilMs, granted })
    const isGranted = await granted
    if (!isGranted) this.#listening.delete(hubId)
    return isGranted
  }

  async #grantsResults(line: ChangingTransport | undefined, hubId: number): Promise<boolean> {
    if (line && this.#isBroad) return true
    const grant = await line?.subscribe(answersOf(hubId))
    return grant !== undefined && grant.refused.length === 0
  }

  stop(): void {
    this.#hasStopped = true
  }

  async #lookOnce(): Promise<void> {
    const { context, leases, peers, transport, processId, onHeld, onUnheard } = this.#ports
    // With an embedded broker, its hubs reconnect to it.
    if (!peers) return leases.takeFromAbsent([processId], () => true)
    const line = transport()
    if (!line) return
    if (line !== this.#line && !(await this.#resume(line))) return
    if (!peers.knowsOthers) return this.#onDeaf()
    const contenders = peers.serving.map(contender)
    const ours = await this.#ours(contenders)
    if (this.#hasRecovered(peers)) return
    const news = [...ours].filter((hubId) => !this.#heard.has(hubId))
    if (!(await this.#hear(line, news))) return
    for (const hubId of news) if (this.#heard.has(hubId)) this.#fresh.add(hubId)
    this.#judge(ours)
    const isServed = (hubId: number): boolean => ours.has(hubId) && this.#heard.has(hubId)
    peers.serve()
    await leases.takeFromAbsent(peers.serving, isServed)
    const held = await leases.held()
    const others = held.map(({ hubId }) => hubId).filter((hubId) => !ours.has(hubId))
    await this.#handOver(others, contenders)
    this.#stopHearing(line, ours)
    const stays = held.filter(({ hubId }) => isServed(hubId))
    onHeld(stays)
    onUnheard(stays.map(({ hubId }) => hubId).filter((hubId) => this.#fresh.has(hubId)))
    this.#fresh.clear()
    context.log.debug({ hubs: ours.size, processes: contenders.length }, 'share of the hubs')
  }

  /** On a new connection: subscribes to the hubs of the last one, so that they are served during the update. */
  async #resume(line: ChangingTransport): Promise<boolean> {
    this.#line = line
    this.#lineSinceMs = this.#ports.context.runtime.clock.monotonic()
    this.#isBroad = false
    this.#isComplete = false
    if (!(await this.#hear(line, [...this.#heard]))) return false
    const listening = [...this.#listening.keys()]
    if (this.#isBroad || listening.length === 0) return true
    const grant = await line.subscribe(listening.flatMap(answersOf))
    for (const hubId of listening)
      if (answersOf(hubId).some((topic) => grant?.refused.includes(topic))) this.#listening.delete(hubId)
    return grant !== undefined
  }

  /**
   * Subscribes to these hubs: each by its filter, or to all hubs by one filter if the broker refuses some. Granted
   * filters count even if others are refused. False if the connection has ended.
   */
  async #hear(line: ChangingTransport, hubIds: readonly number[]): Promise<boolean> {
    if (hubIds.length === 0) return true
    if (!this.#isBroad) {
      const grant = await line.subscribe(hubIds.map(hubFilter))
      if (!grant) return false
      const refused = new Set(grant.refused)
      for (const hubId of hubIds)
        if (refused.has(hubFilter(hubId))) this.#heard.delete(hubId)
        else this.#heard.add(hubId)
      if (refused.size === 0) return true
      const broad = await line.subscribe([upFilter])
      if (!broad) return false
      if (broad.refused.length > 0) return true
      this.#isBroad = true
      const { log } = this.#ports.context
      const about = { granted: grant.granted.length, wanted: hubIds.length, refused: grant.refused[0] }
      log.warn(about, `the broker refuses filters of single hubs: this process subscribes to ${upFilter}`)
      line.unsubscribe([
        ...[...this.#heard].map(hubFilter),
        ...[...this.#listening.keys()].flatMap(answersOf),
      ])
    }
    for (const hubId of hubIds) this.#heard.add(hubId)
    return true
  }

  /** Checks whether the whole share is received. If not, each update requests the rest again. */
  #judge(ours: ReadonlySet<number>): void {
    const unheard = [...ours].filter((hubId) => !this.#heard.has(hubId))
    this.#isComplete = unheard.length === 0
    const granted = ours.size - unheard.length
    const about = { granted, wanted: ours.size }
    if (this.#isComplete) {
      this.#refusal.succeeded(about, 'the broker grants the subscriptions to all hubs of this process')
      return this.#ports.onSubscribed()
    }
    const refused = hubFilter(unheard[0]!)
    this.#refusal.failed(
      `granted ${granted} of ${ours.size}; refused ${refused}, and ${upFilter} too`,
      { ...about, refused },
      'the broker refuses subscriptions: this process does not hear all of its hubs',
      'error',
    )
  }

  /** Some brokers grant every filter but deliver nothing without the right to read (Mosquitto's `acl_file`). */
  #onDeaf(): void {
    const { context, settings } = this.#ports
    if (context.runtime.clock.monotonic() - this.#lineSinceMs < 2 * settings.pollMs) return
    const topic = cloudTopic('here', context.settings.cell)
    this.#refusal.failed(
      `nothing that is published at ${topic} comes back`,
      {},
      "the broker does not bring this process's own messages, so it serves no hub: check its rights and the broker's",
      'error',
    )
  }

  /** A process without a database cannot serve. If that lasts, other processes may still have one. */
  #onFailure(): void {
    const { context, settings, peers } = this.#ports
    const now = context.runtime.clock.monotonic()
    this.#failingSinceMs ??= now
    if (now - this.#failingSinceMs > settings.leaseMs / 3) peers?.pause()
  }

  /** The database is back after an outage. Other processes get time to notice, before their hubs are taken. */
  #hasRecovered(peers: Peers): boolean {
    const { context, settings } = this.#ports
    this.#failingSinceMs = undefined
    if (!peers.isPaused) return false
    peers.serve()
    context.runtime.clock.after(settings.silentBeats * settings.beatMs, () => this.look())
    return true
  }

  /** The hubs of this process's share. */
  async #ours(contenders: readonly Contender[]): Promise<Set<number>> {
    const { context, processId } = this.#ports
    const hubs = await allHubs(context.db.kysely, { now: context.runtime.clock.now() })
    return new Set(hubs.map(({ id }) => id).filter((id) => serverOf(id, contenders) === processId))
  }

  /** Hands each hub to its new process: first in the database, then by message. */
  async #handOver(hubs: readonly number[], contenders: readonly Contender[]): Promise<void> {
    const { leases, publish, clockOf, onHandedOver } = this.#ports
    for (const { id: to } of contenders) {
      const hubIds = hubs.filter((hubId) => serverOf(hubId, contenders) === to)
      if (hubIds.length === 0) continue
      await leases.handOver(hubIds, to)
      onHandedOver(hubIds)
      for (let at = 0; at < hubIds.length; at += CLOCKS_AT_ONCE) {
        const clocks = hubIds.slice(at, at + CLOCKS_AT_ONCE).flatMap((hubId) => clockOf(hubId) ?? [])
        publish('handed', { process_id: to, clocks } satisfies Handed)
      }
    }
  }

  /** Messages under way still arrive, but no process holds the hub for them. */
  #stopHearing(line: ChangingTransport, ours: ReadonlySet<number>): void {
    const { context, isAwaited } = this.#ports
    const now = context.runtime.clock.monotonic()
    const left = [...this.#heard].filter((hubId) => !ours.has(hubId))
    for (const hubId of left) {
      this.#heard.delete(hubId)
      this.#fresh.delete(hubId)
      if (isAwaited(hubId)) void this.listen(hubId)
    }
    const over = [...this.#listening]
      .filter(([hubId, { untilMs }]) => this.#heard.has(hubId) || (untilMs < now && !isAwaited(hubId)))
      .map(([hubId]) => hubId)
    for (const hubId of over) this.#listening.delete(hubId)
    if (!this.#isBroad) line.unsubscribe([...left.map(hubFilter), ...over.flatMap(answersOf)])
  }
}

/** The channels of answers that a process may await from a hub of another process. */
const answerChannels: readonly UpChannel[] = ['result', 'diagnosis']

/** Keeps the message far below the broker's limit (SPEC §8). */
const CLOCKS_AT_ONCE = 1000

const answersOf = (hubId: number): string[] => answerChannels.map((channel) => upTopic(hubId, channel))

/**
 * The process that serves a hub, by rendezvous hashing. Every process computes the same result from the same names. If
 * a process joins or leaves, only its hubs move.
 */
export function serverOf(hubId: number, processes: readonly Contender[]): string | undefined {
  const hub = mixed(hubId)
  let best: { id: string; weight: number } | undefined
  for (const { id, seed } of processes) {
    const weight = mixed(hub ^ seed)
    if (!best || weight > best.weight || (weight === best.weight && id > best.id)) best = { id, weight }
  }
  return best?.id
}

/** A process that may serve hubs, with the hash of its name. */
interface Contender {
  id: string
  seed: number
}

export const contender = (id: string): Contender => ({ id, seed: hashOf(id) })

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return mixed(hash)
}

/** The finalizer of MurmurHash3: each bit of the result depends on each bit of the number. */
function mixed(number: number): number {
  let hash = number ^ (number >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
