import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readTakenBins, type BinObstacle, type TakenBin } from './bin-room.ts'

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
      detail: taken.map(sentenceOf).join('; '),
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

const words: Record<BinObstacle, string> = {
  ready: 'is not collected',
  left_behind: 'something was left in it',
  open: 'is open',
  disabled: 'is disabled',
  fault: 'has a fault',
  offline: 'is offline',
}

function sentenceOf({ bin, reason, orderId }: TakenBin): string {
  if (orderId === null) return `bin ${bin}: ${words[reason]}`
  return reason === 'left_behind'
    ? `bin ${bin}: goods of order ${orderId} were left in it`
    : `bin ${bin}: order ${orderId} ${reason === 'ready' ? words.ready : `is in it, and the bin ${words[reason]}`}`
}
