import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'
import type { Queries } from '../../platform/store/database.ts'
import { LAST_ACTIVE } from './order-rows.ts'

/**
 * Throws a `UsageError` if the latest paid order has another currency, and money in it is open: a paid order that has not
 * ended, or a wallet. Wallets have no currency of their own.
 */
export async function requireCurrency(q: Queries, currency: string): Promise<void> {
  const latest = await q
    .selectFrom('payments as p')
    .innerJoin('orders as o', 'o.id', 'p.order_id')
    .select('o.currency')
    .where('p.status', '=', 'completed')
    .orderBy('p.id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!latest || latest.currency === currency) return
  const order = await q
    .selectFrom('orders')
    .select('id')
    .where('processing_status', '>', OrderStatus.NEW)
    .where('processing_status', '<=', LAST_ACTIVE)
    .limit(1)
    .executeTakeFirst()
  const wallet = await q
    .selectFrom('ledger_accounts')
    .select('user_id')
    .where('account', '=', 'wallet')
    .where((eb) => eb.or([eb('balance', '<>', 0), eb('debt', '<>', 0)]))
    .limit(1)
    .executeTakeFirst()
  if (!order && !wallet) return
  throw new UsageError(
    `CURRENCY is ${currency}, and the orders of this database were paid in ${latest.currency}. Set CURRENCY to ${latest.currency} until no paid order is under way and all wallets are empty`,
  )
}
