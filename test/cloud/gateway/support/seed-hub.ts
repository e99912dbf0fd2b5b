import { hubRow } from '../../../support/hub-row.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'

/** A hub of owner 1, with product 10·hub in one facing. */
export async function seedHub({ kysely }: CloudDatabase, hubId: number, digest = ''): Promise<void> {
  await kysely
    .insertInto('owners')
    .values({ id: 1, name: 'One' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await kysely.insertInto('hubs').values(ownHub(hubId, digest)).execute()
}

/** A hub of owner 1. */
export const ownHub = (hubId: number, digest: string) =>
  hubRow({ id: hubId, name: `Hub ${hubId}`, mqtt_password_digest: digest, disabled_bins: '[3]' })
