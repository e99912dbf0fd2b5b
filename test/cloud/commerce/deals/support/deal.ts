import {
  readTerms,
  type ConstraintType,
  type RewardType,
  type TriggerType,
} from '../../../../../protocol/model/deal-terms.ts'
import type {
  Cart,
  CartLine,
  Deal,
  Reward,
  Trigger,
} from '../../../../../cloud/commerce/deals/engine/deal.ts'
import { totalOf } from '../../../../../cloud/commerce/deals/engine/deal.ts'
import type { Circumstances, HubTime } from '../../../../../cloud/commerce/deals/engine/judge-deal.ts'

export interface Wording {
  id?: number
  priority?: number
  start?: string | null
  end?: string | null
  isActive?: boolean
  triggers?: readonly Trigger[]
  rewards: readonly Reward[]
  constraints?: Partial<Record<ConstraintType, string>>
}

/** A deal for the engine; it always applies unless the test says otherwise. */
export const deal = ({ id = 1, constraints = {}, ...given }: Wording): Deal => ({
  id,
  name: `Deal ${id}`,
  priority: 0,
  isActive: true,
  start: null,
  end: null,
  triggers: [trigger('ALWAYS')],
  terms: readTerms(
    Object.entries(constraints).map(([type, value]) => ({ type: type as ConstraintType, value })),
  ),
  ...given,
})

export const trigger = (
  type: TriggerType,
  quantity = 1,
  of: { product?: number; category?: number } = {},
): Trigger => ({ type, quantity, productId: of.product ?? null, categoryId: of.category ?? null })

export const reward = (
  type: RewardType,
  value = 0,
  of: { product?: number; quantity?: number } = {},
): Reward => ({ type, value, productId: of.product ?? null, quantity: of.quantity ?? null })

/** `[product, quantity, cents, categories…]` */
export const cart = (...lines: readonly (readonly [number, number, number, ...number[]])[]): Cart => {
  const read: CartLine[] = lines.map(([productId, quantity, unitPrice, ...categoryIds]) => ({
    productId,
    quantity,
    unitPrice,
    categoryIds,
  }))
  return { lines: read, total: totalOf(read) }
}

/** Wednesday, 12:00. */
export const noon: HubTime = { day: '2025-06-04', weekday: 3, minute: 720 }

export const circumstances = (given: Partial<Circumstances> = {}): Circumstances => ({
  time: noon,
  buyer: { paidOrders: null },
  usesOf: () => ({ total: 0, byUser: 0, byDevice: 0 }),
  ...given,
})
