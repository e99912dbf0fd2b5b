import { z } from 'zod'
import { Cents, Id } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `quantity` is what can still be bought; the purchase price is nobody's business here. */
export const Product = z
  .object({
    id: Id,
    name: z.string(),
    upc: z.string(),
    description: z.string().nullable(),
    category_id: Id,
    category: z.string(),
    subcategory_id: Id.nullable(),
    subcategory: z.string().nullable(),
    original_price: Cents,
    discounted_price: Cents,
    quantity: z.int(),
    in_stock: z.boolean(),
    cabinet: z.int(),
    shelf: z.int(),
    row: z.int(),
    image_url: z.string(),
    is_bestseller: z.boolean(),
  })
  .meta({ id: 'Product' })
export type Product = z.infer<typeof Product>

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
    'consumer.products.list': {
      at: 'GET /hubs/{hub_id}/products',
      params: z.object({ hub_id: Id }),
      query: z.object({
        // Any number (C §4.7): of a category that is not there a hub has no products.
        subcategory_id: z.int().min(0).optional(),
        category_id: z.int().min(0).optional(),
        /** Words of the name, in whole or in part, in any case. */
        product_name: z.string().max(200).optional(),
        page: z.int().min(1).default(1),
        size: z.int().min(1).max(100).default(50),
      }),
      response: z.array(Product),
      headers: ['X-Total-Count', 'Link'],
      errors: ['hub_not_found'],
      summary: 'Search the products of a hub',
      description:
        'The header `X-Total-Count` says how many there are in all, `Link` where the other pages are.',
    },
    'consumer.products.get': {
      at: 'GET /hubs/{hub_id}/products/{product_id}',
      params: z.object({ hub_id: Id, product_id: Id }),
      response: Product,
      errors: ['hub_not_found', 'product_not_found'],
      summary: 'Read a product of a hub',
    },
  },
)
