import { z } from 'zod'
import { backoffMs, type Cancel } from '../../protocol/model/runtime.ts'
import { downTopic, nudgeTopic, parseUpTopic, upFilter } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { CloudContext } from '../platform/context.ts'
import { cloudRefusals, type CloudRefusals } from '../platform/refusals.ts'
import { defaultGatewaySettings, type GatewaySettings } from '../platform/settings/settings.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import { CommandSender, type Commands } from './commands.ts'
import type { HubDomain } from './domain.ts'
import { HubLink, upSchemas, type HubMessage } from './hub-link.ts'
import { HubClocks } from './hub-state.ts'
import { LeaseKeeper } from './leases.ts'
import { waitingHubs } from './outbox.ts'

export interface GatewayOptions {
  context: CloudContext
  openTransport: OpenTransport
  /** Names this life of this process in leases: unique to it. */
  processId: string
  /** Told of hubs' messages that cannot be read; its own where absent. */
  refusals?: CloudRefusals
  /** What the hubs' entries mean. */
  domain: HubDomain
  settings?: Partial<GatewaySettings>
}

/** The connection to the broker. After each end a new one is opened, after a back-off. */
type Connection =
  | { kind: 'closed' }
  | { kind: 'opening'; transport: MqttTransport }
  | { kind: 'open'; transport: MqttTransport }

const Nudge = z.object({ hub_id: z.int() })

/** The hubs, over MQTT (protocol/mqtt/SPEC.md). */
export class Gateway {
  readonly #options: GatewayOptions
  readonly #context: CloudContext
  readonly #settings: GatewaySettings
  readonly #clocks: HubClocks
  readonly #refusals: CloudRefusals
  readonly #leases: LeaseKeeper
  readonly #commands: CommandSender
  readonly #links = new Map<number, HubLink>()
  #connection: Connection = { kind: 'closed' }
  #isRunning = false
  #hasConnected = false
  /** Connections that have failed in a row. */
  #attempt = 0
  #cancels: Cancel[] = []
  #cancelReconnect: Cancel = () => {}

