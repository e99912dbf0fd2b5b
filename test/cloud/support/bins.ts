import type { BinAtHub } from '../../../cloud/commerce/orders/bin-room.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'
import type { HubHealth } from '../../../protocol/model/hub-health.ts'

/** A bin as in its hub's ledger, from the hub's health. */
export const binOfHealth = (bin: HubHealth['bins'][number]): BinAtHub => ({
  bin: bin.bin_number,
  capacity: bin.capacity,
  state: useOf(bin),
  order_id: bin.order_id,
  fault: bin.fault_code,
})

function useOf({ status, occupied, door, order_id }: HubHealth['bins'][number]): BinAtHub['state'] {
  if (status === 'offline' || occupied === null) return 'offline'
  if (order_id !== null) return 'held'
  if (status === 'fault') return 'faulty'
  if (occupied) return 'left_behind'
  return door === 'closed' ? 'free' : 'open'
}

/** The hub's ledger reports the states of all its bins. */
export async function reportBins(
  { kysely: q }: Pick<CloudDatabase, 'kysely'>,
  hubId: number,
  bins: HubHealth['bins'],
  now: number,
): Promise<void> {
  let gone = q.deleteFrom('hub_bins').where('hub_id', '=', hubId)
  if (bins.length > 0)
    gone = gone.where(
      'bin',
      'not in',
      bins.map(({ bin_number }) => bin_number),
    )
  await gone.execute()
  for (const { bin, order_id, ...rest } of bins.map(binOfHealth)) {
    const values = { ...rest, order_uuid: order_id, since: now }
    await q
      .insertInto('hub_bins')
      .values({ hub_id: hubId, bin, ...values })
      .onConflict((conflict) => conflict.columns(['hub_id', 'bin']).doUpdateSet(values))
      .execute()
  }
}
