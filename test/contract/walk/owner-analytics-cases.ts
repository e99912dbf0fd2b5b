import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

/** A hub that has sold something. */
const sold = async ({ shop }: World): Promise<void> => void (await shop.paidOrder({ 1: 2, 2: 1 }))

const atHub1 = async (world: World): Promise<Call> => {
  await sold(world)
  return { as: 'owner', query: { hub_id: 1 } }
}

/** O §4.4. */
export const ownerAnalyticsCases = {
  'owner.analytics.gross_revenue': {
    async success(world) {
      await sold(world)
      return { as: 'owner', query: { hub_id: 1, timeframe: 'weekly' } }
    },
  },
  'owner.analytics.total_orders': { success: atHub1 },
  'owner.analytics.total_products': { success: atHub1 },
  'owner.analytics.total_customers': { success: atHub1 },
  'owner.analytics.top_products': { success: atHub1 },
  'owner.analytics.top_categories': {
    async success(world) {
      await sold(world)
      return { as: 'owner', params: { hub_id: 1 } }
    },
  },
  'owner.analytics.weekly_sales': { success: atHub1 },
  'owner.analytics.earnings': { success: atHub1 },
  'owner.analytics.customer_growth': { success: atHub1 },
  'owner.analytics.monthly_comparison': { success: atHub1 },
  'owner.analytics.overview': { success: atHub1 },
  'owner.analytics.net_profit': { success: atHub1 },
  'owner.analytics.product_months': {
    async success(world) {
      await sold(world)
      return { as: 'owner', query: { hub_id: 1, product_upc: '000000000001' } }
    },
    errors: {
      async product_not_found(world) {
        await sold(world)
        return { as: 'owner', query: { hub_id: 1, product_upc: '999999999999' } }
      },
    },
  },
} satisfies Record<string, RouteCases>
