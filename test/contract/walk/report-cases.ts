import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const asOwner = (): Promise<Call> => Promise.resolve({ as: 'owner', query: {} })

/** Contract, section 16. */
export const reportCases = {
  'owner.sales.report': {
    async success({ shop }: World) {
      await shop.paidOrder({ 1: 2, 2: 1 })
      return asOwner()
    },
  },
  'owner.payments.list': {
    async success({ shop }: World) {
      await shop.paidOrder({ 1: 2, 2: 1 })
      return asOwner()
    },
    errors: { invalid_cursor: async () => ({ as: 'owner', query: { cursor: 'pay_99' } }) },
  },
} satisfies Record<string, RouteCases>
