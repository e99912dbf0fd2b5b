import { z } from 'zod'
import { WantedLine } from '../model/hub-commands.ts'
import { Location } from '../model/location.ts'
import { Hex128, OrderId } from './session.ts'

/** What the cloud tells a hub through its outbox stream. Times are the cloud's, milliseconds since the Unix epoch. */

export const QueuedOrder = z.object({
  order_id: OrderId,
  /** What people call it. A restored cloud may give the number out again: nothing is found by it. */
  number: z.int(),
  lines: z.array(z.object({ line_id: z.int(), product_id: z.int(), quantity: z.int().min(1) })).min(1),
  /** The bin that was reserved for it, if any; otherwise the hub chooses. */
  bin: z.int().nullable(),
  /** The bins open by themselves at READY (an integrator's order). */
  open_when_ready: z.boolean(),
  queued_at: z.number(),
  /** A hub that has not begun by then does not begin (I2 for orders): it reports TIMED_OUT. */
  start_by: z.number(),
  /**
   * The ledger epoch under which the hub was known when the order was queued. A hub with another history may have had
   * this order in an earlier life: it dispenses nothing of it that its controllers cannot account for.
   */
  hub_epoch: Hex128.nullable(),
})
export type QueuedOrder = z.infer<typeof QueuedOrder>

export const Facing = z.object({ product_id: z.int(), location: Location, primary: z.boolean() })
export type Facing = z.infer<typeof Facing>

/** What a product is called, and what its barcode says: for people who stand before the hub. */
export const NamedProduct = z.object({ product_id: z.int(), name: z.string(), upc: z.string() })
export type NamedProduct = z.infer<typeof NamedProduct>

export const HubConfig = z.object({
  accepting_orders: z.boolean(),
  disabled_bins: z.array(z.int()),
  disabled_fridges: z.array(z.int()),
  /** When people last confirmed each fridge: a shutoff before that is over. */
  confirmed_fridges: z.array(z.object({ fridge_number: z.int(), at: z.number() })),
  prepare_timeout_ms: z.int().positive(),
  unclaimed_timeout_ms: z.int().positive(),
})
export type HubConfig = z.infer<typeof HubConfig>

export const StockCount = z.object({
  count_id: z.uuid(),
  product_id: z.int(),
  /** The row that was counted; null: all that there is of the product, wherever it stands. */
  location: Location.nullable(),
  quantity: z.int().min(0),
  /** The hub sets the stock to the count less what it dropped after this instant. */
  counted_at: z.number(),
})
export type StockCount = z.infer<typeof StockCount>

export const CloudEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('order.queued'), order: QueuedOrder }),
  /** The cloud has ended the order: the hub cancels it and says so, or, where it has begun, dispenses nothing more of it. */
  z.object({ kind: z.literal('order.cancel'), order_id: OrderId }),
  /** Units of an order were refunded: what of them has not begun to be dispensed stays on the shelf. */
  z.object({ kind: z.literal('order.reduce'), order_id: OrderId, lines: z.array(WantedLine).min(1) }),
  z.object({ kind: z.literal('stock.count'), count: StockCount }),
  z.object({
    kind: z.literal('planogram'),
    facings: z.array(Facing),
    /** All that stand in the hub. Absent in what an older cloud has left in its outbox. */
    products: z.array(NamedProduct).optional(),
  }),
  z.object({ kind: z.literal('config'), config: HubConfig }),
  /** First in every epoch. What a hub with a store of its own already knows better it keeps. */
  z.object({
    kind: z.literal('snapshot'),
    config: HubConfig,
    facings: z.array(Facing),
    products: z.array(NamedProduct).optional(),
    /** The cloud's mirror of the hub's ledger: taken up only by a hub whose own store is new or was restored. */
    stock: z.array(z.object({ product_id: z.int(), location: Location, quantity: z.int() })),
    /** Operations already within that stock, newest last. */
    known_operations: z.array(z.uuid()),
    /** Counts that the hub is not known to have taken in: their own entries may have gone with the former epoch. */
    counts: z.array(StockCount).optional(),
    /**
     * Orders in QUEUED to COLLECTING, with what is known to have dropped. A queued one that is not among them the cloud
     * has ended, or has forgotten with its last backup: the hub cancels it.
     */
    orders: z.array(
      z.object({
        order: QueuedOrder,
        status: z.int(),
        lines: z.array(WantedLine.extend({ dropped: z.int(), bins: z.array(z.int()) })),
      }),
    ),
  }),
])
export type CloudEntry = z.infer<typeof CloudEntry>
