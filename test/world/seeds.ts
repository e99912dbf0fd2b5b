import type { Insertable } from 'kysely'
import type { BinAtHub } from '../../cloud/commerce/orders/bin-room.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import type { Tables } from '../../cloud/platform/store/schema.ts'
import { openHub } from '../../cloud/operations/hubs/create-hub.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'

type HubRow = Insertable<Tables['hubs']>

/** A hub of owner 1 as a row of the cloud, open and without tax, except for the given fields. */
export const hubRow = <T extends Partial<HubRow>>(row: T) => ({
  owner_id: 1,
  name: 'Hub',
  street_address_1: '1 Main Street',
  street_address_2: null,
  city: 'Springfield',
  state: 'IL',
  postal_code: '62701',
  longitude: -89.65,
  latitude: 39.8,
  timezone: 'America/Chicago',
  mqtt_password_digest: '',
  former_passwords: null,
  ...openHub,
  external_payments: 'everyone' as const,
  tax_millipercent: 0,
  created_at: 0,
  ...row,
})

/** A hub of owner 1. */
export const ownHub = (hubId: number, digest = '') =>
  hubRow({ id: hubId, name: `Hub ${hubId}`, mqtt_password_digest: digest, disabled_bins: '[3]' })

/** Writes a hub of owner 1. */
export async function seedHub({ kysely }: CloudDatabase, hubId: number, digest?: string): Promise<void> {
  await kysely
    .insertInto('owners')
    .values({ id: 1, name: 'One' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await kysely.insertInto('hubs').values(ownHub(hubId, digest)).execute()
}

/** Writes two owners with a hub each. */
export async function seedHubs({ kysely }: CloudDatabase): Promise<void> {
  await kysely
    .insertInto('owners')
    .values([
      { id: 1, name: 'One' },
      { id: 2, name: 'Two' },
    ])
    .execute()
  await kysely
    .insertInto('hubs')
    .values([1, 2].map((id) => hubRow({ id, owner_id: id, name: `Hub ${id}` })))
    .execute()
}

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
