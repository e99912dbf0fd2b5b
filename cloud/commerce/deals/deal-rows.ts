import type { Selectable } from 'kysely'
import { readTerms } from '../../../protocol/model/deal-terms.ts'
import type { Queries } from '../../platform/store/database.ts'
import { textsIn } from '../../platform/store/recordset.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { type CartLine, type Deal, type Reward, type Trigger, needsMetBy } from './engine/deal.ts'

type Row<T extends keyof Tables> = Selectable<Tables[T]>
export type DealRow = Row<'deals'>

/** A deal with its parts, as stored. */
export interface StoredDeal {
  row: DealRow
  triggers: readonly (Row<'deal_triggers'> & { category: string | null })[]
  rewards: readonly Row<'deal_rewards'>[]
  constraints: readonly Row<'deal_constraints'>[]
}

/** The deals of a hub, or some of them; higher priority first, then the older ones. */
export async function dealsOfHub(q: Queries, hubId: number, ids?: readonly number[]): Promise<StoredDeal[]> {
  let deals = q
    .selectFrom('deals')
    .selectAll()
    .where('hub_id', '=', hubId)
    .where('deleted_at', 'is', null)
    .orderBy('priority', 'desc')
    .orderBy('id')
  if (ids) deals = deals.where('id', 'in', ids)
  return withParts(q, await deals.execute())
}

/** Selects deals of a hub: deals that could discount a cart, or deals with given ids. */
export type Among = { lines: readonly CartLine[] } | { ids: readonly number[] }

/** The active deals of a hub that are within their dates on a day. */
export async function runningDeals(
  q: Queries,
  hubId: number,
  day: string,
  among?: Among,
): Promise<StoredDeal[]> {
  if (among && 'ids' in among && among.ids.length === 0) return []
  const at = { hubId, day }
  const rows =
    among === undefined
      ? await running(q, at).execute()
      : 'ids' in among
        ? await running(q, at).where('id', 'in', among.ids).execute()
        : await runningFor(q, { ...at, needs: needsMetBy(among.lines) })
  return withParts(q, rows)
}

const running = (q: Queries, { hubId, day }: { hubId: number; day: string }) =>
  q
    .selectFrom('deals')
    .select(allOf('deals'))
    .where('hub_id', '=', hubId)
    .where('deleted_at', 'is', null)
    .where('is_active', '=', 1)
    .where((eb) => eb.or([eb('start_day', 'is', null), eb('start_day', '<=', day)]))
    .where((eb) => eb.or([eb('end_day', 'is', null), eb('end_day', '>=', day)]))
    .orderBy('priority', 'desc')
    .orderBy('id')

/** The deals that need only products and categories of the cart; checkout runs this for each cart. */
const runningFor = statement((q, at: { hubId: number; day: string; needs: readonly string[] }) =>
  running(q, at).where('need', 'in', textsIn(q, at.needs)),
)

export async function findDeal(q: Queries, dealId: number): Promise<StoredDeal | undefined> {
  const row = await q
    .selectFrom('deals')
    .selectAll()
    .where('id', '=', dealId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && (await withParts(q, [row]))[0]
}

async function withParts(q: Queries, rows: readonly DealRow[]): Promise<StoredDeal[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const triggers = await q
    .selectFrom('deal_triggers')
    .leftJoin('categories', 'categories.id', 'deal_triggers.category_id')
    .selectAll('deal_triggers')
    .select('categories.name as category')
    .where('deal_id', 'in', ids)
    .orderBy('deal_triggers.id')
    .execute()
  const rewards = await q
    .selectFrom('deal_rewards')
    .selectAll()
    .where('deal_id', 'in', ids)
    .orderBy('id')
    .execute()
  const constraints = await q
    .selectFrom('deal_constraints')
    .selectAll()
    .where('deal_id', 'in', ids)
    .orderBy('id')
    .execute()
  const [triggersOf, rewardsOf, constraintsOf] = [byDeal(triggers), byDeal(rewards), byDeal(constraints)]
  return rows.map((row) => ({
    row,
    triggers: triggersOf(row.id),
    rewards: rewardsOf(row.id),
    constraints: constraintsOf(row.id),
  }))
}

function byDeal<T extends { deal_id: number }>(parts: readonly T[]): (dealId: number) => readonly T[] {
  const grouped = new Map<number, T[]>()
  for (const part of parts) {
    const group = grouped.get(part.deal_id)
    if (group) group.push(part)
    else grouped.set(part.deal_id, [part])
  }
  return (dealId) => grouped.get(dealId) ?? []
}

/** A stored deal in the engine's form. */
export const toEngine = ({ row, triggers, rewards, constraints }: StoredDeal): Deal => ({
  id: row.id,
  name: row.name,
  priority: row.priority,
  isActive: row.is_active === 1,
  start: row.start_day,
  end: row.end_day,
  triggers: triggers.map(triggerOf),
  rewards: rewards.map(rewardOf),
  terms: readTerms(constraints),
})

export const triggerOf = ({
  type,
  quantity,
  product_id,
  category_id,
}: Pick<Row<'deal_triggers'>, 'type' | 'quantity' | 'product_id' | 'category_id'>): Trigger => ({
  type,
  quantity: quantity ?? 1,
  productId: product_id,
  categoryId: category_id,
})

export const rewardOf = ({
  type,
  quantity,
  product_id,
  discount_pct_or_price,
}: Pick<Row<'deal_rewards'>, 'type' | 'quantity' | 'product_id' | 'discount_pct_or_price'>): Reward => ({
  type,
  quantity,
  productId: product_id,
  value: discount_pct_or_price ?? 0,
})
