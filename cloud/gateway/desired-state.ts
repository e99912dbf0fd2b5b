import { DesiredState } from '../../protocol/mqtt/cloud-entries.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { enqueue } from './outbox.ts'

/** The settings and the hardware description of a hub, which the cloud stores under one version (MQTT SPEC §12). */
export async function readDesired(q: Queries, hubId: number): Promise<DesiredState> {
  const { hardware, ...hub } = await q
    .selectFrom('hubs')
    .select(['desired_version as version', 'desired_settings', 'hardware'])
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  return DesiredState.parse({
    version: hub.version,
    settings: JSON.parse(hub.desired_settings),
    hardware: hardware === null ? null : JSON.parse(hardware),
  })
}

/** Changes settings or the hardware description of a hub, adds 1 to the version, and sends it to the hub. */
export async function changeDesired(
  tx: Tx,
  hubId: number,
  { settings, hardware }: Partial<Pick<DesiredState, 'settings' | 'hardware'>>,
): Promise<void> {
  await tx.q
    .updateTable('hubs')
    .set((eb) => ({
      desired_version: eb('desired_version', '+', 1),
      ...(settings && { desired_settings: JSON.stringify(settings) }),
      ...(hardware && { hardware: JSON.stringify(hardware) }),
    }))
    .where('id', '=', hubId)
    .execute()
  await enqueue(tx, hubId, { kind: 'desired', desired: await readDesired(tx.q, hubId) })
}
