import { z } from 'zod'
import { UpcText } from '../model/upc.ts'
import { Location } from '../model/location.ts'
import { Id, Cents, Timestamp, HubId, ProductId, ImageUrl, Upc } from './fields.ts'
import { defineRoutes } from './route.ts'

/** O §2, product, with the fields of the inventory listing. */
export const InventoryProduct = z
  .object({
    id: ProductId,
    name: z.string().describe('Name of the product.'),
    upc: Upc,
    quantity: z.int().describe('Counted units.'),
    sellable_quantity: z
      .int()
      .describe(
        'Units that customers can buy now: counted, minus reserved, minus units that the hub does not dispense.',
      ),
    original_price: Cents.describe('Price of one unit before the markdown, in cents.'),
    discounted_price: Cents.describe(
      'Price of one unit after the markdown, in cents, without tax and deals.',
    ),
    purchase_price: Cents.describe('Wholesale cost of one unit, in cents.'),
    cabinet: z.int().describe('Number of the cabinet.'),
    shelf: z.int().describe('Number of the shelf in its cabinet.'),
    row: z.int().describe('Number of the row on its shelf.'),
    category: z.string().describe('Name of the category.'),
  })
  .meta({ id: 'InventoryProduct', description: 'A product of a hub with stock and prices.' })
export type InventoryProduct = z.infer<typeof InventoryProduct>

/** O §2, product, with every field. */
export const OwnerProduct = InventoryProduct.extend({ image_url: ImageUrl }).meta({
  id: 'OwnerProduct',
  description: 'A product of a hub with stock, prices and image.',
})

/** One row of a hub, with its product and stock. */
export const Facing = z
  .object({
    ...Location.shape,
    product_id: Id.nullable().describe('Number of the product; null if the row has no product.'),
    quantity: z.int().describe('Units in the row.'),
    capacity: z.int().describe('Number of units that the row holds.'),
    blocked: z.boolean().describe('True if nothing is dispensed from the row, and nothing of it is sold.'),
    blocked_reason: z
      .string()
      .nullable()
      .describe(
        'Reason of the block: the result of the last dispense (`jam`, `no_drop`, …), `silent` (the controller), `shutoff` (the fridge was too warm) or `disabled` (the fridge); null if the row is not blocked.',
      ),
    counted_at: Timestamp.nullable().describe(
      'Time of the last count (UTC); null if the row was never counted.',
    ),
  })
  .meta({ id: 'Facing', description: 'A row of a hub with its product and stock.' })
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

const params = z.object({ product_id: ProductId })

