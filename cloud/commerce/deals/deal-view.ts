import type { Deal } from '../../../protocol/contract/deal-objects.ts'
import type { Media } from '../../platform/media/media.ts'
import type { DealRow, StoredDeal } from './deal-rows.ts'

type Addresses = Pick<Media, 'addressOf'>

export const imageOf = ({ image_key }: DealRow, media: Addresses): string | null =>
  image_key === null ? null : media.addressOf(image_key)

/** A deal as its owner sees it (O §2). */
export const viewDeal = ({ row, triggers, rewards, constraints }: StoredDeal, media: Addresses): Deal => ({
  id: row.id,
  name: row.name,
  description: row.description,
  display_text: row.display_text,
  display_image: imageOf(row, media),
  priority: row.priority,
  is_deal_active: row.is_active === 1,
  start: row.start_day,
  end: row.end_day,
  triggers: triggers.map(({ id, type, quantity, category, category_id, product_id }) => ({
    id,
    type,
    quantity,
    category,
    category_id,
    product_id,
  })),
  rewards: rewards.map(({ id, type, quantity, product_id, discount_pct_or_price }) => ({
    id,
    type,
    quantity,
    product_id,
    discount_pct_or_price,
  })),
  constraints: constraints.map(({ id, type, value }) => ({ id, type, value })),
})
