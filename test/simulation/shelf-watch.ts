import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { WatchEvidence } from '../invariants/evidence.ts'
import type { CloudStore } from './cloud-store.ts'
import type { LedgerPlace } from './hub-node.ts'
import type { Scheduler } from './scheduler.ts'
import type { Site } from './stage.ts'

const S = OrderStatus

type SoldBlind = WatchEvidence['soldBlind'][number]

interface Parts {
  scheduler: Scheduler
  store: CloudStore
  sites: readonly Site[]
}

/** Of a product a hub dispenses nothing: all rows of it in which something stands are blocked, or behind a shutoff. */
interface Withheld {
  /** What the hub says of its rows; other words are another matter, which has to be told again. */
  rows: string
  /** Since when the cloud has known, or undefined while it does not. */
  toldAt: number | undefined
}

/**
 * Who sells what a hub has told that it will not dispense (I11). A cart is judged by when it was frozen: what the cloud knew
 * at the look before that, and what still held at the look after. What the hub withholds is asked of its service, not of
 * what it reports; that the cloud has been told, of how far the cloud's books are with the hub's ledger.
 */
export class ShelfWatch {
  readonly #parts: Parts
  readonly #withheld = new Map<number, Map<number, Withheld>>()
  /** Checkouts that have been looked at, by the order's UUID of that checkout. */
  readonly #judged = new Set<string>()
  /** Carts that were frozen blind, and are not paid yet. */
  readonly #blind = new Map<string, SoldBlind>()
  /** Of the cloud's books, and of each hub's store. */
  readonly #generations = new Map<number, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    for (const { hubId } of parts.sites) this.#withheld.set(hubId, new Map())
  }

  /** The sales that have come to light since the last look, with the hub that they were made at. */
  async look(): Promise<{ hubId: number; sale: SoldBlind }[]> {
    const { store, sites } = this.#parts
    // Books that are an older copy have not been told what the former had, and a hub's other store does not know it: it is
    // known once it is told again.
    for (const { hubId, hub } of sites) {
      const generation = `${store.generation} ${hub.generation}`
      if (this.#generations.get(hubId) !== generation) this.#withheld.get(hubId)!.clear()
      this.#generations.set(hubId, generation)
    }
    const knewBefore = new Map<number, number>()
    for (const site of sites) await this.#lookAtShelves(site, knewBefore)
    return this.#lookAtOrders(knewBefore)
  }

  /** Notes by product since when the cloud has known, where it did at the look before and nothing has changed meanwhile. */
  async #lookAtShelves({ hubId, hub }: Site, knewBefore: Map<number, number>): Promise<void> {
    const known = this.#withheld.get(hubId)!
    // A hub that is down tells nothing; what it cleared in its last moments, it will dispense when it comes back.
    const { stock } = hub
    if (stock !== undefined) {
      const counted = await this.#productsWithCounts(hubId)
      for (const productId of new Set(stock.map(({ product_id }) => product_id))) {
        const rows = stock.filter(({ product_id, quantity }) => product_id === productId && quantity > 0)
        // What its owner has disabled the cloud knows first; a count of the owner's holds before the hub has it.
        const isWithheld =
          rows.length > 0 &&
          rows.every(({ blocked }) => blocked !== null && blocked !== 'disabled') &&
          !counted.has(productId)
        const before = known.get(productId)
        if (!isWithheld) known.delete(productId)
        else if (before?.rows !== JSON.stringify(rows))
          known.set(productId, { rows: JSON.stringify(rows), toldAt: undefined })
      }
    }
    for (const [productId, { toldAt }] of known) if (toldAt !== undefined) knewBefore.set(productId, toldAt)
    if (hub.hub === undefined || !(await this.#isTold(hubId, hub.toldUpTo()))) return
    for (const withheld of known.values()) withheld.toldAt ??= this.#parts.scheduler.time
  }

  async #productsWithCounts(hubId: number): Promise<Set<number>> {
    const counts = await this.#parts.store.reader.kysely
      .selectFrom('stock_counts')
      .select('product_id')
      .where('hub_id', '=', hubId)
      .where('settled_at', 'is', null)
      .execute()
    return new Set(counts.map(({ product_id }) => product_id))
  }

  /** The cloud's books have taken in what the hub has reported last. */
  async #isTold(hubId: number, place: LedgerPlace | undefined): Promise<boolean> {
    if (place === undefined) return false
    const current = await this.#parts.store.reader.kysely
      .selectFrom('hub_streams')
      .select('epoch')
      .where('is_current', '=', 1)
      .where((eb) => eb.and({ hub_id: hubId, stream: 'ledger', ...place }))
      .executeTakeFirst()
    return current !== undefined
  }

  async #lookAtOrders(knewBefore: ReadonlyMap<number, number>) {
    const { store, scheduler } = this.#parts
    const lines = await store.reader.kysely
      .selectFrom('orders as o')
      .innerJoin('order_items as i', 'i.order_id', 'o.id')
      .select(['o.id', 'o.uuid', 'o.hub_id', 'o.queued_at', 'i.product_id'])
      .where('o.processing_status', '>', S.NEW)
      .execute()
    for (const { id, uuid, product_id } of lines) {
      const toldAt = knewBefore.get(product_id)
      if (this.#judged.has(uuid) || toldAt === undefined) continue
      this.#blind.set(uuid, { order_id: id, product_id, forMs: scheduler.time - toldAt })
    }
    const sales = []
    for (const { uuid, hub_id: hubId, queued_at } of lines) {
      this.#judged.add(uuid)
      const sale = this.#blind.get(uuid)
      if (sale === undefined || queued_at === null) continue
      this.#blind.delete(uuid)
      sales.push({ hubId, sale })
    }
    return sales
  }
}
