import { addMonths, monthOf } from '../../platform/calendar/days.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'

/** Number of products of a hub with the mark. */
const BESTSELLERS = 10

const PERIOD_MS = 3_600_000

/** Marks the best-selling products of each hub in this month and the previous one, from the monthly sums of sales. */
export const bestsellerWork = (context: CloudContext): WorkKinds => ({
  bestsellers: { recurring: ['all'], run: () => checkEachHub(context) },
  'bestsellers.hub': { run: ({ subject }) => markBestsellers(context, Number(subject)) },
})

async function checkEachHub({ db, runtime }: CloudContext): Promise<Outcome> {
  const now = runtime.clock.now()
  await db.transact(async (tx) => {
    const hubs = await tx.q.selectFrom('hubs').select('id').execute()
    await schedule(
      tx,
      'bestsellers.hub',
      hubs.map(({ id }) => id),
      now,
    )
  })
  return { next: now + PERIOD_MS }
}

/** Returns the products whose mark has changed. */
async function markBestsellers({ db, runtime }: CloudContext, hubId: number): Promise<Outcome> {
  const hub = await db.kysely.selectFrom('hubs').select('timezone').where('id', '=', hubId).executeTakeFirst()
  if (!hub) return done
  const month = monthOf(localDay(hub.timezone, runtime.clock.now()))
  const wanted = await soldMost(db.kysely, hubId, [month, addMonths(month, -1)])
  return { next: null, affected: await db.transact((tx) => mark(tx, hubId, wanted)) }
}

async function soldMost(q: Queries, hubId: number, months: string[]): Promise<Set<number>> {
  const rows = await q
    .selectFrom('sales_totals as t')
    .innerJoin('products as p', 'p.id', 't.product_id')
    .select(['t.product_id', (eb) => eb.fn.sum<number | string>('t.units').as('units')])
    .where('t.hub_id', '=', hubId)
    .where('t.period', 'in', months)
    .where('p.is_active', '=', 1)
    .groupBy('t.product_id')
    .execute()
  const ranked = rows
    .map(({ product_id, units }) => ({ product_id, units: Number(units) }))
    .filter(({ units }) => units > 0)
    .sort((a, b) => b.units - a.units || a.product_id - b.product_id)
  return new Set(ranked.slice(0, BESTSELLERS).map(({ product_id }) => product_id))
}

async function mark({ q }: Tx, hubId: number, wanted: ReadonlySet<number>): Promise<number[]> {
  const marked = await q
    .selectFrom('products')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('is_bestseller', '=', 1)
    .execute()
  const now = new Set(marked.map(({ id }) => id))
  const changes = [
    ...[...wanted].filter((id) => !now.has(id)).map((id) => ({ id, is_bestseller: 1 as const })),
    ...[...now].filter((id) => !wanted.has(id)).map((id) => ({ id, is_bestseller: 0 as const })),
  ]
  for (const { id, is_bestseller } of changes)
    await q.updateTable('products').set({ is_bestseller }).where('id', '=', id).execute()
  return changes.map(({ id }) => id)
}
