import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { takenBinsText } from '../../../protocol/model/taken-bins.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readTakenBins } from './bin-room.ts'

/**
 * Raises the alarm `no_bin_available` while a hub has no bin that is free or comes free by itself, and clears it. Call this
 * in each transaction that changes a hub's bins: their states, their orders, or which of them are disabled.
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
      // Another order or bin is the same incident, and people read what holds now.
      refreshes: true,
    })
  })
}

/** The statuses whose beginning changes which bins are taken. */
export const changesBins = (status: OrderStatus): boolean => status >= OrderStatus.READY
