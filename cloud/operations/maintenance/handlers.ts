import type { ownerMaintenanceRoutes } from '../../../protocol/contract/owner-maintenance.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachableHubs, reachesHub } from '../../platform/credentials/hub-access.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import { fileReport, listReports, viewReports } from './reports.ts'

/** O §4.5. */
export function maintenanceHandlers(
  context: CloudContext,
  media: Media,
): Handlers<keyof typeof ownerMaintenanceRoutes> {
  const q = context.db.kysely

  /** Here no access to a hub is `unauthorized`, whether there is such a hub or not. */
  async function requireHub(credential: OwnerCredential, hubId: number): Promise<void> {
    const hub = await q
      .selectFrom('hubs')
      .select(['id', 'owner_id'])
      .where('id', '=', hubId)
      .executeTakeFirst()
    if (!hub || !reachesHub(credential, hub)) throw new ApiError('unauthorized')
  }

  return {
    async 'owner.maintenance.create'({ form, credential }) {
      const { formData } = form.fields
      await requireHub(credential, formData.hubId)
      const id = await form.number()
      await fileReport(context, media, { id, form: formData, files: form.files })
      const { hub_id, service_type, created_at, media_assets } = await reportOf(id)
      return {
        success: true,
        message: 'The maintenance report has been filed.',
        report: { id, hub_id, service_type, created_at, media_assets },
      }
    },

    async 'owner.maintenance.list'({ query: { hub_id, page, per_page }, credential }) {
      const named = hub_id === null || hub_id === '' ? undefined : Number(hub_id)
      if (named !== undefined) await requireHub(credential, named)
      const hubIds = named === undefined ? (await reachableHubs(q, credential)).map(({ id }) => id) : [named]
      const { logs, total } = await listReports(q, media, { hubIds, page, perPage: per_page })
      return { logs, total, page, per_page }
    },

    async 'owner.maintenance.get'({ params: { log_id }, credential }) {
      const row = await q
        .selectFrom('maintenance_reports')
        .innerJoin('hubs', 'hubs.id', 'maintenance_reports.hub_id')
        .select(['hubs.id', 'hubs.owner_id'])
        .where('maintenance_reports.id', '=', log_id)
        .executeTakeFirst()
      // Of the same owner, but at a hub that the key was not given; what is another's is not there at all.
      if (row && !reachesHub(credential, row) && row.owner_id === credential.ownerId)
        throw new ApiError('unauthorized')
      if (!row || !reachesHub(credential, row)) throw new ApiError('not_found', 'No such maintenance report.')
      return reportOf(log_id)
    },
  }

  async function reportOf(id: number) {
    const row = await q
      .selectFrom('maintenance_reports')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    const [report] = await viewReports(q, media, [row])
    return report!
  }
}