  constructor(options: GatewayOptions) {
    const { context, processId } = options
    this.#options = options
    this.#context = context
    this.#refusals = options.refusals ?? cloudRefusals(context)
    this.#settings = { ...defaultGatewaySettings, ...options.settings }
    this.#clocks = new HubClocks(context.runtime.clock)
    this.#commands = new CommandSender({
      context,
      settings: this.#settings,
      clocks: this.#clocks,
      hail: (hubId) => this.#linkOf(hubId).hail(),
      publish: (hubId, command) => this.#publish(downTopic(hubId, 'command'), command),
    })
    this.#leases = new LeaseKeeper({
      context,
      settings: this.#settings,
      processId,
      publish: (topic, message) => this.#publish(topic, message),
      onReleased: (hubIds) => this.#onReleased(hubIds),
    })
  }

  get commands(): Commands {
    return this.#commands
  }

  /** Whether the broker is connected. */
  isConnected(): boolean {
    return this.#connection.kind === 'open'
  }

  start(): void {
    const { db } = this.#context
    this.#isRunning = true
    this.#commands.start()
    this.#connect()
    this.#cancels = [
      db.onWake((hubId) => this.#onOutboxGrown(hubId)),
      // Not due work: an entry is sent when its hub is there. This only makes up for nudges that were lost (SPEC §7).
      everyInBackground(this.#context, this.#settings.pollMs, 'look into the outboxes', async () => {
        for (const hubId of await waitingHubs(db.kysely)) this.#links.get(hubId)?.look()
      }),
    ]
  }

  /** Stops in good order: other processes may take the hubs over at once. */
  async stop(): Promise<void> {
    this.#isRunning = false
    for (const cancel of this.#cancels) cancel()
    await this.#commands.stop()
    await Promise.all([...this.#links.values()].map((link) => link.end()))
    await this.#leases.leave()
    this.#cancelReconnect()
    if (this.#connection.kind !== 'closed') this.#connection.transport.close()
    this.#connection = { kind: 'closed' }
  }

  #connect(): void {
    const { openTransport } = this.#options
    const transport = openTransport(
      {
        subscribe: [upFilter, nudgeTopic, ...this.#leases.topics],
        will: { ...this.#leases.will, retain: false },
      },
      {
        onConnect: () => {
          this.#connection = { kind: 'open', transport }
          this.#onConnect()
        },
        onDisconnect: (reason) => this.#onDisconnect(reason),
        onMessage: (topic, payload) => this.#onMessage(topic, payload),
      },
    )
    this.#connection = { kind: 'opening', transport }
  }

  #onConnect(): void {
    this.#context.log.info({}, 'connected to the broker')
    this.#attempt = 0
    this.#hasConnected = true
    background(this.#context, 'broker found', () => this.#resumeLinks())
    this.#leases.connected()
  }

  #onDisconnect(reason: string): void {
    const { log, runtime } = this.#context
    const wasOpen = this.isConnected()
    this.#connection = { kind: 'closed' }
    const delayMs = backoffMs(this.#attempt++, this.#settings.backoff, runtime.random)
    // A broker that was never reached is a matter of settings (address, password, MQTT_CA), and stays so.
    if (this.#hasConnected) log.warn({ reason, delayMs }, 'no connection to the broker')
    else log.error({ reason, delayMs }, 'the broker cannot be reached: no hub is served')
    this.#cancelReconnect = runtime.clock.after(delayMs, () => this.#connect())
    if (!wasOpen) return
    this.#leases.disconnected()
    for (const link of this.#links.values()) link.disconnected()
  }

  async #resumeLinks(): Promise<void> {
    const held = await this.#leases.heldHubs()
    for (const [hubId, link] of this.#links) link.reconnected(held.has(hubId))
  }

  #onMessage(topic: string, payload: string): void {
    if (!this.#isRunning) return
    const message = parseJson(payload)
    if (this.#leases.topics.includes(topic)) return this.#leases.receive(topic, message)
    if (topic === nudgeTopic) {
      const hubId = Nudge.safeParse(message).data?.hub_id
      if (hubId !== undefined) this.#links.get(hubId)?.look()
      return
    }
    const address = parseUpTopic(topic)
    if (!address) return
    const { hubId, channel } = address
    const { data: body } = upSchemas[channel].safeParse(message)
    // SPEC §1: logged, in one line a minute, and ignored.
    if (!body)
      return this.#refusals.note('hub_message', `hub-${hubId}`, { why: 'does not fit its schema', channel })
    this.#receive(hubId, { channel, body } as HubMessage)
  }

  #receive(hubId: number, message: HubMessage): void {
    if (message.channel !== 'result') return this.#linkOf(hubId).receive(message)
    this.#commands.onResult(hubId, message.body, this.#links.get(hubId)?.isHeld ?? false)
  }

  /** An outbox has grown by a transaction of this process: its holder is to look. */
  #onOutboxGrown(hubId: number): void {
    const link = this.#links.get(hubId)
    if (link?.isHeld) link.look()
    else this.#publish(nudgeTopic, { hub_id: hubId })
  }

  #onReleased(hubIds: readonly number[]): void {
    for (const link of this.#links.values()) link.othersGone()
    // A hub that says hello finds its new holder at once, not with its next heartbeat.
    for (const hubId of hubIds) this.#linkOf(hubId).hail()
  }

  /** False where the broker is not connected. Whether it took the message proves nothing (SPEC §1), and is not asked. */
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
      publish: (channel, message) => this.#publish(downTopic(hubId, channel), message),
      onCommandFinished: (commandId) => this.#commands.onFinished(commandId),
    })
    this.#links.set(hubId, link)
    return link
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
