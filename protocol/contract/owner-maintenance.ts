import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { Id, Timestamp, HubId, CreatedAt, Success, Message, Page, Total } from './fields.ts'
import { MIB, type Form } from './form.ts'
import { defineRoutes } from './route.ts'

/** O §2. `url` is a signed address that expires; `bucket_uri` is the place in the media store. */
export const MediaAsset = z
  .object({
    original_name: z.string().describe('Name of the file as it was sent.'),
    bucket_uri: z.string().describe('Place of the file in the media store.'),
    mime_type: z.string().describe('Media type of the file, by its content.'),
    size: z.int().describe('Size in bytes.'),
    fieldname: z.string().describe('Field of the form that the file came in.'),
    url: z.string().describe('Signed address of the file. It expires: read the report again for a new one.'),
  })
  .meta({ id: 'MediaAsset', description: 'An image or video of a maintenance report.' })

/** O §2; `name` and `submitted_at` are the form's `name` and `timestamp`. */
export const MaintenanceReport = z
  .object({
    id: Id.describe('Number of the report.'),
    hub_id: HubId,
    name: z.string().describe('Title of the report.'),
    service_type: z
      .string()
      .describe('Kind of service, such as `Corrective`, `Preventive` or `Commissioning`.'),
    hub_tested: z.string().nullable().describe('Result of the test of the hub; null if there is none.'),
    service_start_time: Timestamp.describe('Start of the service (UTC).'),
    service_end_time: Timestamp.nullable().describe('End of the service (UTC); null if it was not named.'),
    description: z.string().nullable().describe('Description of the service; null if there is none.'),
    components_serviced: z.array(z.string()).describe('Serviced components.'),
    media_assets: z.array(MediaAsset).describe('Images and videos of the report.'),
    submitted_by: z.string().describe('Person who submitted the report.'),
    submitted_at: Timestamp.describe('Time of submission, as the caller named it (UTC).'),
    created_at: CreatedAt,
  })
  .meta({ id: 'MaintenanceReport', description: 'A report of service work at a hub.' })
export type MaintenanceReport = z.infer<typeof MaintenanceReport>

/** An instant with an offset, or without one in UTC. */
const Instant = z.iso.datetime({ offset: true, local: true })

/** O §4.5, `formData`. */
export const MaintenanceForm = z.object({
  hubId: HubId,
  name: nameText(200).describe('Title of the report.'),
  submittedBy: nameText(200).describe('Person who submits the report.'),
  serviceType: nameText(100).describe('Kind of service, such as `Corrective` or `Preventive`.'),
  serviceStartTime: Instant.describe('Start of the service (ISO 8601); without an offset in UTC.'),
  timestamp: Instant.describe('Time of submission (ISO 8601); without an offset in UTC.'),
  hubTested: z
    .string()
    .max(500)
    .nullish()
    .describe('Result of the test of the hub. If it is left out: null.'),
  serviceEndTime: Instant.nullish().describe(
    'End of the service (ISO 8601); without an offset in UTC. If it is left out: null.',
  ),
  description: z
    .string()
    .max(10_000)
    .nullish()
    .describe('Description of the service. If it is left out: null.'),
  componentsServiced: z
    .array(z.string().max(200))
    .max(100)
    .nullish()
    .describe('Serviced components. If it is left out: none.'),
})
export type MaintenanceForm = z.infer<typeof MaintenanceForm>

const reportForm = {
  fields: z.object({ formData: MaintenanceForm.describe('Fields of the report as JSON.') }),
  files: { media: { maxFiles: 10, imageBytes: 20 * MIB, videoBytes: 100 * MIB } },
  totalBytes: 200 * MIB,
  folder: 'maintenance',
  numbered: true,
} as const satisfies Form

/** O §4.5. Without access to the hub the code is `unauthorized` here. */
export const ownerMaintenanceRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'maintenance:read' },
    rate: 'standard',
    tag: 'Maintenance',
  },
  {
    'owner.maintenance.create': {
      at: 'POST /owners/maintenance/reports',
      idempotent: true,
      auth: { kind: 'api', scope: 'maintenance:write' },
      form: reportForm,
      response: z.object({
        success: Success,
        message: Message,
        report: MaintenanceReport.pick({
          id: true,
          hub_id: true,
          service_type: true,
          created_at: true,
          media_assets: true,
        }).describe('Report without its texts.'),
      }),
      errors: ['unauthorized'],
      badValues: { 'body.formData.hubId': 'hub_id_required' },
      summary: 'File a maintenance report, with images and videos',
      description:
        'A multipart form: `formData` is JSON, `media` are files. Files are judged by their content: png, jpeg, webp, gif up to 20 MiB each; mp4, mov, webm up to 100 MiB each; at most ten files and 200 MiB together. The service stores all of the report or nothing.',
      examples: {
        body: {
          formData: {
            hubId: 1,
            name: 'Lift of bin 2',
            submittedBy: 'tech-17',
            serviceType: 'Corrective',
            serviceStartTime: '2026-03-01T09:00:00Z',
            timestamp: '2026-03-01T10:30:00Z',
            componentsServiced: ['lift', 'door'],
          },
        },
      },
    },
    'owner.maintenance.list': {
      at: 'GET /owners/maintenance/reports',
      query: z.object({
        /** A hub's id; if absent or empty, all hubs of the credential. */
        hub_id: z
          .string()
          .regex(/^\d{0,15}$/, 'must be the number of a hub, written in digits')
          .nullable()
          .default(null)
          .describe('Only this hub. If it is left out or empty: every hub that the credential reaches.'),
        page: Page,
        per_page: z.int().min(1).max(100).default(20).describe('Maximum number of reports of the page.'),
      }),
      response: z.object({
        logs: z.array(MaintenanceReport).describe('Reports of this page.'),
        total: Total,
        page: z.int().describe('Number of this page.'),
        per_page: z.int().describe('Maximum number of reports of a page.'),
      }),
      errors: ['unauthorized'],
      summary: 'List maintenance reports, newest first',
      description: 'Reports of commissioning are made at the hub itself and appear here too.',
    },
    'owner.maintenance.get': {
      at: 'GET /owners/maintenance/reports/{log_id}',
      params: z.object({ log_id: Id.describe('Number of the report.') }),
      response: MaintenanceReport,
      errors: ['not_found', 'unauthorized'],
      summary: 'Read one maintenance report',
      description: 'The addresses of its files expire: read the report again for new ones.',
    },
  },
)
