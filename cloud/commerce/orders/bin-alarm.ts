import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { takenBinsText } from '../../../protocol/model/taken-bins.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readTakenBins } from './bin-room.ts'

/**
 * Raises the alarm `no_bin_available` while a hub has no bin that is free or becomes free automatically, and clears it.
 * Call it in each transaction that changes a hub's bins: their states, their orders, or the disabled ones.
 */
export function checkBins(tx: Tx, context: CloudContext, hubId: number): void {
  tx.beforeCommit(`bins of hub ${hubId}`, async () => {
    const hub = await tx.q
      .selectFrom('hubs')
      .select('disabled_bins')
      .where('id', '=', hubId)
      .executeTakeFirst()
    if (!hub) return
    const taken = await readTakenBins(tx.q, hubId, JSON.parse(hub.disabled_bins) as number[])
    const incident = { hubId, kind: 'no_bin_available', subject: null } as const
    if (!taken) return clearAlarm(tx, context, incident)
    await raiseAlarm(tx, context, {
      ...incident,
      detail: takenBinsText(taken),
      details: {
        bins: taken.map(({ bin, reason, orderId }) => ({ bin_number: bin, reason, order_id: orderId })),
        order_ids: taken.flatMap(({ orderId }) => orderId ?? []),
      },
      // Another order or bin belongs to the same incident, and people read the present state.
      refreshes: true,
    })
  })
}

/** The statuses that change the taken bins when they begin. */
export const changesBins = (status: OrderStatus): boolean => status >= OrderStatus.READY
