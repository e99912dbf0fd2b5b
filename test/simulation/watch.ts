import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { WatchEvidence } from '../invariants/evidence.ts'
import { ABSENT_MS } from './blows.ts'
import type { CloudNode } from './cloud-node.ts'
import type { CloudStore } from './cloud-store.ts'
import type { Limits } from './limits.ts'
import { EPOCH, type Scheduler } from './scheduler.ts'
import { ShelfWatch } from './shelf-watch.ts'
import type { Site } from './stage.ts'

const S = OrderStatus
const MINUTE = 60_000
const POLL_MS = 20_000
/** Time after a storm for connections, leases and delayed work. */
const SETTLING_MS = 5 * MINUTE
/** Time for the expired hold of a dead process, and for the poll that finds it. */
const HOLD_SLACK_MS = 2 * MINUTE
/** The longest pause between two polls of healthy work. */
const LONGEST_PAUSE_MS = 3 * MINUTE

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] }

interface Parts {
  scheduler: Scheduler
  store: CloudStore
  sites: readonly Site[]
  clouds: readonly CloudNode[]
  limits: Limits
  isStormy(): boolean
  plan(delayMs: number, run: () => unknown): void
}

/** An observer who polls the hubs and the cloud's books, and remembers how long each state has lasted. */
export class Watch {
  readonly #parts: Parts
  readonly #found = new Map<number, Mutable<WatchEvidence>>()
  /** When each present state began, by its name. */
  readonly #since = new Map<string, number>()
  readonly #told = new Set<string>()
  readonly #shelves: ShelfWatch
  /** When the last fault was ended. */
  #calmAt = Number.POSITIVE_INFINITY
  #absent: Site | undefined

  readonly #pollMs: number

  constructor(parts: Parts, pollMs = POLL_MS) {
    this.#parts = parts
    this.#pollMs = pollMs
    this.#shelves = new ShelfWatch(parts)
    for (const { hubId } of parts.sites)
      this.#found.set(hubId, { overstayed: [], waiting: [], soldUnsellable: [], refundedUnstarted: [] })
  }

