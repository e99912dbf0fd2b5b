import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'
import { MIB, type Form } from './form.ts'
import { defineRoutes } from './route.ts'

/** O §2. `url` is where the file can be fetched for a while; `bucket_uri` is where it is kept. */
export const MediaAsset = z
  .object({
    original_name: z.string(),
    bucket_uri: z.string(),
    mime_type: z.string(),
    size: z.int(),
    fieldname: z.string(),
    url: z.string(),
  })
  .meta({ id: 'MediaAsset' })

/** O §2; `name` and `submitted_at` are the form's `name` and `timestamp`. */
export const MaintenanceReport = z
  .object({
    id: Id,
    hub_id: Id,
    name: z.string(),
    service_type: z.string(),
    hub_tested: z.string().nullable(),
    service_start_time: Timestamp,
    service_end_time: Timestamp.nullable(),
    description: z.string().nullable(),
    components_serviced: z.array(z.string()),
    media_assets: z.array(MediaAsset),
    submitted_by: z.string(),
    submitted_at: Timestamp,
    created_at: Timestamp,
  })
  .meta({ id: 'MaintenanceReport' })
export type MaintenanceReport = z.infer<typeof MaintenanceReport>

/** An instant as people's programs write it: with an offset, or without one in UTC. */
const Instant = z.iso.datetime({ offset: true, local: true })

/** O §4.5, `formData`. */
export const MaintenanceForm = z.object({
  hubId: Id,
  name: z.string().min(1).max(200),
  submittedBy: z.string().min(1).max(200),
  /** `Corrective`, `Preventive`, or whatever it was. */
  serviceType: z.string().min(1).max(100),
  serviceStartTime: Instant,
  timestamp: Instant,
  hubTested: z.string().max(500).nullish(),
  serviceEndTime: Instant.nullish(),
  description: z.string().max(10_000).nullish(),
  componentsServiced: z.array(z.string().max(200)).max(100).nullish(),
})
export type MaintenanceForm = z.infer<typeof MaintenanceForm>

const reportForm = {
  fields: z.object({ formData: MaintenanceForm }),
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
        success: z.boolean(),
        message: z.string(),
        report: MaintenanceReport.pick({
          id: true,
          hub_id: true,
          service_type: true,
          created_at: true,
          media_assets: true,
        }),
      }),
      errors: ['unauthorized'],
      badValues: { 'body.formData.hubId': 'hub_id_required' },
      summary: 'File a maintenance report, with images and videos',
      description:
        'A multipart form. Files are judged by their content: png, jpeg, webp, gif up to 20 MiB each; mp4, mov, webm up to 100 MiB each; at most ten, and 200 MiB together. Either all of it is kept or nothing.',
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
        /** A hub's id; where it is absent or empty, all hubs that the credential reaches. */
        hub_id: z
          .string()
          .regex(/^\d{0,15}$/, 'must be the number of a hub, written in digits')
          .nullable()
          .default(null)
          .describe('Only this hub. If it is left out or empty: every hub that the credential reaches.'),
        page: z.int().min(1).default(1),
        per_page: z.int().min(1).max(100).default(20),
      }),
      response: z.object({
        logs: z.array(MaintenanceReport),
        total: z.int(),
        page: z.int(),
        per_page: z.int(),
      }),
      errors: ['unauthorized'],
      summary: 'Maintenance reports, newest first',
    },
    'owner.maintenance.get': {
      at: 'GET /owners/maintenance/reports/{log_id}',
      params: z.object({ log_id: Id }),
      response: MaintenanceReport,
      errors: ['not_found', 'unauthorized'],
      summary: 'One maintenance report',
    },
  },
)
