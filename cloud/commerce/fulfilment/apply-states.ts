import type { SnapshotEntry, State, StateEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { applySnapshot as applyStockSnapshot } from '../catalogue/apply-stock.ts'
import { applyShelfState, forgetShelfStates } from '../catalogue/withheld.ts'
import { checkBins } from '../orders/bin-alarm.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'

/**
 * Applies a hub's report on the state of a component. Units that the hub cannot dispense are not sold from
 * then on.
 */
export async function applyStateEntry(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { state }: StateEntry,
): Promise<void> {
  await applyState(tx, hubId, state)
  if (state.of === 'bin') checkBins(tx, context, hubId)
}

/** Applies a hub's complete snapshot, including its states. */
export async function applySnapshot(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: SnapshotEntry,
): Promise<void> {
  await applyStockSnapshot(tx, context, hubId, entry)
  await forgetShelfStates(tx, hubId)
  const unsaid = { state: 'offline', order_uuid: null, fault: null } as const
  await tx.q.updateTable('hub_bins').set(unsaid).where('hub_id', '=', hubId).execute()
  await tx.q.deleteFrom('hub_fridge_states').where('hub_id', '=', hubId).execute()
  for (const state of entry.states) await applyState(tx, hubId, state)
  checkBins(tx, context, hubId)
}

async function applyState(tx: Tx, hubId: number, state: State): Promise<void> {
  const since = Math.round(state.since)
  switch (state.of) {
    case 'row':
    case 'cabinet':
      return applyShelfState(tx, hubId, state)
    case 'bin': {
      const { bin, capacity, state: use, order_id: order_uuid, fault } = state
      const values = { capacity, state: use, order_uuid, fault, since }
      await tx.q
        .insertInto('hub_bins')
        .values({ hub_id: hubId, bin, ...values })
        .onConflict((conflict) => conflict.columns(['hub_id', 'bin']).doUpdateSet(values))
        .execute()
      return
    }
    case 'fridge': {
      const values = { state: state.state, since }
      await tx.q
        .insertInto('hub_fridge_states')
        .values({ hub_id: hubId, fridge: state.fridge, ...values })
        .onConflict((conflict) => conflict.columns(['hub_id', 'fridge']).doUpdateSet(values))
        .execute()
    }
  }
}