/** O §4.2. */
export const ownerInventoryRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'inventory:write' }, rate: 'low', tag: 'Inventory' },
  {
    'owner.inventory.list': {
      at: 'GET /owners/hub_inventory/',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({ hub_id: HubId }),
      hub: 'hub_id',
      response: z.array(InventoryProduct),
      summary: 'List a hub’s products with stock and prices',
      description: 'A product is listed once. `GET /api/v1/owners/hubs/facings` lists every row.',
      examples: { response: [product] },
    },
    'owner.inventory.lookup': {
      at: 'GET /owners/hubs/product/',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({
        hub_id: HubId,
        cabinet: z.int().min(1).max(4).describe('Number of the cabinet, 1 to 4.'),
        shelf: z.int().min(1).describe('Number of the shelf in its cabinet.'),
        row: z.int().min(1).describe('Number of the row on its shelf.'),
      }),
      hub: 'hub_id',
      response: OwnerProduct.omit({ cabinet: true, shelf: true, row: true }),
      errors: ['product_not_found'],
      badValues: {
        'query.cabinet': 'invalid_location',
        'query.shelf': 'invalid_location',
        'query.row': 'invalid_location',
      },
      summary: 'Find the product of a place',
      description:
        'A place that the hub does not have is 422 `invalid_location`. A place without a product is 404 `product_not_found`.',
      examples: { response: found },
    },
    'owner.facings.list': {
      at: 'GET /owners/hubs/facings',
      auth: { kind: 'api', scope: 'inventory:read' },
      rate: 'standard',
      query: z.object({ hub_id: HubId }),
      hub: 'hub_id',
      response: z.array(Facing),
      summary: 'List the rows of a hub with their product, stock and blocks',
      description: 'A blocked row has the reason in `blocked_reason`.',
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
        hub_id: HubId,
        cabinet: z.int().min(1).max(4).describe('Number of the cabinet, 1 to 4.'),
        shelf: z.int().min(1).describe('Number of the shelf in its cabinet.'),
        row: z.int().min(1).describe('Number of the row on its shelf.'),
        quantity: z.int().min(0).max(MAX_UNITS).describe('Units that were counted in the row.'),
      }),
      response: Facing,
      errors: ['hub_not_found', 'hub_access_denied', 'hub_not_accepting_orders', 'product_not_found'],
      badValues: {
        'body.cabinet': 'invalid_location',
        'body.shelf': 'invalid_location',
        'body.row': 'invalid_location',
        'body.quantity': 'invalid_quantity',
      },
      summary: 'Count one row',
      description:
        'The count is visible at once. The hub sets the row to the count, minus what it dispensed after the count. A blocked row is sold and tried again. A place that the hub does not have is 422 `invalid_location`, more units than the row holds are 422 `invalid_quantity`, a row without a product is 404 `product_not_found`.',
      examples: {
        body: { hub_id: 1, cabinet: 2, shelf: 1, row: 4, quantity: 7 },
        response: facing,
      },
    },
    'owner.inventory.update_quantity': {
      at: 'PUT /owners/hubs/product/{product_id}/update_quantity',
      params,
      body: z.strictObject({
        quantity: z
          .int()
          .min(0)
          .max(MAX_UNITS)
          .describe('Units that were counted, over all rows of the product.'),
      }),
      response: z.object({ data: OwnerProduct.describe('Product after the count.') }),
      errors: ['product_not_found', 'hub_not_accepting_orders'],
      badValues: { 'body.quantity': 'invalid_quantity' },
      summary: 'Count a product’s stock',
      description:
        'The count is visible at once. The hub sets its stock to the count, minus what it dispensed after the count. The count is spread over the rows of the product by their capacity.',
      examples: { body: { quantity: 12 }, response: { data: full } },
    },
    'owner.inventory.update_price': {
      at: 'PUT /owners/product/{product_id}/update_price',
      params,
      body: z.strictObject({
        price: z.int().min(1).max(MAX_CENTS).describe('Price of one unit before the markdown, in cents.'),
      }),
      response: z.object({ data: OwnerProduct.describe('Product with the new price.') }),
      errors: ['product_not_found', 'hub_not_accepting_orders'],
      badValues: { 'body.price': 'invalid_price' },
      summary: 'Set a product’s price',
      description:
        'Sets `original_price`. `discounted_price` follows from the markdown of the product. Orders that are being paid keep their prices.',
      examples: { body: { price: 199 }, response: { data: full } },
    },
    'owner.inventory.update_purchase_price': {
      at: 'PUT /owners/product/{product_id}/update_purchase_price',
      params,
      body: z.strictObject({
        purchase_price: z.int().min(0).max(MAX_CENTS).describe('Wholesale cost of one unit, in cents.'),
      }),
      response: z.object({ data: OwnerProduct.describe('Product with the new wholesale cost.') }),
      errors: ['product_not_found', 'hub_not_accepting_orders'],
      badValues: { 'body.purchase_price': 'invalid_purchase_price' },
      summary: 'Set a product’s wholesale cost',
      description: 'Profits of later sales use the new cost; past sales keep the cost of their time.',
      examples: { body: { purchase_price: 85 }, response: { data: full } },
    },
    'owner.inventory.update_upc': {
      at: 'PUT /owners/product/{product_id}/update_upc',
      params,
      body: z.strictObject({
        // The pattern describes the stored form. Other forms are accepted too.
        upc: UpcText.meta({
          pattern: '^\\d{12}$',
          description:
            'UPC of the product: 12 digits, the last one a check digit. Spaces, hyphens and the further zeros of an EAN-13 are accepted; the answer has the 12 digits.',
        }),
      }),
      response: z.object({
        success: z.literal(true).describe('Always true.'),
        data: z.object({ id: ProductId, upc: Upc }).describe('Product with the new UPC.'),
      }),
      errors: ['product_not_found', 'hub_not_accepting_orders', 'duplicate_upc'],
      badValues: { 'body.upc': 'invalid_upc' },
      summary: 'Set a product’s UPC',
      description:
        'A UPC belongs to one product of a hub: the UPC of another product is 409 `duplicate_upc`.',
      examples: {
        body: { upc: '036000291452' },
        response: { success: true, data: { id: 17, upc: '036000291452' } },
      },
    },
  },
)
