import { identityOf } from '../../cloud/commerce/processors/processor.ts'
import type { Queries } from '../../cloud/platform/store/database.ts'
import type { CloudEvidence } from './evidence.ts'

/**
 * Reads the books of one hub from the cloud and the sandbox processor. `sandbox`: the database of the
 * processor's books.
 */
export async function collectCloud(q: Queries, hubId: number, sandbox: Queries = q): Promise<CloudEvidence> {
  const orders = await q.selectFrom('orders').selectAll().where('hub_id', '=', hubId).orderBy('id').execute()
  const ids = orders.map((order) => order.id)
  const of = <T extends { order_id: number }>(rows: T[]): T[] => {
    const known = new Set(ids)
    return rows.filter((row) => known.has(row.order_id))
  }
  const payments = await q.selectFrom('payments').selectAll().execute()
  const money = {
    items: of(await q.selectFrom('order_items').selectAll().execute()),
    payments: of(payments),
    refunds: of(await q.selectFrom('refunds').selectAll().execute()),
  }
  const hub = await q.selectFrom('hubs').selectAll().where('id', '=', hubId).executeTakeFirstOrThrow()
  const outbox = await q.selectFrom('hub_outboxes').selectAll().where('hub_id', '=', hubId).executeTakeFirst()
  return {
    orders,
    ...money,
    allPayments: new Set(payments.map(identityOf)),
    sales: { ...(await collectSales(q, hubId)), orders, ...money },
    ledgerAccounts: await q.selectFrom('ledger_accounts').selectAll().execute(),
    ledgerEntries: await q.selectFrom('ledger_entries').selectAll().orderBy('id').execute(),
    ...(await collectDeals(q, hubId)),
    products: await q.selectFrom('products').selectAll().where('hub_id', '=', hubId).execute(),
    facings: await q.selectFrom('facings').selectAll().where('hub_id', '=', hubId).execute(),
    stockLedger: await q.selectFrom('stock_ledger').selectAll().where('hub_id', '=', hubId).execute(),
    events: await collectEvents(q, hubId),
    outboxPending: outbox ? outbox.last - outbox.base : 0,
    countsPending: (
      await q
        .selectFrom('stock_counts')
        .select('count_id')
        .where('hub_id', '=', hubId)
        .where('settled_at', 'is', null)
        .execute()
    ).length,
    wanted: {
      accepting_orders: hub.accepting_orders === 1 && hub.hub_status === 'active',
      disabled_bins: JSON.parse(hub.disabled_bins) as number[],
      disabled_fridges: JSON.parse(hub.disabled_fridges) as number[],
    },
    deadLetters: await q.selectFrom('dead_letters').selectAll().where('hub_id', '=', hubId).execute(),
    commands: await q.selectFrom('commands').selectAll().where('hub_id', '=', hubId).execute(),
    alarms: await q
      .selectFrom('alarms')
      .select(['kind', 'incident', 'quiet_since', 'cleared_at'])
      .where('hub_id', '=', hubId)
      .execute(),
    orphans: await collectOrphans(q),
    intents: await sandbox.selectFrom('sandbox_intents').selectAll().execute(),
    processorRefunds: await sandbox.selectFrom('sandbox_refunds').selectAll().execute(),
    processorDisputes: await sandbox.selectFrom('sandbox_disputes').selectAll().execute(),
  }
}

async function collectEvents(q: Queries, hubId: number): Promise<CloudEvidence['events']> {
  const rows = await q
    .selectFrom('events')
    .select(['type', 'data'])
    .where('hub_id', '=', hubId)
    .orderBy('seq')
    .execute()
  return rows
    .filter(({ type }) => /^(order|payment)\./.test(type))
    .map(({ type, data }) => ({ type, order_id: (JSON.parse(data) as { order_id: number }).order_id }))
}

async function collectDeals(q: Queries, hubId: number) {
  const ofHub = q.selectFrom('deals').select('id').where('hub_id', '=', hubId)
  return {
    redemptions: await q.selectFrom('deal_redemptions').selectAll().where('deal_id', 'in', ofHub).execute(),
    dealConstraints: await q
      .selectFrom('deal_constraints')
      .selectAll()
      .where('deal_id', 'in', ofHub)
      .execute(),
  }
}

async function collectSales(q: Queries, hubId: number) {
  const { timezone } = await q
    .selectFrom('hubs')
    .select('timezone')
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  return {
    timezone,
    totals: await q.selectFrom('sales_totals').selectAll().where('hub_id', '=', hubId).execute(),
    days: await q.selectFrom('sales_days').selectAll().where('hub_id', '=', hubId).execute(),
    customers: await q.selectFrom('sales_customers').selectAll().where('hub_id', '=', hubId).execute(),
  }
}

/** Payments that the cloud knows to be lost, and whether an alarm is open for each. */
async function collectOrphans(q: Queries): Promise<CloudEvidence['orphans']> {
  const rows = await q
    .selectFrom('money_operations')
    .select('processor_ref as ref')
    .where('kind', '=', 'orphan')
    .execute()
  const open = await q
    .selectFrom('alarms')
    .select('subject')
    .where('kind', '=', 'payment_orphaned')
    .where('cleared_at', 'is', null)
    .execute()
  const told = new Set(open.map(({ subject }) => subject))
  return rows.map((row) => ({ ...row, isTold: told.has(`payment ${row.ref}`) }))
}
