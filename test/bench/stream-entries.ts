import type { Runtime } from '../../protocol/model/runtime.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'

/** Products of the benchmark's hub, each in its own facing. */
export const PRODUCTS = 40

/** The most frequent reports of a hub: drops, with a restock after every ten. `n` counts from 0. */
export function stockEntry(n: number, runtime: Runtime): HubEntry {
  const product = (n % PRODUCTS) + 1
  const at = 1_767_225_600_000 + n
  const location = { cabinet: 1, shelf: 1, row: product }
  if (n % 11 === 10)
    return {
      kind: 'stock.restocked',
      at,
      product_id: product,
      location,
      delta: 10,
      quantity: 100,
      restock_id: uuidv7(runtime),
    }
  return {
    kind: 'stock.dropped',
    at,
    product_id: product,
    location,
    delta: -1,
    quantity: 90,
    operation_id: uuidv7(runtime),
    order_id: null,
    line_id: null,
    delivered: 0,
    bin: 1 + (n % 4),
  }
}
