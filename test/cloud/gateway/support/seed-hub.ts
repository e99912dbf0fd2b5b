import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'

/** A hub of owner 1, with product 10·hub on one facing of it. */
export async function seedHub({ kysely }: CloudDatabase, hubId: number, digest = ''): Promise<void> {
  await kysely
    .insertInto('owners')
    .values({ id: 1, name: 'One' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await kysely
    .insertInto('hubs')
    .values({
      id: hubId,
      owner_id: 1,
      name: `Hub ${hubId}`,
      street_address_1: '1 Main Street',
      street_address_2: null,
      city: 'Springfield',
      state: 'IL',
      postal_code: '62701',
      longitude: -89.65,
      latitude: 39.8,
      timezone: 'America/Chicago',
      hub_status: 'active',
      mqtt_password_digest: digest,
      accepting_orders: 1,
      disabled_bins: '[3]',
      disabled_fridges: '[]',
      tax_basis_points: 0,
      created_at: 0,
    })
    .execute()
}
