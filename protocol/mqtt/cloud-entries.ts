import { z } from 'zod'
import { WantedLine } from '../model/hub-commands.ts'
import { Location } from '../model/location.ts'
import { Hex128, OrderId } from './session.ts'

/** The entries of the cloud's outbox stream to a hub. Times are the cloud's, in milliseconds since the Unix epoch. */

export const QueuedOrder = z.object({
  order_id: OrderId,
  /** The number that people see. A restored cloud may assign it again, so no lookup uses it. */
  number: z.int(),
  lines: z.array(z.object({ line_id: z.int(), product_id: z.int(), quantity: z.int().min(1) })).min(1),
  /** The bin that the cloud reserved, if any; otherwise the hub chooses. */
  bin: z.int().nullable(),
  /** The bins open automatically at READY (an integrator's order). */
  open_when_ready: z.boolean(),
  queued_at: z.number(),
  /** If the hub has not started the order by then, it does not start it (I2 for orders): it reports TIMED_OUT. */
  start_by: z.number(),
  /**
   * The hub's ledger epoch when the order was queued. A hub with another epoch may have had this order in an earlier
   * life: it dispenses only units that its controllers can account for.
   */
  hub_epoch: Hex128.nullable(),
})
export type QueuedOrder = z.infer<typeof QueuedOrder>

export const Facing = z.object({ product_id: z.int(), location: Location, primary: z.boolean() })
export type Facing = z.infer<typeof Facing>

/** The name and barcode of a product, for people at the hub. */
export const NamedProduct = z.object({ product_id: z.int(), name: z.string(), upc: z.string() })
export type NamedProduct = z.infer<typeof NamedProduct>

/** A person who may use the page of the hub. `pin_digest`: see `model/pin.ts`. */
export const PersonAtHub = z.object({ name: z.string(), pin_digest: z.string() })
export type PersonAtHub = z.infer<typeof PersonAtHub>

export const HubConfig = z.object({
  accepting_orders: z.boolean(),
  disabled_bins: z.array(z.int()),
  disabled_fridges: z.array(z.int()),
  /** When a person last confirmed each fridge: a shutoff before that time is over. */
  confirmed_fridges: z.array(z.object({ fridge_number: z.int(), at: z.number() })),
  prepare_timeout_ms: z.int().positive(),
  unclaimed_timeout_ms: z.int().positive(),
  /** Absent in entries of an older cloud, and in what an older hub stored. */
  people: z.array(PersonAtHub).default([]),
})
export type HubConfig = z.infer<typeof HubConfig>

/** The release of the hub's service that a rollout gives to a hub (SPEC §12). */
export const DesiredRelease = z.object({
  version: z.string().regex(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/),
  /** Address of the releases: `https://larder.example/releases`. */
  url: z.url({ protocol: /^https?$/ }),
  /** Id of the rollout: a hub tries a release once for each rollout. */
  rollout: z.uuid(),
  /** Trusted root of the releases (TUF, JSON), for a hub that has none. Absent from an older cloud. */
  root: z.string().max(65_536).optional(),
})
export type DesiredRelease = z.infer<typeof DesiredRelease>

/**
 * The settings and the hardware description that the cloud stores for a hub (SPEC §12). The hub tries a version and
 * returns to the former one if it does not work (`Hello.desired`).
 */
export const DesiredState = z.object({
  /** Each change adds 1. A restored cloud may use a number again, so the hub compares the content, too. */
  version: z.int().min(1),
  /** By the names of the hub's settings. */
  settings: z.record(z.string(), z.string()),
  /** As in `hardware.json`; null if the cloud has none: the hub then uses its own and reports it. */
  hardware: z.record(z.string(), z.unknown()).nullable(),
  /** Null: no rollout gives the hub a release. It has no part in the version. Absent from an older cloud. */
  software: DesiredRelease.nullable().optional(),
})
export type DesiredState = z.infer<typeof DesiredState>

export const StockCount = z.object({
  count_id: z.uuid(),
  product_id: z.int(),
  /** The counted row; null: the product at all its rows. */
  location: Location.nullable(),
  quantity: z.int().min(0),
  /** The hub sets the stock to the count minus its drops after this instant. */
  counted_at: z.number(),
})
export type StockCount = z.infer<typeof StockCount>

export const CloudEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('order.queued'), order: QueuedOrder }),
  /**
   * The cloud has ended the order. The hub cancels it and reports that; if the order has started, the hub dispenses
   * nothing more.
   */
  z.object({ kind: z.literal('order.cancel'), order_id: OrderId }),
  /** Units of an order were refunded: units whose dispense has not started stay on the shelf. */
  z.object({ kind: z.literal('order.reduce'), order_id: OrderId, lines: z.array(WantedLine).min(1) }),
  z.object({ kind: z.literal('stock.count'), count: StockCount }),
  z.object({
    kind: z.literal('planogram'),
    facings: z.array(Facing),
    /** All products in the hub. Absent in entries of an older cloud. */
    products: z.array(NamedProduct).optional(),
  }),
  z.object({ kind: z.literal('config'), config: HubConfig }),
  z.object({ kind: z.literal('desired'), desired: DesiredState }),
  /** The first entry of every epoch. A hub with its own store does not replace its better knowledge. */
  z.object({
    kind: z.literal('snapshot'),
    config: HubConfig,
    desired: DesiredState.optional(),
    facings: z.array(Facing),
    products: z.array(NamedProduct).optional(),
    /** The cloud's mirror of the hub's ledger. Only a hub with a new or restored store uses it. */
    stock: z.array(z.object({ product_id: z.int(), location: Location, quantity: z.int() })),
    /** The operations that this stock includes, newest last. */
    known_operations: z.array(z.uuid()),
    /** Counts that the hub may not have applied: their own entries may have been lost with the former epoch. */
    counts: z.array(StockCount).optional(),
    /**
     * Orders in QUEUED to COLLECTING, with their known drops. The hub cancels a queued order that is absent: the cloud
     * has ended it, or lost it with its last backup.
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
