import { readFridges } from '../../commerce/catalogue/layout.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'

/** Throws `fridge_not_found` if neither the hub's layout nor its own report has such a fridge. */
export async function requireFridge(
  context: CloudContext,
  hub: { hub: number; fridge: number },
): Promise<void> {
  const { db, runtime, settings } = context
  const fridges = await readFridges(db.kysely, hub.hub)
  if (fridges.some(({ fridge }) => fridge === hub.fridge)) return
  const { health } = await hubState(db.kysely, hub.hub, runtime.clock.now(), settings.onlineWithinMs)
  if (!health?.fridges.some(({ fridge_number }) => fridge_number === hub.fridge))
    throw new ApiError('fridge_not_found')
}
