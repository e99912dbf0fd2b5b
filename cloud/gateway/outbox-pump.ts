import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Ack, Batch } from '../../protocol/mqtt/entries.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import {
  initialSender,
  stepSender,
  type SenderEffect,
  type SenderEvent,
  type SenderState,
} from '../../protocol/stream/sender.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewaySettings } from '../platform/settings/gateway-settings.ts'
import { forgetEntries, isOurHistory, readEntries, readPosition } from './outbox-store.ts'

export interface PumpPorts {
  context: CloudContext
  settings: GatewaySettings
  hubId: number
  publish: (batch: Batch) => void
  /** Runs a turn of this hub, after those before it. */
  turn: (during: string, work: () => Promise<void>) => void
  /** The hub's inbox and this outbox have different histories: only the hub's next hello can settle it. */
  onFork: () => void
}

/** Sends a hub's outbox while this process holds the hub: the pure sender of `protocol/stream`, over the database. */
export class OutboxPump {
  readonly #ports: PumpPorts
  #state: SenderState | undefined
  #cancelTimer: Cancel = () => {}

  constructor(ports: PumpPorts) {
    this.#ports = ports
  }

  /** The hub's receiver stands at `cursor` of the epoch. */
  async connect(position: SenderPosition, cursor: number): Promise<void> {
    this.#cancelTimer()
    this.#state = initialSender(position)
    // Whether the hub's position is of our history was judged with its hello (`adopt-outbox.ts`).
    await this.#dispatch({ type: 'connected', cursor, ours: true, atLeast: 0 })
  }

  /** Goes on from what the database says, for a hub whose welcome another process sent. */
  async resume(): Promise<void> {
    const { context, hubId } = this.#ports
    const position = await readPosition(context.db.kysely, hubId)
    if (position) await this.connect(position, position.base)
  }

  async disconnect(): Promise<void> {
    await this.#dispatch({ type: 'disconnected' })
  }

  get isConnected(): boolean {
    return this.#state?.connected ?? false
  }

  /** The outbox may have grown. */
  async look(): Promise<void> {
    if (!this.#state?.connected) return
    const { context, hubId } = this.#ports
    const position = await readPosition(context.db.kysely, hubId)
    if (position?.epoch !== this.#state.epoch) return this.resume()
    if (position.last > this.#state.last) await this.#dispatch({ type: 'appended', last: position.last })
  }

  async acked(ack: Ack): Promise<void> {
    if (!this.#state?.connected || ack.epoch !== this.#state.epoch) return
    // Another process may have appended what is acknowledged before this one has looked.
    if (ack.cursor > this.#state.last) await this.look()
    const { context, hubId } = this.#ports
    const ours = await isOurHistory(context.db.kysely, hubId, ack)
    await this.#dispatch({ type: 'acked', ...ack, ours })
  }

  /** Ends all of it: the hub is held no longer. */
  stop(): void {
    this.#cancelTimer()
    this.#state = undefined
  }

  async #dispatch(event: SenderEvent): Promise<void> {
    if (!this.#state) return
    const { state, effects } = stepSender(this.#state, event, this.#ports.settings.sender)
    this.#state = state
    for (const effect of effects) await this.#carryOut(effect, state.epoch)
  }

  async #carryOut(effect: SenderEffect, epoch: string): Promise<void> {
    const { context, hubId } = this.#ports
    switch (effect.type) {
      case 'send':
        return this.#send(epoch, effect.first, effect.count)
      case 'forget':
        await context.db.transact((tx) => forgetEntries(tx, hubId, epoch, effect.through))
        return
      case 'arm':
        this.#cancelTimer()
        this.#cancelTimer = context.runtime.clock.after(effect.afterMs, () =>
          this.#ports.turn('resend', () => this.#dispatch({ type: 'timeout' })),
        )
        return
      case 'disarm':
        this.#cancelTimer()
        return
      case 'fork':
        this.#ports.onFork()
        return
    }
  }

  async #send(epoch: string, first: number, count: number): Promise<void> {
    const { context, hubId, settings, publish } = this.#ports
    const { base, entries, previousTag } = await readEntries(context.db.kysely, hubId, epoch, first, count)
    // Acknowledged meanwhile by way of another process: the next look or acknowledgement goes on from there.
    if (previousTag === undefined) return
    for (const batch of split(entries, settings.batchBytes)) {
      const before = batch[0]!.seq === first ? previousTag : entries[batch[0]!.seq - first - 1]!.tag
      publish({
        epoch,
        first: batch[0]!.seq,
        previousTag: before,
        oldest: base + 1,
        entries: batch.map(({ tag, body }) => ({ tag, body: JSON.parse(body) as unknown })),
      })
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
