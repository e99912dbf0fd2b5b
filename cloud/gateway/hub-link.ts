import type { z } from 'zod'
import { CommandResult } from '../../protocol/mqtt/command.ts'
import {
  Ack,
  Batch,
  Heartbeat,
  Hello,
  Presence,
  type CloudTime,
  type Hail,
} from '../../protocol/mqtt/session.ts'
import type { DownChannel, UpChannel } from '../../protocol/mqtt/topics.ts'
import { isSpoken } from '../../protocol/mqtt/version.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewaySettings } from '../platform/settings/settings.ts'
import { isRetryable } from '../platform/store/database.ts'
import { background } from '../platform/work/background.ts'
import { heardHolder, judgeClaim, noClaimants, type Claimants } from './claimants.ts'
import { answerHello } from './hello.ts'
import type { HubClocks } from './hub-state.ts'
import { markDisconnected, type LeaseKeeper } from './leases.ts'
import { OutboxSender } from './outbox-sender.ts'
import { isStoreFailure, receiveBatch, type Receiving, type UpStream } from './receiver.ts'

/** What a hub sends, by its channel. */
export const upSchemas = {
  presence: Presence,
  hello: Hello,
  heartbeat: Heartbeat,
  entries: Batch,
  telemetry: Batch,
  ack: Ack,
  result: CommandResult,
} satisfies Record<UpChannel, z.ZodType>

export type HubMessage = {
  [Channel in UpChannel]: { channel: Channel; body: z.infer<(typeof upSchemas)[Channel]> }
}[UpChannel]

/** What `HubLink` receives; results of commands go to `CommandSender`. */
export type LinkMessage = Exclude<HubMessage, { channel: 'result' }>

export interface HubLinkPorts extends Receiving {
  refusals: CloudRefusals
  settings: GatewaySettings
  leases: LeaseKeeper
  clocks: HubClocks
  publish: (channel: DownChannel, message: object) => void
}

/** Who speaks to the hub, as far as this process knows. Times are on the wall clock, as in the database. */
type Hold =
  /** Nobody: the next hello or heartbeat that this process hears may bring it the lease. */
  | { kind: 'unheld' }
  /** Another process, at least until then: asking again before is of no use. */
  | { kind: 'elsewhere'; until: number }
  /** This process, until then unless the lease is renewed. The sender is disconnected while the hub or the broker is. */
  | { kind: 'held'; until: number; sender: OutboxSender }

/** The sessions of a hub that this process knows of. */
export interface Sessions {
  current: string | null
  /** The monotonic clock of the hub in the session's latest hello; -Infinity where another process answered it. */
  helloAt: number
  /** Those that came before: what of them is still on its way is late. */
  former: readonly string[]
}

/** So many former sessions are remembered. */
const FORMER_SESSIONS = 8
/** After so many failures in a row of a kind that nobody foresaw, a batch is taken entry by entry (`receiver.ts`). */
const PATIENCE = 2

/**
 * One hub, as one cloud process sees it. While the process holds the hub's lease (SPEC §7) it answers the hub's hellos,
 * applies its streams and sends its outbox; otherwise it only listens for the moment at which the holder falls silent.
 * It is an actor: it handles messages and events from its mailbox, one after another.
 */
export class HubLink {
  readonly #ports: HubLinkPorts
  #hold: Hold = { kind: 'unheld' }
  #sessions: Sessions = { current: null, helloAt: -Infinity, former: [] }
  #claimants: Claimants = noClaimants
  /** The session of a hub that is refused: another one has the identity. */
  #refused: string | undefined
  #lastHailAt = -Infinity
  /** Failures in a row to apply a batch, but for those of the store. */
  #failures = 0
  /** Resolves when everything that was posted so far is done, or has failed. */
  #mailbox: Promise<unknown> = Promise.resolve()
  #hasEnded = false

  constructor(ports: HubLinkPorts) {
    this.#ports = ports
  }

  get isHeld(): boolean {
    return this.#held() !== undefined
  }

  receive(message: LinkMessage): void {
    const { channel, body } = message
    // Read as the message arrives: waiting in the mailbox would make the hub's clock seem to be behind.
    if (channel === 'hello') this.#hear(body.session, body.clock.monotonic)
    if (channel === 'heartbeat') this.#hear(body.session, body.monotonic)
    this.#post(channel, () => this.#handle(message))
  }

