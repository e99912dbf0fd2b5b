import { z } from 'zod'
import { Cents, Id } from './fields.ts'
import { defineRoutes } from './route.ts'

/** O §2, product, with the fields of the inventory listing. */
export const InventoryProduct = z
  .object({
    id: Id,
    name: z.string(),
    upc: z.string(),
    quantity: z.int(),
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

/** O §4.2. */
export const ownerInventoryRoutes = defineRoutes({
  'owner.inventory.list': {
    method: 'GET',
    path: '/owners/hub_inventory/',
    interface: 'owner',
    auth: { kind: 'api', scope: 'inventory:read' },
    rate: 'standard',
    query: z.object({ hub_id: Id }),
    hub: 'hub_id',
    response: z.array(InventoryProduct),
    tag: 'Inventory',
    summary: "A hub's products with stock and prices",
  },
})
