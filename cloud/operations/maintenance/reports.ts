import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { FormFile } from '../../../protocol/contract/form.ts'
import type {
  MaintenanceForm,
  MaintenanceReport,
  ownerMaintenanceRoutes,
} from '../../../protocol/contract/owner-maintenance.ts'
import type { MaintenanceEntry } from '../../../protocol/mqtt/hub-entries.ts'
import { appendEvent } from '../../events/append-event.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import {
  mayReadBooks,
  type OwnedHub,
  ofReachedBooks,
  reachesBook,
  reachesHub,
  readOwner,
} from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { nextNumber, type Media } from '../../platform/media/media.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

/** O §4.5. */
export function maintenanceHandlers(
  context: CloudContext,
  media: Media,
): Handlers<keyof typeof ownerMaintenanceRoutes> {
  const q = context.db.kysely

  /** Here a lack of access is `unauthorized`, whether or not the hub exists. */
  async function requireHub(
    credential: OwnerCredential,
    hubId: number,
    reaches: (hub: OwnedHub) => boolean | Promise<boolean>,
  ): Promise<void> {
    const hub = await readOwner(q, hubId)
    if (!hub || !(await reaches(hub))) throw new ApiError('unauthorized')
  }

  return {
    async 'owner.maintenance.create'({ form, credential }) {
      const { formData } = form.fields
      await requireHub(credential, formData.hubId, (hub) => reachesHub(credential, hub))
      const id = await form.number()
      await fileReport(context, media, { id, form: formData, files: form.files })
      const { hub_id, service_type, created_at, media_assets } = await readReport(q, media, id)
      return {
        success: true,
        message: 'The maintenance report has been filed.',
        report: { id, hub_id, service_type, created_at, media_assets },
      }
    },

    async 'owner.maintenance.list'({ query: { hub_id, page, per_page }, credential }) {
      const named = hub_id === null || hub_id === '' ? undefined : Number(hub_id)
      if (named !== undefined) await requireHub(credential, named, (hub) => mayReadBooks(q, credential, hub))
      const found = visibleReports(q, credential)
      const { logs, total } = await listReports(
        q,
        media,
        named === undefined ? found : found.where('maintenance_reports.hub_id', '=', named),
        { page, perPage: per_page },
      )
      return { logs, total, page, per_page }
    },

    async 'owner.maintenance.get'({ params: { log_id }, credential }) {
      const row = await q
        .selectFrom('maintenance_reports')
        .select(['hub_id', 'owner_id'])
        .where('id', '=', log_id)
        .executeTakeFirst()
      const isSeen = row && (await reachesBook(q, credential, { hubId: row.hub_id, owners: [row.owner_id] }))
      // For a hub of the same owner outside the key's access: `unauthorized`. Reports of other owners are not
      // found.
      if (row && !isSeen && row.owner_id === credential.ownerId) throw new ApiError('unauthorized')
      if (!isSeen) throw new ApiError('not_found', 'No such maintenance report.')
      return readReport(q, media, log_id)
    },
  }
}

async function readReport(q: Queries, media: Media, id: number): Promise<MaintenanceReport> {
  const row = await q
    .selectFrom('maintenance_reports')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const [report] = await viewReports(q, media, [row])
  return report!
}

type ReportRow = Selectable<Tables['maintenance_reports']>
type Asset = MaintenanceReport['media_assets'][number]

interface NewReport {
  id: number
  form: MaintenanceForm
  files: readonly FormFile[]
}

/** Files a report and stores its media, in one transaction. */
async function fileReport(
  context: CloudContext,
  media: Media,
  { id, form, files }: NewReport,
): Promise<void> {
  const { db, runtime } = context
  await db.transact(async (tx) => {
    await tx.q
      .insertInto('maintenance_reports')
      .values({
        id,
        hub_id: form.hubId,
        owner_id: (await readOwner(tx.q, form.hubId))!.owner_id,
        name: form.name,
        service_type: form.serviceType,
        hub_tested: form.hubTested ?? null,
        service_start_time: instantOf(form.serviceStartTime),
        service_end_time: form.serviceEndTime == null ? null : instantOf(form.serviceEndTime),
        description: form.description ?? null,
        components_serviced: JSON.stringify(form.componentsServiced ?? []),
        submitted_by: form.submittedBy,
        submitted_at: instantOf(form.timestamp),
        created_at: runtime.clock.now(),
        hub_report_id: null,
      })
      .execute()
    await media.keep(
      tx,
      files.map(({ key }) => key),
    )
    if (files.length > 0)
      await tx.q
        .insertInto('maintenance_media')
        .values(
          files.map(({ key, fieldname, original_name }, position) => ({
            report_id: id,
            position,
            key,
            fieldname,
            original_name,
          })),
        )
        .execute()
    appendEvent(tx, context, {
      type: 'maintenance.report_created',
      hubId: form.hubId,
      async data() {
        const report = await readReport(tx.q, media, id)
        const media_assets = report.media_assets.map((asset) => ({ ...asset, url: asset.bucket_uri }))
        return { ...report, media_assets }
      },
    })
  })
}

