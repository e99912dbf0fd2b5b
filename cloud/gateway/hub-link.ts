import type { z } from 'zod'
import { Ack, Batch } from '../../protocol/mqtt/entries.ts'
import { Heartbeat, Hello, Presence, type Hail, type Welcome } from '../../protocol/mqtt/session.ts'
import type { DownChannel, UpChannel } from '../../protocol/mqtt/topics.ts'
import { isSpoken } from '../../protocol/mqtt/version.ts'
import { background } from '../platform/work/background.ts'
import type { CloudContext } from '../platform/context.ts'
import { isRetryable } from '../platform/store/database.ts'
import { decode } from './decode.ts'
import type { HubDomain } from './domain.ts'
import type { GatewaySettings } from '../platform/settings/gateway-settings.ts'
import { greet } from './hello.ts'
import type { HubClocks } from './hub-clocks.ts'
import { isStoreFailure } from './dead-letters.ts'
import { markDisconnected, renew, type LeaseHolder } from './leases.ts'
import { OutboxPump } from './outbox-pump.ts'
import { receiveBatch, type UpStream } from './receiver.ts'

export interface HubLinkPorts {
  context: CloudContext
  settings: GatewaySettings
  domain: HubDomain
  processId: string
  clocks: HubClocks
  publish: (hubId: number, channel: DownChannel, message: object) => void
  onCommandFinished: (commandId: string) => void
}

/** What `HubLink` receives; results of commands go to `Commands`. */
export type LinkChannel = Exclude<UpChannel, 'result'>

/** After so many failures in a row of a kind that nobody foresaw, a batch is taken entry by entry (`apply-entries.ts`). */
const PATIENCE = 2
/** Sessions that came before the present one: what of them is still on its way is late. */
const FORMER_SESSIONS = 8

/**
 * One hub, as one cloud process sees it. While the process holds the hub's lease (SPEC §7) it answers the hub's hellos,
 * applies its streams and sends its outbox; otherwise it only listens for the moment at which the holder falls silent.
 * Messages are handled one after another.
 */
export class HubLink {
  readonly #ports: HubLinkPorts
  readonly #holder: LeaseHolder
  readonly #pump: OutboxPump
  readonly #former: string[] = []
  #tail: Promise<unknown> = Promise.resolve()
  #hasEnded = false
  /** Before this the lease is ours, on the wall clock as in the database. */
  #heldUntil = -Infinity
  /** Before this another process holds the hub, and asking again is of no use. */
  #othersUntil = -Infinity
  #session: string | undefined
  #helloMonotonic = -Infinity
  #lastHailAt = -Infinity
  #failures = 0

  readonly hubId: number

