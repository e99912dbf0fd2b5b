import type { Row } from './csv.ts'
import { money } from './format.ts'
import { readHubFacts } from './hubs.ts'
import { all, ask } from './session.ts'

/** A row of a hub with its product. */
export interface Place {
  cabinet: number
  shelf: number
  row: number
  product_id: number
  upc: string
  name: string
  quantity: number
  capacity: number
  price: number
  purchase_price: number
  blocked: boolean
  blocked_reason: string | null
  image_url: string
  /** Of its prices. */
  currency: string
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

/** One change of an imported table. */
export interface Change {
  text: string
  run: () => Promise<unknown>
}

/** The changes of a table against the present rows. Throws if a cell is no number, or a place is unknown. */
export function changesOf(places: readonly Place[], rows: readonly Row[], hub: number): Change[] {
  const changes = new Map<string, Change>()
  for (const [index, row] of rows.entries()) {
    const line = `Line ${index + 2}`
    const number = (name: string): number | undefined => {
      const text = row[name] ?? ''
      if (text === '') return undefined
      if (!/^\d+$/.test(text)) throw new Error(`${line}: ${name} must be a whole number, not “${text}”.`)
      return Number(text)
    }
    const at = { cabinet: number('cabinet'), shelf: number('shelf'), row: number('row') }
    const place = places.find(
      (one) => one.cabinet === at.cabinet && one.shelf === at.shelf && one.row === at.row,
    )
    if (!place) throw new Error(`${line}: the hub has no product at this place.`)
    for (const change of changesAt(place, hub, number)) changes.set(change.text, change)
  }
  return [...changes.values()]
}

function changesAt(place: Place, hub: number, number: (name: string) => number | undefined): Change[] {
  const { cabinet, shelf, row, name, product_id, currency } = place
  const params = { product_id }
  const [quantity, price, purchase] = [number('quantity'), number('price'), number('purchase_price')]
  const counted: Change[] =
    quantity === undefined || quantity === place.quantity
      ? []
      : [
          {
            text: `Row ${cabinet}/${shelf}/${row}: ${quantity} instead of ${place.quantity} ${name}`,
            run: () =>
              ask('PUT /owners/hubs/facings', { body: { hub_id: hub, cabinet, shelf, row, quantity } }),
          },
        ]
  const priced: Change[] =
    price === undefined || price === place.price
      ? []
      : [
          {
            text: `${name}: price ${money(price, currency)} instead of ${money(place.price, currency)}`,
            run: () => ask('PUT /owners/product/{product_id}/update_price', { params, body: { price } }),
          },
        ]
  const bought: Change[] =
    purchase === undefined || purchase === place.purchase_price
      ? []
      : [
          {
            text: `${name}: purchase price ${money(purchase, currency)} instead of ${money(place.purchase_price, currency)}`,
            run: () =>
              ask('PUT /owners/product/{product_id}/update_purchase_price', {
                params,
                body: { purchase_price: purchase },
              }),
          },
        ]
  return [...counted, ...priced, ...bought]
}
