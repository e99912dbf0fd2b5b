import type {
  Ack,
  Batch,
  CloudTime,
  Hail,
  Heartbeat,
  Hello,
  Later,
  StorageReport,
} from '../../protocol/mqtt/session.ts'
import type { DownChannel } from '../../protocol/mqtt/topics.ts'
import { Reach } from '../../protocol/stream/sender.ts'
import { isSpoken } from '../../protocol/mqtt/version.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import { DeadLetterRoom } from './dead-letter-room.ts'
import { EntryAllowance } from './entry-allowance.ts'
import type { HelloQueue } from './hello-queue.ts'
import type { Heartbeats } from './heartbeats.ts'
import type { LinkMessage } from './hub-messages.ts'
import type { HubClocks } from './hub-state.ts'
import { Identity } from './identity.ts'
import { Mailbox } from './mailbox.ts'
import { markDisconnected, markLeft, type LeaseKeeper, type Renewal } from './leases.ts'
import { OutboxSender } from './outbox-sender.ts'
import { receiveBatch, type Receiving, type UpStream } from './receiver.ts'
import { ended, entered, isLate, noSessions } from './sessions.ts'
import { StallWatch } from './stalls.ts'
import { recordStorageReport } from './storage-reports.ts'
import type { Welcomes } from './hello.ts'

export interface HubLinkPorts extends Omit<Receiving, 'room'> {
  refusals: CloudRefusals
  settings: GatewayLimits
  leases: LeaseKeeper
  clocks: HubClocks
  hellos: HelloQueue
  welcomes: Welcomes
  heartbeats: Heartbeats
  publish: (channel: DownChannel, message: object) => void
}

/** Whether this process serves the hub. Times are wall times, as in the database. */
type Hold =
  /** Another process holds the hub, or none does. The next hello or heartbeat may bring this process the lease. */
  | { kind: 'unheld' }
  /** Held until `until`, unless renewed. The sender is disconnected while the hub or the broker is. */
  | { kind: 'held'; until: number; sender: OutboxSender }

/** After this number of consecutive unexpected failures, a batch is applied entry by entry (`receiver.ts`). */
const MAX_FAILURES = 2

/**
 * One hub from the view of one cloud process. While the process holds the hub's lease (SPEC §7), it answers the hub's
 * hellos, applies its streams and sends its outbox. Otherwise it waits for the moment when the holder's lease runs out.
 * It is an actor: it handles messages and events from its mailbox, one after another.
 */
export class HubLink {
  readonly #ports: HubLinkPorts
  #hold: Hold = { kind: 'unheld' }
  #sessions = noSessions
  readonly #identity: Identity
  #lastHailAt = -Infinity
  /** When the last message to the hub was sent. */
  #spokeAt = -Infinity
  readonly #stalls: StallWatch
  readonly #reach = new Reach()
  readonly #allowances: Readonly<Record<UpStream, EntryAllowance>>
  /** The end of the hub's ledger by its latest hello, and the applied cursor. */
  #ledger: { last: number; cursor: number } | undefined
  /** Sessions whose connections have ended and whose end is not recorded yet. Each is recorded once. */
  readonly #leaving = new Set<string>()
  /** An entry may be lost: another process served the hub, or the database failed. Only a hello repairs that. */
  #hasMissed = false
  readonly #mailbox: Mailbox
  readonly #receiving: Receiving