  constructor(hubId: number, ports: HubLinkPorts) {
    this.hubId = hubId
    this.#ports = ports
    this.#holder = { processId: ports.processId, leaseMs: ports.settings.leaseMs }
    this.#pump = new OutboxPump({
      context: ports.context,
      settings: ports.settings,
      hubId,
      publish: (batch) => ports.publish(hubId, 'entries', batch),
      turn: (during, work) => this.#turn(during, () => this.#whileHeld(work)),
      onFork: () => this.hail(),
    })
  }

  get isHeld(): boolean {
    return this.#ports.context.runtime.clock.now() < this.#heldUntil
  }

  /** A message of the hub. What does not fit its schema is logged and ignored (SPEC §1). */
  receive(channel: LinkChannel, payload: string): void {
    switch (channel) {
      case 'hello':
        return this.#take(channel, Hello, payload, (hello) => {
          this.#hear(hello.session, hello.clock.monotonic)
          return () => this.#onHello(hello)
        })
      case 'heartbeat':
        return this.#take(channel, Heartbeat, payload, (heartbeat) => {
          this.#hear(heartbeat.session, heartbeat.monotonic)
          return () => this.#onHeartbeat(heartbeat)
        })
      case 'presence':
        return this.#take(channel, Presence, payload, (presence) => () => this.#onPresence(presence))
      case 'entries':
        return this.#take(channel, Batch, payload, (batch) => () => this.#onBatch('ledger', batch))
      case 'telemetry':
        return this.#take(channel, Batch, payload, (batch) => () => this.#onBatch('telemetry', batch))
      case 'ack':
        return this.#take(channel, Ack, payload, (ack) => () => this.#whileHeld(() => this.#pump.acked(ack)))
    }
  }

  /** The hub's outbox may have grown. */
  look(): void {
    if (this.isHeld) this.#turn('outbox', () => this.#pump.look())
  }

  /** This process has lost the broker. */
  disconnected(): void {
    this.#turn('broker lost', () => this.#pump.disconnect())
  }

  /** This process has found the broker again; others may have taken the hub meanwhile. */
  reconnected(isStillHeld: boolean): void {
    this.#turn('broker found', async () => {
      if (isStillHeld) return this.#whileHeld(() => this.#pump.resume())
      this.stop()
    })
  }

  /** The process that held the hub may be dead. */
  othersGone(): void {
    this.#othersUntil = -Infinity
  }

  /** Asks the hub to say hello again. */
  hail(): void {
    const now = this.#ports.context.runtime.clock.monotonic()
    if (now - this.#lastHailAt < this.#ports.settings.hailEveryMs) return
    this.#lastHailAt = now
    const hail: Hail = { session: this.#session ?? null }
    this.#ports.publish(this.hubId, 'hail', hail)
  }

  stop(): void {
    this.#heldUntil = -Infinity
    this.#pump.stop()
  }

  /** Takes no more messages; resolves when what was under way has had its turn. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.stop()
    await this.#tail
    this.stop()
  }

  #take<S extends z.ZodType>(
    channel: LinkChannel,
    schema: S,
    payload: string,
    /** What is noted at once, and what has its turn. */
    handle: (message: z.infer<S>) => () => Promise<void>,
  ): void {
    const message = decode(schema, payload)
    if (message !== undefined) this.#turn(channel, handle(message))
    else
      this.#ports.context.log.warn({ hubId: this.hubId, channel }, 'message of a hub does not fit its schema')
  }

  #turn(during: string, work: () => Promise<void>): void {
    if (this.#hasEnded) return
    const turn = this.#tail.then(work)
    // The next turn begins whatever became of this one, whose error goes to `background`.
    this.#tail = turn.catch(() => {})
    background(this.#ports.context, `hub ${this.hubId}: ${during}`, () => turn)
  }

  async #whileHeld(work: () => Promise<void>): Promise<void> {
    if (this.isHeld) return work()
    this.#pump.stop()
  }

  /** The hub's clock is read as its message arrives: waiting for its turn would make it seem to be behind. */
  #hear(session: string, monotonic: number): void {
    if (!this.#former.includes(session)) this.#ports.clocks.heard(this.hubId, session, monotonic)
  }

  async #onHello(hello: Hello): Promise<void> {
    const { context } = this.#ports
    if (!isSpoken(hello.protocol)) {
      context.log.warn({ hubId: this.hubId, protocol: hello.protocol }, 'hub speaks another protocol version')
      return
    }
    const again = hello.session === this.#session
    if (again ? hello.clock.monotonic <= this.#helloMonotonic : this.#former.includes(hello.session)) return
    const welcome = await greet({ ...this.#ports, holder: this.#holder }, this.hubId, hello)
    if (!welcome) return
    context.checkpoint('gateway.hello-committed')
    this.#hold()
    this.#enterSession(hello.session, hello.clock.monotonic)
    this.#ports.publish(this.hubId, 'welcome', welcome)
    await this.#pump.connect(welcome.outbox, cursorOf(welcome, hello))
  }

  #enterSession(session: string, monotonic: number): void {
    if (this.#session !== undefined && this.#session !== session) {
      this.#former.push(this.#session)
      if (this.#former.length > FORMER_SESSIONS) this.#former.shift()
    }
    this.#session = session
    this.#helloMonotonic = monotonic
  }

  #hold(): void {
    const { context, settings } = this.#ports
    this.#heldUntil = context.runtime.clock.now() + settings.leaseMs
    this.#othersUntil = -Infinity
  }

  async #onHeartbeat({ session, health }: Heartbeat): Promise<void> {
    const { context } = this.#ports
    if (this.#former.includes(session)) return
    const now = context.runtime.clock.now()
    if (now < this.#othersUntil) return
    const wasHeld = this.isHeld
    const news = { session, health: JSON.stringify(health) }
    const renewal = await context.db.transact((tx) => renew(tx.q, this.#holder, this.hubId, news, now))
    if (renewal.kind === 'held') {
      this.#hold()
      if (this.#session !== session) this.#enterSession(session, -Infinity)
      if (!wasHeld || !this.#pump.isConnected) await this.#pump.resume()
      return
    }
    this.#heldUntil = -Infinity
    this.#pump.stop()
    if (renewal.kind === 'other') this.#othersUntil = renewal.until
    else this.hail()
  }

  async #onPresence({ session, online }: Presence): Promise<void> {
    if (online || !this.isHeld || session !== this.#session) return
    await markDisconnected(this.#ports.context.db.kysely, this.hubId, session)
    await this.#pump.disconnect()
  }

  async #onBatch(stream: UpStream, batch: Batch): Promise<void> {
    if (!this.isHeld) return
    const { context, publish } = this.#ports
    const received = await this.#apply(stream, batch)
    if (received === 'foreign') return this.hail()
    context.checkpoint('gateway.batch-applied')
    publish(this.hubId, 'ack', received)
    context.checkpoint('gateway.batch-acknowledged')
  }

  async #apply(stream: UpStream, batch: Batch): Promise<Ack | 'foreign'> {
    const receiving = { ...this.#ports, hubId: this.hubId }
    try {
      const received = await receiveBatch(receiving, stream, batch, this.#failures >= PATIENCE)
      this.#failures = 0
      return received
    } catch (error) {
      if (!isStoreFailure(error) && !isRetryable(error)) this.#failures += 1
      throw error
    }
  }
}

/** Where the hub's inbox stands in the outbox that it was welcomed to. */
const cursorOf = (welcome: Welcome, hello: Hello): number =>
  hello.inbox.epoch === welcome.outbox.epoch ? hello.inbox.cursor : 0
