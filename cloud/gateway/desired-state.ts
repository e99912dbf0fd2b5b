import { z } from 'zod'
import { DesiredRelease, DesiredState } from '../../protocol/mqtt/cloud-entries.ts'
import { UpdateReport, type Hello } from '../../protocol/mqtt/session.ts'
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

/** A restored database has lost fewer changes of a hub. A stolen hub may report any number. */
const MOST_LOST = 10_000

/**
 * Changes settings or the hardware description of a hub, adds 1 to the version, and sends it to the hub. A restored database
 * passes the numbers that the hub has reported: they belong to other contents.
 */
export async function changeDesired(
  tx: Tx,
  hubId: number,
  { settings, hardware }: Partial<Pick<DesiredState, 'settings' | 'hardware'>>,
): Promise<void> {
  const reported = await tx.q
    .selectFrom('hub_sessions')
    .select(['applied_version', 'failed_version'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  const known = Math.max(reported?.applied_version ?? 0, reported?.failed_version ?? 0)
  await tx.q
    .updateTable('hubs')
    .set((eb) => ({
      desired_version: eb
        .case()
        .when(eb.and([eb('desired_version', '<', known), eb('desired_version', '>', known - MOST_LOST)]))
        .then(known + 1)
        .else(eb('desired_version', '+', 1))
        .end(),
      ...(settings && { desired_settings: JSON.stringify(settings) }),
      ...(hardware && { hardware: JSON.stringify(hardware) }),
    }))
    .where('id', '=', hubId)
    .execute()
  await enqueue(tx, hubId, { kind: 'desired', desired: await readDesired(tx.q, hubId) })
}

/** The latest trusted root of the releases (TUF, JSON); undefined before the first. */
export async function latestRoot(q: Queries): Promise<string | undefined> {
  const roots = await q
    .selectFrom('release_metadata')
    .select(['name', 'body'])
    .where('name', 'like', '%.root.json')
    .execute()
  return roots.toSorted((a, b) => Number.parseInt(b.name) - Number.parseInt(a.name))[0]?.body
}

/**
 * Gives a hub the release of a rollout, or withdraws it (null). The version of the desired state stays the same. The root is for
 * a hub that was enrolled before there was one.
 */
export async function changeRelease(tx: Tx, hubId: number, release: DesiredRelease | null): Promise<void> {
  const root = await latestRoot(tx.q)
  const desired = release && JSON.stringify({ ...release, root })
  await tx.q
    .insertInto('hub_updates')
    .values({ hub_id: hubId, desired, reported: null })
    .onConflict((conflict) => conflict.column('hub_id').doUpdateSet({ desired }))
    .execute()
  await enqueue(tx, hubId, { kind: 'desired', desired: await readDesired(tx.q, hubId) })
}

/** The report of a hub's updater, and since when the hub has sent this report: milliseconds since the Unix epoch. */
export const StoredReport = UpdateReport.extend({ since: z.number().optional() })

/** Stores the reports of hubs about their updates. A repeated report keeps its time. */
export async function storeUpdateReports(
  tx: Tx,
  now: number,
  said: readonly { hubId: number; hello: Pick<Hello, 'desired'> }[],
): Promise<void> {
  for (const { hubId, hello } of said) {
    const report = hello.desired?.update
    if (!report) continue
    const row = await tx.q
      .selectFrom('hub_updates')
      .select('reported')
      .where('hub_id', '=', hubId)
      .executeTakeFirst()
    const had = row?.reported ? StoredReport.parse(JSON.parse(row.reported)) : undefined
    if (had?.since !== undefined && had.rollout === report.rollout && had.state === report.state) continue
    const reported = JSON.stringify({ ...report, since: now })
    await tx.q
      .insertInto('hub_updates')
      .values({ hub_id: hubId, desired: null, reported })
      .onConflict((conflict) => conflict.column('hub_id').doUpdateSet({ reported }))
      .execute()
  }
}