  constructor(ports: HubLinkPorts) {
    this.#ports = ports
    this.#mailbox = new Mailbox(ports)
    const { clock } = ports.context.runtime
    this.#receiving = { ...ports, room: new DeadLetterRoom({ ...ports, clock }) }
    this.#allowances = { ledger: new EntryAllowance(ports), telemetry: new EntryAllowance(ports) }
    this.#identity = new Identity(ports)
    this.#stalls = new StallWatch({
      ...ports,
      post: (work) => void this.#mailbox.post('stalled stream', work),
    })
  }

  get isHeld(): boolean {
    return this.#held() !== undefined
  }

  /** `size`: the length of the message as it arrived. */
  receive(message: LinkMessage, size: number): void {
    const { channel, body } = message
    const { domain, context, hubId } = this.#ports
    // Clocks are read when the message arrives. After a wait in the mailbox the hub's clock would seem to be behind.
    switch (channel) {
      case 'hello':
        return this.#onHello(body)
      case 'heartbeat':
        return this.#onHeartbeat(body)
      case 'storage':
        return this.#onStorage(body)
      case 'presence':
        return body.online ? undefined : this.#onEnded(body.session, body.goodbye === true)
      case 'entries':
        return this.#postBounded(channel, () => this.#onBatch('ledger', body, size))
      case 'telemetry':
        return this.#postBounded(channel, () => this.#onBatch('telemetry', body, size))
      case 'ack':
        return this.#postBounded(channel, (sender) => sender.acked(body))
      case 'erased':
        return this.#mailbox.postOnce(channel, () => domain.secretsErased(context, hubId))
      case 'moved':
        return this.#mailbox.postOnce(channel, () => domain.hubMoved(context, hubId, body))
    }
  }

  /** The hub's outbox may have grown. */
  look(): void {
    if (this.isHeld) void this.#mailbox.post('outbox', () => this.#whileHeld((sender) => sender.look()))
  }

  /** Requests a hello, because its position is needed. */
  ask(): void {
    if (this.isHeld) this.hail()
  }

  /** This process has lost the broker. */
  disconnected(): void {
    void this.#mailbox.post('broker lost', () => this.#whileHeld((sender) => sender.disconnect()))
  }

  /** This process is connected to the broker again; in the meantime others may have taken the hub. */
  reconnected(isStillHeld: boolean): void {
    void this.#mailbox.post('broker found', async () => {
      if (isStillHeld) await this.#whileHeld((sender) => sender.resume())
      else this.#release()
    })
  }

  /** The database shows that this process has the lease: it was handed over, or taken from a process that is gone. */
  take(session: string): void {
    if (this.isHeld) return
    void this.#mailbox.post('lease taken', async () => {
      // A hello may have been answered in the meantime.
      if (!this.isHeld && !this.#isPast(session)) await this.#enter(session)
    })
  }

  /** Another process has the lease. */
  release(): void {
    this.#release()
  }

  /** Requests a hello from the hub. */
  hail(): void {
    const now = this.#ports.context.runtime.clock.monotonic()
    if (now - this.#lastHailAt < this.#ports.settings.hailEveryMs) return
    this.#lastHailAt = now
    const hail: Hail = { session: this.#sessions.current }
    this.#publish('hail', hail)
  }

  /** Accepts no more messages; resolves when the running work is done. */
  async end(): Promise<void> {
    const ended = this.#mailbox.end()
    this.#release()
    await ended
    // A hello whose answer was running may have taken the hub.
    this.#release()
  }

  /** Posts work for messages that the hub repeats. Drops it if the mailbox is full. */
  #postBounded(during: string, work: (sender: OutboxSender) => Promise<void>): void {
    if (this.#mailbox.isFull) return
    void this.#mailbox.post(during, () => {
      if (!this.isHeld) this.#hasMissed = true
      return this.#whileHeld(work)
    })
  }

  /** Adds the hello to the queue. */
  #onHello(hello: Hello): void {
    const { hubId, hellos, clocks, refusals } = this.#ports
    const { session } = hello
    if (!isSpoken(hello.protocol)) {
      const why = 'speaks another protocol version'
      return refusals.note('hub_message', `hub-${hubId}`, { why, protocol: hello.protocol })
    }
    if (isLate(this.#sessions, session, hello.clock.monotonic)) return
    clocks.heard(hubId, session, hello.clock.monotonic)
    hellos.enter({
      hubId,
      session,
      isPatient: this.isHeld && session === this.#sessions.current && this.#isQuiet(),
      answer: () => this.#mailbox.post('hello', () => this.#answer(hello)),
      reject: (afterMs) => this.#publish('later', { session, after_ms: afterMs } satisfies Later),
      hail: () => this.hail(),
    })
  }

  /** The hub got no message for so long that it checks whether the cloud still answers (SPEC §3). */
  #isQuiet(): boolean {
    const { context, settings } = this.#ports
    return context.runtime.clock.monotonic() - this.#spokeAt >= settings.quietMs
  }

  #publish(channel: DownChannel, message: object): void {
    this.#spokeAt = this.#ports.context.runtime.clock.monotonic()
    this.#ports.publish(channel, message)
  }

  async #answer(hello: Hello): Promise<void> {
    const { context, hubId, welcomes } = this.#ports
    if (isLate(this.#sessions, hello.session, hello.clock.monotonic)) return
    if (!(await this.#identity.admits(hello))) return
    const welcome = await this.#stalls.watched('hello', () => welcomes.answer(hubId, hello))
    if (!welcome) return
    this.#stalls.advanced('hello')
    context.checkpoint('gateway.hello-committed')
    const sender = this.#take()
    if (hello.session !== this.#sessions.current) sender.newConnection()
    this.#sessions = entered(this.#sessions, hello.session, hello.clock.monotonic)
    this.#publish('welcome', welcome)
    const isFollowed = hello.inbox.epoch === welcome.outbox.epoch
    this.#hasMissed = false
    const { restart, cursor } = welcome.ledger
    this.#ledger = restart ? undefined : { last: hello.ledger.last, cursor }
    this.#look(sender)
    await sender.connect(welcome.outbox, isFollowed ? hello.inbox.cursor : 0)
  }

  /** The hub cannot read its journal: it has no streams until its next hello. */
  #onStorage(report: StorageReport): void {
    if (!isSpoken(report.protocol) || this.#mailbox.isFull) return
    const { context, domain, hubId, heartbeats } = this.#ports
    const { session, monotonic } = report
    void this.#mailbox.post('storage', async () => {
      if (isLate(this.#sessions, session, monotonic) || !(await this.#identity.admits(report))) return
      await heartbeats.forget(hubId, session)
      if (!(await recordStorageReport(context, domain, hubId, report))) return
      this.#release()
      this.#sessions = entered(this.#sessions, session, monotonic)
    })
  }

  #onHeartbeat(heartbeat: Heartbeat): void {
    const { hubId, heartbeats, clocks } = this.#ports
    const { session, monotonic } = heartbeat
    const { former } = this.#sessions
    if (this.#mailbox.hasEnded) return
    if (!former.has(session)) clocks.heard(hubId, session, monotonic)
    // Late, or the late hello of an ended session took the place of this one: its next hello decides.
    else if (former.get(session)! < Infinity) this.hail()
    if (this.#isPast(session)) return
    if (session === this.#sessions.current) this.#identity.heard()
    heartbeats.add(hubId, heartbeat, (renewal) => {
      // The normal case: no work is posted.
      if (renewal.kind === 'held' && this.#isServed(session)) this.#look(this.#take(renewal.until))
      else void this.#mailbox.post('heartbeat', () => this.#onRenewed(session, renewal))
    })
  }

  /** This process serves the session and has missed nothing of it. */
  #isServed(session: string): boolean {
    const isCurrent = session === this.#sessions.current && !this.#isPast(session)
    return isCurrent && this.#mailbox.isEmpty && !this.#hasMissed && this.#held()?.sender.isConnected === true
  }

  /** The session was replaced, or belongs to a refused hub. */
  #isPast(session: string): boolean {
    return this.#sessions.former.has(session) || this.#identity.hasRefused(session)
  }

  async #onRenewed(session: string, renewal: Renewal): Promise<void> {
    // A hello may have arrived while the heartbeat waited to be written.
    if (this.#isPast(session)) return
    switch (renewal.kind) {
      case 'held':
        return this.#enter(session, renewal.until)
      case 'other':
        return this.#release()
      case 'unknown-session':
        this.#release()
        return this.hail()
    }
  }

  /** Continues a session that this or another process has welcomed. */
  async #enter(session: string, until?: number): Promise<void> {
    const sender = this.#take(until)
    if (this.#sessions.current !== session) this.#sessions = entered(this.#sessions, session, -Infinity)
    if (!sender.isConnected) await sender.resume()
    if (this.#hasMissed) this.hail()
  }

  /** The connection of a session has ended; messages under way may still arrive. */
  #onEnded(session: string, isGoodbye: boolean): void {
    this.#ports.hellos.leave(this.#ports.hubId, session)
    this.#sessions = ended(this.#sessions, session)
    // For another session it matters only while its hello is being answered, which makes it the current one.
    const isFull = session !== this.#sessions.current && this.#mailbox.isFull
    if (isFull || this.#leaving.has(session)) return
    this.#leaving.add(session)
    void this.#mailbox.post('presence', () => {
      this.#leaving.delete(session)
      return this.#whileHeld((sender) => this.#leave(session, sender, isGoodbye))
    })
  }

  async #leave(session: string, sender: OutboxSender, isGoodbye: boolean): Promise<void> {
    if (session !== this.#sessions.current) return
    const { context, domain, hubId, heartbeats } = this.#ports
    await heartbeats.forget(hubId, session)
    if (isGoodbye) await markLeft(context, domain, { hubId, session })
    else await markDisconnected(context.db.kysely, hubId, session)
    sender.disconnect()
  }

  async #onBatch(stream: UpStream, batch: Batch, size: number): Promise<void> {
    if (!this.#allowances[stream].isOpen()) return
    const received = await this.#apply(stream, batch, size)
    if (received === 'foreign') return this.hail()
    this.#ports.context.checkpoint('gateway.batch-applied')
    this.#publish('ack', { ...received, clock: this.#time() })
    this.#ports.context.checkpoint('gateway.batch-acknowledged')
  }

  async #apply(stream: UpStream, batch: Batch, size: number): Promise<Ack | 'foreign'> {
    const isCareful = this.#stalls.failures(stream) >= MAX_FAILURES
    const received = await this.#stalls.watched(stream, () =>
      receiveBatch(this.#receiving, stream, batch, isCareful),
    )
    if (received === 'foreign' || received.resend || received.fork) return received
    this.#allowances[stream].spend(batch.epoch, batch.first, received.cursor, size)
    this.#stalls.advanced(stream)
    if (stream === 'ledger' && this.#ledger) this.#ledger.cursor = received.cursor
    return received
  }

  /** The hub is online: checks whether its streams advance. */
  #look(sender: OutboxSender): void {
    const ledger = this.#ledger
    if (ledger) this.#stalls.look('ledger', ledger.cursor, ledger.last > ledger.cursor)
    const outbox = sender.position
    if (outbox) this.#stalls.look('outbox', outbox.base, outbox.base < outbox.last)
  }

  /** The hold while its lease lasts. */
  #held(): Extract<Hold, { kind: 'held' }> | undefined {
    const hold = this.#hold
    return hold.kind === 'held' && this.#ports.context.runtime.clock.now() < hold.until ? hold : undefined
  }

  async #whileHeld(work: (sender: OutboxSender) => Promise<void> | void): Promise<void> {
    const held = this.#held()
    if (held) return work(held.sender)
    this.#release()
  }

  /** This process has the lease from now on; by default the lease was written just now. */
  #take(until = this.#ports.context.runtime.clock.now() + this.#ports.settings.leaseMs): OutboxSender {
    if (!this.#held()) this.#release()
    const sender = this.#hold.kind === 'held' ? this.#hold.sender : this.#newSender()
    this.#hold = { kind: 'held', until, sender }
    return sender
  }

  /** This process no longer has the lease. */
  #release(): void {
    if (this.#hold.kind === 'held') this.#hold.sender.disconnect()
    this.#hold = { kind: 'unheld' }
  }

  /** The hub uses this clock, also if it is corrected during the session (SPEC §4). */
  #time(): CloudTime {
    return { wall: this.#ports.context.runtime.clock.now() }
  }

  #newSender(): OutboxSender {
    const { context, settings, hubId } = this.#ports
    return new OutboxSender({
      context,
      settings,
      hubId,
      reach: this.#reach,
      publish: (batch) => this.#publish('entries', { ...batch, clock: this.#time() }),
      timedOut: () => void this.#mailbox.post('silence', () => this.#whileHeld((held) => held.onTimeout())),
      ask: () => {
        this.#hasMissed = true
        this.hail()
      },
      onFork: () => this.hail(),
    })
  }
}
