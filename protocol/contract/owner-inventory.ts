import { z } from 'zod'
import { isUpc } from '../model/upc.ts'
import { Location } from '../model/location.ts'
import { Cents, Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** O §2, product, with the fields of the inventory listing. */
export const InventoryProduct = z
  .object({
    id: Id,
    name: z.string(),
    upc: z.string(),
    quantity: z.int(),
    /** Of `quantity` what customers can buy now: neither reserved nor where the hub does not dispense from. */
    sellable_quantity: z.int(),
    original_price: Cents,
    discounted_price: Cents,
    purchase_price: Cents,
    cabinet: z.int(),
    shelf: z.int(),
    row: z.int(),
    category: z.string(),
  })
  .meta({ id: 'InventoryProduct' })
export type InventoryProduct = z.infer<typeof InventoryProduct>

/** O §2, product, with every field. */
export const OwnerProduct = InventoryProduct.extend({ image_url: z.string() }).meta({ id: 'OwnerProduct' })

/** One row of a hub, and what stands in it. */
export const Facing = z
  .object({
    ...Location.shape,
    /** Null where no product has the place. */
    product_id: Id.nullable(),
    quantity: z.int(),
    /** How many units it holds. */
    capacity: z.int(),
    /** Nothing is dispensed from it, and so nothing sold. */
    blocked: z.boolean(),
    /**
     * What its controller said of the last dispense (`jam`, `no_drop`, …), `silent` (the controller itself), `shutoff` (the
     * fridge was too warm), or `disabled` (the fridge).
     */
    blocked_reason: z.string().nullable(),
    counted_at: Timestamp.nullable(),
  })
  .meta({ id: 'Facing' })
export type Facing = z.infer<typeof Facing>

/** The most that can be typed: more units than any hub holds, a higher price than anything has. */
const MAX_UNITS = 1_000_000
const MAX_CENTS = 100_000_000

const product = {
  id: 17,
  name: 'Sparkling Water 0.5 l',
  upc: '200000400070',
  quantity: 12,
  sellable_quantity: 11,
  original_price: 199,
  discounted_price: 179,
  purchase_price: 85,
  cabinet: 1,
  shelf: 2,
  row: 3,
  category: 'Drinks',
}
const full = {
  ...product,
  image_url: 'https://larder.example/files/products/sparkling-water.webp?expires=1900000000&signature=Zm9v',
}
const { cabinet: _cabinet, shelf: _shelf, row: _row, ...found } = full

const facing = {
  cabinet: 2,
  shelf: 1,
  row: 4,
  product_id: 17,
  quantity: 7,
  capacity: 12,
  blocked: false,
  blocked_reason: null,
  counted_at: '2026-11-20T14:30:00.000Z',
}

const params = z.object({ product_id: Id })

/** O §4.2. */
export const ownerInventoryRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'inventory:write' }, rate: 'low', tag: 'Inventory' },
  {
    'owner.inventory.list': {
      at: 'GET /owners/hub_inventory/',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({ hub_id: Id }),
      hub: 'hub_id',
      response: z.array(InventoryProduct),
      summary: "A hub's products with stock and prices",
      examples: { response: [product] },
    },
    'owner.inventory.lookup': {
      at: 'GET /owners/hubs/product/',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({
        hub_id: Id,
        cabinet: z.int().min(1).max(4),
        shelf: z.int().min(1),
        row: z.int().min(1),
      }),
      hub: 'hub_id',
      response: OwnerProduct.omit({ cabinet: true, shelf: true, row: true }),
      errors: ['product_not_found'],
      badValues: {
        'query.cabinet': 'invalid_location',
        'query.shelf': 'invalid_location',
        'query.row': 'invalid_location',
      },
      summary: 'The product that has a place in a hub',
      description:
        '`invalid_location` for a place that the hub does not have, `product_not_found` for one that nothing has.',
      examples: { response: found },
    },
    'owner.facings.list': {
      at: 'GET /owners/hubs/facings',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({ hub_id: Id }),
      hub: 'hub_id',
      response: z.array(Facing),
      summary: "The rows of a hub's cabinets, with what stands in each and what is not dispensed",
      examples: {
        response: [
          facing,
          { ...facing, row: 5, quantity: 3, blocked: true, blocked_reason: 'jam', counted_at: null },
        ],
      },
    },
    'owner.facings.count': {
      at: 'PUT /owners/hubs/facings',
      rate: 'standard',
      body: z.strictObject({
        hub_id: Id,
        cabinet: z.int().min(1).max(4),
        shelf: z.int().min(1),
        row: z.int().min(1),
        quantity: z.int().min(0).max(MAX_UNITS),
      }),
      response: Facing,
      errors: ['hub_not_found', 'hub_access_denied', 'product_not_found'],
      badValues: {
        'body.cabinet': 'invalid_location',
        'body.shelf': 'invalid_location',
        'body.row': 'invalid_location',
        'body.quantity': 'invalid_quantity',
      },
      summary: 'Count one row',
      description:
        'As a count of a product, of one of its rows: shown at once, and the hub sets the row to it less what dropped meanwhile. A row that was blocked is sold from and tried again. `invalid_location` for a place that the hub does not have, `invalid_quantity` for more than it holds, `product_not_found` for one that nothing has.',
      examples: {
        body: { hub_id: 1, cabinet: 2, shelf: 1, row: 4, quantity: 7 },
        response: facing,
      },
    },
    'owner.inventory.update_quantity': {
      at: 'PUT /owners/hubs/product/{product_id}/update_quantity',
      params,
      body: z.strictObject({ quantity: z.int().min(0).max(MAX_UNITS) }),
      response: z.object({ data: OwnerProduct }),
      errors: ['product_not_found'],
      badValues: { 'body.quantity': 'invalid_quantity' },
      summary: "Count a product's stock",
      description:
        'A count, not an overwrite: it is shown at once and travels to the hub, which sets its stock to the count less what it dropped after it was typed.',
      examples: { body: { quantity: 12 }, response: { data: full } },
    },
    'owner.inventory.update_price': {
      at: 'PUT /owners/product/{product_id}/update_price',
      params,
      body: z.strictObject({ price: z.int().min(1).max(MAX_CENTS) }),
      response: z.object({ data: OwnerProduct }),
      errors: ['product_not_found'],
      badValues: { 'body.price': 'invalid_price' },
      summary: "Set a product's price",
      description:
        'Sets `original_price`; `discounted_price` follows by the markdown that the product has. Orders that are being paid keep their prices.',
      examples: { body: { price: 199 }, response: { data: full } },
    },
    'owner.inventory.update_purchase_price': {
      at: 'PUT /owners/product/{product_id}/update_purchase_price',
      params,
      body: z.strictObject({ purchase_price: z.int().min(0).max(MAX_CENTS) }),
      response: z.object({ data: OwnerProduct }),
      errors: ['product_not_found'],
      badValues: { 'body.purchase_price': 'invalid_purchase_price' },
      summary: "Set a product's wholesale cost",
      examples: { body: { purchase_price: 85 }, response: { data: full } },
    },
    'owner.inventory.update_upc': {
      at: 'PUT /owners/product/{product_id}/update_upc',
      params,
      body: z.strictObject({
        upc: z
          .string()
          .max(12)
          .refine(isUpc, 'must be a UPC: 12 digits, of which the last checks the others')
          .meta({ pattern: '^\\d{12}$', description: '12 digits, of which the last checks the others.' }),
      }),
      response: z.object({ success: z.literal(true), data: z.object({ id: Id, upc: z.string() }) }),
      errors: ['product_not_found', 'duplicate_upc'],
      badValues: { 'body.upc': 'invalid_upc' },
      summary: "Set a product's barcode",
      examples: {
        body: { upc: '036000291452' },
        response: { success: true, data: { id: 17, upc: '036000291452' } },
      },
    },
  },
)
