import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { WatchEvidence } from '../invariants/evidence.ts'
import type { CloudStore } from './cloud-store.ts'
import type { LedgerPlace } from './hub-node.ts'
import type { Scheduler } from './scheduler.ts'
import type { Site } from './stage.ts'

const S = OrderStatus

type SoldBlind = WatchEvidence['soldUnsellable'][number]

interface Parts {
  scheduler: Scheduler
  store: CloudStore
  sites: readonly Site[]
}

/** Unsellable products: all filled rows of a product are blocked, or behind a shutoff. */
interface Withheld {
  /** The hub's report of its rows; a different report is a new fact, which the hub must publish again. */
  rows: string
  /** When the cloud received the report; undefined before. */
  toldAt: number | undefined
}

/**
 * Finds sales of products that a hub has reported as unsellable (I11). A cart is judged by the time of its
 * checkout: by the cloud's knowledge at the check before it, if it still holds at the check after it. The
 * blocked rows come from the hub's service, not from its reports. The cloud's knowledge comes from its
 * position in the hub's ledger.
 */
export class ShelfWatch {
  readonly #parts: Parts
  readonly #withheld = new Map<number, Map<number, Withheld>>()
  /** Checked orders, by their UUID of that checkout. */
  readonly #judged = new Set<string>()
  /** Carts that were frozen with an unsellable product, and are not paid yet. */
  readonly #blind = new Map<string, SoldBlind>()
  /** Generations of the cloud's database and of each hub's store. */
  readonly #generations = new Map<number, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    for (const { hubId } of parts.sites) this.#withheld.set(hubId, new Map())
  }

  /** Sales found since the last check, with their hubs. */
  async look(): Promise<{ hubId: number; sale: SoldBlind }[]> {
    const { store, sites } = this.#parts
    // After a restore the cloud's books lack later reports, and a hub's new store lacks the former's
    // knowledge. Such facts count once they are reported again.
    for (const { hubId, hub } of sites) {
      const generation = `${store.generation} ${hub.generation}`
      if (this.#generations.get(hubId) !== generation) this.#withheld.get(hubId)!.clear()
      this.#generations.set(hubId, generation)
    }
    const knewBefore = new Map<number, number>()
    for (const site of sites) await this.#lookAtShelves(site, knewBefore)
    return this.#lookAtOrders(knewBefore)
  }

  /**
   * Records per product how long the cloud has known, if it knew at the previous check and nothing has
   * changed since.
   */
  async #lookAtShelves({ hubId, hub }: Site, knewBefore: Map<number, number>): Promise<void> {
    const known = this.#withheld.get(hubId)!
    // A stopped hub reports nothing. It will dispense the rows that it cleared shortly before, once it
    // returns.
    const { stock } = hub
    if (stock !== undefined) {
      const counted = await this.#productsWithCounts(hubId)
      for (const productId of new Set(stock.map(({ product_id }) => product_id))) {
        const rows = stock.filter(({ product_id, quantity }) => product_id === productId && quantity > 0)
        // The cloud knows first about what its owner disabled, and an owner's count is valid before the hub
        // has it.
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
    if (hub.hub === undefined || !(await this.#isTold(hubId, hub.reportedUpTo()))) return
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

  /** Whether the cloud's books contain the hub's last report. */
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