  /** The hub's outbox may have grown. */
  look(): void {
    if (this.isHeld) this.#post('outbox', () => this.#whileHeld((sender) => sender.look()))
  }

  /** This process has lost the broker. */
  disconnected(): void {
    this.#post('broker lost', () => this.#whileHeld((sender) => sender.disconnect()))
  }

  /** This process has found the broker again; others may have taken the hub meanwhile. */
  reconnected(isStillHeld: boolean): void {
    this.#post('broker found', async () => {
      if (isStillHeld) await this.#whileHeld((sender) => sender.resume())
      else this.#release({ kind: 'unheld' })
    })
  }

  /** The process that held the hub may be dead. */
  othersGone(): void {
    if (this.#hold.kind === 'elsewhere') this.#hold = { kind: 'unheld' }
  }

  /** Asks the hub to say hello again. */
  hail(): void {
    const now = this.#ports.context.runtime.clock.monotonic()
    if (now - this.#lastHailAt < this.#ports.settings.hailEveryMs) return
    this.#lastHailAt = now
    const hail: Hail = { session: this.#sessions.current }
    this.#ports.publish('hail', hail)
  }

  /** Takes no more messages; resolves when what was under way is done. */
  async end(): Promise<void> {
    this.#hasEnded = true
    this.#release({ kind: 'unheld' })
    await this.#mailbox
    // A hello that was under way may have taken the hub.
    this.#release({ kind: 'unheld' })
  }

  #post(during: string, work: () => Promise<void>): void {
    if (this.#hasEnded) return
    const done = this.#mailbox.then(work)
    // The next begins whatever became of this one, whose error goes to `background`.
    this.#mailbox = done.catch(() => {})
    const { context, hubId } = this.#ports
    background(context, `hub ${hubId}: ${during}`, () => done)
  }

  #handle(message: LinkMessage): Promise<void> {
    switch (message.channel) {
      case 'hello':
        return this.#onHello(message.body)
      case 'heartbeat':
        return this.#onHeartbeat(message.body)
      case 'presence':
        return this.#whileHeld((sender) => this.#onPresence(message.body, sender))
      case 'entries':
        return this.#whileHeld(() => this.#onBatch('ledger', message.body))
      case 'telemetry':
        return this.#whileHeld(() => this.#onBatch('telemetry', message.body))
      case 'ack':
        return this.#whileHeld((sender) => sender.acked(message.body))
    }
  }

  async #onHello(hello: Hello): Promise<void> {
    const { context, hubId, publish, refusals } = this.#ports
    if (!isSpoken(hello.protocol)) {
      const why = 'speaks another protocol version'
      return refusals.note('hub_message', `hub-${hubId}`, { why, protocol: hello.protocol })
    }
    if (isLate(this.#sessions, hello.session, hello.clock.monotonic)) return
    if (!this.#mayHold(hello)) return
    const welcome = await answerHello(this.#ports, hubId, hello)
    if (!welcome) return
    context.checkpoint('gateway.hello-committed')
    const sender = this.#take()
    this.#sessions = entered(this.#sessions, hello.session, hello.clock.monotonic)
    publish('welcome', welcome)
    const isFollowed = hello.inbox.epoch === welcome.outbox.epoch
    await sender.connect(welcome.outbox, isFollowed ? hello.inbox.cursor : 0)
  }

  /** Whether a hub may have its identity: of two that live one is refused (SPEC §3). */
  #mayHold({ instance, session }: Hello): boolean {
    if (instance === undefined) return true
    const { context, hubId, refusals } = this.#ports
    const now = context.runtime.clock.monotonic()
    const claim = judgeClaim(this.#claimants, instance, now, context.settings.onlineWithinMs)
    this.#claimants = claim.claimants
    this.#refused = claim.isHolder ? undefined : session
    if (claim.isConflict)
      refusals.note('hub_identity', `hub-${hubId}`, {
        why: 'two hubs have this identity',
        remedy: 'renew-password, and give the new one to the right hub',
        refused_instance: claim.isHolder ? undefined : instance,
      })
    return claim.isHolder
  }

  async #onHeartbeat(heartbeat: Heartbeat): Promise<void> {
    const { context, hubId, leases } = this.#ports
    const { session } = heartbeat
    const now = context.runtime.clock.now()
    if (this.#sessions.former.includes(session) || session === this.#refused) return
    if (session === this.#sessions.current)
      this.#claimants = heardHolder(this.#claimants, context.runtime.clock.monotonic())
    if (this.#hold.kind === 'elsewhere' && now < this.#hold.until) return
    const renewal = await context.db.transact((tx) => leases.renew(tx.q, hubId, heartbeat))
    switch (renewal.kind) {
      case 'held': {
        const sender = this.#take()
        if (this.#sessions.current !== session) this.#sessions = entered(this.#sessions, session, -Infinity)
        if (!sender.isConnected) await sender.resume()
        return
      }
      case 'other':
        return this.#release({ kind: 'elsewhere', until: renewal.until })
      case 'unknown-session':
        this.#release({ kind: 'unheld' })
        return this.hail()
    }
  }

  async #onPresence({ session, online }: Presence, sender: OutboxSender): Promise<void> {
    if (online || session !== this.#sessions.current) return
    const { context, hubId } = this.#ports
    await markDisconnected(context.db.kysely, hubId, session)
    sender.disconnect()
  }

  async #onBatch(stream: UpStream, batch: Batch): Promise<void> {
    const { context, publish } = this.#ports
    const received = await this.#apply(stream, batch)
    if (received === 'foreign') return this.hail()
    context.checkpoint('gateway.batch-applied')
    publish('ack', { ...received, clock: this.#time() })
    context.checkpoint('gateway.batch-acknowledged')
  }

  async #apply(stream: UpStream, batch: Batch): Promise<Ack | 'foreign'> {
    try {
      const received = await receiveBatch(this.#ports, stream, batch, this.#failures >= PATIENCE)
      this.#failures = 0
      return received
    } catch (error) {
      if (!isStoreFailure(error) && !isRetryable(error)) this.#failures += 1
      throw error
    }
  }

  #hear(session: string, monotonic: number): void {
    const { clocks, hubId } = this.#ports
    if (!this.#sessions.former.includes(session)) clocks.heard(hubId, session, monotonic)
  }

  /** The hold while its lease lasts. */
  #held(): Extract<Hold, { kind: 'held' }> | undefined {
    const hold = this.#hold
    return hold.kind === 'held' && this.#ports.context.runtime.clock.now() < hold.until ? hold : undefined
  }

  async #whileHeld(work: (sender: OutboxSender) => Promise<void> | void): Promise<void> {
    const held = this.#held()
    if (held) return work(held.sender)
    if (this.#hold.kind === 'held') this.#release({ kind: 'unheld' })
  }

  /** The lease is this process's, from now on. */
  #take(): OutboxSender {
    const { context, settings } = this.#ports
    if (!this.#held()) this.#release({ kind: 'unheld' })
    const sender = this.#hold.kind === 'held' ? this.#hold.sender : this.#newSender()
    this.#hold = { kind: 'held', until: context.runtime.clock.now() + settings.leaseMs, sender }
    return sender
  }

  /** The lease is this process's no longer. */
  #release(hold: Exclude<Hold, { kind: 'held' }>): void {
    if (this.#hold.kind === 'held') this.#hold.sender.disconnect()
    this.#hold = hold
  }

  /** A hub goes by this clock, also where it is put right while the session lasts (SPEC §4). */
  #time(): CloudTime {
    return { wall: this.#ports.context.runtime.clock.now() }
  }

  #newSender(): OutboxSender {
    const { context, settings, hubId, publish } = this.#ports
    return new OutboxSender({
      context,
      settings,
      hubId,
      publish: (batch) => publish('entries', { ...batch, clock: this.#time() }),
      timedOut: () => this.#post('resend', () => this.#whileHeld((held) => held.onTimeout())),
      onFork: () => this.hail(),
    })
  }
}

/** Whether a hello comes too late: a later one of its session, or a later session, has been answered. */
export function isLate({ current, helloAt, former }: Sessions, session: string, monotonic: number): boolean {
  return session === current ? monotonic <= helloAt : former.includes(session)
}

/** The sessions after a hello of `session`; after a heartbeat of one that another process has welcomed. */
export function entered({ current, former }: Sessions, session: string, helloAt: number): Sessions {
  const isNew = current !== null && current !== session
  return { current: session, helloAt, former: isNew ? [...former, current].slice(-FORMER_SESSIONS) : former }
}
