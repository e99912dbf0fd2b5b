import type { z } from 'zod'
import { backoffMs, every, type Cancel } from '../../protocol/model/runtime.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import { Ask, Gone, Handed, Here, HubClock, Nudge } from '../../protocol/mqtt/between-clouds.ts'
import { cloudTopics, downTopic, parseUpTopic, type CloudChannel } from '../../protocol/mqtt/topics.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import type { ChangingTransport, MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { CloudContext } from '../platform/context.ts'
import { cloudRefusals, type CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import { CommandSender } from './commands.ts'
import { Diagnoses } from './diagnoses.ts'
import type { HubDomain } from './domain.ts'
import { HelloQueue } from './hello-queue.ts'
import { Heartbeats } from './heartbeats.ts'
import { HubLink } from './hub-link.ts'
import { upSchemas, type HubMessage } from './hub-messages.ts'
import { HubClocks } from './hub-state.ts'
import { LeaseKeeper } from './leases.ts'
import { MessageAllowances } from './message-allowance.ts'
import { waitingHubs } from './outbox.ts'
import { hubsToAsk } from './draining.ts'
import { endOldMoves, movesToOrder } from './moves.ts'
import { Peers } from './peers.ts'
import { Shares } from './shares.ts'
import { Welcomes } from './hello.ts'

/** A broker of this process, or one that several processes share by their shares of the hubs (SPEC §7). */
export type Broker =
  { kind: 'own'; open: OpenTransport } | { kind: 'shared'; open: OpenTransport<ChangingTransport> }

export interface GatewayOptions {
  context: CloudContext
  broker: Broker
  /** Identifies this life of this process in leases. */
  processId: string
  /** Counts unreadable messages of hubs; by default the gateway's own counter. */
  refusals?: CloudRefusals
  /** Applies the entries of the hubs. */
  domain: HubDomain
  settings?: Partial<GatewayLimits>
}

/** The connection to the broker. After each end the gateway waits and opens a new one. */
type Connection =
  | { kind: 'closed' }
  | { kind: 'opening' | 'open'; transport: MqttTransport; changing: ChangingTransport | undefined }

/** The hubs, over MQTT (protocol/mqtt/SPEC.md). */
export class Gateway {
  readonly commands: CommandSender
  readonly diagnoses: Diagnoses
  readonly #options: GatewayOptions
  readonly #context: CloudContext
  readonly #settings: GatewayLimits
  readonly #topics: ReturnType<typeof cloudTopics>
  readonly #clocks: HubClocks
  readonly #refusals: CloudRefusals
  readonly #allowances: MessageAllowances
  readonly #peers: Peers | undefined
  readonly #shares: Shares
  readonly #leases: LeaseKeeper
  readonly #hellos: HelloQueue
  readonly #welcomes: Welcomes
  readonly #heartbeats: Heartbeats
  readonly #links = new Map<number, HubLink>()
  #connection: Connection = { kind: 'closed' }
  #isRunning = false
  #hasConnected = false
  /** Monotonic time of the broker's last message or connection. */
  #heardAt = -Infinity
  readonly #outage: RepeatedLine
  /** Connections to the broker that ended or failed since the start. */
  connectionsLost = 0
  /** Consecutive failed connections. */
  #attempt = 0
  #cancels: Cancel[] = []
  #cancelReconnect: Cancel = () => {}
  /** Timers of the pending `Hail` messages. */
  readonly #hails = new Set<Cancel>()
  /** Hubs whose clock another process has requested and that have not reported it yet. */
  readonly #asked = new Set<number>()
  readonly erase = (hubId: number, order: object) => void this.#publish(downTopic(hubId, 'erase'), order)

  constructor(options: GatewayOptions) {
    const { context, domain, processId } = options
    this.#options = options
    this.#context = context
    this.#refusals = options.refusals ?? cloudRefusals(context)
    const settings = (this.#settings = { ...defaultLimits.gateway, ...options.settings })
    const { clock } = context.runtime
    this.#allowances = new MessageAllowances({ clock, limits: settings, refusals: this.#refusals })
    this.#topics = cloudTopics(context.settings.cell)
    this.#clocks = new HubClocks(clock)
    this.#outage = new RepeatedLine({ log: context.log, clock })
    this.commands = new CommandSender({
      context,
      settings,
      clocks: this.#clocks,
      findClock: (hubId) => this.#findClock(hubId),
      listen: (hubId) => this.#shares.listen(hubId),
      hubHeard: (tx, hubId, health) => domain.hubsHeard(tx, context, [{ hubId, health }]),
      publish: (hubId, command) => this.#publish(downTopic(hubId, 'command'), command),
    })
    this.diagnoses = new Diagnoses({
      clock,
      listen: (hubId) => this.#shares.listen(hubId),
      publish: (hubId, request) => this.#publish(downTopic(hubId, 'diagnosis'), request),
    })
    this.#leases = new LeaseKeeper({ context, settings, processId })
    const tell = (to: CloudChannel, message: object): void => void this.#publish(this.#topics.of(to), message)
    if (options.broker.kind === 'shared')
      this.#peers = new Peers({
        clock,
        processId,
        beatMs: settings.beatMs,
        silentBeats: settings.silentBeats,
        publish: tell,
        onChange: () => this.#shares.look(),
      })
    this.#shares = new Shares({
      context,
      settings,
      processId,
      leases: this.#leases,
      peers: this.#peers,
      transport: () => (this.#connection.kind === 'open' ? this.#connection.changing : undefined),
      publish: tell,
      clockOf: (hubId) => this.#clockOf(hubId),
      isAwaited: (hubId) => this.commands.isAwaited(hubId) || this.diagnoses.isAwaited(hubId),
      onSubscribed: () => this.#onSubscribed(),
      onHeld: (hubs) => hubs.forEach(({ hubId, session }) => this.#linkOf(hubId).take(session)),
      onHandedOver: (hubIds) => hubIds.forEach((hubId) => this.#linkOf(hubId).release()),
      onUnheard: (hubIds) => this.#hailEach(hubIds),
    })
    this.#hellos = new HelloQueue(context.runtime, this.#settings)
    const parts = { context, domain, leases: this.#leases, refusals: this.#refusals, erase: this.erase }
    this.#welcomes = new Welcomes(parts, { ...settings, atOnce: settings.greetTransactions })
    this.#heartbeats = new Heartbeats({ context, domain, leases: this.#leases, gatherMs: settings.gatherMs })
  }

  /** Whether the broker is connected and, if it is shared, has delivered a message within that time. */
  hearsBroker(withinMs: number): boolean {
    if (!this.isConnected()) return false
    // Every process receives its own `Here` through a shared broker; a dead connection delivers nothing.
    return !this.#peers || this.#context.runtime.clock.monotonic() - this.#heardAt <= withinMs
  }

  /** Whether the broker is connected. */
  isConnected(): boolean {
    return this.#connection.kind === 'open'
  }

  /** Whether the broker has granted the subscriptions to every hub that this process serves. */
  hearsItsHubs(): boolean {
    return this.isConnected() && this.#shares.isComplete
  }

  start(): void {
    const { db, runtime } = this.#context
    this.#isRunning = true
    this.commands.start()
    this.#connect()
    this.#cancels = [
      db.onWake((hubId) => this.#onOutboxGrown(hubId)),
      // Not due work, because an entry is sent when its hub is online. This only compensates for lost nudges (SPEC §7).
      everyInBackground(this.#context, this.#settings.pollMs, 'poll the outboxes', async () => {
        for (const hubId of await waitingHubs(db.kysely)) this.#links.get(hubId)?.look()
        for (const hubId of await hubsToAsk(db.kysely, runtime.clock.now())) this.#links.get(hubId)?.ask()
        await endOldMoves(this.#context, this.#options.domain)
        for (const { hubId, next } of await movesToOrder(this.#context))
          if (this.#links.get(hubId)?.isHeld) void this.#publish(downTopic(hubId, 'move'), next)
      }),
    ]
    if (this.#peers)
      this.#cancels.push(every(runtime.clock, this.#settings.pollMs, () => this.#shares.look()))
  }

  /** Stops normally: other processes may take over the hubs at once. */
  async stop(): Promise<void> {
    this.#isRunning = false
    for (const cancel of this.#cancels) cancel()
    this.#shares.stop()
    this.#cancelHails()
    this.#hellos.clear()
    await this.commands.stop()
    await this.#heartbeats.end()
    await Promise.all([...this.#links.values()].map((link) => link.end()))
    this.#peers?.leave()
    this.#cancelReconnect()
    if (this.#connection.kind !== 'closed') this.#connection.transport.close()
    this.#connection = { kind: 'closed' }
  }

  #connect(): void {
    const { broker } = this.#options
    const subscribe = [...this.#shares.filters, ...(this.#peers ? this.#topics.all : [])]
    const topic = this.#topics.of('gone')
    const will = this.#peers && { topic, payload: JSON.stringify(this.#peers.will), retain: false }
    const options = { subscribe, ...(will && { will }) }
    const handlers = {
      onConnect: () => {
        this.#connection = { kind: 'open', ...line }
        this.#onConnect()
      },
      onDisconnect: (reason: string) => this.#onDisconnect(reason),
      onMessage: (topic: string, payload: string) => this.#onMessage(topic, payload),
    }
    const changing = broker.kind === 'shared' ? broker.open(options, handlers) : undefined
    const line = { transport: changing ?? broker.open(options, handlers), changing }
    this.#connection = { kind: 'opening', ...line }
  }

  #onConnect(): void {
    this.#context.log.info({}, 'connected to the broker')
    this.#hasConnected = true
    this.#heardAt = this.#context.runtime.clock.monotonic()
    if (!this.#peers) this.#onSubscribed()
    background(this.#context, 'broker found', () => this.#resumeLinks())
    this.#peers?.connected()
    this.#shares.look()
  }

  /** The connection is usable. A broker that accepts connections but refuses the subscriptions keeps the long pause. */
  #onSubscribed(): void {
    this.#attempt = 0
    this.#outage.succeeded({}, 'the broker is in use again')
  }

  #onDisconnect(reason: string): void {
    const { runtime } = this.#context
    const wasOpen = this.isConnected()
    this.connectionsLost += 1
    this.#connection = { kind: 'closed' }
    const delayMs = backoffMs(this.#attempt++, this.#settings.backoff, runtime.random)
    // A broker that was never reached indicates wrong settings (address, password, MQTT_CA).
    if (this.#hasConnected) this.#outage.failed(reason, { delayMs }, 'no connection to the broker')
    else this.#outage.failed(reason, { delayMs }, 'the broker cannot be reached: no hub is served', 'error')
    // A stopping gateway does not reconnect.
    if (this.#isRunning) this.#cancelReconnect = runtime.clock.after(delayMs, () => this.#connect())
    if (!wasOpen) return
    this.#peers?.disconnected()
    this.#cancelHails()
    this.#hellos.clear()
    for (const link of this.#links.values()) link.disconnected()
  }

  async #resumeLinks(): Promise<void> {
    const held = new Set((await this.#leases.held()).map(({ hubId }) => hubId))
    for (const [hubId, link] of this.#links) link.reconnected(held.has(hubId))
  }

  #onMessage(topic: string, payload: string): void {
    if (!this.#isRunning) return
    this.#heardAt = this.#context.runtime.clock.monotonic()
    const ofClouds = this.#topics.parse(topic)
    if (ofClouds) return this.#onCloudMessage(ofClouds, parseMessage(payload))
    const address = parseUpTopic(topic)
    if (!address || !this.#shares.takes(address.hubId, address.channel)) return
    const { hubId, channel } = address
    // The embedded broker has an allowance of its own.
    if (this.#peers && !this.#allowances.of(hubId).enters(payload.length)) return
    const { data: body } = upSchemas[channel].safeParse(parseMessage(payload))
    // SPEC §1: logged, at most once a minute, and ignored.
    if (body) return this.#receive(hubId, { channel, body } as HubMessage, payload.length)
    this.#refusals.note('hub_message', `hub-${hubId}`, { why: 'does not fit its schema', channel })
  }

  #receive(hubId: number, message: HubMessage, size: number): void {
    if (message.channel === 'result')
      return this.commands.onResult(hubId, message.body, this.#links.get(hubId)?.isHeld ?? false)
    if (message.channel === 'certificate') {
      const answer = (body: object): boolean => this.#publish(downTopic(hubId, 'certificate'), body)
      return this.#options.domain.certificateRequested(this.#context, hubId, message.body, answer, () =>
        this.isConnected(),
      )
    }
    if (message.channel === 'diagnosis') return this.diagnoses.onPart(hubId, message.body)
    this.#linkOf(hubId).receive(message, size)
    if (this.#asked.has(hubId)) this.#tellClock(hubId)
  }

  /** Messages between cloud processes (SPEC §7). */
  #onCloudMessage(channel: CloudChannel, message: unknown): void {
    switch (channel) {
      case 'here':
        return read(Here, message, (here) => this.#peers?.onHere(here))
      case 'gone':
        return read(Gone, message, (gone) => this.#peers?.onGone(gone))
      case 'nudge':
        return read(Nudge, message, ({ hub_id }) => this.#links.get(hub_id)?.look())
      case 'handed':
        return read(Handed, message, (handed) => this.#onHanded(handed))
      case 'ask':
        return read(Ask, message, ({ hub_id }) => this.#onAsked(hub_id))
      case 'clock':
        return read(HubClock, message, (clock) => this.#learnClock(clock))
    }
  }

  #onHanded({ process_id, clocks }: Handed): void {
    if (process_id !== this.#options.processId) return
    for (const clock of clocks) this.#learnClock(clock)
    this.#shares.look()
  }

  #learnClock({ hub_id, session, monotonic }: HubClock): void {
    this.#clocks.heard(hub_id, session, monotonic)
  }

  #clockOf(hubId: number): HubClock | undefined {
    const latest = this.#clocks.latest(hubId)
    return latest && { hub_id: hubId, ...latest }
  }

  /** The hub reports its clock in its next hello; a process that receives its messages may already know it. */
  #findClock(hubId: number): void {
    if (this.#shares.hears(hubId)) this.#linkOf(hubId).hail()
    else this.#publish(this.#topics.of('ask'), { hub_id: hubId } satisfies Ask)
  }

  #onAsked(hubId: number): void {
    if (!this.#shares.hears(hubId)) return
    if (this.#tellClock(hubId)) return
    this.#asked.add(hubId)
    this.#linkOf(hubId).hail()
  }

  /** Publishes a hub's clock. False if it is not known. */
  #tellClock(hubId: number): boolean {
    const clock = this.#clockOf(hubId)
    if (!clock) return false
    this.#asked.delete(hubId)
    return this.#publish(this.#topics.of('clock'), clock)
  }

  /** A transaction of this process has added to an outbox: the holder of the hub must send it. */
  #onOutboxGrown(hubId: number): void {
    const link = this.#links.get(hubId)
    if (link?.isHeld) link.look()
    else if (this.#peers) this.#publish(this.#topics.of('nudge'), { hub_id: hubId } satisfies Nudge)
  }

  /**
   * The messages to a process that died are lost, so a hello of each hub is needed. Requests them one after another, as
   * fast as hellos are answered. Hubs that have sent one in the meantime are skipped.
   */
  #hailEach(hubIds: readonly number[], from = 0): void {
    const hubId = hubIds[from]
    if (hubId === undefined) return
    if (!this.#clocks.latest(hubId)) this.#linkOf(hubId).hail()
    const cancel = this.#context.runtime.clock.after(this.#hellos.paceMs, () => {
      this.#hails.delete(cancel)
      this.#hailEach(hubIds, from + 1)
    })
    this.#hails.add(cancel)
  }

  #cancelHails(): void {
    for (const cancel of this.#hails) cancel()
    this.#hails.clear()
  }

  /** Returns false if the broker is not connected. Its acceptance of a message proves nothing (SPEC §1). */
  #publish(topic: string, message: object): boolean {
    if (this.#connection.kind !== 'open') return false
    void this.#connection.transport.publish(topic, JSON.stringify(message))
    return true
  }

  #linkOf(hubId: number): HubLink {
    const known = this.#links.get(hubId)
    if (known) return known
    const link = new HubLink({
      hubId,
      context: this.#context,
      settings: this.#settings,
      domain: this.#options.domain,
      refusals: this.#refusals,
      leases: this.#leases,
      clocks: this.#clocks,
      hellos: this.#hellos,
      welcomes: this.#welcomes,
      heartbeats: this.#heartbeats,
      publish: (channel, message) => this.#publish(downTopic(hubId, channel), message),
      onCommandFinished: (commandId) => this.commands.onFinished(commandId),
    })
    this.#links.set(hubId, link)
    return link
  }
}

function read<S extends z.ZodType>(schema: S, message: unknown, take: (message: z.infer<S>) => void): void {
  const { data } = schema.safeParse(message)
  if (data !== undefined) take(data)
}
