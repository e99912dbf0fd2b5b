import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Ack, Batch, SenderPosition } from '../../protocol/mqtt/session.ts'
import {
  initialSender,
  stepSender,
  type SenderEffect,
  type SenderEvent,
  type SenderState,
  bytesOfLargest,
  type Reach,
} from '../../protocol/stream/sender.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import { forgetEntries, isOurHistory, positionToSend, readEntries } from './outbox.ts'

export interface OutboxSenderPorts {
  context: CloudContext
  settings: GatewayLimits
  hubId: number
  /** Limits the batches, on this connection of the hub and the next ones. */
  reach: Reach
  publish: (batch: Batch) => void
  /** The timer has fired: the caller must call `onTimeout` in the hub's mailbox. */
  timedOut: () => void
  /** No acknowledgement for a long time: the hub must send a hello with its position. */
  ask: () => void
  /** The histories of the hub's inbox and this outbox differ: only the hub's next hello reconciles them. */
  onFork: () => void
}

/** Sends a hub's outbox while this process holds the hub: the pure sender of `protocol/stream` over the database. */
export class OutboxSender {
  readonly #ports: OutboxSenderPorts
  /** Undefined while there is no connection. */
  #state: SenderState | undefined
  #wasWaiting = false
  #cancelTimer: Cancel = () => {}

  constructor(ports: OutboxSenderPorts) {
    this.#ports = ports
  }

  get isConnected(): boolean {
    return this.#state !== undefined
  }

  get #hub(): { hubId: number; now: number } {
    const { context, hubId } = this.#ports
    return { hubId, now: context.runtime.clock.now() }
  }

  #position(): Promise<SenderPosition | undefined> {
    return positionToSend(this.#ports.context.db.kysely, this.#hub)
  }

  /** Whether an entry was sent and not acknowledged. Without a connection: the value at the end of the last one. */
  get #isWaiting(): boolean {
    return this.#state ? this.#state.outstanding.length > 0 : this.#wasWaiting
  }

  /** The hub has a new connection: unacknowledged entries did not arrive. */
  newConnection(): void {
    const { context, reach } = this.#ports
    reach.ended(this.#isWaiting, context.runtime.clock.monotonic())
    reach.connected()
    this.disconnect()
  }

  /** The last acknowledged and the newest entry; undefined without a connection. */
  get position(): { base: number; last: number } | undefined {
    return this.#state
  }

  /** The hub's receiver is at `cursor` of this epoch; the answer to its hello has checked the history. */
  async connect(position: SenderPosition, cursor: number): Promise<void> {
    const known = this.#state
    const isSame = known?.epoch === position.epoch && known.last <= position.last
    this.disconnect()
    // Acknowledged entries that could not be deleted earlier are deleted now.
    const state = isSame
      ? { ...known, base: Math.min(known.base, position.base), last: position.last }
      : initialSender(position)
    this.#state = state
    await this.#dispatch({ type: 'connected', cursor, ours: true, atLeast: 0, sentBefore: state.sent })
  }

  /** Continues from the position in the database, for a hub that another process welcomed. */
  async resume(): Promise<void> {
    const position = await this.#position()
    if (position) await this.connect(position, position.base)
  }

  /** Sends nothing and ignores acknowledgements until `connect` or `resume`. */
  disconnect(): void {
    this.#cancelTimer()
    this.#wasWaiting = this.#isWaiting
    this.#state = undefined
  }

  /** Polls the outbox, which may have grown. */
  async look(): Promise<void> {
    if (!this.#state) return
    const position = await this.#position()
    if (!position || !this.#state) return
    if (position.epoch !== this.#state.epoch) return this.connect(position, position.base)
    // The database has lost its last commits. The hub may have received the lost entries, and their numbers will be
    // used again.
    if (position.last < this.#state.last || position.base < this.#state.base) {
      this.disconnect()
      return this.#ports.onFork()
    }
    if (position.last > this.#state.last) await this.#dispatch({ type: 'appended', last: position.last })
  }

  async acked(ack: Ack): Promise<void> {
    if (ack.epoch !== this.#state?.epoch) return
    // Another process may have appended the acknowledged entry after this one's last poll.
    if (ack.cursor > this.#state.last) await this.look()
    const { context, hubId } = this.#ports
    const ours = await isOurHistory(context.db.kysely, hubId, ack)
    const atMs = context.runtime.clock.monotonic()
    await this.#dispatch({ type: 'acked', ...ack, ours, atMs })
  }

  async onTimeout(): Promise<void> {
    await this.#dispatch({ type: 'timeout' })
  }

  async #dispatch(event: SenderEvent): Promise<void> {
    if (!this.#state) return
    const { context, settings, reach } = this.#ports
    const usual = { ...settings.sender, batchBytes: settings.batchBytes }
    const before = this.#state
    const limits = reach.limits(usual, context.runtime.clock.monotonic())
    const { state, effects } = stepSender(before, event, limits)
    this.#state = state
    if (event.type === 'acked' && state.base > before.base)
      reach.acked(bytesOfLargest(before.outstanding, state.base))
    for (const effect of effects) if (this.#state) await this.#carryOut(effect, state.epoch)
  }

  /** If the database fails, no retry follows. The hub is asked for a hello instead, and both ends continue from it. */
  async #orAsk<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.#ports.ask()
      throw error
    }
  }

  async #carryOut(effect: SenderEffect, epoch: string): Promise<void> {
    const { context, hubId, timedOut, ask, onFork } = this.#ports
    switch (effect.type) {
      case 'send':
        return this.#send(epoch, effect)
      case 'forget':
        return this.#orAsk(context.db.transact((tx) => forgetEntries(tx, hubId, epoch, effect.through)))
      case 'arm':
        this.#cancelTimer()
        this.#cancelTimer = context.runtime.clock.after(effect.afterMs, timedOut)
        return
      case 'disarm':
        return this.#cancelTimer()
      case 'ask':
        return ask()
      case 'fork':
        this.disconnect()
        return onFork()
    }
  }

  async #send(epoch: string, { first, entries: count, bytes: maxBytes }: SendEffect): Promise<void> {
    const { context, publish } = this.#ports
    const read = await this.#orAsk(readEntries(context.db.kysely, this.#hub, epoch, first, count))
    if (!read) return this.#passOver(epoch, first)
    const { entries, bytes } = fitting(read.entries, maxBytes)
    publish({
      epoch,
      first,
      previousTag: read.previousTag,
      oldest: read.base + 1,
      entries: entries.map(({ tag, body }) => ({ tag, body: JSON.parse(body) as unknown })),
    })
    const atMs = context.runtime.clock.monotonic()
    await this.#dispatch({ type: 'sent', last: entries.at(-1)!.seq, bytes, atMs })
  }

  /**
   * Continues after missing entries: another process may have sent them and deleted them when they were acknowledged.
   */
  async #passOver(epoch: string, first: number): Promise<void> {
    const position = await this.#orAsk(this.#position())
    if (position?.epoch === epoch && position.base >= first) await this.connect(position, position.base)
  }
}

type SendEffect = Extract<SenderEffect, { type: 'send' }>

/** The first entries that fit into the bytes, at least one. */
function fitting<E extends { body: string }>(
  entries: readonly E[],
  maxBytes: number,
): { entries: E[]; bytes: number } {
  let bytes = 0
  const taken: E[] = []
  for (const entry of entries) {
    const size = Buffer.byteLength(entry.body)
    if (taken.length > 0 && bytes + size > maxBytes) break
    taken.push(entry)
    bytes += size
  }
  return { entries: taken, bytes }
}
