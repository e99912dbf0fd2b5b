import { DesiredRelease, DesiredState } from '../../protocol/mqtt/cloud-entries.ts'
import type { Hello } from '../../protocol/mqtt/session.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { enqueue } from './outbox.ts'

/** The settings and the hardware description of a hub, which the cloud stores under one version (MQTT SPEC §12). */
export async function readDesired(q: Queries, hubId: number): Promise<DesiredState> {
  const { hardware, desired, ...hub } = await q
    .selectFrom('hubs')
    .leftJoin('hub_updates', 'hub_updates.hub_id', 'hubs.id')
    .select(['desired_version as version', 'desired_settings', 'hardware', 'hub_updates.desired'])
    .where('hubs.id', '=', hubId)
    .executeTakeFirstOrThrow()
  return DesiredState.parse({
    version: hub.version,
    settings: JSON.parse(hub.desired_settings),
    hardware: hardware === null ? null : JSON.parse(hardware),
    software: desired === null ? null : JSON.parse(desired),
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

/** Gives a hub the release of a rollout, or withdraws it (null). The version of the desired state stays the same. */
export async function changeRelease(tx: Tx, hubId: number, release: DesiredRelease | null): Promise<void> {
  const desired = release && JSON.stringify(release)
  await tx.q
    .insertInto('hub_updates')
    .values({ hub_id: hubId, desired, reported: null })
    .onConflict((conflict) => conflict.column('hub_id').doUpdateSet({ desired }))
    .execute()
  await enqueue(tx, hubId, { kind: 'desired', desired: await readDesired(tx.q, hubId) })
}

/** Stores the reports of hubs about their updates. */
export async function storeUpdateReports(
  tx: Tx,
  said: readonly { hubId: number; hello: Pick<Hello, 'desired'> }[],
): Promise<void> {
  for (const { hubId, hello } of said)
    if (hello.desired?.update) {
      const reported = JSON.stringify(hello.desired.update)
      await tx.q
        .insertInto('hub_updates')
        .values({ hub_id: hubId, desired: null, reported })
        .onConflict((conflict) => conflict.column('hub_id').doUpdateSet({ reported }))
        .execute()
    }
}
