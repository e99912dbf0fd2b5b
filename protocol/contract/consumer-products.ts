import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { Id, Cents, Currency, HubId, ProductId, ImageUrl, Upc, Page } from './fields.ts'
import { HubSummary } from './owner-hubs.ts'
import { defineRoutes } from './route.ts'

/** A product as customers see it: without its purchase price. */
export const Product = z
  .object({
    id: ProductId,
    name: z.string().describe('Name of the product.'),
    upc: Upc,
    description: z.string().nullable().describe('Description of the product; null if there is none.'),
    category_id: Id.describe('Number of the category.'),
    category: z.string().describe('Name of the category.'),
    subcategory_id: Id.nullable().describe('Number of the subcategory; null if there is none.'),
    subcategory: z.string().nullable().describe('Name of the subcategory; null if there is none.'),
    original_price: Cents.describe('Price of one unit before the markdown, in cents.'),
    discounted_price: Cents.describe(
      'Price of one unit after the markdown, in cents: the customer pays it, without tax and deals.',
    ),
    quantity: z.int().describe('Units that customers can buy now.'),
    in_stock: z.boolean().describe('True if `quantity` is above 0.'),
    cabinet: z.int().describe('Number of the cabinet.'),
    shelf: z.int().describe('Number of the shelf in its cabinet.'),
    row: z.int().describe('Number of the row on its shelf.'),
    image_url: ImageUrl,
    is_bestseller: z.boolean().describe('True if the product is a bestseller of its hub.'),
  })
  .meta({ id: 'Product', description: 'A product as customers see it.' })
export type Product = z.infer<typeof Product>

export const ClosedReason = namedEnum('ClosedReason', 'Reason why a hub sells nothing now.', {
  hub_inactive: 'the hub is not in service.',
  orders_stopped: 'the owner has stopped the intake of orders.',
  hub_offline: 'the hub is offline.',
  stream_stalled: 'the hub is online and its reports do not arrive.',
  hub_not_ready: 'the hub itself takes no orders, for example because its store is full.',
  no_bin_available: 'every delivery bin is in use.',
  out_of_stock: 'no product is left.',
})
export type ClosedReason = z.infer<typeof ClosedReason>

const CabinetReason = namedEnum('ClosedCabinetReason', 'Reason why nothing is sold from a cabinet.', {
  shutoff: 'its fridge was too warm.',
  silent: 'its controller does not answer.',
  disabled: 'the owner has switched its fridge off.',
})

const CardProcessorName = namedEnum('CardProcessorName', 'Card processor of the service.', {
  sandbox: 'a sandbox for trials, which takes the names of test cards.',
  stripe: 'Stripe.',
})

export const Storefront = HubSummary.extend({
  timezone: z.string().describe('Time zone (IANA).'),
  currency: Currency,
  closed_reason: ClosedReason.nullable().describe(
    'Reason why nothing is sold now; null if the hub sells. Payment checks it again.',
  ),
  closed_cabinets: z
    .array(
      z
        .object({ cabinet: z.int().describe('Number of the cabinet.'), reason: CabinetReason })
        .meta({ id: 'ClosedCabinet', description: 'A cabinet from which nothing is sold now.' }),
    )
    .describe('Cabinets from which nothing is sold now.'),
  cards: z
    .object({
      processor: CardProcessorName,
      publishable_key: z
        .string()
        .nullable()
        .describe('Public key for the processor’s own form; null if the operator has set none.'),
    })
    .meta({ id: 'CardForm', description: 'Data for the processor’s form for cards.' }),
}).meta({ id: 'Storefront', description: 'A hub as customers see it.' })
export type Storefront = z.infer<typeof Storefront>

/** C §4.7. */
export const consumerProductRoutes = defineRoutes(
  {
    interface: 'consumer',
    auth: { kind: 'optional-identity' },
    rate: 'standard',
    validated: 'public',
    tag: 'Products',
  },
  {
    'consumer.hubs.get': {
      at: 'GET /hubs/{hub_id}',
      params: z.object({ hub_id: HubId }),
      response: Storefront,
      errors: ['hub_not_found'],
      summary: 'Read a hub: its name, its address, and whether it sells now',
      description:
        'A page reads it before the customer fills a cart. `checkout-available` checks a certain cart. It takes no credential.',
    },
    'consumer.products.list': {
      at: 'GET /hubs/{hub_id}/products',
      params: z.object({ hub_id: HubId }),
      query: z.object({
        // Any number (C §4.7): an unknown category has no products.
        subcategory_id: z
          .int()
          .min(0)
          .optional()
          .describe('Only products of this subcategory. If it is left out: all subcategories.'),
        category_id: z
          .int()
          .min(0)
          .optional()
          .describe('Only products of this category. If it is left out: all categories.'),
        product_name: z
          .string()
          .max(200)
          .optional()
          .describe('Words of the name, whole or in part, in any case. If it is left out: all names.'),
        page: Page,
        size: z.int().min(1).max(100).default(50).describe('Maximum number of products of the page.'),
      }),
      response: z.array(Product),
      headers: ['X-Total-Count', 'Link'],
      errors: ['hub_not_found'],
      summary: 'Search the products of a hub',
      description:
        'The header `X-Total-Count` contains the number of products on all pages, `Link` the addresses of the other pages.',
    },
    'consumer.products.get': {
      at: 'GET /hubs/{hub_id}/products/{product_id}',
      params: z.object({ hub_id: HubId, product_id: ProductId }),
      response: Product,
      errors: ['hub_not_found', 'product_not_found'],
      summary: 'Read a product of a hub',
      description: 'One product with its price, stock and place. It takes no credential.',
    },
  },
)
