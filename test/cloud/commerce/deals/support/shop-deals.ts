import type { Selectable } from 'kysely'
import type { z } from 'zod'
import { NewDeal } from '../../../../../protocol/contract/deal-objects.ts'
import { createDeal, dealOf } from '../../../../../cloud/commerce/deals/write-deals.ts'
import type { Tables } from '../../../../../cloud/platform/store/schema.ts'
import type { Shop } from '../../../../world/shop.ts'

export type Wish = Partial<z.input<typeof NewDeal>> & Pick<z.input<typeof NewDeal>, 'rewards'>

/** A deal at the shop's hub that always applies unless the test says otherwise; returns its id. */
export async function addDeal({ context }: Shop, wish: Wish): Promise<number> {
  const deal = NewDeal.parse({ name: 'A deal', hub_id: 1, triggers: [{ type: 'ALWAYS' }], ...wish })
  const { row } = await createDeal(context, { keep: () => Promise.resolve() }, dealOf(deal, 'test'))
  return row.id
}

export const redemptionsOf = ({ context }: Shop): Promise<Selectable<Tables['deal_redemptions']>[]> =>
  context.db.kysely.selectFrom('deal_redemptions').selectAll().orderBy('id').execute()
