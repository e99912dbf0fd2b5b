import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Ack, Batch, SenderPosition } from '../../protocol/mqtt/session.ts'
import {
  initialSender,
  stepSender,
  type SenderEffect,
  type SenderEvent,
  type SenderState,
} from '../../protocol/stream/sender.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewaySettings } from '../platform/settings/settings.ts'
import { forgetEntries, isOurHistory, readEntries, readPosition } from './outbox.ts'

export interface OutboxSenderPorts {
  context: CloudContext
  settings: GatewaySettings
  hubId: number
  publish: (batch: Batch) => void
  /** The timer has fired: `onTimeout` is to be called in the hub's mailbox. */
  timedOut: () => void
  /** The hub's inbox and this outbox have different histories: only the hub's next hello reconciles them. */
  onFork: () => void
}

/** Sends a hub's outbox while this process holds the hub: the pure sender of `protocol/stream`, over the database. */
export class OutboxSender {
  readonly #ports: OutboxSenderPorts
  /** None while there is no connection to send on. */
  #state: SenderState | undefined
  #cancelTimer: Cancel = () => {}

  constructor(ports: OutboxSenderPorts) {
    this.#ports = ports
  }

  get isConnected(): boolean {
    return this.#state !== undefined
  }

  /** The hub's receiver stands at `cursor` of the epoch, which is of our history: its hello was judged by that. */
  async connect(position: SenderPosition, cursor: number): Promise<void> {
    this.disconnect()
    this.#state = initialSender(position)
    await this.#dispatch({ type: 'connected', cursor, ours: true, atLeast: 0 })
  }

  /** Goes on from what the database says, for a hub whose welcome another process sent. */
  async resume(): Promise<void> {
    const { context, hubId } = this.#ports
    const position = await readPosition(context.db.kysely, hubId)
    if (position) await this.connect(position, position.base)
  }

  /** Sends nothing any more, and takes no acknowledgement, before `connect` or `resume`. */
  disconnect(): void {
    this.#cancelTimer()
    this.#state = undefined
  }

  /** The outbox may have grown. */
  async look(): Promise<void> {
    if (!this.#state) return
    const { context, hubId } = this.#ports
    const position = await readPosition(context.db.kysely, hubId)
    if (!position || !this.#state) return
    if (position.epoch !== this.#state.epoch) return this.connect(position, position.base)
    // The database has lost its last commits: the hub may have had what is gone, and numbers are given out again.
    if (position.last < this.#state.last) {
      this.disconnect()
      return this.#ports.onFork()
    }
    if (position.last > this.#state.last) await this.#dispatch({ type: 'appended', last: position.last })
  }

  async acked(ack: Ack): Promise<void> {
    if (ack.epoch !== this.#state?.epoch) return
    // Another process may have appended what is acknowledged before this one has looked.
    if (ack.cursor > this.#state.last) await this.look()
    const { context, hubId } = this.#ports
    const ours = await isOurHistory(context.db.kysely, hubId, ack)
    await this.#dispatch({ type: 'acked', ...ack, ours })
  }

  async onTimeout(): Promise<void> {
    await this.#dispatch({ type: 'timeout' })
  }

  async #dispatch(event: SenderEvent): Promise<void> {
    if (!this.#state) return
    const { state, effects } = stepSender(this.#state, event, this.#ports.settings.sender)
    this.#state = state
    for (const effect of effects) if (this.#state) await this.#carryOut(effect, state.epoch)
  }

  async #carryOut(effect: SenderEffect, epoch: string): Promise<void> {
    const { context, hubId, timedOut, onFork } = this.#ports
    switch (effect.type) {
      case 'send':
        return this.#send(epoch, effect.first, effect.count)
      case 'forget':
        return context.db.transact((tx) => forgetEntries(tx, hubId, epoch, effect.through))
      case 'arm':
        this.#cancelTimer()
        this.#cancelTimer = context.runtime.clock.after(effect.afterMs, timedOut)
        return
      case 'disarm':
        return this.#cancelTimer()
      case 'fork':
        this.disconnect()
        return onFork()
    }
  }

  async #send(epoch: string, first: number, count: number): Promise<void> {
    const { context, hubId, settings, publish } = this.#ports
    const read = await readEntries(context.db.kysely, hubId, epoch, first, count)
    // Acknowledged meanwhile by way of another process: the next look or acknowledgement goes on from there.
    if (!read) return
    let { previousTag } = read
    for (const batch of split(read.entries, settings.batchBytes)) {
      publish({
        epoch,
        first: batch[0]!.seq,
        previousTag,
        oldest: read.base + 1,
        entries: batch.map(({ tag, body }) => ({ tag, body: JSON.parse(body) as unknown })),
      })
      previousTag = batch.at(-1)!.tag
    }
  }
}

/** Cuts entries into runs of at most `maxBytes`, of one entry at least. */
function split<E extends { body: string }>(entries: readonly E[], maxBytes: number): E[][] {
  const runs: E[][] = []
  let bytes = Infinity
  for (const entry of entries) {
    const size = Buffer.byteLength(entry.body)
    if (bytes + size > maxBytes) {
      runs.push([])
      bytes = 0
    }
    runs.at(-1)!.push(entry)
    bytes += size
  }
  return runs
}
