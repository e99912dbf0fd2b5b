import { unwrap, type Client } from '../client.ts'

/** One row to refill. */
export interface Missing {
  place: string
  product: string
  units: number
}

/** A restocker's list: the rows of a hub that are not full, with the missing units. */
export async function whatToBring(owner: Client, hubId: number): Promise<Missing[]> {
  const query = { hub_id: hubId }
  const products = unwrap(await owner.call('GET /owners/hub_inventory/', { query }))
  const names = new Map(products.map(({ id, name }) => [id, name]))
  const rows = unwrap(await owner.call('GET /owners/hubs/facings', { query }))
  return rows
    .filter(({ product_id, quantity, capacity }) => product_id !== null && quantity < capacity)
    .map(({ cabinet, shelf, row, product_id, quantity, capacity }) => ({
      place: `${cabinet}-${shelf}-${row}`,
      product: names.get(product_id!) ?? 'unknown',
      units: capacity - quantity,
    }))
}

/** Reports the counted units of a refilled row. A blocked row is sold again. */
export async function filled(
  owner: Client,
  row: { hub_id: number; cabinet: number; shelf: number; row: number; quantity: number },
): Promise<string> {
  const counted = await owner.call('PUT /owners/hubs/facings', { body: row })
  if (counted.ok) return `${counted.data.quantity} of ${counted.data.capacity}`
  // A 422 names the wrong field.
  const [problem] = counted.error.problems ?? []
  return `${counted.error.code}: ${problem?.msg ?? counted.error.message}`
}

/** Sold units of each product in the newest orders. The client reads the history page by page. */
export async function sold(owner: Client, hubId: number, mostOrders: number): Promise<Map<string, number>> {
  const units = new Map<string, number>()
  let orders = 0
  const history = owner.items('GET /owners/hubs/all_orders_paginated/', {
    query: { hub_id: hubId, limit: 50 },
  })
  for await (const { order_items } of history) {
    for (const { name, qty } of order_items) units.set(name, (units.get(name) ?? 0) + qty)
    orders += 1
    if (orders === mostOrders) break
  }
  return units
}
