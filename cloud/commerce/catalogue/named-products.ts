import type { NamedProduct } from '../../../protocol/mqtt/cloud-entries.ts'
import type { Queries } from '../../platform/store/database.ts'

/** The names of the products in a hub, for people at the hub. */
export const namedProducts = (q: Queries, hubId: number): Promise<NamedProduct[]> =>
  q
    .selectFrom('products')
    .select(['id as product_id', 'name', 'upc'])
    .where('hub_id', '=', hubId)
    .where('id', 'in', (facings) =>
      facings.selectFrom('facings').select('product_id').where('hub_id', '=', hubId),
    )
    .orderBy('id')
    .execute()