  start(): void {
    this.#parts.plan(this.#pollMs, async () => {
      await this.#look()
      this.start()
    })
  }

  /** From now on the only fault is a silent hub. */
  calm(absent: Site | undefined): void {
    this.#calmAt = this.#parts.scheduler.time
    this.#absent = absent
  }

  of(hubId: number): WatchEvidence {
    return this.#found.get(hubId)!
  }

  async #look(): Promise<void> {
    const standing = new Set<string>()
    await this.#lookAtOrders(standing)
    await this.#lookAtRows(standing)
    for (const { hubId, sale } of await this.#shelves.look())
      this.#found.get(hubId)!.soldUnsellable.push(sale)
    await this.#lookAtRefunds()
    for (const name of this.#since.keys()) if (!standing.has(name)) this.#since.delete(name)
  }

  /** How long a state has lasted. */
  #stands(name: string, standing: Set<string>): number {
    standing.add(name)
    const now = this.#parts.scheduler.time
    if (!this.#since.has(name)) this.#since.set(name, now)
    return now - this.#since.get(name)!
  }

  /** How long there has been no fault. */
  #calmFor(): number {
    return this.#parts.scheduler.time - this.#calmAt
  }

  #once(name: string, tell: () => void): void {
    if (this.#told.has(name)) return
    this.#told.add(name)
    tell()
  }

  async #lookAtOrders(standing: Set<string>): Promise<void> {
    const orders = await this.#parts.store.reader.kysely
      .selectFrom('orders')
      .select(['id', 'uuid', 'hub_id', 'processing_status as status'])
      .where('processing_status', '>', S.NEW)
      .where('processing_status', '<', S.COMPLETED)
      .execute()
    for (const { id, uuid, hub_id, status } of orders) {
      // Each checkout gives an order another UUID.
      const name = `order ${id} ${uuid} ${phaseOf(status)}`
      const forMs = Math.min(this.#stands(name, standing), this.#calmFor())
      // Only the silent hub knows the result of an order that it has started.
      const absentMs = status >= S.PREPARING && hub_id === this.#absent?.hubId ? ABSENT_MS : 0
      if (forMs > this.#allowedMs(status) + absentMs)
        this.#once(name, () => this.#found.get(hub_id)!.overstayed.push({ order_id: id, status, forMs }))
    }
  }

  #allowedMs(status: OrderStatus): number {
    const { rules } = this.#parts.limits
    switch (phaseOf(status)) {
      case 'paying':
        // An unpaid order holds stock and bins for at most this time, independent of customer and processor.
        return rules.paymentHoldMs + HOLD_SLACK_MS
      case 'preparing':
        return rules.startWithinMs + rules.prepareTimeoutMs + SETTLING_MS
      case 'waiting':
        return rules.unclaimedTimeoutMs + SETTLING_MS
    }
  }

  async #lookAtRows(standing: Set<string>): Promise<void> {
    const { store, scheduler, sites, clouds } = this.#parts
    const long = this.#calmFor() > SETTLING_MS
    const now = EPOCH + scheduler.time
    const due = await store.reader.kysely
      .selectFrom('due_work')
      .select(['kind', 'subject', 'due_at', 'leased_until'])
      .where('due_at', '<', now - LONGEST_PAUSE_MS)
      .execute()
    for (const { kind, subject, due_at, leased_until } of due) {
      if (!long || !clouds[0]!.kinds.has(kind) || (leased_until ?? 0) > now) continue
      const row = `due work ${kind} ${subject}`
      const forMs = now - due_at!
      this.#once(row, () => this.#found.get(sites[0]!.hubId)!.waiting.push({ row, forMs }))
    }
    const outboxes = await store.reader.kysely
      .selectFrom('hub_outboxes')
      .select(['hub_id', 'base', 'epoch'])
      .whereRef('base', '<', 'last')
      .execute()
    for (const { hub_id, base, epoch } of outboxes) {
      const row = `entry ${base + 1} of epoch ${epoch} for hub ${hub_id}`
      const forMs = Math.min(this.#stands(row, standing), this.#calmFor())
      const absentMs = hub_id === this.#absent?.hubId ? ABSENT_MS : 0
      if (forMs > SETTLING_MS + absentMs)
        this.#once(row, () => this.#found.get(hub_id)!.waiting.push({ row, forMs }))
    }
  }

  /** Units that were refunded before their order started, from the time when the hub was informed. */
  async #lookAtRefunds(): Promise<void> {
    const { store, sites } = this.#parts
    const items = await store.reader.kysely
      .selectFrom('order_items as i')
      .innerJoin('orders as o', 'o.id', 'i.order_id')
      .innerJoin('hub_outboxes as b', 'b.hub_id', 'o.hub_id')
      .select(['o.id', 'o.uuid', 'o.hub_id', 'i.id as item_id', 'i.qty', 'i.refunded_quantity as refunded'])
      .select(['b.epoch', 'b.last'])
      .where('o.processing_status', '=', S.QUEUED)
      .where('i.refunded_quantity', '>', 0)
      .execute()
    for (const { id, uuid, hub_id, item_id, qty, refunded, epoch, last } of items) {
      const { hub, room } = sites.find(({ hubId }) => hubId === hub_id)!
      const heard = hub.appliedUpTo()
      // An order that the hub has started may still be QUEUED at the cloud.
      if (heard?.epoch !== epoch || heard.cursor < last || !hub.hasYetToStart(uuid)) continue
      this.#once(`line ${item_id} less ${refunded}`, () => {
        const begun = room.refOfOperation.size
        const line = { order_id: id, item_id, wanted: qty - refunded, begun }
        this.#found.get(hub_id)!.refundedUnstarted.push(line)
      })
    }
  }
}

function phaseOf(status: OrderStatus): 'paying' | 'preparing' | 'waiting' {
  if (status === S.PENDING_PAYMENT) return 'paying'
  return status < S.READY ? 'preparing' : 'waiting'
}
