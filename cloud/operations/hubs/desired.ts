import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { problemText, schemaProblems } from '../../../protocol/model/schema-problems.ts'
import type { HardwareEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { builtOf, writeLayout } from '../../commerce/catalogue/layout.ts'
import { changeDesired, readDesired } from '../../gateway/desired-state.ts'
import { ApplyError } from '../../gateway/domain.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'

/** An absent part stays the same. A setting that is null is removed: the hub uses its own value. */
export interface DesiredChange {
  settings?: Readonly<Record<string, string | null>>
  hardware?: HardwareDescription | undefined
}

/** Stores settings and the hardware description for a hub, with the layout of the hardware, and sends them to the hub. */
export async function storeDesired(
  tx: Tx,
  hubId: number,
  { settings: changes = {}, hardware }: DesiredChange,
): Promise<void> {
  if (hardware) await writeLayout(tx, hubId, builtOf(hardware))
  const { settings } = await readDesired(tx.q, hubId)
  const merged = Object.entries({ ...settings, ...changes })
  await changeDesired(tx, hubId, {
    settings: Object.fromEntries(merged.filter((entry): entry is [string, string] => entry[1] !== null)),
    ...(hardware && { hardware: { ...hardware, hubId } }),
  })
}

/** Whether a hub uses the version of its settings and hardware description that the cloud has stored last. */
export async function appliedState(q: Queries, hubId: number, desiredVersion: number) {
  const reported = await q
    .selectFrom('hub_sessions')
    .select(['applied_version', 'failed_version', 'apply_error'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  const applied_version = reported?.applied_version ?? null
  // A hub that has left a version may have used another one with the same number, of a database that was restored since.
  if (reported?.failed_version === desiredVersion)
    return { applied_version, apply_state: 'rolled_back', apply_error: reported.apply_error }
  return { applied_version, apply_state: applied_version === desiredVersion ? 'applied' : 'pending' }
}

/**
 * Stores the description that a hub uses already, if the cloud has none. The version stays the same, because nothing
 * changes at the hub. The layout stays if the cloud has one: products may stand there.
 */
export async function applyHardwareEntry(tx: Tx, hubId: number, entry: HardwareEntry): Promise<void> {
  const { data: hardware, error } = HardwareDescription.safeParse(entry.hardware)
  if (!hardware)
    throw new ApplyError(
      schemaProblems(error, entry.hardware)
        .map((each) => problemText(each))
        .join('; '),
    )
  const { numUpdatedRows } = await tx.q
    .updateTable('hubs')
    .set({ hardware: JSON.stringify({ ...hardware, hubId }) })
    .where('id', '=', hubId)
    .where('hardware', 'is', null)
    .executeTakeFirst()
  const shelf = await tx.q
    .selectFrom('hub_shelves')
    .select('shelf')
    .where('hub_id', '=', hubId)
    .limit(1)
    .execute()
  if (numUpdatedRows > 0n && shelf.length === 0) await writeLayout(tx, hubId, builtOf(hardware))
}
