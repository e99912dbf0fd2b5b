import { readHubFacts } from './hubs.ts'
import { all, ask } from './session.ts'
import type { Change, TablePlace } from './table-changes.ts'

/** A row of a hub with its product. */
export interface Place extends TablePlace {
  capacity: number
  blocked: boolean
  blocked_reason: string | null
  image_url: string
}

/** Columns of the export. */
export const columns = [
  'cabinet',
  'shelf',
  'row',
  'product_id',
  'upc',
  'name',
  'quantity',
  'capacity',
  'price',
  'purchase_price',
  'blocked',
] as const satisfies readonly (keyof Place)[]

/** The rows of a hub that have a product. The customers' list has the pictures. */
export async function readPlaces(hub: number): Promise<{ hub: { name: string }; places: Place[] }> {
  const query = { hub_id: hub }
  const [info, facings, products, pictures] = await Promise.all([
    readHubFacts(hub),
    ask('GET /owners/hubs/facings', { query }),
    ask('GET /owners/hub_inventory/', { query }),
    all('GET /hubs/{hub_id}/products', { params: query }),
  ])
  const images = new Map(pictures.map(({ id, image_url }) => [id, image_url]))
  const places = facings.flatMap((facing) => {
    const product = products.find(({ id }) => id === facing.product_id)
    if (!product) return []
    const { cabinet, shelf, row, quantity, capacity, blocked, blocked_reason } = facing
    const { id: product_id, upc, name, original_price: price, purchase_price } = product
    return {
      cabinet,
      shelf,
      row,
      product_id,
      upc,
      name,
      quantity,
      capacity,
      price,
      purchase_price,
      blocked,
      blocked_reason,
      image_url: images.get(product_id) ?? '',
      currency: info.currency,
    }
  })
  return { hub: info, places }
}

/** Sends one change of an imported table. */
export function applyChange({ what, place, value }: Change, hub_id: number): Promise<unknown> {
  const { cabinet, shelf, row, product_id } = place
  const params = { product_id }
  if (what === 'quantity')
    return ask('PUT /owners/hubs/facings', { body: { hub_id, cabinet, shelf, row, quantity: value } })
  if (what === 'price')
    return ask('PUT /owners/product/{product_id}/update_price', { params, body: { price: value } })
  const body = { purchase_price: value }
  return ask('PUT /owners/product/{product_id}/update_purchase_price', { params, body })
}
