import { sql } from 'kysely'
import type { Plant } from './plant.ts'

/** Has the cloud fail to apply what a hub reports of its fridges: a table is missing. Resolves with what brings it back. */
export async function breakFridgeStates(plant: Plant): Promise<() => Promise<void>> {
  const rename = (from: string, to: string): Promise<unknown> =>
    plant.wait(sql`alter table ${sql.table(from)} rename to ${sql.table(to)}`.execute(plant.db.kysely))
  const { context } = plant.services
  const report = context.onFault?.bind(context)
  context.onFault = () => {}
  await rename('hub_fridge_states', 'away')
  return async () => {
    await rename('away', 'hub_fridge_states')
    context.onFault = report!
  }
}