/** A time without an offset is UTC. */
const instantOf = (text: string): number => Date.parse(/(Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`)

/** Reports that a credential may read. */
const visibleReports = (q: Queries, credential: OwnerCredential) =>
  q.selectFrom('maintenance_reports').where(ofReachedBooks(q, credential, 'maintenance_reports'))

/** Reports, newest first. */
async function listReports(
  q: Queries,
  media: Media,
  found: ReturnType<typeof visibleReports>,
  { page, perPage }: { page: number; perPage: number },
): Promise<{ logs: MaintenanceReport[]; total: number }> {
  const { total } = await found
    .select(({ fn }) => fn.countAll<number | bigint | string>().as('total'))
    .executeTakeFirstOrThrow()
  const rows = await found
    .selectAll('maintenance_reports')
    .orderBy('maintenance_reports.id', 'desc')
    .limit(perPage)
    .offset((page - 1) * perPage)
    .execute()
  return { logs: await viewReports(q, media, rows), total: Number(total) }
}

/** Reports in the format of the API. */
async function viewReports(
  q: Queries,
  media: Media,
  rows: readonly ReportRow[],
): Promise<MaintenanceReport[]> {
  const assets = await assetsOf(
    q,
    media,
    rows.map(({ id }) => id),
  )
  return rows.map((row) => viewReport(row, assets.get(row.id) ?? []))
}

const viewReport = (row: ReportRow, media_assets: Asset[]): MaintenanceReport => ({
  id: row.id,
  hub_id: row.hub_id,
  name: row.name,
  service_type: row.service_type,
  hub_tested: row.hub_tested,
  service_start_time: timestamp(row.service_start_time),
  service_end_time: timestampOrNull(row.service_end_time),
  description: row.description,
  components_serviced: Components.parse(JSON.parse(row.components_serviced)),
  media_assets,
  submitted_by: row.submitted_by,
  submitted_at: timestamp(row.submitted_at),
  created_at: timestamp(row.created_at),
})

/** Files a report that was made at the hub itself; once, even if the hub repeats it. */
export async function applyMaintenanceEntry(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entry: MaintenanceEntry,
): Promise<void> {
  const known = await tx.q
    .selectFrom('maintenance_reports')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('hub_report_id', '=', entry.report_id)
    .executeTakeFirst()
  if (known) return
  const row = await tx.q
    .insertInto('maintenance_reports')
    .values({
      id: await nextNumber(tx.q, 'maintenance'),
      hub_id: hubId,
      owner_id: (await readOwner(tx.q, hubId))!.owner_id,
      name: entry.name,
      service_type: entry.service_type,
      hub_tested: entry.hub_tested,
      service_start_time: Math.round(entry.started_at),
      service_end_time: Math.round(entry.ended_at),
      description: entry.description,
      components_serviced: JSON.stringify(entry.components_serviced),
      submitted_by: entry.submitted_by,
      submitted_at: Math.round(entry.ended_at),
      created_at: context.runtime.clock.now(),
      hub_report_id: entry.report_id,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  appendEvent(tx, context, {
    type: 'maintenance.report_created',
    hubId,
    data: () => Promise.resolve(viewReport(row, [])),
  })
}

const Components = z.array(z.string())

async function assetsOf(
  q: Queries,
  media: Media,
  reportIds: readonly number[],
): Promise<Map<number, Asset[]>> {
  const assets = new Map<number, Asset[]>()
  if (reportIds.length === 0) return assets
  const rows = await q
    .selectFrom('maintenance_media')
    .innerJoin('media', 'media.key', 'maintenance_media.key')
    .select(['report_id', 'fieldname', 'original_name', 'media.key', 'mime_type', 'size'])
    .where('report_id', 'in', reportIds)
    .orderBy('report_id')
    .orderBy('position')
    .execute()
  for (const { report_id, key, original_name, mime_type, size, fieldname } of rows)
    assets.set(report_id, [
      ...(assets.get(report_id) ?? []),
      {
        original_name,
        bucket_uri: `store://${key}`,
        mime_type,
        size,
        fieldname,
        url: media.addressOf(key),
      },
    ])
  return assets
}
