import { identityOf } from '../../cloud/commerce/processors/processor.ts'
import type { Queries } from '../../cloud/platform/store/database.ts'

/**
 * Rows of the cloud's books that the outside world may know or may have reported: requests to the processor
 * by key, orders, paid orders, changes of stock. A name is lost (`Evidence.lost`) if it exists before an
 * older copy is restored and not afterwards.
 */
export async function namesInBooks(q: Queries): Promise<Set<string>> {
  const rows = ['id', 'created_at'] as const
  const payments = await q.selectFrom('payments').select(rows).execute()
  const refunds = await q.selectFrom('refunds').select(rows).execute()
  const deposits = await q.selectFrom('ledger_entries').select(rows).where('type', '=', 'deposit').execute()
  const orders = await q.selectFrom('orders').select('uuid').execute()
  const paid = await q
    .selectFrom('payments')
    .innerJoin('orders', 'orders.id', 'payments.order_id')
    .select('orders.uuid')
    .where('payments.status', '=', 'completed')
    .where('payments.is_late', '=', 0)
    .execute()
  const place = ['cabinet', 'shelf', 'row'] as const
  const stock = await q
    .selectFrom('stock_ledger')
    .select(['cause_id', ...place])
    .execute()
  return new Set([
    ...payments.map((row) => `payment:${identityOf(row)}`),
    ...refunds.map((row) => `refund:${identityOf(row)}`),
    ...deposits.map((row) => `deposit:${identityOf(row)}`),
    ...orders.map(({ uuid }) => `order ${uuid}`),
    ...paid.map(({ uuid }) => `paid ${uuid}`),
    ...stock.map((row) => `stock ${row.cause_id} ${row.cabinet}-${row.shelf}-${row.row}`),
  ])
}
