import { UsageError } from '../settings/usage-error.ts'
import type { Queries } from './database.ts'

/**
 * Throws a `UsageError` if the latest paid order has another currency: wallets, points and reports add up amounts without a
 * currency of their own.
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
  throw new UsageError(
    `CURRENCY is ${currency}, and the orders of this database were paid in ${latest.currency}. A database keeps its currency: set CURRENCY to ${latest.currency}, or use another database`,
  )
}
