import { fileOf, png } from '../../cloud/support/media-samples.ts'
import { addDeal } from '../../cloud/commerce/deals/support/shop-deals.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const tenPercent = (world: World): Promise<number> =>
  addDeal(world.shop, {
    triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
    rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10, product_id: 2 }],
  })

const atHub1 = async (world: World): Promise<Call> => {
  await tenPercent(world)
  return { as: 'owner', params: { hub_id: 1 } }
}
const ofDeal =
  (rest: Partial<Call> = {}) =>
  async (world: World): Promise<Call> => ({
    as: 'owner',
    params: { deal_id: await tenPercent(world) },
    ...rest,
  })
/** Another owner's deal, a deleted one, or one that never existed. */
const notFound =
  (rest: Partial<Call> = {}) =>
  async (world: World): Promise<Call> => ({ ...(await ofDeal(rest)(world)), as: 'other-owner' })

const newDeal = (hub_id: number) => ({
  name: 'Ten percent',
  hub_id,
  triggers: [{ type: 'ALWAYS' }],
  rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10 }],
  constraints: [{ type: 'SALEAMT', value: '500' }],
})
const cart = (hub_id: number) => ({
  hub_id,
  user_id: 1,
  cart_items: [
    { product_id: 1, category_id: 1, quantity: 2, unit_price: 250 },
    { product_id: 2, quantity: 1, unit_price: 179 },
  ],
  device_uuid: 'phone',
})
const dealForm = (hub_id: number) => ({
  dealData: JSON.stringify({
    deal: { name: 'Ten percent', hub_id },
    trigger: { type: 'ALWAYS' },
    reward: { type: 'PERCENT_OFF', discount_pct_or_price: 10 },
  }),
  file: fileOf(png, 'deal.png'),
})

type Body = (hub: number) => Record<string, unknown>
const hubErrors = (body: Body): NonNullable<RouteCases['errors']> => ({
  hub_access_denied: () => Promise.resolve({ as: 'limited', body: body(2) }),
  hub_not_found: () => Promise.resolve({ as: 'owner', body: body(2) }),
})

/** O §4.7, deals. */
export const dealCases = {
  'owner.deals.active': { success: atHub1 },
  'owner.deals.of_hub': { success: atHub1 },
  'owner.deals.promo_products': { success: atHub1 },
  'owner.deals.check_eligibility': {
    async success(world) {
      await tenPercent(world)
      return { as: 'owner', body: { ...cart(1), cart_total: 679, user_order_count: 0 } }
    },
    errors: hubErrors((hub) => ({ ...cart(hub), cart_total: 679 })),
  },
  'owner.deals.apply_reward': {
    async success(world) {
      return { as: 'owner', body: { ...cart(1), deal_ids: [await tenPercent(world), 999] } }
    },
    errors: hubErrors((hub) => ({ ...cart(hub), deal_ids: [1] })),
  },
  'owner.deals.create_from_owner': {
    success: () => Promise.resolve({ as: 'owner', form: dealForm(1) }),
    errors: {
      hub_access_denied: () => Promise.resolve({ as: 'limited', form: dealForm(2) }),
      hub_not_found: () => Promise.resolve({ as: 'owner', form: dealForm(2) }),
      validation_error: () => Promise.resolve({ as: 'owner', form: { dealData: dealForm(1).dealData } }),
      invalid_json: () => Promise.resolve({ as: 'owner', form: { ...dealForm(1), dealData: '{' } }),
      unsupported_media_type: () => Promise.resolve({ as: 'owner', body: {} }),
      payload_too_large: () =>
        Promise.resolve({
          as: 'owner',
          form: { ...dealForm(1), dealData: 'x'.repeat(1024 * 1024 + 1) },
        }),
    },
  },
  'owner.deals.create': {
    success: () => Promise.resolve({ as: 'owner', body: newDeal(1) }),
    errors: hubErrors(newDeal),
  },
  'owner.deals.get': { success: ofDeal(), errors: { deal_not_found: notFound() } },
  'owner.deals.update': {
    success: ofDeal({
      body: { name: 'Renamed', is_deal_active: false, start: '2025-01-01', end: '2025-12-31' },
    }),
    errors: { deal_not_found: notFound({ body: { name: 'Stolen' } }) },
  },
  'owner.deals.delete': { success: ofDeal(), errors: { deal_not_found: notFound() } },
  'owner.deals.redemptions': {
    async success(world) {
      const call = await ofDeal()(world)
      await world.shop.paidOrder({ 1: 1, 2: 1 })
      return call
    },
    errors: {
      deal_not_found: notFound(),
      invalid_cursor: ofDeal({ query: { cursor: 99 } }),
    },
  },
} satisfies Record<string, RouteCases>
