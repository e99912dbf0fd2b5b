import { availableUnits } from '../catalogue/units.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import { readTakenBins } from './bin-room.ts'
import { readRefusal, type Refusal, type SellingHub } from './intake.ts'

/** Why a hub sells nothing now; the first that applies. */
export type NotSelling = Refusal | 'no_bin_available' | 'out_of_stock'

/** Null if customers can buy something at the hub. The absence of alarms does not imply that. */
export async function notSellingReason(
  q: Queries,
  context: CloudContext,
  hub: SellingHub,
): Promise<NotSelling | null> {
  const refusal = await readRefusal(q, context, hub)
  if (refusal !== null) return refusal
  if (await readTakenBins(q, hub.id, JSON.parse(hub.disabled_bins) as number[])) return 'no_bin_available'
  const sellable = await q
    .selectFrom('products')
    .select('id')
    .where('hub_id', '=', hub.id)
    .where('is_active', '=', 1)
    .where(availableUnits, '>', 0)
    .limit(1)
    .executeTakeFirst()
  return sellable ? null : 'out_of_stock'
}
